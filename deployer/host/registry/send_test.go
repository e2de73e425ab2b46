package registry_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/deployer/host/registry"
	"github.com/solutionctl/solutionctl/deployer/metrics"
)

// spy is a connection that records how it receives bytes. Only a limited reader of a file counts as sendfile, as in
// package net.
type spy struct {
	*httptest.ResponseRecorder
	sent      int64 // by sendfile
	deadlines []time.Time
	before    func() // is called before anything is sent
}

func newSpy() *spy { return &spy{ResponseRecorder: httptest.NewRecorder()} }

func (s *spy) ReadFrom(r io.Reader) (int64, error) {
	if s.before != nil {
		s.before()
	}
	n, err := io.Copy(s.Body, r)
	if limited, ok := r.(*io.LimitedReader); ok {
		if _, ok := limited.R.(*os.File); ok {
			s.sent += n
		}
	}
	return n, err
}

func (s *spy) SetWriteDeadline(t time.Time) error {
	s.deadlines = append(s.deadlines, t)
	return nil
}

func request(ctx context.Context, path string, headers ...string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, "GET", path, http.NoBody)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	return r
}

// TestSendfile proves that large blobs do not pass through the process: every writer on the way must hand ReadFrom on.
func TestSendfile(t *testing.T) {
	w := newWorld(t, registry.Options{})
	path := "/v2/demo-1.0.0/operator/blobs/" + w.layer
	for _, test := range []struct {
		name    string
		headers []string
		want    string
	}{
		{"whole", nil, w.layerBytes},
		{"range", []string{"Range: bytes=70000-"}, w.layerBytes[70000:]},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSpy()
			w.ServeHTTP(s, request(t.Context(), path, test.headers...))
			if s.Body.String() != test.want {
				t.Errorf("%d bytes, want %d", s.Body.Len(), len(test.want))
			}
			if s.sent != int64(len(test.want)) {
				t.Errorf("%d of %d bytes went by sendfile", s.sent, len(test.want))
			}
		})
	}
}

// TestDeadlines looks at how long a client may take: the grace, and a second for each piece of the minimal rate.
func TestDeadlines(t *testing.T) {
	w := newWorld(t, registry.Options{})
	now := time.Unix(1<<30, 0)
	r := registry.New(registry.Options{MinRate: 100 << 10, Now: func() time.Time { return now }})
	if err := r.Set([]*registry.Archive{open(t, w.iso)}); err != nil {
		t.Fatal(err)
	}
	s := newSpy()
	r.ServeHTTP(s, request(t.Context(), "/v2/demo-1.0.0/operator/blobs/"+w.layer))
	last := s.deadlines[len(s.deadlines)-1]
	want := now.Add(30*time.Second + time.Duration(float64(len(w.layerBytes))/(100<<10)*float64(time.Second)))
	if last.Sub(want).Abs() > time.Millisecond {
		t.Errorf("deadline %s, want %s", last, want)
	}
	if first := s.deadlines[0]; first.Before(now.Add(30 * time.Second)) {
		t.Errorf("the first one is %s", first)
	}
}

// TestQueue lets one blob be sent at a time.
func TestQueue(t *testing.T) {
	w := newWorld(t, registry.Options{MaxTransfers: 1})
	path := "/v2/demo-1.0.0/operator/blobs/" + w.layer
	sending, proceed := make(chan struct{}), make(chan struct{})
	first := newSpy()
	first.before = func() {
		sending <- struct{}{}
		<-proceed
	}
	var group sync.WaitGroup
	group.Go(func() { w.ServeHTTP(first, request(t.Context(), path)) })
	<-sending

	left, leave := context.WithCancel(t.Context())
	outcome := make(chan any)
	go func() {
		defer func() { outcome <- recover() }()
		w.ServeHTTP(newSpy(), request(left, path))
	}()
	second := newSpy()
	group.Go(func() { w.ServeHTTP(second, request(t.Context(), path)) })
	for w.metric(t, "solutionctl_registry_queued_transfers") != 2 { // the only way in which they show that they wait
		runtime.Gosched()
	}
	if got := w.metric(t, "solutionctl_registry_active_transfers"); got != 1 {
		t.Errorf("%v transfers at once", got)
	}
	for _, small := range []string{"manifests/1.0.0", "blobs/" + w.config} {
		if got := w.ask(t, "GET", "/v2/demo-1.0.0/operator/"+small); got.status != 200 {
			t.Errorf("%s has to wait: %d", small, got.status)
		}
	}
	if got := w.ask(t, "HEAD", path); got.status != 200 {
		t.Errorf("HEAD has to wait: %d", got.status)
	}
	leave()
	if got := <-outcome; got != http.ErrAbortHandler { //nolint:errorlint // the panic's value
		t.Errorf("who left is answered: %v", got)
	}
	if got := w.metric(t, "solutionctl_registry_transfers_aborted_total"); got != 1 {
		t.Errorf("%v transfers were aborted, want 1", got)
	}
	close(proceed)
	group.Wait()
	for i, s := range []*spy{first, second} {
		if s.Body.String() != w.layerBytes {
			t.Errorf("transfer %d: %d bytes", i, s.Body.Len())
		}
	}
}

