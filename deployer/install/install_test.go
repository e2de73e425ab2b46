package install_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest/vendortest"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/host/node"
	"github.com/solutionctl/solutionctl/deployer/install"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/trust"
)

type sinkFunc func(report.Event)

func (f sinkFunc) Emit(e report.Event) { f(e) }

const endpoint = "https://127.0.0.1:9" // nothing listens there

// fakeServices is a service manager that starts everything.
type fakeServices struct {
	absent  bool
	broken  bool // starts nothing
	started []string
}

func (s *fakeServices) Available() bool { return !s.absent }

func (s *fakeServices) Running(_ context.Context, unit string) bool {
	return slices.Contains(s.started, unit)
}

func (s *fakeServices) Stop(_ context.Context, unit string) error {
	s.started = slices.DeleteFunc(s.started, func(other string) bool { return other == unit })
	return nil
}

func (s *fakeServices) Reload(context.Context) error { return nil }

func (s *fakeServices) Start(_ context.Context, unit string) error {
	if s.broken {
		return errors.New("it does not start")
	}
	s.started = append(s.started, unit)
	return nil
}

// site is a host with containerd, an empty store and an empty trust store, and a cluster with nothing in it.
type site struct {
	*install.Installer
	bed      *deployertest.Bed
	services *fakeServices
	vendor   *vendortest.Vendor
	options  install.Options
	dir      string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{bed: deployertest.New(t), services: &fakeServices{}, vendor: vendortest.New(t), dir: t.TempDir()}
	h, err := host.Open(host.Places{Store: s.path("store"), Configuration: s.path("solutions.yaml"), Nginx: s.path("nginx")})
	if err != nil {
		t.Fatal(err)
	}
	s.bed.Active = host.ActiveVersions(s.path("solutions.yaml"))
	h.Cluster, h.Sink, h.Now, h.Version = host.ClusterOf(s.bed.Deployer), report.Discard, time.Now, "1.0.0"
	for _, dir := range []string{"root/etc/containerd", "root/etc/systemd/system", "trust/keys"} {
		if err := os.MkdirAll(s.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const containerd = "[plugins.'io.containerd.cri.v1.images'.registry]\nconfig_path = '/etc/containerd/certs.d'\n"
	if err := os.WriteFile(s.path("root/etc/containerd/config.toml"), []byte(containerd), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Installer = &install.Installer{
		Host: h, Deployer: s.bed.Deployer, Services: s.services, Root: s.path("root"), Program: "/usr/bin/solutionctl", TrustDir: s.path("trust"),
	}
	trusted := func() (*trust.Store, error) { return trust.Load([]string{s.path("trust")}, &trust.State{}) }
	s.options = install.Options{
		Import:      host.ImportOptions{State: s.path("state.json"), Trusted: trusted, Mount: host.MountNever},
		Environment: "prod", Key: s.vendor.Public(), KeyName: "acme", Endpoint: endpoint,
		Serve: host.ServeOptions{Store: s.path("store"), Listen: ":5000", MaxTransfers: host.DefaultTransfers}, Node: node.Config{Node: "a"},
	}
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

// plan plans to install archives.
func (s *site) plan(t *testing.T, archives ...string) *install.Plan {
	t.Helper()
	s.options.Import.Archives = archives
	p, err := s.Plan(t.Context(), s.options)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// states are the steps of a plan and how far they are.
func states(p *install.Plan) (list []string) {
	for _, step := range p.Steps {
		list = append(list, step.Step+" "+string(step.State))
	}
	return list
}

func all(state schema.StepState) (list []string) {
	for _, step := range []string{"trust", "import", "serve", "register", "configure", "activate", "create", "deploy"} {
		list = append(list, step+" "+string(state))
	}
	return list
}

// TestListsActive: MetalK8s' configuration lists the installed version as active, also where only that is left to do.
func TestListsActive(t *testing.T) {
	s := newSite(t)
	archive := s.vendor.Archive(t, "1.0.0", 0)
	for _, want := range []schema.StepState{schema.StepPlanned, schema.StepPlanned, schema.StepUnchanged} {
		p := s.plan(t, archive)
		if got := states(p)[5]; got != "activate "+string(want) {
			t.Errorf("%s, want %s", got, want)
		}
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		now, err := s.Host.Configuration.Load()
		if err != nil || now.Active["demo"] != "1.0.0" {
			t.Fatalf("active %v, %v", now.Active, err)
		}
		if want == schema.StepPlanned && !slices.ContainsFunc(p.Notices, func(n string) bool { return strings.Contains(n, "demo-1.0.0 as active") }) {
			if _, err := s.Host.Configuration.Edit(t.Context(), func(c *schema.SolutionsConfiguration) { delete(c.Active, "demo") }); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestUnitChanges: the registry gets another unit and cannot be started by it. The next run does not take what ran before for it.
func TestUnitChanges(t *testing.T) {
	s := newSite(t)
	archive := s.vendor.Archive(t, "1.0.0", 0)
	if err := s.plan(t, archive).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.options.Serve.MaxTransfers++
	s.services.broken = true
	if err := s.plan(t, archive).Run(t.Context()); err == nil {
		t.Fatal("it was started")
	}
	s.services.broken = false
	p := s.plan(t, archive)
	if p.Empty() {
		t.Fatal("nothing is left to do for a registry that does not run by its unit")
	}
	if err := p.Run(t.Context()); err != nil || !s.services.Running(t.Context(), "solutionctl-registry.service") {
		t.Errorf("%v, started %q", err, s.services.started)
	}
}

func TestInstall(t *testing.T) {
	s := newSite(t)
	archive := s.vendor.Archive(t, "1.0.0", 0)
	p := s.plan(t, archive)
	if diff := cmp.Diff(all(schema.StepPlanned), states(p)); diff != "" {
		t.Fatal(diff)
	}
	if writes := s.bed.Writes(); len(writes) > 0 {
		t.Errorf("the plan has written %q", writes)
	}
	if again := s.plan(t, archive); again.Digest != p.Digest {
		t.Errorf("the same plan has digests %s and %s", p.Digest, again.Digest)
	}
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all(schema.StepDone), states(p)); diff != "" {
		t.Error(diff)
	}
	unit, err := os.ReadFile(s.path("root/etc/systemd/system/solutionctl-registry.service"))
	if err != nil || !strings.Contains(string(unit), "ExecStart=/usr/bin/solutionctl deploy serve") || len(s.services.started) != 1 {
		t.Errorf("%s, %v, started %q", unit, err, s.services.started)
	}

	s.bed.Writes()
	p = s.plan(t, archive)
	if diff := cmp.Diff(all(schema.StepUnchanged), states(p)); diff != "" || !p.Empty() {
		t.Error(diff)
	}
	if err := p.Run(t.Context()); err != nil || len(s.bed.Writes()) > 0 {
		t.Errorf("an installation that is done is not left alone: %v", err)
	}
}

// TestInstallContinues ends an installation before each of its steps: the next one does the rest.
func TestInstallContinues(t *testing.T) {
	for _, last := range []string{"import", "serve", "register", "configure", "activate", "create", "deploy"} {
		t.Run(last, func(t *testing.T) {
			s := newSite(t)
			archive := s.vendor.Archive(t, "1.0.0", 0)
			ctx, cancel := context.WithCancel(t.Context())
			s.Host.Sink = sinkFunc(func(e report.Event) {
				if e.Step == last && e.State == report.Running {
					cancel()
				}
			})
			if err := s.plan(t, archive).Run(ctx); err == nil {
				t.Fatal("it was not interrupted")
			}
			s.Host.Sink = report.Discard
			p := s.plan(t, archive)
			if err := p.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if p = s.plan(t, archive); !p.Empty() {
				t.Errorf("left to do: %q", states(p))
			}
		})
	}
}

func TestInstallUpgrades(t *testing.T) {
	s := newSite(t)
	if err := s.plan(t, s.vendor.Archive(t, "1.0.0", 0)).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := s.plan(t, s.vendor.Archive(t, "1.1.0", 0))
	want := []string{
		"trust unchanged", "import planned", "serve unchanged", "register unchanged", "configure unchanged",
		"activate planned", "create unchanged", "deploy planned",
	}
	if diff := cmp.Diff(want, states(p)); diff != "" {
		t.Fatal(diff)
	}
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestArchiveReplaced imports only the archive that the plan has shown.
func TestArchiveReplaced(t *testing.T) {
	s := newSite(t)
	shown, other := s.vendor.Archive(t, "1.0.0", 0), s.vendor.Archive(t, "1.1.0", 0)
	p := s.plan(t, shown)
	for from, to := range map[string]string{other: shown, sign.BundleName(other, ""): sign.BundleName(shown, "")} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Run(t.Context()); report.CodeOf(err) != report.Conflict {
		t.Fatal(err)
	}
	if entries, err := s.Host.Store.Entries(); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestInstallRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, s *site)
		code   report.Code
		words  string
	}{
		"a signature of another key": {
			func(t *testing.T, s *site) {
				t.Helper()
				s.options.Key = vendortest.New(t).Public()
			}, report.Untrusted, "not made by any",
		},
		"another key of this name": {func(t *testing.T, s *site) {
			t.Helper()
			if _, err := trust.Add(s.path("trust"), "acme", vendortest.New(t).Public().PEM(), nil); err != nil {
				t.Fatal(err)
			}
		}, report.Usage, "another key acme"},
		"a power that does not exist":       {func(_ *testing.T, s *site) { s.options.Deploy.Allow = []string{"read-secret"} }, report.Usage, "no power"},
		"a plan that is another one by now": {func(_ *testing.T, s *site) { s.options.Deploy.Expect = "0123456789abcdef" }, report.Conflict, "another one"},
		"containerd that would not read the files": {func(t *testing.T, s *site) {
			t.Helper()
			if err := os.WriteFile(s.path("root/etc/containerd/config.toml"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := s.bed.AddEndpoints(t.Context(), deployer.EndpointOptions{More: schema.ClusterRegistry{
				Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn, Endpoints: []string{endpoint},
			}}); err != nil {
				t.Fatal(err)
			}
		}, report.Refused, "config_path"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			test.change(t, s)
			s.bed.Writes()
			s.options.Import.Archives = []string{s.vendor.Archive(t, "1.0.0", 0)}
			_, err := s.Plan(t.Context(), s.options)
			if report.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.words) {
				t.Errorf("%v, want %s: …%s…", err, test.code, test.words)
			}
			if writes := s.bed.Writes(); len(writes) > 0 {
				t.Errorf("the plan has written %q", writes)
			}
		})
	}
}

// TestWithoutSystemd: the registry is started by the user, and the installation waits for that.
func TestWithoutSystemd(t *testing.T) {
	s := newSite(t)
	s.services.absent = true
	p := s.plan(t, s.vendor.Archive(t, "1.0.0", 0))
	err := p.Run(t.Context())
	if report.CodeOf(err) != report.Refused || !strings.Contains(strings.Join(report.Hints(err), "\n"), "solutionctl deploy serve --listen") {
		t.Errorf("%v, hints %q", err, report.Hints(err))
	}
	if diff := cmp.Diff([]string{"trust done", "import done", "serve planned"}, states(p)[:3]); diff != "" {
		t.Error(diff)
	}
}

// TestPlanImages plans the steps about images alone: of an installed host nothing, and of a node without files that one.
func TestPlanImages(t *testing.T) {
	s := newSite(t)
	if err := s.plan(t, s.vendor.Archive(t, "1.0.0", 0)).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(s.path("root/etc/containerd/certs.d")); err != nil {
		t.Fatal(err)
	}
	registry, err := s.bed.Records.Registry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	endpoint := s.options.Endpoint
	s.options.Endpoint = ""
	p, err := s.PlanNode(t.Context(), s.options, registry)
	if err != nil || !slices.Equal(states(p), []string{"configure planned"}) {
		t.Errorf("%v of the node, %v", states(p), err)
	}
	s.options.Endpoint = endpoint
	if p, err = s.PlanImages(t.Context(), s.options); err != nil {
		t.Fatal(err)
	}
	if err = p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"serve unchanged", "register unchanged", "configure done"}, states(p)); diff != "" {
		t.Error(diff)
	}
	if p, err = s.PlanNode(t.Context(), s.options, registry); err != nil || !p.Empty() {
		t.Errorf("%v of a configured node, %v", states(p), err)
	}
}
