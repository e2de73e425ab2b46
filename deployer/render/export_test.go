package render

// NewPayload makes a payload of files without an archive around them.
func NewPayload(files map[string]string, images ...Image) (*Payload, error) {
	m := map[string][]byte{}
	for name, text := range files {
		m[name] = []byte(text)
	}
	return newPayload(m, images)
}

// ClusterScoped is the table of kinds without a namespace.
func ClusterScoped() map[string][]string { return clusterScoped }
