package schema

import "time"

// EndpointList holds the addresses at which nodes get images. `solutionctl deploy registry` prints it.
type EndpointList struct {
	Mode      RegistryMode `json:"mode,omitempty"` // empty before the first import
	Host      string       `json:"host,omitempty"` // the name in front of every image reference
	Endpoints []Endpoint   `json:"endpoints"`
}

// Endpoint is a URL of the registry.
type Endpoint struct {
	URL string `json:"url"`
	// Authorities may have signed its certificate; there are none where nodes trust it anyway, or by plain HTTP.
	Authorities []EndpointAuthority `json:"authorities"`
	// Answer is the answer of the endpoint, where it was asked.
	Answer *EndpointAnswer `json:"answer,omitempty"`
}

// EndpointAnswer is the answer of an endpoint that was asked for the imported versions.
type EndpointAnswer struct {
	Serves  int      `json:"serves" schema:"minimum=0"` // versions
	Missing []string `json:"missing"`                   // the other ones, as NAME-VERSION
	// Problem is why nodes get nothing from it.
	Problem string `json:"problem,omitempty"`
}

// EndpointAuthority is a certificate by which nodes trust an endpoint.
type EndpointAuthority struct {
	Fingerprint string    `json:"fingerprint" schema:"fingerprint"` // SHA256: and hexadecimal digits
	NotAfter    time.Time `json:"notAfter"`
}
