package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/deployer/host/authority"
	"github.com/solutionctl/solutionctl/deployer/host/registry"
	"github.com/solutionctl/solutionctl/deployer/host/serve"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

const layerSize = 16 << 20

// writeArchive writes an archive of the Solution "demo" with one image, ui:1, and returns the digest of its only layer.
func writeArchive(t *testing.T, path, version string) (layer string) {
	t.Helper()
	blob := func(data []byte, mediaType types.MediaType) oci.Blob {
		digest, size, err := v1.SHA256(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		return oci.Blob{
			Descriptor: oci.Descriptor{MediaType: mediaType, Digest: digest, Size: size},
			Open:       func(context.Context, int64) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
		}
	}
	data := make([]byte, layerSize)
	_, _ = rand.NewChaCha8([32]byte([]byte(fmt.Sprintf("%32s", version)))).Read(data)
	content, config := blob(data, types.OCILayer), blob([]byte(`{"os":"linux","architecture":"amd64","rootfs":{"type":"layers","diff_ids":[]}}`), types.OCIConfigJSON)
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: config.Descriptor, Layers: []v1.Descriptor{content.Descriptor},
	})
	if err != nil {
		t.Fatal(err)
	}
	root := blob(manifest, types.OCIManifestSchema1).Descriptor
	entries, err := oci.Layout([]*oci.Image{{
		Ref: schema.ImageRef{Name: "ui", Tag: "1"}, Root: root, Manifests: []oci.Manifest{{Descriptor: root, Data: manifest}},
		Blobs: []oci.Blob{config, content},
	}})
	if err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: solutions.metalk8s.scality.com/v1alpha1\nkind: Solution\nmetadata: {name: demo}\nspec: {version: " + version + "}\n"
	files := []iso.File{{Path: "manifest.yaml", Size: int64(len(text)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}}}
	for _, e := range entries {
		files = append(files, iso.File{Path: e.Path, Size: e.Size, Key: e.Key, Open: func() (io.ReadCloser, error) {
			if e.Blob != nil {
				return e.Blob.Open(t.Context(), 0)
			}
			return io.NopCloser(bytes.NewReader(e.Data)), nil
		}})
	}
	image, err := iso.Layout(files, iso.Options{VolumeID: "demo", ModTime: time.Unix(1<<30, 0)})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = image.WriteTo(f)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return content.Digest.String()
}

// host is a store and its server.
type host struct {
	dir    string
	store  *store.Store
	url    string
	events report.Recorder
	reload chan struct{}
	stop   func() error
	client *http.Client
}

func newHost(t *testing.T) *host {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &host{dir: dir, store: s, reload: make(chan struct{}), client: &http.Client{Transport: &http.Transport{}}}
}

func (h *host) change(t *testing.T, f func(*store.Locked) error) {
	t.Helper()
	locked, err := h.store.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err = errors.Join(f(locked), locked.Unlock()); err != nil {
		t.Fatal(err)
	}
}

// add imports an archive and returns the digest of its layer.
func (h *host) add(t *testing.T, version string) (layer string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), version+".iso")
	layer = writeArchive(t, path, version)
	h.importFile(t, path, version, time.Now())
	return layer
}

func (h *host) importFile(t *testing.T, path, version string, at time.Time) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	sums, err := chunk.Sum(t.Context(), f, info.Size(), report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	h.change(t, func(l *store.Locked) error {
		_, _, err := l.Add(t.Context(), store.Source{
			Content: f, File: f, Chunks: &sums.Chunks, SHA256: hex.EncodeToString(sums.SHA256[:]), Path: path, Name: "demo", Version: version,
			Payload: "sha256:" + strings.Repeat("0", 64),
		}, store.StageOptions{Now: at, WrittenBy: "test"})
		return err
	})
}

func (h *host) remove(t *testing.T, version string) {
	t.Helper()
	h.change(t, func(l *store.Locked) error { return l.Remove("demo-" + version) })
}

