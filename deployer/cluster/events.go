package cluster

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/solutionctl/solutionctl/schema"
)

// maxEventMessage bounds the message of an Event, in bytes.
const maxEventMessage = 1000

// EventOf reads an Event, whose fields depend on the age of the program that reports it.
func EventOf(e *corev1.Event) schema.ObjectEvent {
	event := schema.ObjectEvent{
		ObjectRef: schema.ObjectRef{APIVersion: e.InvolvedObject.APIVersion, Kind: e.InvolvedObject.Kind, Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name},
		Type:      e.Type, Reason: e.Reason, Message: strings.ToValidUTF8(e.Message[:min(len(e.Message), maxEventMessage)], ""),
		Count: max(int64(e.Count), 1), Last: e.LastTimestamp.Time,
	}
	if e.Series != nil {
		event.Count, event.Last = max(int64(e.Series.Count), event.Count), e.Series.LastObservedTime.Time
	}
	for _, at := range []time.Time{e.EventTime.Time, e.FirstTimestamp.Time, e.CreationTimestamp.Time} {
		if event.Last.IsZero() {
			event.Last = at
		}
	}
	event.Last = event.Last.UTC()
	return event
}
