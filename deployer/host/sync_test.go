package host

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/solutionctl/solutionctl/build/artifact"
	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
	"github.com/solutionctl/solutionctl/sign/key"
	"github.com/solutionctl/solutionctl/sign/key/keytest"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// serveStore serves the archives of a host until the test ends, and returns the address, HOST:PORT.
func (w *world) serveStore(listen string) string {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	listening, ended := make(chan string, 1), make(chan error, 1)
	sink := sinkFunc(func(e report.Event) {
		if e.Step == "listen" {
			listening <- e.Name
		}
	})
	go func() {
		ended <- Serve(ctx, ServeOptions{
			Store: w.Dir, Listen: listen, MaxTransfers: 8, Output: io.Discard, Errors: io.Discard, Sink: sink, Now: time.Now, Names: []string{"127.0.0.1"},
		})
	}()
	w.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
	select {
	case url := <-listening:
		_, port, err := net.SplitHostPort(url[strings.Index(url, "//")+2:])
		if err != nil {
			w.t.Fatal(err)
		}
		return "127.0.0.1:" + port
	case err := <-ended:
		ended <- nil
		w.t.Fatal(err)
	}
	return ""
}

type sinkFunc func(report.Event)

func (f sinkFunc) Emit(e report.Event) { f(e) }

// second is another host that trusts the vendor of the first one.
func (w *world) second() *world {
	w.t.Helper()
	other := newWorld(w.t)
	other.acme = w.acme
	other.options.Trusted = func() (*trust.Store, error) {
		return trust.Keys(map[string]*key.Public{"acme": w.acme.Public()}), nil
	}
	return other
}

func (w *world) sync(o SyncOptions) (*schema.SyncReport, error) {
	o.Import = w.options
	return w.Sync(w.t.Context(), o)
}

func states(r *schema.SyncReport) string {
	var list []string
	for _, a := range r.Archives {
		list = append(list, fmt.Sprint(a.Solution, "-", a.Version, " ", a.State))
	}
	for _, at := range r.Removed {
		list = append(list, fmt.Sprint(at.Solution, "-", at.Version, " removed"))
	}
	return strings.Join(list, ", ")
}

// TestSync copies archives by TLS: with the authority that the cluster has recorded, or with that of a file, and with no other one.
func TestSync(t *testing.T) {
	first := newWorld(t)
	if _, err := first.do(first.archive("1.2.0"), first.archive("1.10.0-rc.1")); err != nil {
		t.Fatal(err)
	}
	second := first.second()
	from := first.serveStore(":0")
	if _, err := second.sync(SyncOptions{Source: from}); report.CodeOf(err) != report.Unavailable {
		t.Errorf("without an authority: %v", err)
	}
	if _, err := second.sync(SyncOptions{Source: "http://" + from}); report.CodeOf(err) != report.Unavailable {
		t.Errorf("without TLS: %v", err)
	}
	second.cluster.registry = &schema.ClusterRegistry{Mode: schema.RegistryOwn, CA: string(first.read(AuthorityFile(first.Dir)))}
	done, err := second.sync(SyncOptions{Source: from, DryRun: true})
	if err != nil || states(done) != "demo-1.2.0 missing, demo-1.10.0-rc.1 missing" || len(second.stored()) > 0 {
		t.Errorf("a dry run: %+v, %v, stored %v", done, err, second.stored())
	}
	done, err = second.sync(SyncOptions{Source: "https://" + from})
	if err != nil || states(done) != "demo-1.2.0 imported, demo-1.10.0-rc.1 imported" || !slices.Equal(done.Archives[0].Signers, []string{"acme"}) {
		t.Errorf("%+v, %v", done, err)
	}
	leftOver := second.pulledFile(&schema.ArchiveLayout{Name: "demo", Version: "1.2.0"})
	if err = os.Link(must(second.Store.Find("demo", "1.2.0"))(t).Path, leftOver); err != nil { // killed right after the import
		t.Fatal(err)
	}
	second.cluster.registry = nil
	done, err = second.sync(SyncOptions{Source: from, CA: AuthorityFile(first.Dir)})
	if err != nil || states(done) != "demo-1.2.0 present, demo-1.10.0-rc.1 present" {
		t.Errorf("%+v, %v", done, err)
	}
	if left := must(os.ReadDir(second.Store.PulledDir()))(t); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	bundles, err := second.Store.Bundles(must(second.Store.Find("demo", "1.2.0"))(t))
	if err != nil || len(bundles) != 1 {
		t.Errorf("%d signatures were kept: %v", len(bundles), err)
	}
}

