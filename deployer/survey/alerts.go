package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/prometheus"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Limits of requests to a Prometheus. A user who can create a Service could have written the answer, so it is not
// trusted.
const (
	askFor     = 2 * time.Second
	maxServers = 32
	maxAnswer  = 4 << 20
	maxAlerts  = 1000
	maxText    = 1000 // bytes of a label or an annotation
)

// AlertOptions say which alerts to show. Empty is all of them.
type AlertOptions struct {
	Environment, Solution string
	Namespace             string // the namespace of the environment, for a user who is not allowed to list namespaces; "" means the name of the environment
}

// Alerts reads from the Prometheus of the cluster, with the user's permissions, the alerts about Solutions,
// environments and solutionctl. If only some of several servers answer, the list has the others among its problems; if
// none answers, it fails.
func (v *Survey) Alerts(ctx context.Context, o AlertOptions) (*schema.AlertList, error) {
	sources, err := v.AlertSources(ctx, o)
	if err != nil {
		return nil, err
	}
	return sources.Alerts(ctx, v.AskPrometheus)
}

// AlertSources are the servers to ask for alerts, and what these alerts are about. They stay the same until an object changes that was
// read for them, or a permission of the user.
type AlertSources struct {
	servers  []alertServer
	left     int // further servers, which are not asked
	subjects alertSubjects
}

// AlertSources finds the servers to ask, and reads what alerts can be about.
func (v *Survey) AlertSources(ctx context.Context, o AlertOptions) (*AlertSources, error) {
	servers, err := v.alertServers(ctx)
	if err != nil {
		return nil, err
	}
	left := max(0, len(servers)-maxServers)
	servers = servers[:len(servers)-left]
	for i, server := range servers {
		if servers[i].missing, err = v.Cluster.Missing(ctx, server.service().PermissionToGet()); err != nil {
			return nil, err
		}
	}
	subjects, err := v.alertSubjects(ctx, o)
	if err != nil {
		return nil, err
	}
	return &AlertSources{servers, left, subjects}, nil
}

// AskPrometheus sends a request to a Prometheus, and does not wait for long.
func (v *Survey) AskPrometheus(ctx context.Context, service cluster.Service, path string) ([]byte, error) {
	asking, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	answer, err := v.Cluster.GetFromService(asking, service, path, maxAnswer)
	if errors.Is(asking.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, report.Errorf(report.Unavailable, "%s does not answer within %s", service, askFor)
	}
	return answer, err
}

// Alerts asks the servers, with the function that sends a request to one of them.
func (a *AlertSources) Alerts(ctx context.Context, ask func(ctx context.Context, service cluster.Service, path string) ([]byte, error)) (*schema.AlertList, error) {
	answers := make([][]byte, len(a.servers))
	failures := make([]error, len(a.servers))
	var group errgroup.Group
	for i, server := range a.servers {
		if len(server.missing) > 0 {
			failures[i] = errUnseen{server.missing}
			continue
		}
		group.Go(func() error {
			answers[i], failures[i] = ask(ctx, server.service(), server.Path+prometheus.AlertsPath)
			return nil
		})
	}
	_ = group.Wait() // each has its own
	list, err := gather(a.subjects, a.servers, answers, failures)
	if err == nil && a.left > 0 {
		list.Problems = append(list.Problems, fmt.Sprintf("the alerts of %s are not known: only the first %d are asked", report.Count(a.left, "further Prometheus server"), maxServers))
	}
	return list, err
}

// alertServer is a Prometheus that can be asked.
type alertServer struct {
	name string
	schema.PrometheusService
	missing []cluster.Permission // to ask it
}

func (s alertServer) service() cluster.Service {
	return cluster.Service{Namespace: s.Namespace, Name: s.Service, Port: s.Port, TLS: s.TLS}
}

// alertServers returns the servers that the site has recorded, or else those of the objects of the Prometheus operator.
func (v *Survey) alertServers(ctx context.Context) ([]alertServer, error) {
	site, err := v.Records.Monitoring(ctx)
	if err != nil && report.CodeOf(err) != report.Forbidden {
		return nil, err
	}
	var servers []alertServer
	for _, service := range site.Prometheus {
		servers = append(servers, alertServer{name: service.String(), PrometheusService: service})
	}
	if len(servers) == 0 {
		if servers, err = v.detectAlertServers(ctx); err != nil {
			return nil, err
		}
	}
	servers = slices.DeleteFunc(servers, func(s alertServer) bool { return !s.IsValid() })
	if len(servers) == 0 {
		return nil, report.Errorf(report.NotFound, "no Prometheus of this cluster is known").
			WithHint("record its address, as in Grafana: %s", report.Run("deploy monitoring config").With("prometheus", "http://SERVICE.NAMESPACE:9090"))
	}
	return servers, nil
}

