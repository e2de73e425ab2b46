package schema

import "github.com/solutionctl/solutionctl/schema/report"

// LintReport is what `solutionctl lint` prints.
type LintReport struct {
	Targets  []LintTarget `json:"targets"`
	Errors   int          `json:"errors"`
	Warnings int          `json:"warnings"`
	Notes    int          `json:"notes"`
}

// LintTarget is what is said about one project or archive. Paths of findings are relative to it.
type LintTarget struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
	// KubernetesVersions are the releases that it was judged for, oldest first.
	KubernetesVersions []string            `json:"kubernetesVersions"`
	Findings           []report.Finding    `json:"findings"`
	Suppressed         []SuppressedFinding `json:"suppressed"`
	// Fixed are the files that were corrected, relative to the current directory.
	Fixed []string `json:"fixed,omitempty"`
}

// SuppressedFinding is a finding that somebody does not want to see.
type SuppressedFinding struct {
	Finding report.Finding `json:"finding"`
	Reason  string         `json:"reason"`
}
