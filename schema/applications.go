package schema

// Applications is what the version of a Solution in a namespace offers to whoever runs applications there. It lies in that
// namespace, for people who may read nothing else: whoever may write there may have changed it, so it decides nothing but
// what a form asks for. Rights and values are judged by the API server.
type Applications struct {
	Stamp
	Solution string `json:"solution"`
	Version  string `json:"version"`
	// Definitions are CustomResourceDefinitions with what a form needs of them.
	Definitions []map[string]any `json:"definitions"`
}
