package schema

// Diagnosis is what `solutionctl deploy doctor` prints: what it has looked at, and what it found.
type Diagnosis struct {
	Problems int     `json:"problems"` // checks whose result is problem
	Warnings int     `json:"warnings"`
	Checks   []Check `json:"checks"`
}

// CheckResult is the outcome of a check in one word.
type CheckResult string

// The results.
const (
	CheckOK      CheckResult = "ok"
	CheckWarning CheckResult = "warning" // it works, or somebody has to decide whether it should
	CheckProblem CheckResult = "problem" // something does not work, or will not
	CheckSkipped CheckResult = "skipped" // it could not be looked at, or there is nothing to look at
)

// Check is one thing that was looked at.
type Check struct {
	// Area is host, node, cluster, rights, records or registry.
	Area string `json:"area"`
	// Name is a stable word within the area.
	Name    string      `json:"name"`
	Result  CheckResult `json:"result"`
	Message string      `json:"message"`
	// Hint says what to do, with the command.
	Hint string `json:"hint,omitempty"`
}