// TestSyncFinishes finishes an import that ended after the archive was stored.
func TestSyncFinishes(t *testing.T) {
	for name, fail := range map[string]func(second *world) (mend func()){
		"without a cluster": func(second *world) func() {
			second.cluster.absent = report.Errorf(report.Unavailable, "%w", errors.New("it is away"))
			return func() { second.cluster.absent = nil }
		},
		"without permission to record it": func(second *world) func() {
			second.cluster.failing = report.Errorf(report.Forbidden, "no")
			return func() { second.cluster.failing = nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			first := newWorld(t)
			if _, err := first.do(first.archive("1.2.0")); err != nil {
				t.Fatal(err)
			}
			second := first.second()
			from := SyncOptions{Source: "http://" + first.serveStore("127.0.0.1:0")}
			mend := fail(second)
			for range 2 {
				if done, err := second.sync(from); err == nil || states(done) != "demo-1.2.0 failed" || !slices.Equal(second.entries(), []string{"demo-1.2.0"}) {
					t.Fatalf("%+v, %v, stored %v", done, err, second.entries())
				}
			}
			mend()
			for range 2 {
				if done, err := second.sync(from); err != nil || states(done) != "demo-1.2.0 present" {
					t.Fatalf("%+v, %v", done, err)
				}
			}
			if second.cluster.imports["demo-1.2.0"].Name != "demo" {
				t.Errorf("recorded %v", second.cluster.imports)
			}
			_, err := second.do(first.archive("1.1.0"))
			checkCode(t, err, report.Downgrade)
			if left := must(os.ReadDir(second.Store.PulledDir()))(t); len(left) > 0 {
				t.Errorf("left over: %v", left)
			}
		})
	}
}

