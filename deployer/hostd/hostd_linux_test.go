package hostd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest/vendortest"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
)

const token = "the-token-of-jane"

// bench is a host with a server, before an API server in memory.
type bench struct {
	*Client
	t      *testing.T
	api    *clustertest.Server
	vendor *vendortest.Vendor
	dir    string
	events report.Recorder
	host   *host.Host

	mu   sync.Mutex
	sent map[string]bool // credentials that the API server got
}

func start(t *testing.T, peers ...uint32) *bench {
	t.Helper()
	b := &bench{t: t, api: clustertest.Start(t), vendor: vendortest.New(t), dir: t.TempDir(), sent: map[string]bool{}}
	b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		got := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		b.sent[got] = true
		if got == token {
			return false
		}
		clustertest.Fail(w, apierrors.NewUnauthorized("Unauthorized"))
		return true
	}
	kubeconfig := b.api.Kubeconfig(t)
	places := host.Places{Store: b.path("store"), Configuration: b.path("solutions.yaml"), Nginx: b.path("nginx")}
	var err error
	if b.host, err = host.Open(places); err != nil {
		t.Fatal(err)
	}
	desk := &Desk{
		Open: func() (*host.Host, error) { return host.Open(places) },
		Connect: func(token string) (*cluster.Cluster, error) {
			return cluster.Connect(cluster.Options{
				Kubeconfig: kubeconfig, Token: func(context.Context) (string, error) { return token, nil }, Now: time.Now, Retry: -1,
			})
		},
		Options: host.ImportOptions{State: b.path("state.json"), Trusted: b.vendor.Trusted, Mount: host.MountNever},
		Version: "1.0.0", Host: "here", Now: time.Now,
	}
	b.Client = &Client{Socket: filepath.Join(b.dir, "s")}
	l, err := Listen(b.Socket, -1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- (&Server{Desk: desk, Peers: peers, Sink: &b.events, Now: time.Now}).Serve(ctx, l) }()
	t.Cleanup(func() {
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for _, e := range b.events.Events() {
			if strings.Contains(fmt.Sprint(e), token) {
				t.Errorf("the log has the token: %v", e)
			}
		}
	})
	return b
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func me() uint32 { return uint32(os.Geteuid()) } //nolint:gosec // a user id

// archive opens a file with its signatures.
func (b *bench) archive(path string) Archive {
	b.t.Helper()
	bundles, err := sign.FindBundles(path)
	if err != nil {
		b.t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = f.Close() })
	return Archive{Name: filepath.Base(path), File: f, Bundles: bundles}
}

func (b *bench) stored() (ids []string) {
	b.t.Helper()
	entries, err := b.host.Store.Entries()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range entries {
		ids = append(ids, e.ID())
	}
	return ids
}

func code(t *testing.T, err error, want report.Code) {
	t.Helper()
	if err == nil || report.CodeOf(err) != want {
		t.Fatalf("error %v (%s), want %s", err, report.CodeOf(err), want)
	}
}

