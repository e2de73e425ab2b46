package schema

import "time"

// Notifications are the problems that a webhook was sent, or will be when they last. They are stored on the host that sends them.
type Notifications struct {
	Stamp
	Problems map[string]NotifiedProblem `json:"problems"` // by Problem.Key
}

// NotifiedProblem is a problem with its history.
type NotifiedProblem struct {
	Problem
	Sent bool `json:"sent,omitempty"`
}

// Problem is something that needs an administrator. Name, Subject and Environment identify it.
type Problem struct {
	// Name is a stable word.
	Name string `json:"name" schema:"enum=DeploymentFailed|DeploymentNotReady|OperationUnfinished|CheckFailed"`
	// Subject is a Solution, or a check of a host or a cluster with its object.
	Subject     string    `json:"subject"`
	Environment string    `json:"environment,omitempty"`
	Namespace   string    `json:"namespace,omitempty"`
	Summary     string    `json:"summary"` // one sentence
	Hint        string    `json:"hint,omitempty"`
	Since       time.Time `json:"since"`
}

// Key identifies a problem.
func (p *Problem) Key() string {
	return p.Name + "/" + p.Environment + "/" + p.Namespace + "/" + p.Subject
}

// Notification is sent to a webhook: problems that began, and problems that have ended. `solutionctl deploy notify` prints it.
type Notification struct {
	Cluster  string            `json:"cluster"` // the address of the API server, "" where none is configured
	Host     string            `json:"host"`
	Sent     time.Time         `json:"sent"`
	Problems []ReportedProblem `json:"problems"`
}

// ReportedProblem is a problem in a [Notification].
type ReportedProblem struct {
	Problem
	State ProblemState `json:"state" schema:"enum=firing|resolved"`
}

// ProblemState is whether a problem began or has ended.
type ProblemState string

// The states.
const (
	ProblemFiring   ProblemState = "firing"
	ProblemResolved ProblemState = "resolved"
)
