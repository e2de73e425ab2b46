package install_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/install"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// everything undoes all that the installation of a site has done.
func everything(names ...string) install.UninstallOptions {
	return install.UninstallOptions{Names: names, Environment: "prod", DeleteEnvironment: true, CleanHost: true, Endpoint: endpoint, Untrust: "acme"}
}

// installed is a site with version 1.0.0 installed.
func installed(t *testing.T) (s *site, archive string) {
	t.Helper()
	s = newSite(t)
	s.vendor.AddClocks()
	archive = s.vendor.Archive(t, "1.0.0", 0)
	if err := s.plan(t, archive).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.bed.Writes()
	return s, archive
}

func (s *site) planUninstall(t *testing.T, o install.UninstallOptions) *install.UninstallPlan {
	t.Helper()
	p, err := s.PlanUninstall(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	deployertest.Valid(t, "uninstallation", p.Uninstallation)
	return p
}

func steps(p *install.UninstallPlan) (list []string) {
	for _, step := range p.Steps {
		list = append(list, step.Step+" "+string(step.State))
	}
	return list
}

func allUndone(state schema.StepState) (list []string) {
	for _, step := range []string{"remove", "delete", "deactivate", "unimport", "unconfigure", "unregister", "stop", "untrust"} {
		list = append(list, step+" "+string(state))
	}
	return list
}

// left lists what an installation has made and an uninstallation of everything has not removed.
func (s *site) left(t *testing.T) (list []string) {
	t.Helper()
	for _, name := range []string{
		"trust/keys/acme.pub", "store/archives/demo-1.0.0.iso", "root/etc/systemd/system/solutionctl-registry.service",
		"root/etc/containerd/certs.d/registry.solutionctl.invalid",
	} {
		if _, err := os.Lstat(s.path(name)); err == nil {
			list = append(list, name)
		}
	}
	if len(s.services.started) > 0 {
		list = append(list, "running: "+strings.Join(s.services.started, ", "))
	}
	if s.bed.Server.Object("Namespace", "", "prod") != nil {
		list = append(list, "namespace prod")
	}
	registry, err := s.Deployer.Records.Registry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if registry != nil && len(registry.Endpoints) > 0 {
		list = append(list, registry.Endpoints...)
	}
	imports, err := s.Deployer.Records.Imports(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range imports {
		list = append(list, i.ID())
	}
	return list
}

func TestUninstall(t *testing.T) {
	s, archive := installed(t)
	p := s.planUninstall(t, everything(archive))
	if diff := cmp.Diff(allUndone(schema.StepPlanned), steps(p)); diff != "" {
		t.Fatal(diff)
	}
	if writes := s.bed.Writes(); len(writes) > 0 {
		t.Errorf("the plan has written %q", writes)
	}
	if again := s.planUninstall(t, everything(archive)); again.Digest != p.Digest {
		t.Errorf("the same plan has digests %s and %s", p.Digest, again.Digest)
	}
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := s.left(t); len(left) > 0 {
		t.Errorf("there is still %q", left)
	}
	s.bed.Writes()
	p = s.planUninstall(t, everything(archive))
	if diff := cmp.Diff(allUndone(schema.StepUnchanged), steps(p)); diff != "" || !p.Empty() {
		t.Error(diff)
	}
	if err := p.Run(t.Context()); err != nil || len(s.bed.Writes()) > 0 {
		t.Errorf("an uninstallation that is done changes something: %v", err)
	}
	if err := s.plan(t, archive).Run(t.Context()); err != nil {
		t.Errorf("it cannot be installed again: %v", err)
	}
}

// TestUninstallDeadAPI checks that an aggregated API which does not answer goes before the environment: no namespace is deleted completely
// while it is there.
func TestUninstallDeadAPI(t *testing.T) {
	s := newSite(t)
	s.vendor.AddAPI()
	s.options.Deploy.NoWait = true
	archive := s.vendor.Archive(t, "1.0.0", 0)
	if err := s.plan(t, archive).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	const answers = "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.other.example.com}, status: {conditions: [{type: Available, status: %q}]}}"
	s.bed.Server.Put(t, fmt.Sprintf(answers, "False")) // that of another one changes nothing
	order := func(o install.UninstallOptions) string { return strings.Join(steps(s.planUninstall(t, o))[:3], ", ") }
	s.condition(t, "True")
	if got, want := order(everything(archive)), "remove planned, delete planned, deactivate planned"; got != want {
		t.Errorf("with an API that answers: %s", got)
	}
	s.condition(t, "False")
	p := s.planUninstall(t, everything(archive))
	if got, want := strings.Join(steps(p)[:3], ", "), "remove planned, deactivate planned, delete planned"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if text := strings.Join(p.Notices, "\n"); !strings.Contains(text, "APIService v1.demo.example.com does not answer") {
		t.Errorf("the notices lack the reason: %s", text)
	}
	s.bed.Server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete && r.URL.Path == "/api/v1/namespaces/prod" && s.bed.Server.Object("APIService", "", "v1.demo.example.com") != nil {
			t.Error("the namespace is deleted while the API is there")
		}
		return false
	}
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := s.left(t); len(left) > 0 {
		t.Errorf("there is still %q", left)
	}
}

// condition sets whether the API of the vendor is available.
func (s *site) condition(t *testing.T, status string) {
	t.Helper()
	api := s.bed.Server.Object("APIService", "", "v1.demo.example.com")
	if api == nil {
		t.Fatal("the API is not installed")
	}
	api = api.DeepCopy()
	api.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": status}}}
	data, err := json.Marshal(api)
	if err != nil {
		t.Fatal(err)
	}
	s.bed.Server.Put(t, string(data))
}

// TestUninstallContinues ends an uninstallation before each of its steps: the next one does the rest.
func TestUninstallContinues(t *testing.T) {
	for i, last := range []string{"remove", "delete", "deactivate", "unimport", "unconfigure", "unregister", "stop", "untrust"} {
		t.Run(last, func(t *testing.T) {
			s, _ := installed(t)
			ctx, cancel := context.WithCancel(t.Context())
			s.Host.Sink = sinkFunc(func(e report.Event) {
				if e.Step == last && e.State == report.Running {
					cancel()
				}
			})
			p := s.planUninstall(t, everything("demo"))
			err := p.Run(ctx)
			if i > 0 && report.CodeOf(err) != report.Interrupted || err == nil {
				t.Errorf("%s: %v, want interrupted", report.CodeOf(err), err)
			}
			if diff := cmp.Diff(append(allUndone(schema.StepDone)[:i], allUndone(schema.StepPlanned)[i:]...), steps(p)); diff != "" {
				t.Error(diff)
			}
			s.Host.Sink = report.Discard
			s.uninstallsAll(t)
		})
	}
}

// uninstallsAll uninstalls the rest.
func (s *site) uninstallsAll(t *testing.T) {
	t.Helper()
	if err := s.planUninstall(t, everything("demo")).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := s.left(t); len(left) > 0 {
		t.Errorf("there is still %q", left)
	}
	if p := s.planUninstall(t, everything("demo")); !p.Empty() {
		t.Errorf("left to do: %q", steps(p))
	}
}

// manyWrites are more than any run here has: one that fails for another reason than being killed fails for ever.
const manyWrites = 200

// endAt refuses the given write and all that follow, as if the process had been killed there. Locks are given back. The function that is
// returned ends that.
func (s *site) endAt(number int) (mend func()) {
	var mu sync.Mutex
	s.bed.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet || r.URL.Query().Has("dryRun") || strings.Contains(r.URL.Path, "/leases") || strings.Contains(r.URL.Path, "/apis/auth") {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		if number--; number > 0 {
			return false
		}
		clustertest.Fail(w, apierrors.NewForbidden(kube.GroupResource{Resource: "everything"}, "", errors.New("killed")))
		return true
	}
	return func() { s.bed.Server.Answer = nil }
}

// TestKilled ends an installation, then an uninstallation, at each write to the cluster: the next run does the rest.
func TestKilled(t *testing.T) {
	stride := 1
	if testing.Short() {
		stride = 6
	}
	t.Run("install", func(t *testing.T) {
		for number := 1; ; number += stride {
			s := newSite(t)
			s.vendor.AddClocks()
			archive := s.vendor.Archive(t, "1.0.0", 0)
			p := s.plan(t, archive)
			mend := s.endAt(number)
			err := p.Run(t.Context())
			if mend(); err == nil {
				if number < 15 {
					t.Errorf("there are only %d writes", number-1)
				}
				return
			}
			if number > manyWrites {
				t.Fatalf("it has no end: %v", err)
			}
			if err := s.plan(t, archive).Run(t.Context()); err != nil {
				t.Fatalf("after write %d: %v", number, err)
			}
			if p = s.plan(t, archive); !p.Empty() {
				t.Fatalf("after write %d, left to do: %q", number, states(p))
			}
		}
	})
	t.Run("uninstall", func(t *testing.T) {
		for number := 1; ; number += stride {
			s, _ := installed(t)
			p := s.planUninstall(t, everything("demo"))
			mend := s.endAt(number)
			err := p.Run(t.Context())
			if mend(); err == nil {
				if number < 15 {
					t.Errorf("there are only %d writes", number-1)
				}
				return
			}
			if number > manyWrites {
				t.Fatalf("it has no end: %v", err)
			}
			if s.uninstallsAll(t); t.Failed() {
				t.Fatalf("after write %d", number)
			}
		}
	})
}

// TestUninstallData: custom resources stay unless an option names their policy, and each policy is repeated without a change.
func TestUninstallData(t *testing.T) {
	withClock := func(t *testing.T, namespace string) *site {
		t.Helper()
		s, _ := installed(t)
		s.bed.Server.Put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: elsewhere}}")
		s.bed.Clock("demo", namespace, "one", "hands: 2")
		s.bed.Writes()
		return s
	}
	for _, namespace := range []string{"prod", "elsewhere"} {
		t.Run("refused, in "+namespace, func(t *testing.T) {
			s := withClock(t, namespace)
			_, err := s.PlanUninstall(t.Context(), install.UninstallOptions{Names: []string{"demo"}, Environment: "prod"})
			deployertest.Refused(t, err, report.DataLoss, "1 of kind Clock in namespace "+namespace)
			if writes := s.bed.Writes(); len(writes) > 0 {
				t.Errorf("the plan has written %q", writes)
			}
		})
	}
	t.Run("kept", func(t *testing.T) {
		s := withClock(t, "prod")
		o := install.UninstallOptions{Names: []string{"demo"}, Environment: "prod", Data: plan.KeepData}
		if err := s.planUninstall(t, o).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.bed.Server.Object("Clock", "prod", "one") == nil || s.bed.Server.Object("ConfigMap", "prod", "settings") != nil {
			t.Error("the data has to stay, and nothing else")
		}
		if p := s.planUninstall(t, o); !p.Empty() {
			t.Errorf("left to do: %q", steps(p))
		}
	})
	t.Run("deleted", func(t *testing.T) {
		s := withClock(t, "prod")
		var exported bytes.Buffer
		o := everything("demo")
		o.Data, o.Export = plan.DeleteData, func(string) definitions.Export {
			return func(write func(io.Writer) error) error { return write(&exported) }
		}
		p := s.planUninstall(t, o)
		if question := p.Confirmation(); question.Name != "demo" {
			t.Errorf("the question is %+v", question)
		}
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(exported.String(), `"hands":2`) && !strings.Contains(exported.String(), `"hands": 2`) {
			t.Errorf("exported is %s", &exported)
		}
		if left := s.left(t); len(left) > 0 || s.bed.Server.Object("Clock", "prod", "one") != nil {
			t.Errorf("there is still %q", left)
		}
	})
}

