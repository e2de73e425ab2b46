package render

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ChartValues are the values that the next rendering of a chart needs: those of the site and the generated ones. They contain secrets, and
// are stored as such.
type ChartValues struct {
	Values    map[string]any         `json:"values,omitempty"` // of the site
	Generated *chart.GeneratedValues `json:"memo,omitempty"`   // the name in records of all versions
	// Rotations are the rotations of the rendered Secrets and ConfigMaps.
	Rotations Rotations `json:"rotations,omitempty"`
}

// Rotate records which Secrets and ConfigMaps of a chart have other values than before, and returns their names as [Rotations] has them.
func (v *ChartValues) Rotate(before, now []*unstructured.Unstructured) []string {
	return v.Rotations.note(before, now)
}

// SetValues merges values of the site over the earlier ones, or with reset replaces them.
func (v *ChartValues) SetValues(values map[string]any, reset bool) {
	if reset {
		v.Values = nil
	}
	v.Values = MergeValues(v.Values, values)
}

// Encode returns JSON, the same bytes for the same values.
func (v *ChartValues) Encode() ([]byte, error) {
	if v.Generated != nil {
		if err := v.Generated.Check(); err != nil {
			return nil, err
		}
	}
	return json.Marshal(v)
}

// DecodeChartValues reads the output of [ChartValues.Encode]; empty data give empty values.
func DecodeChartValues(data []byte) (*ChartValues, error) {
	v := &ChartValues{}
	if len(data) == 0 {
		return v, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return nil, report.Errorf(report.Corrupt, "stored values of a chart: %w", err)
	}
	return v, nil
}

// MergeValues puts values of charts over others, table by table. Neither of both is changed.
func MergeValues(under, over map[string]any) map[string]any { return chart.MergeValues(under, over) }