func (v *Survey) detectAlertServers(ctx context.Context) ([]alertServer, error) {
	objects, err := v.PrometheusServers(ctx)
	if report.CodeOf(err) == report.Forbidden {
		return nil, report.Errorf(report.Forbidden, "you do not have permission to look for the Prometheus of this cluster: %w", err)
	}
	if err != nil {
		return nil, err
	}
	if len(objects) == 0 {
		v.noteKind(ctx)
	}
	var servers []alertServer
	services := map[string][]*unstructured.Unstructured{}
	for _, o := range objects {
		if !prometheus.HasAlerts(o) {
			continue
		}
		namespace := o.GetNamespace()
		if _, listed := services[namespace]; !listed {
			services[namespace], err = v.servicesIn(ctx, namespace)
			if err != nil {
				return nil, err
			}
		}
		servers = append(servers, alertServer{name: cluster.NameOf(o), PrometheusService: prometheus.ServiceOf(o, services[namespace])})
	}
	return servers, nil
}

// noteKind reads whether a cluster without a Prometheus object has their kind, for a caller that watches what is read: it may come later.
// Without permission, nothing reports that.
func (v *Survey) noteKind(ctx context.Context) {
	name := fields.OneTermEqualSelector("metadata.name", prometheus.DefinitionName).String()
	_, _ = cluster.Collect(v.Cluster.ListMetadata(ctx, cluster.DefinitionKind, "", metav1.ListOptions{FieldSelector: name}))
}

// servicesIn lists the Services of a namespace. Without permission to list them, the result is empty.
func (v *Survey) servicesIn(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error) {
	services, err := cluster.Collect(v.Cluster.List(ctx, cluster.ServiceKind, namespace, metav1.ListOptions{}))
	if report.CodeOf(err) == report.Forbidden {
		return nil, nil
	}
	return services, err
}

// errUnseen means that the user lacks permissions to read from a Prometheus.
type errUnseen struct{ missing []cluster.Permission }

func (e errUnseen) Error() string { return "you do not have permission to read its alerts" }

// gather makes a list of the answers, or an error when there are none.
func gather(subjects alertSubjects, servers []alertServer, answers [][]byte, failures []error) (*schema.AlertList, error) {
	list := &schema.AlertList{Alerts: []schema.Alert{}, Asked: []string{}, Problems: []string{}}
	var lacking []cluster.Permission
	for i, server := range servers {
		err := failures[i]
		if err == nil {
			err = subjects.read(list, answers[i])
		}
		if unseen, is := errors.AsType[errUnseen](err); is {
			lacking = append(lacking, unseen.missing...)
			list.Unseen = append(list.Unseen, schema.Unseen{What: "the alerts of " + server.name, Rules: cluster.RulesByPlace(unseen.missing...)})
			continue
		}
		if err != nil {
			list.Problems = append(list.Problems, fmt.Sprintf("the alerts of %s are not known: %v", server.name, err))
			continue
		}
		list.Asked = append(list.Asked, server.name)
	}
	switch {
	case len(list.Asked) > 0:
	case len(list.Problems) > 0:
		return nil, report.Errorf(report.Unavailable, "%s", strings.Join(list.Problems, "; ")).
			WithHint("see whether its pods run; if it has another address, record it: %s", report.Run("deploy monitoring config").With("prometheus", "http://SERVICE.NAMESPACE:9090"))
	default:
		return nil, report.Errorf(report.Forbidden, "you do not have permission to read the alerts of a Prometheus of this cluster").
			WithHint("an administrator can allow it with this rule of a Role\n%s", cluster.RulesByPlace(lacking...))
	}
	slices.SortFunc(list.Alerts, compareAlerts)
	seen := map[string]bool{}
	list.Alerts = slices.DeleteFunc(list.Alerts, func(a schema.Alert) bool { // several of them may evaluate the same rule
		identity := fmt.Sprint(a.Labels)
		defer func() { seen[identity] = true }()
		return seen[identity]
	})
	return list, nil
}