// metric returns one number of the metrics page, read with Prometheus' own parser.
func (s *served) metric(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	var page metrics.Page
	s.WriteMetrics(&page)
	var text bytes.Buffer
	must(page.WriteTo(&text))(t)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families := must(parser.TextToMetricFamilies(&text))(t)
	family := families[name]
	if family == nil {
		t.Fatalf("there is no metric %s", name)
	}
	for _, m := range family.GetMetric() {
		var have []string
		for _, l := range m.GetLabel() {
			have = append(have, l.GetName()+"="+l.GetValue())
		}
		if strings.Join(have, ",") == strings.Join(labels, ",") {
			return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return 0
}

func TestMetrics(t *testing.T) {
	w := newWorld(t, registry.Options{})
	w.ask(t, "GET", "/v2/demo-1.0.0/operator/blobs/"+w.layer)
	w.ask(t, "GET", "/v2/demo-1.0.0/operator/blobs/"+w.layer, "Range: bytes=0-9")
	w.ask(t, "GET", "/v2/demo-1.0.0/operator/manifests/none")
	w.Close()
	for _, test := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"requests_total", []string{"operation=blob", "code=200"}, 1},
		{"requests_total", []string{"operation=blob", "code=206"}, 1},
		{"requests_total", []string{"operation=manifest", "code=404"}, 1},
		{"sent_bytes_total", []string{"operation=blob"}, float64(len(w.layerBytes) + 10)},
		{"request_duration_seconds", []string{"operation=blob"}, 2},
		{"active_requests", nil, 0},
		{"damaged_total", nil, 0},
		{"transfers_aborted_total", nil, 0},
		{"archives", nil, 1},
		{"images", nil, 5},
	} {
		if got := w.metric(t, "solutionctl_registry_"+test.name, test.labels...); got != test.want {
			t.Errorf("%s %q: %v, want %v", test.name, test.labels, got, test.want)
		}
	}
}

