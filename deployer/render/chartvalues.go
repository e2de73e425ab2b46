package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ChartValues are the values that the next rendering of a chart needs: those of the site and the generated ones. They contain secrets, and
// are stored as such.
type ChartValues struct {
	Values    Values                 `json:"values,omitempty"` // of the site
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

// Values are values of a site. A whole number that is not a float stays one when they are stored: templates print large ones with all digits.
type Values map[string]any

// wholeMark ends a whole number in stored values. Numbers without it are floats, as those of files are.
const wholeMark = "e0"

// MarshalJSON marks whole numbers.
func (v Values) MarshalJSON() ([]byte, error) {
	return json.Marshal(eachNumber(map[string]any(v), func(number any) any {
		switch number := number.(type) {
		case int:
			return json.Number(strconv.Itoa(number) + wholeMark)
		case int64:
			return json.Number(strconv.FormatInt(number, 10) + wholeMark)
		}
		return number
	}))
}

// UnmarshalJSON reads what [Values.MarshalJSON] and earlier versions wrote.
func (v *Values) UnmarshalJSON(data []byte) error {
	var values map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&values); err != nil {
		return err
	}
	var failure error
	read, _ := eachNumber(values, func(number any) any {
		text, _ := number.(json.Number)
		if whole, marked := strings.CutSuffix(text.String(), wholeMark); marked {
			if n, err := strconv.ParseInt(whole, 10, 64); err == nil {
				return n
			}
		}
		n, err := text.Float64()
		failure = cmp.Or(failure, err)
		return n
	}).(map[string]any)
	*v = read
	return failure
}

// eachNumber returns a value with other numbers in it. The argument is not changed.
func eachNumber(value any, other func(any) any) any {
	switch value := value.(type) {
	case map[string]any:
		if value == nil {
			return value
		}
		table := make(map[string]any, len(value))
		for key, inner := range value {
			table[key] = eachNumber(inner, other)
		}
		return table
	case []any:
		list := make([]any, len(value))
		for i, inner := range value {
			list[i] = eachNumber(inner, other)
		}
		return list
	case int, int64, float64, json.Number:
		return other(value)
	default:
		return value
	}
}
