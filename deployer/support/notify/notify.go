// Package notify sends problems of a host and a cluster to a webhook of the site: once when they begin, and once when they have ended.
//
// [Find] lists the present problems in what survey and doctor have found. A [Journal] has those of earlier runs: [Journal.Compare] returns
// the changes, and [Webhook.Send] posts them. A problem that was not accepted by the webhook is sent again by the next run. Nothing is sent
// anywhere else, and redirects are not followed.
package notify

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/schema"
)

// Observed has the findings of a run. Parts that could not be read are nil: their problems stay as they were.
type Observed struct {
	Status    *schema.Status
	Diagnosis *schema.Diagnosis
}

// Find lists the problems, in the order of their keys.
func (o Observed) Find(now time.Time) []schema.Problem {
	var list []schema.Problem
	if o.Status != nil {
		for d := range o.Status.Deployments() {
			list = appendDeployment(list, d)
		}
	}
	if o.Diagnosis != nil {
		for _, c := range o.Diagnosis.Checks {
			if c.Result == schema.CheckProblem {
				list = append(list, schema.Problem{Name: checkFailed, Subject: c.Subject(), Summary: c.Message, Hint: c.Hint})
			}
		}
	}
	for i := range list {
		list[i].Since = now
	}
	slices.SortStableFunc(list, func(a, b schema.Problem) int { return cmp.Compare(a.Key(), b.Key()) })
	return list
}

// The names of problems.
const (
	deploymentFailed    = "DeploymentFailed"
	deploymentNotReady  = "DeploymentNotReady"
	operationUnfinished = "OperationUnfinished"
	checkFailed         = "CheckFailed"
)

// appendDeployment adds the problem of a deployment, if it has one. Changes by others are not one.
func appendDeployment(list []schema.Problem, d schema.PlacedDeployment) []schema.Problem {
	p := schema.Problem{Environment: d.Environment, Namespace: d.Namespace, Subject: d.Solution}
	what := "is not ready"
	switch d.Health {
	case schema.HealthFailed:
		p.Name, what = deploymentFailed, "has failed"
	case schema.HealthProgressing, schema.HealthMissing:
		p.Name = deploymentNotReady
	case schema.HealthPending:
		p.Name, what = operationUnfinished, "has an operation that has not ended"
	default:
		return list
	}
	p.Summary = d.Solution + " " + d.Version + " in " + placeOf(p) + " " + what
	if len(d.Reasons) > 0 {
		p.Summary += ": " + d.Reasons[0].String()
	}
	return append(list, p)
}

func placeOf(p schema.Problem) string {
	switch {
	case p.Environment == "":
		return "the cluster"
	case p.Namespace != "" && p.Namespace != p.Environment:
		return "namespace " + p.Namespace + " of environment " + p.Environment
	default:
		return "environment " + p.Environment
	}
}

// Journal has the problems of earlier runs.
type Journal struct{ schema.Notifications }

// Recover returns what can still be read of a damaged record: the problems before the first byte that is not JSON, except those that are
// incomplete. It returns nil for a file that never was a record.
func Recover(data []byte) *Journal {
	j := &Journal{}
	j.Problems = map[string]schema.NotifiedProblem{}
	text := bytes.Trim(data, "\x00 \t\r\n") // a file system may leave zeros where the power failed
	if len(text) == 0 {
		return j
	}
	if text[0] != '{' {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	_, _ = d.Token() // the brace
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return j
		}
		if name != "problems" {
			var other json.RawMessage
			if d.Decode(&other) != nil {
				return j
			}
			continue
		}
		j.recover(d)
		return j
	}
	return j
}

// recover reads problems up to the first that is not JSON.
func (j *Journal) recover(d *json.Decoder) {
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return
		}
		var one json.RawMessage
		if d.Decode(&one) != nil {
			return
		}
		var p schema.NotifiedProblem
		if json.Unmarshal(one, &p) == nil && p.Key() == key {
			j.Problems[p.Key()] = p
		}
	}
}

// Compare adds the problems of this run and returns what the webhook has to learn, in the order of the keys. A deployment that is not ready yet,
// or an operation that has not ended, is sent when that lasts so long. [Journal.Confirm] marks them as sent.
func (j *Journal) Compare(o Observed, now time.Time, lasting time.Duration) []schema.ReportedProblem {
	if j.Problems == nil {
		j.Problems = map[string]schema.NotifiedProblem{}
	}
	present := map[string]bool{}
	for _, p := range o.Find(now) {
		known, there := j.Problems[p.Key()]
		if there {
			p.Since = known.Since
		}
		j.Problems[p.Key()] = schema.NotifiedProblem{Problem: p, Sent: known.Sent}
		present[p.Key()] = true
	}
	var changes []schema.ReportedProblem
	for _, key := range slices.Sorted(maps.Keys(j.Problems)) {
		switch p := j.Problems[key]; {
		case present[key] && !p.Sent && (!passes(p.Name) || now.Sub(p.Since) >= lasting):
			changes = append(changes, schema.ReportedProblem{Problem: p.Problem, State: schema.ProblemFiring})
		case present[key] || !o.covers(p.Problem):
		case p.Sent:
			changes = append(changes, schema.ReportedProblem{Problem: p.Problem, State: schema.ProblemResolved})
		default:
			delete(j.Problems, key)
		}
	}
	return changes
}

// Confirm records that the webhook has accepted changes.
func (j *Journal) Confirm(changes []schema.ReportedProblem) {
	for _, c := range changes {
		if c.State == schema.ProblemResolved {
			delete(j.Problems, c.Key())
			continue
		}
		j.Problems[c.Key()] = schema.NotifiedProblem{Problem: c.Problem, Sent: true}
	}
}

// passes reports whether a problem is normal for a while.
func passes(name string) bool { return name == deploymentNotReady || name == operationUnfinished }

// covers reports whether a run has looked for a problem. Without a cluster the doctor checks the host only.
func (o Observed) covers(p schema.Problem) bool {
	if p.Name != checkFailed {
		return o.Status != nil
	}
	return o.Diagnosis != nil && !slices.ContainsFunc(o.Diagnosis.Checks, func(c schema.Check) bool {
		subject := c.Subject()
		return c.Unread && strings.HasPrefix(p.Subject+" ", subject+" ") ||
			subject == "cluster connection" && c.Result == schema.CheckProblem && p.Subject != subject && !strings.HasPrefix(p.Subject, "host ")
	})
}