// TestReplaced serves on from a file whose name has gone to another one.
func TestReplaced(t *testing.T) {
	w := newWorld(t, registry.Options{})
	if err := os.WriteFile(w.iso+".new", bytes.Repeat([]byte("other"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(w.iso+".new", w.iso); err != nil {
		t.Fatal(err)
	}
	if got := w.ask(t, "GET", "/v2/demo-1.0.0/operator/blobs/"+w.layer); got.body != w.layerBytes {
		t.Errorf("%d with other bytes", got.status)
	}
	if err := os.Remove(w.iso); err != nil {
		t.Fatal(err)
	}
	if got := w.ask(t, "GET", "/v2/demo-1.0.0/operator/blobs/"+w.layer); got.body != w.layerBytes {
		t.Errorf("removed: %d with other bytes", got.status)
	}
}

// TestTruncated takes the end of the file away while it is served: a client must notice.
func TestTruncated(t *testing.T) {
	w := newWorld(t, registry.Options{})
	info := must(os.Stat(w.iso))(t)
	start := must(os.ReadFile(w.iso))(t)
	at := int64(bytes.Index(start, []byte(w.layerBytes[:100])))
	config := string(must(w.operator.RawConfigFile())(t))
	if at < 0 || at+int64(len(w.layerBytes)) > info.Size() {
		t.Fatalf("the layer is not in the file: %d", at)
	}
	if err := os.Truncate(w.iso, at+100000); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		headers []string
	}{
		{"whole", nil},
		{"range over the end", []string{"Range: bytes=99990-"}},
		{"range behind the end", []string{"Range: bytes=200000-200010"}},
		{"several ranges", []string{"Range: bytes=1-2,200000-200010"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := w.metric(t, "solutionctl_registry_damaged_total")
			r := must(http.NewRequestWithContext(t.Context(), "GET", w.URL+"/v2/demo-1.0.0/operator/blobs/"+w.layer, http.NoBody))(t)
			for _, h := range test.headers {
				name, value, _ := strings.Cut(h, ": ")
				r.Header.Set(name, value)
			}
			response := must(w.Client().Transport.RoundTrip(r))(t) //nolint:bodyclose // the next line
			defer response.Body.Close()                            //nolint:errcheck // read only
			if response.StatusCode != http.StatusInternalServerError {
				t.Errorf("answered with %d", response.StatusCode)
			}
			if w.metric(t, "solutionctl_registry_damaged_total") != before+1 {
				t.Error("it was not counted")
			}
		})
	}
	t.Run("a small blob", func(t *testing.T) {
		got := w.ask(t, "GET", "/v2/demo-1.0.0/operator/blobs/"+w.config)
		if got.body != config && got.status != 500 {
			t.Errorf("%d %q", got.status, got.body)
		}
	})
	w.Close()
	last := w.access.entries[0]
	if !strings.Contains(last.Error, "its file was cut off") || last.Status != http.StatusInternalServerError {
		t.Errorf("log: %+v", last)
	}
}

// TestTruncatedMeanwhile takes the file away under a transfer that has begun: the connection ends before its time.
func TestTruncatedMeanwhile(t *testing.T) {
	p := newProject(t, "big", "1.0.0")
	large := image(t, 11, 32<<20) // more than the buffers of a connection hold
	p.add("data:1", large)
	name := p.write()
	r := serve(t, registry.Options{}, open(t, name))
	conn := dial(t, "127.0.0.1", strings.TrimPrefix(r.URL, "http://"))
	layer := must(must(large.Layers())(t)[0].Digest())(t).String()
	if _, err := fmt.Fprintf(conn, "GET /v2/big-1.0.0/data/blobs/%s HTTP/1.1\r\nHost: registry\r\n\r\n", layer); err != nil {
		t.Fatal(err)
	}
	response := must(http.ReadResponse(bufio.NewReader(conn), nil))(t) //nolint:bodyclose // the next line
	defer response.Body.Close()                                        //nolint:errcheck // it is broken
	if err := os.Truncate(name, 0); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, response.Body); err == nil || response.StatusCode != 200 {
		t.Errorf("%d with %d bytes looks complete", response.StatusCode, n)
	}
	if got := r.ask(t, "GET", "/readyz"); !strings.Contains(got.body, "big-1.0.0: its file was cut off") {
		t.Errorf("%d %s", got.status, got.body)
	}
	r.Close()
	if e := r.access.entries[0]; !strings.Contains(e.Error, "ends early: unexpected EOF") || r.metric(t, "solutionctl_registry_damaged_total") != 1 {
		t.Errorf("log: %+v", e)
	}
}

// TestAltered changes a configuration in the file: it must not be sent.
func TestAltered(t *testing.T) {
	w := newWorld(t, registry.Options{})
	config := must(w.operator.RawConfigFile())(t)
	at := int64(bytes.Index(must(os.ReadFile(w.iso))(t), config))
	f := must(os.OpenFile(w.iso, os.O_WRONLY, 0))(t)
	if _, err := f.WriteAt([]byte("?"), at+5); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	got := w.ask(t, "GET", "/v2/demo-1.0.0/operator/blobs/"+w.config)
	if got.status != 500 || strings.Contains(got.body, "rootfs") || got.header.Get("Docker-Content-Digest") != "" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestRemoved takes an archive away while a blob of it is being sent.
func TestRemoved(t *testing.T) {
	w := newWorld(t, registry.Options{})
	a := open(t, w.iso)
	if err := w.Set([]*registry.Archive{a}); err != nil {
		t.Fatal(err)
	}
	path := "/v2/demo-1.0.0/operator/blobs/" + w.layer
	sending, proceed := make(chan struct{}), make(chan struct{})
	s := newSpy()
	s.before = func() {
		sending <- struct{}{}
		<-proceed
	}
	var group sync.WaitGroup
	group.Go(func() { w.ServeHTTP(s, request(t.Context(), path, "Range: bytes=1-")) })
	<-sending
	if err := w.Set(nil); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if got := w.ask(t, "GET", path); got.status != 404 {
		t.Errorf("an archive that was removed answers %d", got.status)
	}
	close(proceed)
	group.Wait()
	if s.Body.String() != w.layerBytes[1:] {
		t.Errorf("%d bytes", s.Body.Len())
	}
}

// TestConcurrent pulls while archives come and go. Run it under the race detector.
func TestConcurrent(t *testing.T) {
	w := newWorld(t, registry.Options{MirrorOrigins: true, MaxTransfers: 3})
	other := newProject(t, "other", "1.0.0")
	other.add("ui:1", image(t, 9, 100))
	otherISO := other.write()
	var group sync.WaitGroup
	stop := make(chan struct{})
	group.Go(func() {
		for {
			archives := []*registry.Archive{open(t, w.iso), open(t, otherISO)}
			if err := w.Set(archives); err != nil {
				t.Error(err)
			}
			select {
			case <-stop:
				return
			default:
			}
			if err := w.Set(archives[:1]); err != nil {
				t.Error(err)
			}
			if err := archives[1].Close(); err != nil {
				t.Error(err)
			}
		}
	})
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 10 {
				for path, digest := range map[string]string{
					"/v2/demo-1.0.0/operator/blobs/" + w.layer:               w.layer,
					"/v2/demo-1.0.0/operator/blobs/" + w.config:              w.config,
					"/v2/demo-1.0.0/operator/manifests/1.0.0":                digestOf(t, w.operator),
					"/v2/library/busybox/manifests/1.36?ns=docker.io":        digestOf(t, w.ui),
					"/v2/demo-1.0.0/multi/manifests/" + digestOf(t, w.multi): digestOf(t, w.multi),
				} {
					got := w.ask(t, "GET", path)
					if sum := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(got.body))); sum != digest {
						t.Errorf("%s: %d %s, want %s", path, got.status, sum, digest)
					}
				}
			}
		})
	}
	clients.Wait()
	close(stop)
	group.Wait()
}

