package schema

// Compatibility judges for each imported version of a Solution whether it can be active beside what is deployed. All of them
// share the custom resource definitions of the cluster. `solutionctl deploy compatibility` prints it.
type Compatibility struct {
	Solution string `json:"solution"`
	// Active is the version that is active now; empty when none is.
	Active string `json:"active,omitempty"`
	// Versions are all that were imported, the lowest first.
	Versions []VersionCompatibility `json:"versions"`
}

// VersionCompatibility holds the consequences of activating one version.
type VersionCompatibility struct {
	Version string               `json:"version"`
	Verdict CompatibilityVerdict `json:"verdict"`
	// Operators lists the operators of all environments, sorted by environment and namespace.
	Operators []OperatorCompatibility `json:"operators"`
	// Losses lists the fields that stored objects would lose, one line each.
	Losses []string `json:"losses"`
	// Notices lists other changes for stored objects and clients.
	Notices []string `json:"notices"`
	// Refusals are other reasons against it: stored objects that would not be valid any more, and definitions that the API
	// server never replaces.
	Refusals []string `json:"refusals,omitempty"`
}

// OperatorCompatibility judges whether the operator in a namespace works while a version is active.
type OperatorCompatibility struct {
	Environment string               `json:"environment"`
	Namespace   string               `json:"namespace"`
	Version     string               `json:"version"`
	Verdict     CompatibilityVerdict `json:"verdict"`
	// Kept are API versions that stay served for it.
	Kept []CRDRequirement `json:"kept"`
	// Missing are API versions that it would have to do without.
	Missing []CRDRequirement `json:"missing"`
	// Reasons say why, one sentence each.
	Reasons []string `json:"reasons"`
}

// CompatibilityVerdict is the judgement on a version, or on an operator beside it.
type CompatibilityVerdict string

// The verdicts.
const (
	CompatibilityYes   CompatibilityVerdict = "yes"       // as it is
	CompatibilityKeeps CompatibilityVerdict = "keeps"     // because API versions stay served that the version does not have itself
	CompatibilityNo    CompatibilityVerdict = "no"        // an operator would have to do without what it works with, or the definitions are refused
	CompatibilityLoss  CompatibilityVerdict = "data-loss" // stored objects would lose data
)
