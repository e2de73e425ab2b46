package render

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Memory has the values of a rendering that the next one of the chart needs. It contains secrets, and is stored as
// such.
type Memory struct {
	Values    map[string]any         `json:"values,omitempty"` // of the site
	Generated *chart.GeneratedValues `json:"memo,omitempty"`
	// Rotations are the rotations of the rendered Secrets and ConfigMaps.
	Rotations Rotations `json:"rotations,omitempty"`
}

// Rotate notes which Secrets and ConfigMaps of a chart have other values than before, and returns their names as [Rotations] has them.
func (m *Memory) Rotate(before, now []*unstructured.Unstructured) []string {
	return m.Rotations.note(before, now)
}

// Say adds values of the site to those that it has given before, or with reset puts them in their place.
func (m *Memory) Say(values map[string]any, reset bool) {
	if reset {
		m.Values = nil
	}
	m.Values = MergeValues(m.Values, values)
}

// Encode returns the memory as JSON, the same bytes for the same memory.
func (m *Memory) Encode() ([]byte, error) {
	if m.Generated != nil {
		if err := m.Generated.Check(); err != nil {
			return nil, err
		}
	}
	return json.Marshal(m)
}

// DecodeMemory reads what [Memory.Encode] wrote; no data are an empty memory.
func DecodeMemory(data []byte) (*Memory, error) {
	m := &Memory{}
	if len(data) == 0 {
		return m, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, report.Errorf(report.Corrupt, "memory of a chart: %w", err)
	}
	return m, nil
}

// MergeValues puts values of charts over others, table by table. Neither of both is changed.
func MergeValues(under, over map[string]any) map[string]any { return chart.MergeValues(under, over) }