// inPlace makes an archive of the store one that lies elsewhere, as on a read-only medium, which a test has not got.
func (h *host) inPlace(t *testing.T, version string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "medium.iso")
	archive, record := filepath.Join(h.store.Dir(), "demo-"+version+".iso"), filepath.Join(h.store.Dir(), "demo-"+version+".json")
	data, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := schema.ParseStored[schema.StoredArchive]("archive", record, data)
	if err != nil {
		t.Fatal(err)
	}
	stored.InPlace, stored.Original = true, path
	if data, err = schema.MarshalStored(stored); err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.Rename(archive, path), os.Chmod(path, 0o644), os.Remove(record), os.WriteFile(record, data, 0o440))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// start serves until the test ends or stop is called.
func (h *host) start(t *testing.T, change ...func(*serve.Options)) {
	t.Helper()
	o := serve.Options{
		Store: h.store, Listen: "127.0.0.1:0", Registry: registry.Options{Now: time.Now}, Sink: &h.events, Reload: h.reload,
	}
	ready := make(chan string, 1)
	o.Ready = func(url string) { ready <- url }
	for _, c := range change {
		c(&o)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- serve.Run(ctx, o) }()
	h.stop = sync.OnceValue(func() error {
		cancel()
		h.client.CloseIdleConnections()
		return <-result
	})
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Error(err)
		}
	})
	select {
	case h.url = <-ready:
	case err := <-result:
		t.Fatal(err)
	}
}

func (h *host) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "GET", h.url+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := h.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read to its end
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(data)
}

// await waits until a path answers with a status, at most until the test's deadline.
func (h *host) await(t *testing.T, path string, want int) {
	t.Helper()
	await(t, func() bool {
		status, _ := h.get(t, path)
		return status == want
	})
}

func await(t *testing.T, condition func() bool) {
	t.Helper()
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	for !condition() {
		select {
		case <-ticks.C:
		case <-t.Context().Done():
			t.Fatal("it does not happen")
		}
	}
}

func (h *host) hasEvent(step, name string, state report.State, note string) bool {
	for _, e := range h.events.Events() {
		if e.Step == step && e.Name == name && e.State == state && strings.Contains(e.Note, note) {
			return true
		}
	}
	return false
}

func manifestOf(version string) string { return "/v2/demo-" + version + "/ui/manifests/1" }

// TestFollow imports and unimports while the registry runs. A new image is served to the first request, by tag or by
// digest: a node that gets "not found" waits long before the next attempt.
func TestFollow(t *testing.T) {
	h := newHost(t)
	h.start(t) // there is not even a store
	if status, _ := h.get(t, "/readyz"); status != 200 {
		t.Errorf("an empty store: %d", status)
	}
	for _, version := range []string{"1.0.0", "2.0.0", "3.0.0"} {
		if status, _ := h.get(t, manifestOf(version)); status != 404 {
			t.Errorf("%s before it is imported: %d", version, status)
		}
		layer := h.add(t, version)
		if status, body := h.get(t, "/v2/demo-"+version+"/ui/blobs/"+layer); status != 200 || len(body) != layerSize {
			t.Errorf("the layer of %s: %d, %d bytes", version, status, len(body))
		}
	}
	h.remove(t, "1.0.0")
	h.await(t, manifestOf("1.0.0"), 404)
	if status, _ := h.get(t, manifestOf("2.0.0")); status != 200 {
		t.Errorf("the second one: %d", status)
	}
	h.add(t, "1.0.0")
	if status, _ := h.get(t, manifestOf("1.0.0")); status != 200 {
		t.Errorf("imported once more: %d", status)
	}
	if !h.hasEvent("serve", "demo-1.0.0", report.Done, "images: 1") || !h.hasEvent("withdraw", "demo-1.0.0", report.Done, "") {
		t.Errorf("events: %+v", h.events.Events())
	}
}

// TestStart: archives that were imported before are served at once.
func TestStart(t *testing.T) {
	h := newHost(t)
	h.add(t, "1.0.0")
	h.start(t)
	if status, _ := h.get(t, manifestOf("1.0.0")); status != 200 {
		t.Errorf("status %d", status)
	}
	if _, body := h.get(t, "/metrics"); !strings.Contains(body, "solutionctl_registry_archives 1\n") {
		t.Errorf("metrics: %s", body)
	}
}

