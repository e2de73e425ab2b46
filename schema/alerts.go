package schema

import (
	"slices"
	"time"
)

// AlertList holds the alerts that are about Solutions, their environments or solutionctl itself, as far as the cluster's Prometheus
// knows: the ones that fire first. `solutionctl deploy alerts` prints it.
type AlertList struct {
	Alerts []Alert `json:"alerts"`
	// Asked lists the Prometheus services that answered.
	Asked []string `json:"asked"`
	// Unseen lists the Prometheus services that the caller is not allowed to query.
	Unseen []Unseen `json:"unseen,omitempty"`
	// Problems lists services that did not answer and alerts that are not shown, one sentence each.
	Problems []string `json:"problems"`
}

// Alert is one alert.
type Alert struct {
	Name     string     `json:"name"`
	State    AlertState `json:"state"`
	Since    time.Time  `json:"since"`
	Severity string     `json:"severity,omitempty"`
	// Environment and Namespace are where it is about; empty for the whole cluster.
	Environment string `json:"environment,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	// Solution is empty for an alert about an environment, or about solutionctl itself.
	Solution    string `json:"solution,omitempty"`
	Summary     string `json:"summary,omitempty"`
	Description string `json:"description,omitempty"`
	// Runbook describes the remedy, or is a link to it.
	Runbook string `json:"runbook,omitempty"`
	// Labels are all that it has.
	Labels map[string]string `json:"labels"`
}

// AlertState is how far an alert is.
type AlertState string

// The states of an alert.
const (
	AlertFiring  AlertState = "firing"
	AlertPending AlertState = "pending" // its condition holds, but not for long enough yet
)

// In returns the alerts about an environment and a Solution; "" is any.
func (l *AlertList) In(environment, solution string) []Alert {
	var found []Alert
	if l == nil {
		return nil
	}
	for _, a := range l.Alerts {
		if (environment == "" || a.Environment == environment) && (solution == "" || a.Solution == solution) {
			found = append(found, a)
		}
	}
	return found
}

// Firing is how many of the alerts fire.
func (l *AlertList) Firing() int {
	return len(slices.DeleteFunc(l.In("", ""), func(a Alert) bool { return a.State != AlertFiring }))
}
