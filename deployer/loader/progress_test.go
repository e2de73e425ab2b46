package loader

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// published is a publisher of a run with a few parts.
func published(t *testing.T, parts ...string) (*publisher, *clustertest.Server) {
	t.Helper()
	s := clustertest.Start(t, "{apiVersion: v1, kind: Namespace, metadata: {name: solutionctl-system}}")
	c, err := cluster.Connect(cluster.Options{Kubeconfig: s.Kubeconfig(t), Now: time.Now, Retry: -1})
	if err != nil {
		t.Fatal(err)
	}
	progress := &schema.LoadProgress{
		Stamp: schema.NewStamp("loadprogress", "1.0.0"), Run: "one", Phase: schema.LoadRunning, Digest: "sha256:" + strings.Repeat("0", 64),
		StartedAt: time.Now().UTC(), Notices: []string{}, Loaded: []schema.LoadedContent{},
	}
	for _, name := range parts {
		progress.Parts = append(progress.Parts, schema.LoadPart{
			Environment: "site", Namespace: "site", Solution: "edge", Component: name, Version: "1.0.0", State: schema.PartPending,
		})
	}
	object, err := writeProgress(t.Context(), c, nil, progress)
	if err != nil {
		t.Fatal(err)
	}
	return newPublisher(t.Context(), deployer.Config{Cluster: c, Sink: report.Discard, Now: time.Now}, progress, object), s
}

// TestEvents: events update the published parts.
func TestEvents(t *testing.T) {
	p, _ := published(t, "db", "api", "web")
	for _, e := range []report.Event{
		{Step: "apply", State: report.Started, Part: "site/edge.db"},
		{Step: "wait", Name: "Deployment site/db", State: report.Running, Note: "no pod\x1b[2J is ready", Part: "site/edge.db"},
		{Step: "wait", Name: "Deployment site/db2", State: report.Running, Note: "starts", Part: "site/edge.db"},
		{Step: "wait", Name: "Deployment site/db2", State: report.Done, Part: "site/edge.db"},
		{Step: "apply", State: report.Started, Part: "site/edge.api"},
		{Step: "deploy", State: report.Done, Part: "site/edge.api"},
		{Step: "deploy", State: report.Failed, Part: "site/edge.web"},
		{Step: "apply", State: report.Started, Part: "other/edge.db"},
	} {
		p.Emit(e)
	}
	if err := p.publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	progress, _, err := readProgress(t.Context(), p.cluster)
	if err != nil {
		t.Fatal(err)
	}
	db, api, web := progress.Parts[0], progress.Parts[1], progress.Parts[2]
	if db.State != schema.PartWaiting || len(db.WaitingFor) != 1 || strings.Contains(db.WaitingFor[0], "\x1b") {
		t.Errorf("%+v", db)
	}
	if api.State != schema.PartReady || api.ReadyAt.Before(api.StartedAt) || web.State != schema.PartBlocked || progress.Ready != 1 {
		t.Errorf("%+v %+v, %d ready", api, web, progress.Ready)
	}
}

// TestFailedByInterruption: what fails since the run was interrupted leaves no trace.
func TestFailedByInterruption(t *testing.T) {
	p, s := published(t, "db")
	run, interrupt := context.WithCancel(t.Context())
	p = newPublisher(run, deployer.Config{Cluster: p.cluster, Sink: report.Discard, Now: time.Now}, p.progress, p.object)
	p.Emit(report.Event{Step: "apply", State: report.Started, Part: "site/edge.db"})
	interrupt()
	p.Emit(report.Event{Step: "deploy", State: report.Failed, Part: "site/edge.db"})
	if err := p.publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, _, _ := unstructured.NestedString(s.Object("ConfigMap", cluster.SystemNamespace, ProgressName).Object, "data", progressKey)
	if !strings.Contains(text, `"state":"Applying"`) {
		t.Error(text)
	}
}

// TestOutrun: who finds the ConfigMap changed writes over it, unless another run has it now.
func TestOutrun(t *testing.T) {
	p, s := published(t, "db")
	edit := func(run string) {
		object := s.Object("ConfigMap", cluster.SystemNamespace, ProgressName)
		if err := unstructured.SetNestedField(object.Object, run, "data", "run"); err != nil {
			t.Fatal(err)
		}
		text, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		s.Put(t, string(text))
	}
	edit("one")
	if err := p.publish(t.Context()); err != nil {
		t.Error(err)
	}
	edit("two")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	p.touch()
	if err := p.follow(ctx); report.CodeOf(err) != report.Conflict {
		t.Errorf("the publisher goes on: %v", err)
	}
}

// TestPause: two writes are a pause apart, however much progress there is.
func TestPause(t *testing.T) {
	p, s := published(t, "db")
	var at []time.Time
	ctx, stop := context.WithCancel(t.Context())
	s.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			p.touch()
			if at = append(at, time.Now()); len(at) == 4 {
				stop()
			}
		}
		return false
	}
	p.touch()
	if err := p.follow(ctx); err != nil {
		t.Fatal(err)
	}
	if took := at[len(at)-1].Sub(at[0]); took < time.Duration(len(at)-1)*pause {
		t.Errorf("%d writes in %s", len(at), took)
	}
}

// TestSize: hundreds of components fit into one ConfigMap, also when nothing is ready.
func TestSize(t *testing.T) {
	for name, test := range map[string]struct{ waiting, limit int }{"a fifth waits": {40, 64 << 10}, "all wait": {200, 400 << 10}} {
		t.Run(name, func(t *testing.T) {
			names := make([]string, 200)
			for i := range names {
				names[i] = fmt.Sprintf("component-number-%d", i)
			}
			p, _ := published(t, names...)
			for i, component := range names {
				part := "site/edge." + component
				p.Emit(report.Event{Step: "apply", State: report.Started, Part: part})
				for object := range 5 {
					if i < test.waiting {
						p.Emit(report.Event{Step: "wait", Name: fmt.Sprintf("Deployment site/%s-%d", component, object), State: report.Running, Note: strings.Repeat("not ready ", 100), Part: part})
					}
				}
				if i >= test.waiting {
					p.Emit(report.Event{Step: "deploy", State: report.Done, Part: part})
				}
			}
			object, err := progressObject(p.progress)
			if err != nil {
				t.Fatal(err)
			}
			text, _, _ := unstructured.NestedString(object.Object, "data", progressKey)
			if len(text) > test.limit {
				t.Errorf("%d bytes are more than %d", len(text), test.limit)
			}
			t.Logf("%d bytes", len(text))
		})
	}
}
