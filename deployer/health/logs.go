package health

import "github.com/solutionctl/solutionctl/schema/lazyregexp"

// A Log is that of a container that a reason is about. Previous is true when the container was started again since, or is about to be.
type Log struct {
	Pod, Container string
	Previous       bool
}

// ofContainer matches a reason about a container that has run.
var ofContainer = lazyregexp.New(`(?:^|: )pod ([^ :]+)(?: and \d+ more)?: (?:initialization )?container ([^ :]+):? (ends again and again|has ended|has not ended yet|runs again|runs,)`)

// LogOf returns the log that has more about a reason of [Explain] or [Crashes], which can stand behind the name of an object. There is none of a
// container that was never started, and of a reason about anything else.
func LogOf(reason string) (log Log, ok bool) {
	m := ofContainer.FindStringSubmatch(reason)
	if m == nil {
		return log, false
	}
	return Log{Pod: m[1], Container: m[2], Previous: m[3] == "ends again and again" || m[3] == "runs again"}, true
}
