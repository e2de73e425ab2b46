package schema

// Applications holds the definitions of the Solution that is deployed in a namespace, for the forms of its instances. It
// lies in that namespace, in ConfigMap <solution>-applications, key applications.json.gz, for users who can read nothing
// else. Any user with write access there may have changed it, so it only decides which fields a form shows. The API server
// checks permissions and values.
type Applications struct {
	Stamp
	Solution string `json:"solution"`
	Version  string `json:"version"`
	// Definitions are CustomResourceDefinitions with what a form needs of them.
	Definitions []map[string]any `json:"definitions"`
}