// TestDamaged: if one archive cannot be read, the others are served, and that one again once it is readable.
func TestDamaged(t *testing.T) {
	h := newHost(t)
	h.add(t, "1.0.0")
	h.add(t, "2.0.0")
	path := filepath.Join(h.store.Dir(), "demo-1.0.0.iso")
	flip(t, path, 32768+1) // the name of the volume descriptor
	h.start(t)
	if status, _ := h.get(t, manifestOf("2.0.0")); status != 200 {
		t.Errorf("the good one: %d", status)
	}
	if status, _ := h.get(t, manifestOf("1.0.0")); status != 404 || !h.hasEvent("serve", "demo-1.0.0", report.Failed, "") {
		t.Errorf("the damaged one: %d, %+v", status, h.events.Events())
	}
	flip(t, path, 32768+1)
	h.reload <- struct{}{}
	h.await(t, manifestOf("1.0.0"), 200)
}

func flip(t *testing.T, path string, offset int64) {
	t.Helper()
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var one [1]byte
	_, err = f.ReadAt(one[:], offset)
	if err == nil {
		one[0] ^= 1
		_, err = f.WriteAt(one[:], offset)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestInPlace compares all of an archive that does not lie in the store before it is served.
func TestInPlace(t *testing.T) {
	h := newHost(t)
	h.add(t, "1.0.0")
	h.add(t, "2.0.0")
	good, bad := h.inPlace(t, "1.0.0"), h.inPlace(t, "2.0.0")
	flip(t, bad, 10<<20) // inside of the layer, which nothing else looks at
	if err := os.Rename(good, good+".away"); err != nil {
		t.Fatal(err)
	}
	h.start(t)
	await(t, func() bool { return h.hasEvent("serve", "demo-2.0.0", report.Failed, "are not what was imported") })
	if !h.hasEvent("serve", "demo-1.0.0", report.Failed, "it is served as soon as it is there") {
		t.Errorf("events: %+v", h.events.Events())
	}
	if err := os.Rename(good+".away", good); err != nil {
		t.Fatal(err)
	}
	h.reload <- struct{}{}
	h.await(t, manifestOf("1.0.0"), 200)
	if !h.hasEvent("verify", "demo-1.0.0", report.Done, "") {
		t.Errorf("events: %+v", h.events.Events())
	}
	if status, _ := h.get(t, manifestOf("2.0.0")); status != 404 {
		t.Errorf("the altered one: %d", status)
	}
}

// TestVerifying: /readyz names an archive that will be served when it has been compared with its digests.
func TestVerifying(t *testing.T) {
	h := newHost(t)
	h.add(t, "1.0.0")
	h.inPlace(t, "1.0.0")
	verify := make(chan struct{})
	finish := sync.OnceFunc(func() { close(verify) })
	defer finish()
	h.start(t, func(o *serve.Options) {
		o.Sink = sinkFunc(func(e report.Event) {
			if e.Step == "verify" && e.State == report.Started {
				<-verify
			}
		})
	})
	if status, body := h.get(t, "/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "demo-1.0.0") {
		t.Errorf("%d: %s", status, body)
	}
	finish()
	h.await(t, "/readyz", http.StatusOK)
}

type sinkFunc func(report.Event)

func (f sinkFunc) Emit(e report.Event) { f(e) }

// TestStop ends while a layer is being sent: the client gets all of it.
func TestStop(t *testing.T) {
	h := newHost(t)
	layer := h.add(t, "1.0.0")
	stopping := make(chan struct{})
	h.start(t, func(o *serve.Options) { o.Stopping = func() { close(stopping) } })
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // nothing is lost
	if _, err = io.WriteString(conn, "GET /v2/demo-1.0.0/ui/blobs/"+layer+" HTTP/1.1\r\nHost: registry\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	received := bufio.NewReader(conn)
	line, err := received.ReadString('\n')
	if err != nil || !strings.Contains(line, "200") { // else the answer is on its way
		t.Fatalf("%q %v", line, err)
	}
	result := make(chan error, 1)
	go func() { result <- h.stop() }()
	<-stopping
	rest, err := io.ReadAll(received)
	if err != nil || len(rest) < layerSize {
		t.Errorf("%d bytes: %v", len(rest), err)
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
}

func TestTLS(t *testing.T) {
	h := newHost(t)
	layer := h.add(t, "1.0.0")
	ca, err := authority.Open(filepath.Join(t.TempDir(), "tls"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	h.start(t, func(o *serve.Options) { o.TLS = ca.Server() })
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.CA())
	h.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}, ForceAttemptHTTP2: true}}
	if !strings.HasPrefix(h.url, "https://127.0.0.1:") {
		t.Errorf("URL %s", h.url)
	}
	if status, body := h.get(t, "/v2/demo-1.0.0/ui/blobs/"+layer); status != 200 || len(body) != layerSize {
		t.Errorf("%d, %d bytes", status, len(body))
	}
	request, err := http.NewRequestWithContext(t.Context(), "GET", h.url+"/v2/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := h.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.Proto != "HTTP/1.1" {
		t.Errorf("%s %v", response.Proto, err)
	}
	expiry := float64(response.TLS.PeerCertificates[0].NotAfter.Unix())
	if got, want := h.series(t, "certificate_expiry_timestamp_seconds"), fmt.Sprintf("certificate_expiry_timestamp_seconds %.0f", expiry); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// freeAddress is one that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	probe, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := probe.Close(); err != nil {
		t.Fatal(err)
	}
	return probe.Addr().String()
}

// TestNoCertificate: a certificate that cannot be loaded counts as expired. The listener then answers no client.
func TestNoCertificate(t *testing.T) {
	h, address := newHost(t), freeAddress(t)
	h.start(t, func(o *serve.Options) {
		o.MetricsListen = address
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return nil, errors.New("the authority cannot be read")
		}}
	})
	h.url = "http://" + address
	if got, want := h.series(t, "certificate_expiry_timestamp_seconds"), "certificate_expiry_timestamp_seconds 0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMetricsListener(t *testing.T) {
	h, address := newHost(t), freeAddress(t)
	h.start(t, func(o *serve.Options) { o.MetricsListen = address })
	if status, _ := h.get(t, "/metrics"); status != 404 {
		t.Errorf("the registry's listener: %d", status)
	}
	h.url = "http://" + address
	if status, body := h.get(t, "/metrics"); status != 200 || !strings.Contains(body, "solutionctl_registry_archives 0") {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := h.get(t, "/v2/"); status != 404 {
		t.Errorf("images on the metrics' listener: %d", status)
	}
}

