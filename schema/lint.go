package schema

import "github.com/solutionctl/solutionctl/schema/report"

// LintReport holds the findings on projects and archives. `solutionctl lint` prints it.
type LintReport struct {
	Targets  []LintTarget `json:"targets"`
	Errors   int          `json:"errors" schema:"minimum=0"`
	Warnings int          `json:"warnings" schema:"minimum=0"`
	Notes    int          `json:"notes" schema:"minimum=0"`
}

// LintTarget holds the findings on one project or archive.
type LintTarget struct {
	Path string `json:"path"`
	Kind string `json:"kind" schema:"enum=project|directory|iso"`
	// KubernetesVersions are the releases that it was judged for, oldest first.
	KubernetesVersions []string            `json:"kubernetesVersions"`
	Findings           []report.Finding    `json:"findings"` // their paths are relative to Path
	Suppressed         []SuppressedFinding `json:"suppressed"`
	// Fixed are the files that were corrected, relative to the current directory.
	Fixed []string `json:"fixed,omitempty"`
}

// SuppressedFinding is a finding that the project suppresses.
type SuppressedFinding struct {
	Finding report.Finding `json:"finding"`
	Reason  string         `json:"reason" schema:"minLength=1"`
}
