package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/preflight"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// reach asks the API server who it is. It reports false when there is nothing to ask.
func (x *examination) reach() bool {
	if x.Deployer == nil {
		hint := strings.Join(report.Hints(x.Absent), "; ")
		x.add(schema.CheckProblem, "cluster", "connection", x.Absent.Error(), hint)
		return false
	}
	ctx, cancel := context.WithTimeout(x.ctx, timeout)
	defer cancel()
	probe, err := x.Deployer.Cluster.Probe(ctx)
	if err != nil {
		x.failed("cluster", "connection", err)
		return report.CodeOf(err) == report.Forbidden
	}
	x.ok("cluster", "connection", "%s answers as user %s", x.Deployer.Cluster.Server(), x.Deployer.Cluster.User(ctx))
	x.version(probe.Version)
	x.latency(probe.Latency)
	x.clock(probe.Skew)
	x.certificate("cluster", "API server", "the certificate of the API server", probe.ServerUntil, "on its node: kubeadm certs renew apiserver")
	x.certificate("cluster", "user", "your certificate", probe.UserUntil, "get a new kubeconfig, on a control-plane node with 'kubeadm certs renew'")
	return true
}

// versionResults are the results for those of the preflight of a plan.
var versionResults = map[schema.PreflightResult]schema.CheckResult{
	schema.PreflightPass: schema.CheckOK, schema.PreflightWarning: schema.CheckWarning, schema.PreflightFail: schema.CheckProblem,
}

func (x *examination) version(version string) {
	c := preflight.Kubernetes(version)
	x.add(versionResults[c.Result], "cluster", "version", c.Message, c.Hint)
}

func (x *examination) latency(latency time.Duration) {
	const slow = 500 * time.Millisecond
	if latency > slow {
		x.add(schema.CheckWarning, "cluster", "latency", "an answer takes "+latency.Round(time.Millisecond).String()+" at best",
			"look at the network, and at the load of the control plane and of etcd's disk")
		return
	}
	x.ok("cluster", "latency", "an answer takes %s", max(latency.Round(time.Millisecond), time.Millisecond))
}

func (x *examination) clock(skew time.Duration) {
	const tolerable = 5 * time.Second
	x.server = skew
	if skew.Abs() > tolerable {
		x.add(schema.CheckWarning, "cluster", "clock", fmt.Sprintf("the clocks of this host and of the API server are %s apart", skew.Abs()),
			"synchronize both, with chrony for instance: certificates and histories depend on it")
		return
	}
	x.ok("cluster", "clock", "this host and the API server agree on the time")
}

// cluster checks for objects of any owner that keep the cluster from working.
func (x *examination) cluster() {
	for _, of := range []struct {
		name, good string
		find       func(context.Context, health.Reader) ([]health.Obstacle, error)
	}{
		{"apis", "the servers of all APIs answer", health.DeadAPIs},
		{"webhooks", "all admission webhooks that must be asked have a Service with pods", health.DeadWebhooks},
		{"conversions", "all webhooks that convert custom resources have a Service with pods", health.DeadConversions},
	} {
		found, err := of.find(x.ctx, x.Deployer.Cluster)
		if err != nil {
			x.failed("cluster", of.name, err)
			continue
		}
		for _, obstacle := range found[:min(len(found), maxProblems)] {
			x.record(schema.Check{
				Area: "cluster", Name: of.name, Object: strings.TrimSpace(obstacle.Object + " " + obstacle.Webhook), Result: schema.CheckProblem,
				Message: obstacle.Object + " " + obstacle.Problem, Hint: obstacle.Remedy,
			})
		}
		x.unlisted("cluster", of.name, len(found))
		if len(found) == 0 {
			x.ok("cluster", of.name, "%s", of.good)
		}
	}
	x.refusedWrites()
	x.leaving()
}

// quoted matches a message of a webhook or of an admission policy about an object, which can have anything of it.
var quoted = lazyregexp.New(`(?s)(denied (?:the )?request: |conversion webhook for .*? failed: ).*`)

// withoutQuotes returns the reasons for which an object is not deleted, without the messages of programs.
func withoutQuotes(reasons []string) string {
	for i := range reasons {
		reasons[i] = quoted.ReplaceAllString(reasons[i], "$1(its message is left out)")
	}
	return strings.Join(reasons, "; ")
}

// leaving finds objects whose deletion does not finish.
func (x *examination) leaving() {
	count := 0
	for _, kind := range []kube.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"}, {Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	} {
		for object, err := range x.Deployer.Cluster.List(x.ctx, kind, "", metav1.ListOptions{}) {
			if err != nil {
				x.failed("cluster", "leaving", err)
				return
			}
			if object.GetDeletionTimestamp() == nil {
				continue
			}
			if count++; count > maxRows {
				continue
			}
			hint := ""
			if environment := object.GetLabels()[metalk8s.EnvironmentLabel]; environment != "" {
				hint = fmt.Sprintf("remove what holds it; '%s' waits for it", report.Run("deploy env delete", environment).In(object.GetName()))
			}
			x.add(schema.CheckWarning, "cluster", "leaving", fmt.Sprintf("%s %s is being deleted since %s: %s", kind.Kind, object.GetName(),
				object.GetDeletionTimestamp().UTC().Format(time.RFC3339), withoutQuotes(health.Explain(x.ctx, x.Deployer.Cluster, object))), hint)
		}
	}
	if count == 0 {
		x.ok("cluster", "leaving", "no namespace and no definition is being deleted")
	}
}