// TestForeign serves archives that others made: with MetalK8s' directories only, and no image file at all.
func TestForeign(t *testing.T) {
	p := newProject(t, "old", "1.0.0")
	img := image(t, 7, 200<<10, 10)
	p.add("db:1", img)
	f := must(os.Open(p.write()))(t)
	defer f.Close() //nolint:errcheck // read only
	fsys := must(iso.Open(f, must(f.Stat())(t).Size()))(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, fsys); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"oci-layout", "index.json", "blobs"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	unpacked := must(registry.NewArchive(must(archive.FromFS(os.DirFS(dir)))(t), nil))(t)
	r := serve(t, registry.Options{}, unpacked)
	reference := (&world{served: r}).reference(t, "old-1.0.0/db:1")
	if err := validate.Image(must(remote.Image(reference))(t)); err != nil {
		t.Error(err)
	}
	if got := r.ask(t, "GET", "/v2/old-1.0.0/db/manifests/1"); got.header.Get("Docker-Content-Digest") != digestOf(t, img) {
		t.Errorf("%d %v", got.status, got.header)
	}
}

// TestManySmallBlobs has more of them than an archive keeps in memory.
func TestManySmallBlobs(t *testing.T) {
	sizes := make([]int64, 150)
	for i := range sizes {
		sizes[i] = 62_000
	}
	p := newProject(t, "many", "1.0.0")
	p.add("layers:1", image(t, 8, sizes...))
	r := serve(t, registry.Options{}, open(t, p.write()))
	reference := (&world{served: r}).reference(t, "many-1.0.0/layers:1")
	for range 2 {
		if err := validate.Image(must(remote.Image(reference))(t)); err != nil {
			t.Error(err)
		}
	}
}

// TestGone writes to a client that has left: the archive is not at fault.
func TestGone(t *testing.T) {
	w := newWorld(t, registry.Options{})
	s := &gone{spy: newSpy()}
	func() {
		defer func() {
			if got := recover(); got != http.ErrAbortHandler { //nolint:errorlint // the panic's value
				t.Errorf("ended with %v", got)
			}
		}()
		w.ServeHTTP(s, request(t.Context(), "/v2/demo-1.0.0/operator/blobs/"+w.layer))
	}()
	if got := w.metric(t, "solutionctl_registry_damaged_total"); got != 0 {
		t.Errorf("damaged: %v", got)
	}
	if e := w.access.entries[0]; e.Error != "broken pipe" || e.Status != 200 {
		t.Errorf("log: %+v", e)
	}
}

