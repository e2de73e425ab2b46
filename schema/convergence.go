package schema

import "strings"

// Convergence is the work that applies a [SolutionsConfiguration] to a cluster, in the order of the fields. `solutionctl
// deploy apply` prints it.
type Convergence struct {
	// Planned convergences were not carried out.
	Planned    bool             `json:"planned"`
	Import     []ConvergeImport `json:"import"`
	Activate   []SolutionAt     `json:"activate"`
	Deactivate []SolutionAt     `json:"deactivate"`
	Unimport   []SolutionAt     `json:"unimport"`
	Notices    []string         `json:"notices"`
}

// ConvergeImport is an archive to import.
type ConvergeImport struct {
	SolutionAt
	Path string `json:"path"`
}

// SolutionAt is a Solution in a version.
type SolutionAt struct {
	Solution string `json:"solution"`
	Version  string `json:"version"`
}

// ID is <name>-<version>.
func (s SolutionAt) ID() string { return s.Solution + "-" + s.Version }

// Empty reports whether there is nothing to do.
func (c *Convergence) Empty() bool {
	return len(c.Import)+len(c.Activate)+len(c.Deactivate)+len(c.Unimport) == 0
}

// ConsequencesText describes what the steps mean for the users of the cluster, in one sentence without a full stop; "" if there are none.
func (c *Convergence) ConsequencesText() string {
	var clauses []string
	for _, i := range c.Import {
		clauses = append(clauses, i.Solution+" "+i.Version+" can be deployed")
	}
	for _, s := range c.Activate {
		clauses = append(clauses, VersionChange{Solution: s.Solution, To: s.Version}.String())
	}
	for _, s := range c.Deactivate {
		clauses = append(clauses, VersionChange{Solution: s.Solution, From: s.Version}.String())
	}
	for _, s := range c.Unimport {
		clauses = append(clauses, s.Solution+" "+s.Version+" can no longer be deployed, and its images are no longer served")
	}
	return strings.Join(clauses, "; ")
}
