package schema

import "strings"

// Diagnosis holds the checks of a host and a cluster. `solutionctl deploy doctor` prints it.
type Diagnosis struct {
	Problems int     `json:"problems" schema:"minimum=0"` // checks whose result is problem
	Warnings int     `json:"warnings" schema:"minimum=0"` // checks whose result is warning
	Checks   []Check `json:"checks"`
}

// CheckResult is the outcome of a check in one word.
type CheckResult string

// The results.
const (
	CheckOK      CheckResult = "ok"
	CheckWarning CheckResult = "warning" // it works, or the administrator has to decide whether it should
	CheckProblem CheckResult = "problem" // something does not work, or will not
	CheckSkipped CheckResult = "skipped" // it could not be looked at, or there is nothing to look at
)

// Check is one check of a [Diagnosis]. Area, Name and Object identify it.
type Check struct {
	Area string `json:"area" schema:"enum=host|node|cluster|rights|records|loader|registry"`
	// Name is a stable word within the area.
	Name string `json:"name"`
	// Object is the object of a check that has a row for each, such as an endpoint, an archive or a webhook.
	Object  string      `json:"object,omitempty"`
	Result  CheckResult `json:"result"`
	Message string      `json:"message"`
	// Hint is the remedy, with the command.
	Hint string `json:"hint,omitempty"`
	// Unread is set where an error kept the check from running, or where problems are left out: an earlier one may last.
	Unread bool `json:"unread,omitempty"`
}

// Subject identifies a check.
func (c *Check) Subject() string { return strings.TrimSpace(c.Area + " " + c.Name + " " + c.Object) }
