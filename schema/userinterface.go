package schema

// UserInterface is where the user interface of a Solution is: at the URLs of its Ingresses, or without one behind a Service.
type UserInterface struct {
	Environment string   `json:"environment"`
	Solution    string   `json:"solution"`
	URLs        []string `json:"urls"`
	// Backend is the Service that connections are forwarded to, when no Ingress has an address.
	Backend *ServiceBackend `json:"backend,omitempty"`
}

// ServiceBackend is a ready pod of a Service.
type ServiceBackend struct {
	Namespace string `json:"namespace"`
	Service   string `json:"service"`
	Pod       string `json:"pod"`
	Port      int    `json:"port" schema:"minimum=1"` // of the pod
	TLS       bool   `json:"tls"`
}
