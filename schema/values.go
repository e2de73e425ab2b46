package schema

// SolutionValues are the values that a site can set of the charts of a version. `solutionctl deploy values` and `solutionctl inspect --values`
// print them.
type SolutionValues struct {
	Solution    string            `json:"solution"`
	Version     string            `json:"version"`
	Environment string            `json:"environment,omitempty"` // where it is deployed
	Namespace   string            `json:"namespace,omitempty"`
	Components  []ComponentValues `json:"components"`
}

// ComponentValues are the values of one component that is a chart.
type ComponentValues struct {
	Component string       `json:"component"`
	Chart     string       `json:"chart"` // NAME-VERSION
	Values    []ChartValue `json:"values"`
}

// ChartValue is a value of a chart.
type ChartValue struct {
	AppField
	// Set is true when the site has set the value, or a value that it is a part of.
	Set bool `json:"set,omitempty"`
	// Value is that of the site, as JSON; absent for a secret.
	Value string `json:"value,omitempty"`
	// Locked is true when the vendor lets no site set it.
	Locked bool `json:"locked,omitempty"`
}
