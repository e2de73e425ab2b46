package page

import "github.com/solutionctl/solutionctl/schema"

// AlertState is the answer of the cluster's Prometheus, or its error.
type AlertState struct {
	List *schema.AlertList // nil without an answer
	// Problem is why, nil where no Prometheus of this cluster is known.
	Problem *Problem
}

// IsEmpty reports whether there is nothing to show: no answer yet, or no Prometheus.
func (h *AlertState) IsEmpty() bool { return h == nil || h.List == nil && h.Problem == nil }

// Pending is how many alerts are about to fire.
func (h *AlertState) Pending() int { return len(h.List.Alerts) - h.List.Firing() }

// Unseen is the reason why there is no answer, with the missing permissions.
func (h *AlertState) Unseen() schema.Unseen { return h.Problem.Unseen(h.Problem.Message) }

// Alerts has the alerts of the whole cluster: /alerts.
type Alerts struct {
	AlertState *AlertState
	// Hints are remedies where no Prometheus of this cluster is known.
	Hints []string
}

// Rows are the alerts that the page shows.
func (a *Alerts) Rows() alertRows { return rowsOf(a.AlertState, "", "") }

// Alerting are the alerts about the environment.
func (c *Environment) Alerting() alertRows { return rowsOf(c.AlertState, c.Status.Name, "") }

// Alerting are the alerts about the Solution.
func (s *Solution) Alerting() alertRows { return rowsOf(s.AlertState, "", s.Status.Name) }

// alertRows are alerts on a page.
type alertRows struct {
	*AlertState
	Alerts []schema.Alert
}

func rowsOf(h *AlertState, environment, solution string) alertRows {
	rows := alertRows{AlertState: h}
	if h != nil {
		rows.Alerts = h.List.In(environment, solution)
	}
	return rows
}

func (*Alerts) name() string  { return "alerts" }
func (*Alerts) title() string { return Text("alerts.title") }