// TestImport is an archive from its signature to its end.
func TestImport(t *testing.T) {
	b := start(t, me())
	a := b.archive(b.vendor.Archive(t, "1.0.0", 5<<20))
	expected, err := b.Examine(t.Context(), token, Archive{Bundles: a.Bundles}, nil)
	if err != nil {
		t.Fatal(err)
	}
	info, err := a.File.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if expected.Solution != "demo" || expected.Version != "1.0.0" || expected.Chunks.Size != info.Size() || expected.Chunks.Validate() != nil || expected.Verdict.Verified {
		t.Errorf("%+v", expected)
	}
	found, err := b.Examine(t.Context(), token, a, nil)
	if err != nil || !found.Verdict.Verified || found.Brings == nil || !slices.Equal(found.Signers, []string{"vendor"}) {
		t.Errorf("%+v, %v", found, err)
	}
	if got := b.stored(); len(got) > 0 || b.api.Object("Secret", cluster.SystemNamespace, "solutionctl-imports") != nil {
		t.Errorf("an examination stored %q", got)
	}
	var steps report.Recorder
	done, err := b.Import(t.Context(), token, a, &steps)
	if err != nil || !done.Recorded || len(steps.Events()) == 0 {
		t.Fatalf("%+v, %v, %v", done, err, steps.Events())
	}
	if got := b.stored(); !slices.Equal(got, []string{"demo-1.0.0"}) {
		t.Errorf("stored %q", got)
	}
	if !maps.Equal(b.sent, map[string]bool{token: true}) {
		t.Errorf("the API server was asked as %v", b.sent)
	}
	if facts, failure := b.Facts(t.Context(), token, Version{"demo", "1.0.0"}, nil); failure != nil || facts.Version != "1.0.0" || len(facts.Problems) > 0 {
		t.Errorf("facts: %+v, %v", facts, failure)
	}
	if done, err = b.Import(t.Context(), token, a, nil); err != nil || done.Archives[0].Method != "present" {
		t.Errorf("again: %+v, %v", done, err)
	}
	gone, err := b.Unimport(t.Context(), token, Version{"demo", "1.0.0"}, nil)
	if err != nil || !gone.Recorded || len(b.stored()) > 0 {
		t.Errorf("%+v, %v, %q is stored", gone, err, b.stored())
	}
}

// TestRefused: archives that a compromised console could try to import.
func TestRefused(t *testing.T) {
	b := start(t, me())
	mallory := vendortest.New(t)
	good := b.archive(b.vendor.Archive(t, "1.0.0", 0))
	pipe := b.path("pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	fifo, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer fifo.Close() //nolint:errcheck // nothing was written
	dir, err := os.Open(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close() //nolint:errcheck // opened for reading
	for _, test := range []struct {
		name string
		a    Archive
		want report.Code
	}{
		{"unsigned", Archive{Name: good.Name, File: good.File}, report.Unsigned},
		{"a stranger signed it", b.archive(mallory.Archive(t, "1.0.0", 0)), report.Untrusted},
		{"its signature is of another archive", Archive{File: b.archive(mallory.Archive(t, "1.0.0", 100)).File, Bundles: good.Bundles}, report.Corrupt},
		{"it names a path of the host", Archive{Name: b.vendor.Archive(t, "1.0.0", 0)}, report.Usage},
		{"it is not the one that was examined", Archive{File: good.File, Bundles: good.Bundles, Expect: strings.Repeat("0", 64)}, report.Conflict},
		{"a pipe", Archive{File: fifo, Bundles: good.Bundles}, report.Usage},
		{"a directory", Archive{File: dir, Bundles: good.Bundles}, report.Usage},
		{"no bundle at all", Archive{File: good.File, Bundles: []sign.NamedBundle{{File: "x", Data: []byte("{")}}}, report.BadBundle},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := b.Import(t.Context(), token, test.a, nil)
			code(t, err, test.want)
			if got := b.stored(); len(got) > 0 {
				t.Errorf("stored %q", got)
			}
		})
	}
}

// say sends bytes, with files, and returns the last line.
func (b *bench) say(t *testing.T, data string, files ...*os.File) answer {
	t.Helper()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: b.Socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // all was read
	if len(files) > 0 {
		var fds []int
		for _, f := range files {
			fds = append(fds, int(f.Fd())) //nolint:gosec // a descriptor is a small number
		}
		if _, _, err = c.WriteMsgUnix([]byte(data[:1]), unix.UnixRights(fds...), nil); err != nil {
			t.Fatal(err)
		}
		data = data[1:]
	}
	_, _ = io.WriteString(c, data) // a refused client cannot send it all
	_ = c.CloseWrite()
	var last answer
	for lines := bufio.NewScanner(c); lines.Scan(); {
		if err = json.Unmarshal(lines.Bytes(), &last); err != nil {
			t.Fatal(err)
		}
	}
	return last
}

