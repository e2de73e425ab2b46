package schema

import "time"

// EventList holds what Kubernetes has reported about the objects of Solutions in an environment, the newest last.
type EventList struct {
	Environment string        `json:"environment"`
	Events      []ObjectEvent `json:"events"`
}

// ObjectEvent is an Event of Kubernetes about an object. Reason and Message are the words of the program that reports it.
type ObjectEvent struct {
	ObjectRef
	Type    string    `json:"type"` // Normal or Warning
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Count   int64     `json:"count" schema:"minimum=1"` // how often it was reported
	Last    time.Time `json:"last"`                     // when it was reported last
}
