package page

import "github.com/solutionctl/solutionctl/schema"

// Heard is the answer of the cluster's Prometheus, or its error.
type Heard struct {
	List *schema.AlertList // nil without an answer
	// Problem is why, nil where no Prometheus of this cluster is known.
	Problem *Problem
}

// IsSilent reports whether there is nothing to show: no answer yet, or no Prometheus.
func (h *Heard) IsSilent() bool { return h == nil || h.List == nil && h.Problem == nil }

// Pending is how many alerts are about to fire.
func (h *Heard) Pending() int { return len(h.List.Alerts) - h.List.Firing() }

// Unseen is the reason why there is no answer, with the missing permissions.
func (h *Heard) Unseen() schema.Unseen { return h.Problem.Unseen(h.Problem.Message) }

// Alerts has the alerts of the whole cluster: /alerts.
type Alerts struct {
	Heard *Heard
	// Hints are remedies where no Prometheus of this cluster is known.
	Hints []string
}

// Rows are the alerts that the page shows.
func (a *Alerts) Rows() alertRows { return rowsOf(a.Heard, "", "") }

// Alerting are the alerts about the environment.
func (c *Environment) Alerting() alertRows { return rowsOf(c.Heard, c.Status.Name, "") }

// Alerting are the alerts about the Solution.
func (s *Solution) Alerting() alertRows { return rowsOf(s.Heard, "", s.Status.Name) }

// alertRows are alerts on a page.
type alertRows struct {
	*Heard
	Alerts []schema.Alert
}

func rowsOf(h *Heard, environment, solution string) alertRows {
	rows := alertRows{Heard: h}
	if h != nil {
		rows.Alerts = h.List.In(environment, solution)
	}
	return rows
}

func (*Alerts) name() string  { return "alerts" }
func (*Alerts) title() string { return Text("alerts.title") }