// series are the lines of /metrics of some families, without their common prefix.
func (h *host) series(t *testing.T, families ...string) string {
	t.Helper()
	_, body := h.get(t, "/metrics")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	if _, err := parser.TextToMetricFamilies(strings.NewReader(body)); err != nil {
		t.Errorf("%v in\n%s", err, body)
	}
	var found []string
	for line := range strings.Lines(body) {
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "solutionctl_registry_"), "{")
		name, _, _ = strings.Cut(name, " ")
		if slices.Contains(families, name) {
			found = append(found, strings.TrimPrefix(strings.TrimSpace(line), "solutionctl_registry_"))
		}
	}
	return strings.Join(found, "\n")
}

// TestArchiveMetrics: damage to archives shows in the metrics without any request for them.
func TestArchiveMetrics(t *testing.T) {
	h := newHost(t)
	for _, version := range []string{"1.0.0", "2.0.0", "3.0.0", "4.0.0", "5.0.0"} {
		h.add(t, version)
	}
	flip(t, filepath.Join(h.store.Dir(), "demo-4.0.0.iso"), 32768+1) // before it is served
	medium := h.inPlace(t, "5.0.0")
	h.start(t)
	await(t, func() bool { return h.hasEvent("serve", "demo-5.0.0", report.Done, "") })
	states := func(want ...string) {
		t.Helper()
		var lines []string
		for i, state := range want {
			lines = append(lines, fmt.Sprintf(`archive_state{archive="demo-%d.0.0",state="%s"} 1`, i+1, state))
		}
		await(t, func() bool { return h.series(t, "archive_state") == strings.Join(lines, "\n") })
	}
	states("served", "served", "served", "damaged", "served")
	cut := filepath.Join(h.store.Dir(), "demo-1.0.0.iso")
	if err := errors.Join(os.Chmod(cut, 0o640), os.Truncate(cut, 1<<20), os.Remove(filepath.Join(h.store.Dir(), "demo-2.0.0.iso")), os.Remove(medium)); err != nil {
		t.Fatal(err)
	}
	states("damaged", "unreadable", "served", "damaged", "unreadable")
	verified := h.series(t, "archive_verified_timestamp_seconds")
	for _, id := range []string{"demo-1.0.0", "demo-5.0.0"} { // by the import, and when it was found in place
		if !strings.Contains(verified, fmt.Sprintf(`{archive="%s"} 1`, id)) {
			t.Errorf("%s was never verified: %s", id, verified)
		}
	}
	if got := h.series(t, "store_readable", "certificate_expiry_timestamp_seconds"); got != "store_readable 1" {
		t.Errorf("got %s", got)
	}
	if got := h.series(t, "store_free_bytes", "store_size_bytes"); runtime.GOOS == "linux" && strings.Count(got, "\n") != 1 {
		t.Errorf("got %s", got)
	}
}

