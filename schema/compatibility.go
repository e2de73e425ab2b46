package schema

// Compatibility tells which imported versions of a Solution can be active beside what is deployed. All of them share the
// custom resource definitions of the cluster.
type Compatibility struct {
	Solution string `json:"solution"`
	// Active is the version that is active now; empty when none is.
	Active string `json:"active,omitempty"`
	// Versions are all that were imported, the lowest first.
	Versions []VersionCompatibility `json:"versions"`
}

// VersionCompatibility is what activating one version would mean.
type VersionCompatibility struct {
	Version string               `json:"version"`
	Verdict CompatibilityVerdict `json:"verdict"`
	// Operators are those of all environments, in the order of environments and namespaces.
	Operators []OperatorCompatibility `json:"operators"`
	// Losses are what stored objects would lose, one line each; Notices what else would happen to them.
	Losses  []string `json:"losses"`
	Notices []string `json:"notices"`
	// Refusals are what else stands against it: stored objects that would not be valid any more, and definitions that the API
	// server never replaces.
	Refusals []string `json:"refusals,omitempty"`
}

// OperatorCompatibility is what becomes of the operator in a namespace when a version is active.
type OperatorCompatibility struct {
	Environment string               `json:"environment"`
	Namespace   string               `json:"namespace"`
	Version     string               `json:"version"`
	Verdict     CompatibilityVerdict `json:"verdict"`
	// Kept are API versions that stay served for it, Missing those that it would have to do without, and Reasons say why.
	Kept    []CRDRequirement `json:"kept"`
	Missing []CRDRequirement `json:"missing"`
	Reasons []string         `json:"reasons"`
}

// CompatibilityVerdict is how something fits together.
type CompatibilityVerdict string

// The verdicts.
const (
	CompatibilityYes   CompatibilityVerdict = "yes"       // as it is
	CompatibilityKeeps CompatibilityVerdict = "keeps"     // because API versions stay served that the version does not have itself
	CompatibilityNo    CompatibilityVerdict = "no"        // an operator would have to do without what it works with, or the definitions are refused
	CompatibilityLoss  CompatibilityVerdict = "data-loss" // stored objects would lose data
)