// TestHostile speaks the protocol like a compromised console.
func TestHostile(t *testing.T) {
	b := start(t, me())
	unsigned := b.archive(b.vendor.Archive(t, "1.0.0", 0))
	whole := func(more string) string {
		return `{"verb":"import","token":"` + token + `","id":"0123456789abcdef","file":true` + more + `}`
	}
	for _, test := range []struct {
		name, data string
		files      []*os.File
		want       report.Code
	}{
		{"to verify nothing", whole(`,"insecureSkipVerify":true`), []*os.File{unsigned.File}, report.Usage},
		{"to trust a key", whole(`,"keys":["/tmp/k.pub"]`), []*os.File{unsigned.File}, report.Usage},
		{"to accept what is older", whole(`,"AllowDowngrade":true`), []*os.File{unsigned.File}, report.Usage},
		{"to leave it where it is", whole(`,"inPlace":true`), []*os.File{unsigned.File}, report.Usage},
		{"to tell nodes another endpoint", whole(`,"endpoints":["https://evil"]`), []*os.File{unsigned.File}, report.Usage},
		{"to open a path", whole(`,"archives":["/etc/shadow"]`), []*os.File{unsigned.File}, report.Usage},
		{"two requests", whole("") + whole(""), []*os.File{unsigned.File}, report.Usage},
		{"two files", whole(""), []*os.File{unsigned.File, unsigned.File}, report.Usage},
		{"many files", whole(""), slices.Repeat([]*os.File{unsigned.File}, 100), report.Usage},
		{"no file", whole(""), nil, report.Usage},
		{"another verb", `{"verb":"trust","token":"` + token + `","id":"0123456789abcdef"}`, nil, report.Usage},
		{"a file where none belongs", `{"verb":"unimport","file":true,"version":{"solution":"demo","version":"1.0.0"},"token":"` + token + `","id":"0123456789abcdef"}`, []*os.File{unsigned.File}, report.Usage},
		{"everything of a Solution", `{"verb":"unimport","version":{"solution":"demo","version":""},"token":"` + token + `","id":"0123456789abcdef"}`, nil, report.Usage},
		{"facts of a path", `{"verb":"facts","version":{"solution":"/etc/shadow","version":""},"token":"` + token + `","id":"0123456789abcdef-facts"}`, nil, report.Usage},
		{"facts of a file", `{"verb":"facts","file":true,"version":{"solution":"demo","version":"1.0.0"},"token":"` + token + `","id":"0123456789abcdef"}`, []*os.File{unsigned.File}, report.Usage},
		{"without a token", `{"verb":"import","id":"0123456789abcdef","file":true}`, []*os.File{unsigned.File}, report.Unauthenticated},
		{"with an unknown token", `{"verb":"import","token":"other","id":"0123456789abcdef","file":true}`, []*os.File{unsigned.File}, report.Unauthenticated},
		{"with what is no header", `{"verb":"import","token":"a\r\nX: y","id":"0123456789abcdef","file":true}`, []*os.File{unsigned.File}, report.Unauthenticated},
		{"more than a request has", `{"name":"` + strings.Repeat("a", maxRequest) + `"}`, nil, report.Usage},
		{"noise", "\x00\xff" + strings.Repeat("{", 1000), nil, report.Usage},
		{"what others have begun", `{"verb":"events","token":"` + token + `","id":"of-somebody-else"}`, nil, report.NotFound},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := b.say(t, test.data, test.files...)
			if !got.Done || got.Error == nil || got.Error.Code != test.want {
				t.Errorf("%+v, want %s", got.Error, test.want)
			}
			if got.Error != nil && strings.Contains(got.Error.Message, token) {
				t.Error("the error has the token")
			}
			if ids := b.stored(); len(ids) > 0 {
				t.Errorf("stored %q", ids)
			}
		})
	}
	if _, err := b.Import(t.Context(), token, unsigned, nil); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestRights(t *testing.T) {
	b := start(t, me())
	b.api.May = func(a authorization.ResourceAttributes) bool {
		return a.Group != rights.ArchivesGroup && a.Verb != "*"
	}
	a := b.archive(b.vendor.Archive(t, "1.0.0", 0))
	_, err := b.Import(t.Context(), token, a, nil)
	code(t, err, report.Forbidden)
	if hint := strings.Join(report.Hints(err), ""); !strings.Contains(hint, rights.ArchivesGroup) || !strings.Contains(hint, "import") {
		t.Errorf("the missing right is not named: %s", hint)
	}
	_, err = b.Examine(t.Context(), token, a, nil)
	code(t, err, report.Forbidden)
	_, err = b.Unimport(t.Context(), token, Version{"demo", "1.0.0"}, nil)
	code(t, err, report.Forbidden)
	_, err = b.Facts(t.Context(), token, Version{"demo", "1.0.0"}, nil)
	code(t, err, report.Forbidden)
	if got := b.stored(); len(got) > 0 {
		t.Errorf("stored %q", got)
	}
}

