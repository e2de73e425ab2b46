package console_test

import (
	"context"
	"html"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	authorization "k8s.io/api/authorization/v1"

	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/console"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema/report"
)

// registryService is a service manager that runs the registry of a host in this process.
type registryService struct {
	t       *testing.T
	serve   host.ServeOptions
	started bool
}

func (*registryService) Available() bool                        { return true }
func (s *registryService) Running(context.Context, string) bool { return s.started }
func (*registryService) Stop(context.Context, string) error     { return nil }
func (*registryService) Reload(context.Context) error           { return nil }
func (s *registryService) Start(_ context.Context, _ string) error {
	s.started = true
	ctx, end := context.WithCancel(context.WithoutCancel(s.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- host.Serve(ctx, s.serve) }()
	s.t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
	for {
		connection, err := net.Dial("tcp", "127.0.0.1"+s.serve.Listen)
		if err == nil {
			return connection.Close()
		}
		select {
		case err := <-ended:
			ended <- err
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// startOnNode is a site whose host is a node, too, and that its user can set up.
func startOnNode(t *testing.T) (s *site, root, endpoint string) {
	t.Helper()
	s, root = startSite(t), t.TempDir()
	free, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	if err = free.Close(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"etc/containerd", "etc/systemd/system"} {
		if err = os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const containerd = "[plugins.'io.containerd.cri.v1.images'.registry]\nconfig_path = '/etc/containerd/certs.d'\n"
	if err = os.WriteFile(filepath.Join(root, "etc/containerd/config.toml"), []byte(containerd), 0o600); err != nil {
		t.Fatal(err)
	}
	endpoint = "https://127.0.0.1:" + port
	serve := host.ServeOptions{
		Store: s.places.Store, Listen: ":" + port, MaxTransfers: host.DefaultTransfers, Output: io.Discard, Errors: io.Discard, Sink: report.Discard, Now: time.Now,
	}
	s.bench = startOn(t, s.api, func(o *console.Options) {
		s.options(o)
		o.Settings = &console.HostSettings{Open: s.desk.Open, TrustDir: t.TempDir(), Images: &console.HostImages{
			Services: &registryService{t: t, serve: serve}, Root: root, Program: "/usr/bin/solutionctl", Serve: serve, Endpoint: endpoint,
		}}
	})
	return s, root, endpoint
}

// link returns where the first link with a label leads.
func (a answer) link(t *testing.T, label string) string {
	t.Helper()
	found := regexp.MustCompile(`href="([^"]+)"[^>]*>(?:<svg.*?</svg>)?\s*` + regexp.QuoteMeta(label)).FindStringSubmatch(a.body)
	if found == nil {
		t.Fatalf("no link %q in\n%s", label, content(a.body))
	}
	return html.UnescapeString(found[1])
}

// has fails for words that a page does not have, and for those that it has after "not ".
func (a answer) has(t *testing.T, words ...string) {
	t.Helper()
	text := html.UnescapeString(content(a.body))
	for _, word := range words {
		unwanted, not := strings.CutPrefix(word, "not ")
		if strings.Contains(text, unwanted) == not {
			t.Errorf("want %q in\n%s", word, text)
		}
	}
}

// TestFirstStart goes from an empty cluster to a running Solution by the buttons of the overview. This host serves the images and is set up by the
// console.
func TestFirstStart(t *testing.T) {
	s, root, endpoint := startOnNode(t)
	c := s.in(t)
	a := c.get("/")
	a.has(t, "0 of 5 done", "Import an archive", "not At a glance", "not Set up this host")
	if to := a.link(t, "Import an archive"); to != "/import" {
		t.Errorf("the first step leads to %s", to)
	}
	archive := s.vendor.ArchiveOf(t, "shop", "1.0.0", deployertest.Content{})
	c.get("/import/path?path=" + archive) // which examines it
	imported := c.post("/import/path", "path", archive)
	c.ends(imported)
	a = c.get(imported.Header.Get("Location"))
	a.has(t, "shop 1.0.0 is imported", "Activate 1.0.0")

	a = c.get(a.link(t, "Continue with the first steps"))
	a.has(t, "1 of 5 done", "shop 1.0.0", "nodes have no registry", "Serve the images at "+endpoint, "Record "+endpoint+" in the cluster", "Configure containerd of this node", "Set up this host")
	c.leads(c.post("/settings/images", "to", "/"), "/")
	a = c.get("/")
	a.has(t, "2 of 5 done", endpoint+" serves every image", "not Set up this host")
	if files, err := filepath.Glob(filepath.Join(root, "etc/containerd/certs.d/*/hosts.toml")); err != nil || len(files) != 1 {
		t.Errorf("the node has %q, %v", files, err)
	}

	c.applies(a.link(t, "Activate"))
	a = c.get("/")
	a.has(t, "3 of 5 done")
	if to := a.link(t, "New environment"); to != "/environments/new" {
		t.Errorf("the fourth step leads to %s", to)
	}
	c.leads(c.post("/environments", "name", "production"), "/environments/production")
	a = c.get("/")
	a.has(t, "4 of 5 done")
	c.applies(a.link(t, "Add a Solution"))
	c.get("/").has(t, "not First steps", "At a glance")
}

// TestSetUpRefused: only the user who runs the console sets its host up, and is led back to no other site.
func TestSetUpRefused(t *testing.T) {
	s, _, _ := startOnNode(t)
	if a := s.with(t, "joe").post("/settings/images", "to", "/"); a.StatusCode != http.StatusForbidden {
		t.Errorf("another user: %d", a.StatusCode)
	}
	c := s.in(t)
	c.leads(c.post("/settings/images", "to", "//evil.example"), "/")
	elsewhere := startOn(t, clustertest.Start(t), nil)
	if a := elsewhere.in(t).post("/settings/images", "to", "/"); a.StatusCode != http.StatusForbidden {
		t.Errorf("a console without a host: %d", a.StatusCode)
	}
}

// TestImagesElsewhere: a console on another host has the commands, on the overview and on the plan that is refused.
func TestImagesElsewhere(t *testing.T) {
	bed := deployertest.New(t)
	record := bed.Record("shop", "1.0.0", deployertest.Content{})
	record.Registry.Endpoints = nil
	if _, err := bed.RecordImport(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	c := startOn(t, bed.Server, nil).in(t)
	commands := []string{">solutionctl deploy serve<", ">solutionctl deploy registry add https://HOST:5000<", ">solutionctl deploy node config<", "not Set up this host"}
	c.get("/").has(t, append(commands, "2 of 5 done")...)

	plan := "/environments/" + deployertest.Environment + "/plan/add?solution=shop"
	c.applies("/solutions/shop/plan/activate?version=1.0.0")
	a := c.get(plan)
	if a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("%d", a.StatusCode)
	}
	a.has(t, append(commands, "Nodes cannot fetch images yet", "not the cluster has no record")...)
	if to := a.link(t, "Check again"); !strings.HasPrefix(to, plan[:strings.Index(plan, "?")]+"?") || !strings.Contains(to, "solution=shop") {
		t.Errorf("checking again leads to %s", to)
	}
	if to := a.link(t, "Settings"); to != "/settings" {
		t.Errorf("the settings are at %s", to)
	}
}

// TestSilentRegistry: a registry that does not answer this console may answer nodes, and holds nothing up.
func TestSilentRegistry(t *testing.T) {
	bed := deployertest.New(t)
	bed.Imported("shop", "1.0.0", deployertest.Content{})
	a := startOn(t, bed.Server, nil).in(t).get("/")
	a.has(t, "The registry does not answer this console", "http://127.0.0.1:9 does not answer")
	if to := a.link(t, "Activate"); to != "/solutions/shop/plan/activate" {
		t.Errorf("the next step leads to %s", to)
	}
}

// TestRegistryUnseen: a user who is not allowed to read the record of the registry continues without that step.
func TestRegistryUnseen(t *testing.T) {
	bed := deployertest.New(t)
	bed.Imported("shop", "1.0.0", deployertest.Content{})
	b := startOn(t, bed.Server, nil)
	bed.Only("nowhere", func(a authorization.ResourceAttributes) bool { return a.Name != records.RegistryName })
	a := b.with(t, "joe").get("/")
	a.has(t, "You do not have permission to read where nodes find images", "not You do not have permission for this")
	if to := a.link(t, "Activate"); to != "/solutions/shop/plan/activate" {
		t.Errorf("the next step leads to %s", to)
	}
}