// TestRepaired serves an archive again that was damaged in the store and that was imported again.
func TestRepaired(t *testing.T) {
	h := newHost(t)
	path := filepath.Join(t.TempDir(), "1.0.0.iso")
	writeArchive(t, path, "1.0.0")
	h.importFile(t, path, "1.0.0", time.Now().Add(-time.Hour))
	flip(t, filepath.Join(h.store.Dir(), "demo-1.0.0.iso"), 32768+1)
	h.start(t)
	state := func(want string) {
		t.Helper()
		await(t, func() bool {
			return h.series(t, "archive_state") == fmt.Sprintf(`archive_state{archive="demo-1.0.0",state="%s"} 1`, want)
		})
	}
	state("damaged")
	h.importFile(t, path, "1.0.0", time.Now())
	state("served")
}

// TestStoreMetrics: an unreadable store is reported, and open archives are still served.
func TestStoreMetrics(t *testing.T) {
	h := newHost(t)
	h.add(t, "1.0.0")
	h.start(t)
	record := filepath.Join(h.store.Dir(), "demo-1.0.0.json")
	if err := errors.Join(os.Remove(record), os.WriteFile(record, []byte("{"), 0o440)); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return h.series(t, "store_readable") == "store_readable 0" })
	if got, want := h.series(t, "archive_state"), `archive_state{archive="demo-1.0.0",state="served"} 1`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestAccessLog moves the log away, as logrotate does.
func TestAccessLog(t *testing.T) {
	name := filepath.Join(t.TempDir(), "access.log")
	log, err := serve.OpenAccessLog(name)
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t)
	h.start(t, func(o *serve.Options) { o.AccessLog = log })
	h.get(t, "/v2/")
	if err := os.Rename(name, name+".1"); err != nil {
		t.Fatal(err)
	}
	h.reload <- struct{}{}
	await(t, func() bool { _, err := os.Stat(name); return err == nil })
	h.get(t, "/v2/_catalog")
	if err := errors.Join(h.stop(), log.Close()); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{name + ".1": "ping", name: "catalog"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var entry schema.RegistryAccess
		if err := json.Unmarshal(data, &entry); err != nil || entry.Operation != want || entry.Status != 200 {
			t.Errorf("%s: %s %v", file, data, err)
		}
	}
}

// TestFullDisk: nodes pull also when nothing can be written on this host any more.
func TestFullDisk(t *testing.T) {
	const full = "/dev/full" // where each write fails as on a disk that is full
	if _, err := os.Stat(full); err != nil {
		t.Skip(err)
	}
	log, err := serve.OpenAccessLog(full)
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t)
	layer := h.add(t, "1.0.0")
	h.start(t, func(o *serve.Options) { o.AccessLog = log })
	for range 2 {
		if status, body := h.get(t, "/v2/demo-1.0.0/ui/blobs/"+layer); status != http.StatusOK || len(body) != layerSize {
			t.Errorf("%d, %d bytes", status, len(body))
		}
	}
	if err := errors.Join(h.stop(), log.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestAddressInUse(t *testing.T) {
	h := newHost(t)
	h.add(t, "1.0.0")
	h.start(t)
	address := strings.TrimPrefix(h.url, "http://")
	err := serve.Run(t.Context(), serve.Options{
		Store: h.store, Listen: address, Registry: registry.Options{Now: time.Now}, Sink: report.Discard,
	})
	if report.CodeOf(err) != report.Failure || !strings.Contains(err.Error(), "address already in use") || len(report.Hints(err)) == 0 {
		t.Errorf("got %v", err)
	}
}
