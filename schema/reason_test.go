package schema

import (
	"encoding/json"
	"testing"
)

// TestReason: a document has the sentences of reasons, as it had when they were nothing else.
func TestReason(t *testing.T) {
	status := ComponentStatus{Reasons: []Reason{
		{Component: "web", Object: ObjectRef{Kind: "Deployment", Name: "a"}, Changed: true, Text: "Deployment a was changed"},
		{Log: ContainerLog{Pod: "a", Container: "b"}, Text: "pod a: container b: has ended: exit code 1"},
	}}
	data, err := json.Marshal(status.Reasons)
	const want = `["component web: Deployment a was changed","pod a: container b: has ended: exit code 1"]`
	if err != nil || string(data) != want {
		t.Errorf("got %s, %v, want %s", data, err, want)
	}
	var read []Reason
	if err = json.Unmarshal(data, &read); err != nil || len(read) != 2 || read[0] != (Reason{Text: "component web: Deployment a was changed"}) {
		t.Errorf("read as %+v, %v", read, err)
	}
}