func TestPeers(t *testing.T) {
	b := start(t, me()+1)
	_, err := b.Unimport(t.Context(), token, Version{"demo", "1.0.0"}, nil)
	code(t, err, report.Forbidden)
	if len(b.sent) > 0 {
		t.Error("the API server was asked")
	}
	if info, failure := os.Stat(b.Socket); failure != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("%v, %v", info, failure)
	}
	if _, err = Listen(b.Socket, -1); report.CodeOf(err) != report.Conflict {
		t.Errorf("two servers: %v", err)
	}
	none := &Client{Socket: b.path("none")}
	_, err = none.Unimport(t.Context(), token, Version{"demo", "1.0.0"}, nil)
	code(t, err, report.Unavailable)
}

// TestGoesOn closes the connection of an import, and asks for its result.
func TestGoesOn(t *testing.T) {
	b := start(t, me())
	a := b.archive(b.vendor.Archive(t, "1.0.0", 0))
	data, err := json.Marshal(request{Verb: verbImport, Token: token, ID: "0123456789abcdef", File: true, Bundles: a.Bundles})
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: b.Socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	if err = sendAll(c, data, a.File); err != nil {
		t.Fatal(err)
	}
	if _, err = c.Read(make([]byte, 1)); err != nil { // it was begun
		t.Fatal(err)
	}
	if err = c.Close(); err != nil {
		t.Fatal(err)
	}
	got := b.say(t, `{"verb":"events","token":"`+token+`","id":"0123456789abcdef"}`)
	if !got.Done || got.Error != nil || got.Imported == nil || !got.Imported.Recorded {
		t.Errorf("%+v", got)
	}
}

// TestActivated is a process that systemd starts.
func TestActivated(t *testing.T) {
	const child = "SOLUTIONCTL_TEST_ACTIVATED"
	if os.Getenv(child) != "" {
		l, err := Activated(os.Getenv)
		if err != nil || l == nil {
			t.Fatal(l, err)
		}
		c, err := l.AcceptUnix()
		if err != nil {
			t.Fatal(err)
		}
		if err = errors.Join(c.Close(), l.Close()); err != nil {
			t.Fatal(err)
		}
		return
	}
	if l, err := Activated(func(string) string { return "" }); l != nil || err != nil {
		t.Fatal(l, err)
	}
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(path, -1)
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // nothing was sent
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `LISTEN_PID=$$ exec "$0" -test.run '^TestActivated$'`, os.Args[0])
	cmd.Env = append(os.Environ(), child+"=1", "LISTEN_FDS=1")
	cmd.ExtraFiles = []*os.File{f}
	if out, failure := cmd.CombinedOutput(); failure != nil {
		t.Fatalf("%v\n%s", failure, out)
	}
	if _, err = os.Stat(path); err != nil {
		t.Errorf("the socket of systemd is gone: %v", err)
	}
	if err = errors.Join(f.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
}
