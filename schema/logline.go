package schema

import "time"

// LogLine is a line that a container has written, as `solutionctl deploy logs --output json` prints one a line.
type LogLine struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Container string `json:"container"`
	// Time is when the node has taken it, absent where the node does not say.
	Time time.Time `json:"time,omitzero"`
	// Text is as it was written, or a piece of a line that is longer than 64 KiB.
	Text string `json:"text"`
}