// TestSyncUnsigned names the command that ends an import without a signature. A sync cannot end it.
func TestSyncUnsigned(t *testing.T) {
	first := newWorld(t)
	if _, err := first.do(first.archive("1.2.0")); err != nil {
		t.Fatal(err)
	}
	first.replaceBundles("1.2.0")
	second := first.second()
	from := first.serveStore("127.0.0.1:0")
	reference := must(artifact.ParseReference(artifact.Scheme + from + "/" + artifact.ServedIn + "demo:1.2.0"))(t)
	pull := func() error {
		o := second.options
		o.SkipVerify = true
		file, err := second.Pull(t.Context(), PullOptions{Reference: reference, Plain: []string{from}, Import: o})
		if err != nil {
			return err
		}
		o.Archives = []string{file}
		_, err = second.Import(t.Context(), o)
		return second.EndPull(err, file)
	}
	second.cluster.absent = report.Errorf(report.Unavailable, "%w", errors.New("it is away"))
	checkCode(t, pull(), report.Unavailable)
	second.cluster.absent = nil
	_, err := second.sync(SyncOptions{Source: "http://" + from})
	checkCode(t, err, report.Unsigned)
	if hint := fmt.Sprint(report.Hints(err)); !strings.Contains(hint, "deploy import "+reference.String()+" --insecure-skip-verify --plain-http "+from) {
		t.Errorf("the hint is %s", hint)
	}
	if err = pull(); err != nil {
		t.Fatal(err)
	}
	if done, err := second.sync(SyncOptions{Source: "http://" + from}); err != nil || states(done) != "demo-1.2.0 present" {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestSyncKeepsRefused transfers an archive that its content keeps from being imported once, and repairs the file when that was damaged.
func TestSyncKeepsRefused(t *testing.T) {
	first := newWorld(t)
	if _, err := first.do(first.archive("1.0.0", widgetIn("gateway.networking.k8s.io")...)); err != nil {
		t.Fatal(err)
	}
	second := first.second()
	trusted := second.options.Trusted
	second.limit("[]")
	from := SyncOptions{Source: "http://" + first.serveStore("127.0.0.1:0")}
	pulled := second.pulledFile(&schema.ArchiveLayout{Name: "demo", Version: "1.0.0"})
	var before os.FileInfo
	for range 2 {
		_, err := second.sync(from)
		checkCode(t, err, report.Refused)
		after := must(os.Lstat(pulled))(t)
		if before != nil && (!os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime())) {
			t.Error("the archive was written again")
		}
		before = after
	}
	damaged := second.read(pulled)
	damaged[len(damaged)-1] ^= 1
	second.write(pulled, damaged)
	second.options.Trusted = trusted
	_, err := second.sync(from)
	checkCode(t, err, report.Corrupt)
	if done, err := second.sync(from); err != nil || states(done) != "demo-1.0.0 imported" {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestSyncCleans removes what earlier runs pulled and could not import, when it is not served any more, but nothing that is being written, of
// late, or needed to finish an import.
func TestSyncCleans(t *testing.T) {
	first := newWorld(t)
	if _, err := first.do(first.archive("1.0.0")); err != nil {
		t.Fatal(err)
	}
	second := first.second()
	if _, err := second.do(first.archive("1.1.0")); err != nil {
		t.Fatal(err)
	}
	dir := second.Store.PulledDir()
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"demo-0.1.0.iso", "demo-0.1.0.iso.sigstore.json", ".demo-0.2.0.iso.partial", "demo-0.3.0.iso", "demo-1.1.0.iso", "demo-0.4.0.iso"} {
		file, at := filepath.Join(dir, name), today.Add(-8*24*time.Hour)
		second.write(file, nil)
		if name == "demo-0.3.0.iso" {
			at = today.Add(-time.Hour)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	writing := must(durable.Continue(filepath.Join(dir, "demo-0.4.0.iso")))(t)
	from := SyncOptions{Source: "http://" + first.serveStore("127.0.0.1:0")}
	second.options.AllowDowngrade = true
	for _, from.Solutions = range [][]string{{"demo"}, nil} {
		if done, err := second.sync(from); err != nil {
			t.Errorf("%+v, %v", done, err)
		}
		var left []string
		for _, entry := range must(os.ReadDir(dir))(t) {
			left = append(left, entry.Name())
		}
		want := []string{".demo-0.4.0.iso.partial", "demo-0.3.0.iso", "demo-0.4.0.iso", "demo-1.1.0.iso"}
		if from.Solutions != nil {
			want = []string{".demo-0.2.0.iso.partial", want[0], "demo-0.1.0.iso", "demo-0.1.0.iso.sigstore.json", want[1], want[2], want[3]}
		}
		if diff := cmp.Diff(want, left); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	}
	if err := writing.Discard(); err != nil {
		t.Fatal(err)
	}
}

func must[T any](value T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return value
	}
}

// TestSyncRefuses copies what this host trusts, and nothing else: a hostile host signs with other keys, or names the signature of another
// archive.
func TestSyncRefuses(t *testing.T) {
	first := newWorld(t)
	if _, err := first.do(first.archive("1.0.0"), first.archive("1.1.0"), first.archive("1.2.0")); err != nil {
		t.Fatal(err)
	}
	second := first.second()
	from := first.serveStore("127.0.0.1:0")

	// 1.0.0 has the signature of 1.1.0, and 1.1.0 only those of mallory, one of them without a statement.
	first.replaceBundles("1.0.0", first.read(first.path("demo-1.1.0.iso.sigstore.json")))
	first.sign(first.path("demo-1.1.0.iso"), "1.1.0", first.mallory, "mallory")
	sum := sha256.Sum256(first.read(first.path("demo-1.1.0.iso")))
	plain := must(bundle.SignDigest(t.Context(), first.mallory, sum[:]))(t)
	first.replaceBundles("1.1.0", first.read(first.path("demo-1.1.0.iso.mallory.sigstore.json")), plain)
	done, err := second.sync(SyncOptions{Source: "http://" + from})
	if report.CodeOf(err) != report.Mismatch || states(done) != "demo-1.0.0 failed, demo-1.1.0 failed, demo-1.2.0 imported" {
		t.Errorf("%+v, %v", done, err)
	}
	if done.Archives[1].Fetched != 0 || !strings.Contains(done.Archives[1].Reason, "not made by any of the 1 trusted keys") {
		t.Errorf("%+v", done.Archives[1])
	}
	if _, err := os.Stat(second.Store.PulledDir()); err == nil {
		if left := must(os.ReadDir(second.Store.PulledDir()))(t); len(left) > 0 {
			t.Errorf("refused archives were transferred: %v", left)
		}
	}
}

// replaceBundles gives an archive of the store other signatures, as the administrator of a hostile host can.
func (w *world) replaceBundles(version string, bundles ...[]byte) {
	w.t.Helper()
	entry := must(w.Store.Find("demo", version))(w.t)
	for _, file := range must(filepath.Glob(entry.Path + ".*.sigstore.json"))(w.t) {
		w.remove(file)
	}
	for _, data := range bundles {
		sum := sha256.Sum256(data)
		w.write(entry.Path+"."+entry.SHA256[:16]+"-"+hex.EncodeToString(sum[:8])+".sigstore.json", data)
	}
}

// TestSyncAddsSignatures copies the signatures that the other host got after its archive was copied, and reads the archive once for them.
func TestSyncAddsSignatures(t *testing.T) {
	first := newWorld(t)
	archive := first.archive("1.0.0")
	if _, err := first.do(archive); err != nil {
		t.Fatal(err)
	}
	second := first.second()
	from := "http://" + first.serveStore("127.0.0.1:0")
	if _, err := second.sync(SyncOptions{Source: from}); err != nil {
		t.Fatal(err)
	}
	first.sign(first.path("demo-1.0.0.iso"), "1.0.0", first.mallory, "site")
	if _, err := first.do(archive); err != nil {
		t.Fatal(err)
	}
	entry := must(second.Store.Find("demo", "1.0.0"))(t)
	for range 2 {
		done, err := second.sync(SyncOptions{Source: from})
		if err != nil || states(done) != "demo-1.0.0 present" {
			t.Errorf("%+v, %v", done, err)
		}
		if bundles := must(second.Store.Bundles(entry))(t); len(bundles) != 2 {
			t.Errorf("%d signatures", len(bundles))
		}
	}
	want := must(second.Store.Bundles(entry))(t)
	// A host that is not trusted offers a signature that is not one, and one of another archive.
	first.replaceBundles("1.0.0", []byte("{}"))
	if done, err := second.sync(SyncOptions{Source: from}); err != nil || states(done) != "demo-1.0.0 present" {
		t.Errorf("%+v, %v", done, err)
	}
	if diff := cmp.Diff(want, must(second.Store.Bundles(entry))(t)); diff != "" {
		t.Errorf("signatures (-want +got):\n%s", diff)
	}
}

// TestSyncSkipsSignatures reads no archive for signatures that this host does not keep: bad ones, those that may be of another file, and more
// than it keeps of one archive.
func TestSyncSkipsSignatures(t *testing.T) {
	first := newWorld(t)
	if _, err := first.do(first.archive("1.0.0")); err != nil {
		t.Fatal(err)
	}
	second := first.second()
	from := SyncOptions{Source: "http://" + first.serveStore("127.0.0.1:0")}
	if _, err := second.sync(from); err != nil {
		t.Fatal(err)
	}
	genuine := first.read(first.path("demo-1.0.0.iso.sigstore.json"))
	flipped := bytes.Clone(genuine)
	flipped[bytes.Index(flipped, []byte(`"sig":`))+20] ^= 1
	private := must(ecdsa.GenerateKey(elliptic.P521(), cryptorand.Reader))(t)
	other := sha512.Sum512([]byte("another file"))
	plain := must(bundle.SignDigest(t.Context(), keytest.Of(t, private), other[:]))(t)
	var many [64][]byte
	for n := range many {
		first.sign(first.path("demo-1.0.0.iso"), "1.0.0", first.mallory, "mallory")
		many[n] = first.read(first.path("demo-1.0.0.iso.mallory.sigstore.json"))
	}
	for _, test := range []struct {
		name   string
		served [][]byte
		kept   int
	}{
		{"bad and of other files", [][]byte{genuine, flipped, plain}, 1},
		{"too many", many[:], 64},
	} {
		first.replaceBundles("1.0.0", test.served...)
		var before int
		for range 2 {
			before = len(second.verified())
			if done, err := second.sync(from); err != nil {
				t.Fatalf("%s: %+v, %v", test.name, done, err)
			}
		}
		if again := len(second.verified()) - before; again > 0 {
			t.Errorf("%s: read %d times", test.name, again)
		}
		if kept := must(second.Store.Bundles(must(second.Store.Find("demo", "1.0.0"))(t)))(t); len(kept) != test.kept {
			t.Errorf("%s: %d signatures, want %d", test.name, len(kept), test.kept)
		}
	}
}

// verified are the verifications so far.
func (w *world) verified() []report.Event {
	return slices.DeleteFunc(w.events.Events(), func(e report.Event) bool { return e.Step != "verify" || e.State != report.Started })
}

// TestSyncPrunes removes what the other host and the cluster do not have, and nothing in use.
func TestSyncPrunes(t *testing.T) {
	first := newWorld(t)
	if _, err := first.do(first.archive("1.2.0")); err != nil {
		t.Fatal(err)
	}
	second := first.second()
	second.options.AllowDowngrade = true
	if _, err := second.do(first.archive("1.0.0"), first.archive("1.1.0"), first.archive("1.2.0")); err != nil {
		t.Fatal(err)
	}
	from := first.serveStore("127.0.0.1:0")
	delete(second.cluster.imports, "demo-1.0.0")
	for _, dry := range []bool{true, false} {
		done, err := second.sync(SyncOptions{Source: "http://" + from, Prune: true, DryRun: dry})
		if err != nil || states(done) != "demo-1.2.0 present, demo-1.0.0 removed" {
			t.Errorf("%+v, %v", done, err)
		}
	}
	if got := second.stored(); !slices.Equal(got, []string{"demo-1.1.0", "demo-1.2.0"}) {
		t.Errorf("stored %v", got)
	}
	empty := newWorld(t).serveStore("127.0.0.1:0")
	second.Cluster = nil
	if done, err := second.sync(SyncOptions{Source: "http://" + empty, Prune: true}); report.CodeOf(err) != report.Refused || len(done.Removed) > 0 {
		t.Errorf("a host without archives: %+v, %v", done, err)
	}
	second.Cluster = second.cluster
	second.cluster.absent = report.Errorf(report.Unavailable, "%w", errors.New("it is away"))
	if done, err := second.sync(SyncOptions{Source: "http://" + from, Prune: true}); report.CodeOf(err) != report.Unavailable || len(done.Removed) > 0 {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestSyncKeepsWhatIsDamaged removes nothing while the other host does not serve all that it has.
func TestSyncKeepsWhatIsDamaged(t *testing.T) {
	first := newWorld(t)
	archives := []string{first.archive("1.0.0"), first.archive("1.2.0")}
	if _, err := first.do(archives...); err != nil {
		t.Fatal(err)
	}
	second := first.second()
	second.Cluster = nil
	if _, err := second.do(archives...); err != nil {
		t.Fatal(err)
	}
	damaged := must(first.Store.Find("demo", "1.0.0"))(t).Path
	if err := errors.Join(os.Chmod(damaged, 0o640), os.Truncate(damaged, 1000)); err != nil {
		t.Fatal(err)
	}
	done, err := second.sync(SyncOptions{Source: "http://" + first.serveStore("127.0.0.1:0"), Prune: true})
	if report.CodeOf(err) != report.Unavailable || !strings.Contains(err.Error(), "demo-1.0.0: it is not served") || states(done) != "demo-1.2.0 present" {
		t.Errorf("%+v, %v", done, err)
	}
	if got := second.stored(); !slices.Equal(got, []string{"demo-1.0.0", "demo-1.2.0"}) {
		t.Errorf("stored %v", got)
	}
}

// TestSyncRefusesNames refuses a signed archive that a hostile host serves under the name of another version.
func TestSyncRefusesNames(t *testing.T) {
	w := newWorld(t)
	data := w.read(w.archive("1.1.0"))
	source := layout.Source{Name: "demo.iso", ReaderAt: bytes.NewReader(data), Size: int64(len(data))}
	bundles := []layout.Bundle{{Data: w.read(w.path("demo-1.1.0.iso.sigstore.json"))}}
	genuine := must(artifact.New(t.Context(), source, bundles, report.Discard))(t).Image
	config := must(oci.ReadBlob(t.Context(), genuine.Blobs[0], 1<<20))(t)
	forged := oci.BytesBlob(genuine.Blobs[0].MediaType, bytes.ReplaceAll(config, []byte("1.1.0"), []byte("1.0.0")))
	renamed := oci.Artifact{Type: artifact.Type, Config: &forged, Layers: genuine.Blobs[1:2]}
	signature := oci.Artifact{Type: string(genuine.Blobs[3].MediaType), Layers: genuine.Blobs[3:4]}
	image := must(oci.ArtifactImage(renamed, signature))(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true)))
	defer server.Close()
	from := strings.TrimPrefix(server.URL, "http://")
	push, err := oci.NewPush(t.Context(), []oci.Upload{{Repository: from + "/archives/demo", Image: image, Tags: []string{"1.0.0"}}}, nil, oci.PushOptions{})
	if err == nil {
		err = push.Run(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	done, err := w.sync(SyncOptions{Source: server.URL})
	if report.CodeOf(err) != report.Mismatch || !strings.Contains(err.Error(), "demo-1.1.0 was signed, the archive is called demo-1.0.0") || len(w.stored()) > 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if states(done) != "demo-1.0.0 failed" { // not the tag that some registries keep signatures under
		t.Error(states(done))
	}
}

// TestSyncFlippedBits copies an archive over a link that flips a bit of the first answers about its large blob. A chunk is asked for again, and
// at most the ends of the blob, which are in chunks with other content. Where bits are flipped for good, nothing is imported.
func TestSyncFlippedBits(t *testing.T) {
	const size = 5*chunk.DefaultSize + 4321
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content) // it never fails
	first := newWorld(t)
	digest := sha256.Sum256(content)
	if _, err := first.do(first.archive("1.0.0", "blobs/sha256/"+hex.EncodeToString(digest[:]), string(content))); err != nil {
		t.Fatal(err)
	}
	backend := &url.URL{Scheme: "http", Host: first.serveStore("127.0.0.1:0")}
	for name, test := range map[string]struct {
		flips []int64 // offsets in the blob
		times int     // answers that are spoilt, of those that have the offset
		most  int64   // bytes that are asked for again
	}{
		"one in the middle":     {[]int64{size / 2}, 1, chunk.DefaultSize},
		"one at the end":        {[]int64{size - 1}, 1, 2 * chunk.DefaultSize},
		"two far apart":         {[]int64{size / 3, size / 3 * 2}, 1, 2 * chunk.DefaultSize},
		"the middle and an end": {[]int64{size / 2, 0}, 1, 3 * chunk.DefaultSize},
		"for good":              {[]int64{size / 2}, 1000, -1},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			spoilt, sent := map[int64]int{}, int64(0)
			proxy := httputil.NewSingleHostReverseProxy(backend)
			proxy.ModifyResponse = func(r *http.Response) error {
				if r.ContentLength < chunk.DefaultSize/2 || !strings.Contains(r.Request.URL.Path, "/blobs/") && r.ContentLength < chunk.DefaultSize {
					return nil
				}
				var at int64
				_, _ = fmt.Sscanf(r.Header.Get("Content-Range"), "bytes %d-", &at) // a whole blob has none
				body := r.Body
				r.Body = struct {
					io.Reader
					io.Closer
				}{readerFunc(func(p []byte) (int, error) {
					n, err := body.Read(p)
					mu.Lock()
					defer mu.Unlock()
					for _, flip := range test.flips {
						if flip >= at && flip < at+int64(n) && spoilt[flip] < test.times {
							p[flip-at] ^= 1
							spoilt[flip]++
						}
					}
					at, sent = at+int64(n), sent+int64(n)
					return n, err
				}), body}
				return nil
			}
			server := httptest.NewServer(proxy)
			t.Cleanup(server.Close)
			second := first.second()
			done, err := second.sync(SyncOptions{Source: server.URL})
			if len(spoilt) != len(test.flips) {
				t.Fatalf("spoilt %v, want %v", spoilt, test.flips)
			}
			if test.most < 0 {
				if report.CodeOf(err) != report.Corrupt || len(second.stored()) > 0 {
					t.Errorf("%+v, %v; stored %v", done, err, second.stored())
				}
				return
			}
			if err != nil || states(done) != "demo-1.0.0 imported" {
				t.Fatalf("%+v, %v", done, err)
			}
			again := done.Archives[0].Fetched - size
			t.Logf("%d bytes were asked for again, %d were sent", again, sent-size)
			if limit := test.most + chunk.DefaultSize/64; again < 1 || again > limit || sent-size > limit { // the frame is fetched, too
				t.Errorf("%d bytes were asked for again, and %d sent, want at most %d", again, sent-size, test.most)
			}
		})
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
