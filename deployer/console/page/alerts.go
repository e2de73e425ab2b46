package page

import "github.com/solutionctl/solutionctl/schema"

// Heard is what the cluster's Prometheus has told, or why it has not.
type Heard struct {
	List *schema.AlertList // nil where nothing was told
	// Problem is why, nil where nothing is known of a Prometheus.
	Problem *Problem
}

// IsSilent tells that there is nothing to show: nobody was asked yet, or there is nobody to ask.
func (h *Heard) IsSilent() bool { return h == nil || h.List == nil && h.Problem == nil }

// Pending is how many alerts are about to fire.
func (h *Heard) Pending() int { return len(h.List.Alerts) - h.List.Firing() }

// Unseen is why nothing was told, with the rights that are missing.
func (h *Heard) Unseen() schema.Unseen { return h.Problem.Unseen(h.Problem.Message) }

// Alerts are those of the whole cluster: /alerts.
type Alerts struct {
	Heard *Heard
	// Hints tell what to do where nothing is known of a Prometheus.
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
