package prometheus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"time"
)

// AlertsPath is the path of the alerts of a Prometheus, or of a ruler of Thanos.
const AlertsPath = "/api/v1/alerts"

// Alert is an alert that fires or is about to.
type Alert struct {
	Labels      Pairs     `json:"labels"`
	Annotations Pairs     `json:"annotations"`
	State       string    `json:"state"`
	Since       time.Time `json:"activeAt"`
}

// Pairs are labels or annotations.
type Pairs map[string]string

// maxPairs is how many labels or annotations an alert may have.
const maxPairs = 100

// UnmarshalJSON refuses more labels than any real alert has, before they use memory.
func (p *Pairs) UnmarshalJSON(data []byte) error {
	*p = Pairs{}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return fmt.Errorf("labels are not an object")
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		if len(*p) == maxPairs {
			return fmt.Errorf("an alert has more than %d labels or annotations", maxPairs)
		}
		var value string
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		(*p)[name.(string)] = value
	}
	return nil
}

// Alerts reads an answer to [AlertsPath], one alert after the other. The answer is not trusted, and the caller can stop
// at any alert. The first error ends the sequence.
func Alerts(answer []byte) iter.Seq2[Alert, error] {
	return func(yield func(Alert, error) bool) {
		var head struct {
			Status string `json:"status"`
			Data   *struct {
				Alerts json.RawMessage `json:"alerts"`
			} `json:"data"`
		}
		if err := json.Unmarshal(answer, &head); err != nil {
			yield(Alert{}, fmt.Errorf("the answer is not that of a Prometheus: %w", err))
			return
		}
		if head.Status != "success" || head.Data == nil {
			yield(Alert{}, fmt.Errorf("the answer is not that of a Prometheus"))
			return
		}
		decoder := json.NewDecoder(bytes.NewReader(head.Data.Alerts))
		if open, err := decoder.Token(); err != nil || open != json.Delim('[') {
			yield(Alert{}, fmt.Errorf("the answer has no list of alerts"))
			return
		}
		for decoder.More() {
			var a Alert
			if err := decoder.Decode(&a); err != nil {
				yield(Alert{}, fmt.Errorf("the answer is not that of a Prometheus: %w", err))
				return
			}
			if a.State != "firing" && a.State != "pending" { // newer ones know of more, none of which is an alert
				continue
			}
			if !yield(a, nil) {
				return
			}
		}
	}
}
