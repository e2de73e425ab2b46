package page

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/kube/pods"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Outcome is the state after an operation.
type Outcome struct {
	Heading string
	// Deployment is the Solution in the environment as it is now; nil where the operation is about something else, or nothing is there.
	Deployment *schema.DeploymentStatus
	// Interface are the URLs of its user interface, and Command opens one that has none.
	Interface []External
	Command   string
	Logs      []LogTail // of containers that do not work
	LogsURL   string    // the page of all logs, with Logs
	Actions   []Action
}

// External is a link out of the console: to a running application.
type External struct{ Label, URL string }

// ExternalLink returns a link to a URL of a cluster; false where that is not one that a browser opens safely.
func ExternalLink(text string) (External, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return External{}, false
	}
	return External{Label: u.Host + strings.TrimSuffix(u.Path, "/"), URL: u.String()}, true
}

// external completes a link out of the console. Anything but a web address is a mistake in the view.
func external(text string) (string, error) {
	link, ok := ExternalLink(text)
	if !ok {
		return "", fmt.Errorf("%q is not a web address", text)
	}
	return link.URL, nil
}

// LogTail is the end of a log.
type LogTail struct {
	Name  string // pod and container
	Lines []string
}

// Text are the lines.
func (l LogTail) Text() string { return strings.Join(l.Lines, "\n") }

// Took is how long an operation took; "" while it runs.
func (r Running) Took() string {
	if r.Finished == nil {
		return ""
	}
	return report.Duration(r.Finished.Sub(r.Started))
}

// Folded reports whether the steps are of no more interest: everything was done.
func (p *Progress) Folded() bool { return p.Finished != nil && !p.Failed && !p.Interrupted }

// Readiness are the numbers of workloads, or for a Solution without any, of objects that are ready.
func (p *Progress) Readiness() string {
	d := p.Outcome.Deployment
	all, bad := 0, 0
	for _, part := range p.Operation.Parts {
		for _, c := range part.Changes {
			if c.Action == schema.ActionDelete || !pods.IsWorkload(c.Object.APIVersion, c.Object.Kind) {
				continue
			}
			all++
			if slices.ContainsFunc(d.Reasons, func(r schema.Reason) bool { return r.Object.String() == c.Object.String() }) {
				bad++
			}
		}
	}
	if all == 0 || bad == 0 && d.Health != schema.HealthReady {
		return Text("health.objects", d.Ready, d.Objects)
	}
	return Count("ended.workloads", all, all-bad)
}