// TestUninstallConsequences: a plan describes what its steps end, and what is kept.
func TestUninstallConsequences(t *testing.T) {
	for name, test := range map[string]struct {
		o     install.UninstallOptions
		texts []string // of the consequences, and of what is kept
		not   string
	}{
		"everything": {everything("demo"), []string{
			"demo no longer runs in environment prod; environment prod is deleted with its namespaces; demo cannot be added to any environment; " +
				"demo-1.0.0 has to be imported again before it is used; ", "this node fetches no images", " is not trusted: archives with its signature are refused", "kept: []",
		}, "exported"},
		"the Solution": {install.UninstallOptions{Names: []string{"demo"}, Environment: "prod"}, []string{
			"demo no longer runs in environment prod; demo cannot be added", "kept: [environment prod (--delete-env deletes it) the registry of this host",
		}, "is deleted"},
		"without its data": {install.UninstallOptions{Names: []string{"demo"}, Environment: "prod", Data: plan.KeepData}, []string{
			"kept: [custom resources and their CustomResourceDefinitions environment prod",
		}, "exported"},
		"with its data": {install.UninstallOptions{Names: []string{"demo"}, Environment: "prod", Data: plan.DeleteData}, []string{
			"environment prod; every custom resource is exported to a file and deleted; ",
		}, "kept: [custom"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := installed(t)
			p := s.planUninstall(t, test.o)
			text := fmt.Sprintf("%s kept: %v", p.ConsequencesText(), p.Kept())
			for _, want := range test.texts {
				if !strings.Contains(text, want) {
					t.Errorf("nothing of %q in: %s", want, text)
				}
			}
			if strings.Contains(text, test.not) {
				t.Errorf("%q in: %s", test.not, text)
			}
			if name != "everything" {
				return
			}
			if err := p.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if again := s.planUninstall(t, test.o); again.ConsequencesText() != "" || len(again.Kept()) > 0 {
				t.Errorf("afterwards: %s %v", again.ConsequencesText(), again.Kept())
			}
		})
	}
}