type gone struct{ *spy }

func (*gone) ReadFrom(io.Reader) (int64, error) { return 0, errors.New("broken pipe") }

// stall asks for a blob and reads nothing of it but the status, as a client that hangs does.
func stall(t *testing.T, from, to, path string) {
	t.Helper()
	conn := dial(t, from, to)
	if err := conn.SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: registry\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
}

// dial connects from an address of this host: each is a client of its own.
func dial(t *testing.T, from, to string) *net.TCPConn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", to)
	if errors.Is(err, syscall.EADDRNOTAVAIL) && os.Getenv("CI") != "true" {
		t.Skipf("this host has no second address: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

// TestStalledClient: a client that stops reading delays no other one, however many connections it has. Requests from
// one address are served one after the other.
func TestStalledClient(t *testing.T) {
	const limit = 8
	p := newProject(t, "big", "1.0.0")
	large := image(t, 11, 32<<20) // more than the buffers of a connection hold
	p.add("data:1", large)
	r := serve(t, registry.Options{MaxTransfers: limit}, open(t, p.write()))
	layer := must(must(large.Layers())(t)[0].Digest())(t).String()
	path, address := "/v2/big-1.0.0/data/blobs/"+layer, strings.TrimPrefix(r.URL, "http://")
	for range 3 * limit {
		stall(t, "127.0.0.2", address, path)
	}
	for r.metric(t, "solutionctl_registry_queued_transfers") != 3*limit-limit/4 {
		runtime.Gosched()
	}
	if got := r.metric(t, "solutionctl_registry_active_transfers"); got != limit/4 {
		t.Errorf("one client has %v transfers of %d", got, limit)
	}
	var others sync.WaitGroup
	for range 2 * limit { // behind one address, more than it may have at once
		others.Go(func() {
			if got := r.ask(t, "GET", path); fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(got.body))) != layer {
				t.Errorf("%d with %d bytes", got.status, len(got.body))
			}
		})
	}
	others.Wait()
}

// TestNotReady: /readyz names an archive that has changed.
func TestNotReady(t *testing.T) {
	for _, test := range []struct {
		name   string
		harm   func(file string) error
		want   string
		status int // of a large blob
	}{
		{"nothing", func(string) error { return nil }, "", 200},
		{"cut off", func(file string) error { return os.Truncate(file, 64<<10) }, "demo-1.0.0: its file was cut off", 500},
		{"emptied", func(file string) error { return os.Truncate(file, 0) }, "demo-1.0.0: its file was cut off", 500},
		{"removed", os.Remove, "demo-1.0.0: its file was removed", 200},
		{"replaced", func(file string) error {
			return errors.Join(os.Rename(file, file+".old"), os.WriteFile(file, []byte("other"), 0o600))
		}, "demo-1.0.0: its file was replaced", 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, registry.Options{})
			if got := w.ask(t, "GET", "/readyz"); got.status != 200 {
				t.Fatalf("%d %s", got.status, got.body)
			}
			if err := test.harm(w.iso); err != nil {
				t.Fatal(err)
			}
			got := w.ask(t, "GET", "/v2/demo-1.0.0/operator/blobs/"+w.layer)
			if got.status != test.status || (got.status == 200) != (got.body == w.layerBytes) {
				t.Errorf("%d with %d bytes", got.status, len(got.body))
			}
			ready := w.ask(t, "GET", "/readyz")
			if (ready.status == 503) != (test.want != "") || !strings.Contains(ready.body, test.want) {
				t.Errorf("%d %s", ready.status, ready.body)
			}
			w.Close()
			for _, e := range w.access.entries {
				if e.Operation == "blob" && (e.Status != test.status || (e.Status == 500) != (e.Error != "")) {
					t.Errorf("log: %+v", e)
				}
			}
		})
	}
}

// TestMissing: /readyz names the archives that are not served.
func TestMissing(t *testing.T) {
	w := newWorld(t, registry.Options{})
	w.SetMissing([]string{"other-1.0.0"})
	if got := w.ask(t, "GET", "/readyz"); got.status != 503 || !strings.Contains(got.body, "other-1.0.0") {
		t.Errorf("%d %s", got.status, got.body)
	}
	w.SetMissing(nil)
	if got := w.ask(t, "GET", "/readyz"); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}
