package schema

import "time"

// EventList holds what Kubernetes has reported about the objects of Solutions in an environment, the newest last.
type EventList struct {
	Environment string        `json:"environment"`
	Events      []ObjectEvent `json:"events"`
}

// ObjectEvent is an Event of Kubernetes.
type ObjectEvent struct {
	ObjectRef
	// Last is when it was reported last, and Count how often.
	Last  time.Time `json:"last"`
	Count int       `json:"count" schema:"minimum=1"`
	Type  string    `json:"type"` // Normal or Warning
	// Reason and Message are the words of the program that reports it.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}
