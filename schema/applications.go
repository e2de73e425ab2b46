package schema

// Applications holds the definitions of the Solution that is deployed in a namespace, for the forms of its instances. It lies
// in that namespace, in ConfigMap <solution>-applications, key applications.json.gz, for people who may read nothing else:
// whoever may write there may have changed it, so it decides nothing but what a form asks for. Rights and values are judged
// by the API server.
type Applications struct {
	Stamp
	Solution string `json:"solution"`
	Version  string `json:"version"`
	// Definitions are CustomResourceDefinitions with what a form needs of them.
	Definitions []map[string]any `json:"definitions"`
}