// TestUninstallKeeps: what no option names stays, and what others need.
func TestUninstallKeeps(t *testing.T) {
	t.Run("the site", func(t *testing.T) {
		s, _ := installed(t)
		if err := s.planUninstall(t, install.UninstallOptions{Names: []string{"demo"}, Environment: "prod"}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"trust/keys/acme.pub", "root/etc/systemd/system/solutionctl-registry.service", "root/etc/containerd/certs.d/registry.solutionctl.invalid",
			"running: solutionctl-registry.service", "namespace prod", endpoint,
		}
		if diff := cmp.Diff(want, s.left(t)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("what another environment has", func(t *testing.T) {
		s, _ := installed(t)
		if _, err := s.Deployer.CreateEnvironment(t.Context(), metalk8s.CreateOptions{Name: "other"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Deployer.Add(t.Context(), deployer.AddOptions{Environment: "other", Solution: "demo", Version: "1.0.0"}); err != nil {
			t.Fatal(err)
		}
		p := s.planUninstall(t, install.UninstallOptions{Names: []string{"demo"}, Environment: "prod"})
		if diff := cmp.Diff([]string{"remove planned"}, steps(p)); diff != "" || !strings.Contains(strings.Join(p.Notices, "\n"), "stays active and imported: it is in environment other") {
			t.Errorf("%s, notices %q", diff, p.Notices)
		}
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := s.PlanUninstall(t.Context(), install.UninstallOptions{Names: []string{"demo"}, Environment: "prod", CleanHost: true, Endpoint: endpoint})
		deployertest.Refused(t, err, report.InUse, "this host serves the images of demo-1.0.0")
	})
	t.Run("another version", func(t *testing.T) {
		s, _ := installed(t)
		if err := s.plan(t, s.vendor.Archive(t, "1.1.0", 0)).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := s.PlanUninstall(t.Context(), install.UninstallOptions{Names: []string{"demo-1.0.0.iso"}, Environment: "prod"})
		deployertest.Refused(t, err, report.Usage, "environment prod has version 1.1.0 of demo, not 1.0.0")
		if err := s.planUninstall(t, install.UninstallOptions{Names: []string{"demo"}, Environment: "prod"}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if imports, err := s.Deployer.Records.Imports(t.Context()); err != nil || len(imports) > 0 {
			t.Errorf("%v, %v", imports, err)
		}
	})
}

// TestUninstallRefuses: what a step would refuse is refused before the first one.
func TestUninstallRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *site, o *install.UninstallOptions)
		code   report.Code
		words  string
	}{
		"a plan that is another one by now": {func(_ *site, o *install.UninstallOptions) { o.Deploy.Expect = "0123456789abcdef" }, report.Conflict, "another one"},
		"an environment whose data is kept": {func(_ *site, o *install.UninstallOptions) { o.Data = plan.KeepData }, report.Usage, "custom resources are kept"},
		"a Solution named twice":            {func(_ *site, o *install.UninstallOptions) { o.Names = []string{"demo", "demo-1.0.0"} }, report.Usage, "named twice"},
		"an archive that cannot be read":    {func(_ *site, o *install.UninstallOptions) { o.Names = []string{"some/where.iso"} }, report.NotFound, "where.iso"},
		"objects of others": {func(s *site, _ *install.UninstallOptions) {
			s.bed.Server.Put(s.bed.TB, "{apiVersion: v1, kind: ConfigMap, metadata: {name: mine, namespace: prod}}")
		}, report.InUse, "not part of a Solution: ConfigMap prod/mine"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := installed(t)
			o := everything("demo")
			test.change(s, &o)
			s.bed.Writes()
			_, err := s.PlanUninstall(t.Context(), o)
			deployertest.Refused(t, err, test.code, test.words)
			if writes := s.bed.Writes(); len(writes) > 0 {
				t.Errorf("the plan has written %q", writes)
			}
		})
	}
}