// alertSubjects are the objects that alerts can be about.
type alertSubjects struct {
	AlertOptions
	environments map[string]bool
	namespaces   map[string]string // the environment of each
	solutions    map[string]bool   // that were imported
}

func (v *Survey) alertSubjects(ctx context.Context, o AlertOptions) (alertSubjects, error) {
	s := alertSubjects{AlertOptions: o, environments: map[string]bool{}, namespaces: map[string]string{}, solutions: map[string]bool{}}
	var environments []metalk8s.Environment
	if o.Environment != "" {
		e, _, err := v.Records.Documents.Visible(ctx, o.Environment, o.Namespace)
		if err != nil {
			return s, err
		}
		environments = []metalk8s.Environment{*e}
	} else {
		var err error
		if environments, err = v.Environments(ctx); err != nil {
			return s, err
		}
		imported, err := v.Records.Documents.Solutions(ctx)
		if err != nil {
			return s, err
		}
		for name := range imported.Versions {
			s.solutions[name] = true
		}
	}
	for _, e := range environments {
		s.environments[e.Name] = true
		for _, n := range e.Namespaces {
			s.namespaces[n.Name] = e.Name
		}
	}
	return s, nil
}

// read adds the alerts of one Prometheus that are about something to a list.
func (s alertSubjects) read(list *schema.AlertList, answer []byte) error {
	var found []schema.Alert
	more := 0
	for a, err := range prometheus.Alerts(answer) {
		if err != nil {
			return err
		}
		switch alert, is := s.alert(a); {
		case is && len(found) < maxAlerts:
			found = append(found, alert)
		case is:
			more++
		}
	}
	list.Alerts = append(list.Alerts, found...)
	if more > 0 {
		list.Problems = append(list.Problems, fmt.Sprintf("%d more alerts are not shown", more))
	}
	return nil
}

// itself is the prefix of the names of alerts about solutionctl. Their label namespace is that of the process that
// reports.
const itself = "Solutionctl"

// alert converts an alert, and reports whether it is about a Solution, an environment or solutionctl.
func (s alertSubjects) alert(a prometheus.Alert) (schema.Alert, bool) {
	labels := map[string]string{}
	for name, value := range a.Labels {
		labels[cut(name)] = cut(value)
	}
	alert := schema.Alert{
		Name: labels["alertname"], State: schema.AlertState(a.State), Since: a.Since.UTC(), Severity: labels["severity"], Solution: labels["solution"],
		Summary: cut(cmp.Or(a.Annotations["summary"], a.Annotations["message"])), Description: cut(a.Annotations["description"]),
		Runbook: cut(cmp.Or(a.Annotations["runbook"], a.Annotations["runbook_url"])), Labels: labels,
	}
	isItself := strings.HasPrefix(alert.Name, itself)
	namespace := labels["namespace"]
	if isItself {
		namespace = labels["environment_namespace"]
	}
	switch environment, is := s.namespaces[namespace]; {
	case is:
		alert.Environment, alert.Namespace = environment, namespace
	case s.environments[labels["environment"]]:
		alert.Environment = labels["environment"]
	case s.Environment != "", !isItself && !s.solutions[alert.Solution]:
		return alert, false
	}
	return alert, s.Solution == "" || alert.Solution == s.Solution
}

// cut bounds an untrusted text.
func cut(text string) string { return report.Cut(text, maxText) }

// compareAlerts sorts alerts by urgency: firing ones first, then by severity, then the longest first.
func compareAlerts(a, b schema.Alert) int {
	return cmp.Or(
		strings.Compare(string(a.State), string(b.State)), // firing is before pending
		severityOf(a)-severityOf(b), a.Since.Compare(b.Since), strings.Compare(a.Name, b.Name),
		strings.Compare(a.Environment, b.Environment), strings.Compare(fmt.Sprint(a.Labels), fmt.Sprint(b.Labels)))
}

// severityOf ranks the usual severities; unusual ones come last.
func severityOf(a schema.Alert) int {
	usual := []string{"critical", "error", "warning", "info", "none"}
	if i := slices.Index(usual, a.Severity); i >= 0 {
		return i
	}
	return len(usual)
}
