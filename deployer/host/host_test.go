package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
	"github.com/solutionctl/solutionctl/sign/key"
	"github.com/solutionctl/solutionctl/sign/key/keytest"
	"github.com/solutionctl/solutionctl/sign/trust"
)

var today = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

// fakeCluster records its calls. It is a cluster that answers at once.
type fakeCluster struct {
	imports  map[string]schema.Import
	registry *schema.ClusterRegistry
	absent   error // nothing can be read
	damaged  error // the imported versions are damaged
	failing  error // nothing can be recorded
	inUse    string
	active   string // version of each Solution
}

func (c *fakeCluster) Active(context.Context, string) (string, error) { return c.active, c.damaged }

func (c *fakeCluster) Registry(context.Context) (*schema.ClusterRegistry, error) {
	return c.registry, c.absent
}

func (c *fakeCluster) Imports(context.Context) ([]schema.Import, error) {
	return slices.Collect(maps.Values(c.imports)), cmp.Or(c.absent, c.damaged)
}

func (c *fakeCluster) AddEndpoints(_ context.Context, o deployer.EndpointOptions) (*schema.ClusterRegistry, error) {
	if o.DryRun {
		return &o.More, nil
	}
	c.registry = &o.More
	return c.registry, c.failing
}

func (c *fakeCluster) RecordImport(_ context.Context, r records.ImportRecord) ([]string, error) {
	if c.failing != nil {
		return nil, c.failing
	}
	if r.Registry != nil {
		c.registry = r.Registry
	}
	s := r.Payload.Solution
	i := schema.Import{Name: s.Metadata.Name, Version: s.Spec.Version, Archive: schema.ImportedArchive{Path: r.Path, SHA256: r.SHA256, Size: r.Size}, Signers: r.Signers, ImportedBy: "here"}
	c.imports[i.ID()] = i
	return []string{"recorded " + i.ID()}, nil
}

func (c *fakeCluster) RecordUnimport(_ context.Context, o deployer.UnimportOptions) error {
	if o.ID == c.inUse {
		return report.Errorf(report.InUse, "%s is in an environment", o.ID)
	}
	delete(c.imports, o.ID)
	return c.failing
}

func (c *fakeCluster) PreviewActivation(_ context.Context, r records.ImportRecord) (*schema.Operation, error) {
	return &schema.Operation{Operation: "activate", Solution: r.Payload.Solution.Metadata.Name, Version: r.Payload.Solution.Spec.Version}, nil
}

// fakeMounts records mounts: real ones need root, and are tested in package store.
type fakeMounts struct {
	impossible error
	mounted    map[string]bool
}

func (m *fakeMounts) Possible() error                     { return m.impossible }
func (m *fakeMounts) Mounted(e store.Entry) (bool, error) { return m.mounted[e.ID()], nil }

func (m *fakeMounts) Mount(_ context.Context, e store.Entry) (bool, error) {
	changed := !m.mounted[e.ID()]
	m.mounted[e.ID()] = true
	return changed, m.impossible
}

func (m *fakeMounts) Unmount(_ context.Context, e store.Entry) (bool, error) {
	delete(m.mounted, e.ID())
	return true, nil
}

// world is a host with a real store, an empty cluster, and a vendor who signs archives.
type world struct {
	*Host
	t             testing.TB
	dir           string
	cluster       *fakeCluster
	mounts        *fakeMounts
	events        report.Recorder
	acme, mallory *key.Signer
	options       ImportOptions
	before        func() // called when something was verified
}

func (w *world) Emit(e report.Event) {
	w.events.Emit(e)
	if e.Step == "verify" && e.State == report.Done && w.before != nil {
		w.before()
	}
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{t: tb, dir: tb.TempDir(), acme: keytest.New(tb), mallory: keytest.New(tb)}
	w.cluster = &fakeCluster{imports: map[string]schema.Import{}}
	w.mounts = &fakeMounts{mounted: map[string]bool{}}
	var err error
	w.Host, err = Open(Places{Store: w.path("store"), Configuration: w.path("solutions.yaml"), Nginx: w.path("nginx")})
	if err != nil {
		tb.Fatal(err)
	}
	w.Cluster, w.Mounts, w.Sink, w.Version = w.cluster, w.mounts, w, "1.0.0"
	w.Now = func() time.Time { return today }
	w.options = ImportOptions{State: w.path("state.json"), Trusted: func() (*trust.Store, error) {
		return trust.Keys(map[string]*key.Public{"acme": w.acme.Public()}), nil
	}}
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// archive writes an archive that acme has signed, and returns its file.
func (w *world) archive(version string, more ...string) string {
	w.t.Helper()
	files := map[string]string{
		"manifest.yaml": "apiVersion: solutions.metalk8s.scality.com/v1alpha1\nkind: Solution\nmetadata: {name: demo}\nspec: {version: " + version + "}\n",
		"oci-layout":    `{"imageLayoutVersion":"1.0.0"}`,
		"index.json":    `{"schemaVersion":2,"manifests":[]}`,
	}
	for i := 0; i < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	var list []iso.File
	for _, name := range slices.Sorted(maps.Keys(files)) {
		list = append(list, iso.File{Path: name, Size: int64(len(files[name])), Open: func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(files[name])), nil
		}})
	}
	image, err := iso.Layout(list, iso.Options{VolumeID: "demo", ModTime: today})
	if err != nil {
		w.t.Fatal(err)
	}
	var data bytes.Buffer
	if _, err = image.WriteTo(&data); err != nil {
		w.t.Fatal(err)
	}
	path := w.path("demo-" + version + ".iso")
	w.write(path, data.Bytes())
	w.sign(path, version, w.acme, "")
	return path
}

func (w *world) write(path string, data []byte) {
	w.t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(path string) []byte {
	w.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return data
}

func (w *world) remove(path string) {
	w.t.Helper()
	if err := os.Remove(path); err != nil {
		w.t.Fatal(err)
	}
}

// sign signs the content of a file as a version of demo.
func (w *world) sign(path, version string, signer *key.Signer, as string) {
	w.t.Helper()
	data := w.read(path)
	sums, err := chunk.Sum(w.t.Context(), bytes.NewReader(data), int64(len(data)), report.Discard)
	if err != nil {
		w.t.Fatal(err)
	}
	st, err := sign.NewStatement(sums, sign.Claims{
		Name: filepath.Base(path), Solution: bundle.Solution{Name: "demo", Version: version}, CreatedAt: today.Add(-time.Hour),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	signed, err := bundle.SignStatement(w.t.Context(), signer, st)
	if err != nil {
		w.t.Fatal(err)
	}
	if err = sign.WriteBundle(sign.BundleName(path, as), signed); err != nil {
		w.t.Fatal(err)
	}
}

// policy adds a policy without signers to the trust store.
func (w *world) policy(line string) {
	w.t.Helper()
	if err := os.Mkdir(w.path("trust"), 0o700); err != nil {
		w.t.Fatal(err)
	}
	w.write(w.path("trust/policy.yaml"), []byte("apiVersion: solutionctl.io/v1alpha1\nkind: VerificationPolicy\ndefault: reject\nrules: []\n"+line+"\n"))
	w.options.Trusted = func() (*trust.Store, error) { return trust.Load([]string{w.path("trust")}, &trust.State{}) }
}

func (w *world) do(archives ...string) (*schema.ImportReport, error) {
	w.options.Archives = archives
	return w.Import(w.t.Context(), w.options)
}

// entries lists the archives in the store.
func (w *world) entries() (ids []string) {
	for _, e := range must(w.Store.Entries())(w.t) {
		ids = append(ids, e.ID())
	}
	return ids
}

// stored is entries, and fails when other files are left there.
func (w *world) stored() []string {
	w.t.Helper()
	ids, files := w.entries(), map[string]bool{}
	for _, e := range must(w.Store.Entries())(w.t) {
		files[e.Path] = true
	}
	err := filepath.WalkDir(w.path("store"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".iso") && !files[path] {
			w.t.Errorf("%s is left over", path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return ids
}

func checkCode(t *testing.T, err error, want report.Code) {
	t.Helper()
	if err == nil || report.CodeOf(err) != want {
		t.Fatalf("error %v with code %q, want %q", err, report.CodeOf(err), want)
	}
}

// TestImportIsAllOrNothing imports two archives while something goes wrong with the second one. Nothing is stored and nothing
// recorded but where the host was done already; and when the fault is gone the same import finishes the work.
func TestImportIsAllOrNothing(t *testing.T) {
	for _, test := range []struct {
		name   string
		break_ func(w *world, second string) (mend func())
		want   report.Code
		stored []string
	}{
		{"its signer is hostile", func(w *world, second string) func() {
			w.sign(second, "2.0.0", w.mallory, "")
			return func() { w.sign(second, "2.0.0", w.acme, "") }
		}, report.Untrusted, nil},
		{"its signature is of another version", func(w *world, second string) func() {
			w.sign(second, "9.0.0", w.acme, "")
			return func() { w.sign(second, "2.0.0", w.acme, "") }
		}, report.Mismatch, nil},
		{"its file is written while it is imported", func(w *world, second string) func() {
			genuine, seen := w.read(second), 0
			w.before = func() {
				if seen++; seen == 2 {
					changed := bytes.Clone(genuine)
					changed[len(changed)-1] ^= 1
					w.write(second, changed)
				}
			}
			return func() { w.before = nil; w.write(second, genuine) }
		}, report.Corrupt, nil},
		{"its record cannot be written", func(w *world, _ string) func() {
			w.cluster.failing = report.Errorf(report.Forbidden, "you may not")
			return func() { w.cluster.failing = nil }
		}, report.Forbidden, []string{"demo-1.0.0", "demo-2.0.0"}},
		{"the history cannot be written", func(w *world, _ string) func() {
			partial := durable.Partial(w.path("state.json"))
			if err := os.Mkdir(partial, 0o700); err != nil {
				w.t.Fatal(err)
			}
			return func() { w.remove(partial) }
		}, report.Failure, nil},
		{"the configuration is no file", func(w *world, _ string) func() {
			if err := os.Mkdir(w.path("solutions.yaml"), 0o700); err != nil {
				w.t.Fatal(err)
			}
			return func() { w.remove(w.path("solutions.yaml")) }
		}, report.Usage, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			first, second := w.archive("1.0.0"), w.archive("2.0.0")
			mend := test.break_(w, second)
			done, err := w.do(first, second)
			mend()
			checkCode(t, err, test.want)
			if got := w.stored(); !slices.Equal(got, test.stored) {
				t.Errorf("stored: %q, want %q", got, test.stored)
			}
			if (done != nil) != (test.stored != nil) || done != nil && (done.Recorded || len(done.Archives) != 2) {
				t.Errorf("report: %+v", done)
			}
			if len(w.cluster.imports) > 0 {
				t.Errorf("recorded: %v", w.cluster.imports)
			}
			if done, err = w.do(first, second); err != nil || !done.Recorded {
				t.Fatalf("afterwards: %+v, %v", done, err)
			}
			if got := w.stored(); !slices.Equal(got, []string{"demo-1.0.0", "demo-2.0.0"}) || len(w.cluster.imports) != 2 {
				t.Errorf("afterwards: stored %q, recorded %v", got, w.cluster.imports)
			}
		})
	}
}

// TestImportOfHiddenData imports an archive that was signed with data between its files, from a file that has it, and from one that gets it once the
// archive was examined.
func TestImportOfHiddenData(t *testing.T) {
	for _, test := range []struct {
		name string
		late bool
		want report.Code
	}{
		{"from the beginning", false, report.Invalid},
		{"after the examination", true, report.Corrupt},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			// The second file ends in a chunk of which nothing else is read.
			const size = chunk.DefaultSize*3/2 + 1000
			path := w.archive("1.0.0", "docs/1", strings.Repeat("x", size), "docs/2", strings.Repeat("y", size), "docs/3", strings.Repeat("z", size))
			innocent := w.read(path)
			hiding := bytes.Clone(innocent)
			hiding[bytes.LastIndex(innocent, []byte("yyyy"))+4] = 1
			w.write(path, hiding)
			w.sign(path, "1.0.0", w.acme, "")
			if test.late {
				w.write(path, innocent)
				w.before = func() { w.write(path, hiding) }
			}
			_, err := w.do(path)
			checkCode(t, err, test.want)
			if got := w.stored(); len(got) > 0 {
				t.Errorf("stored: %q", got)
			}
		})
	}
}

func TestImportRefuses(t *testing.T) {
	for _, test := range []struct {
		name    string
		arrange func(w *world) []string
		want    report.Code
		text    string
	}{
		{"an unsigned archive", func(w *world) []string {
			path := w.archive("1.0.0")
			w.remove(sign.BundleName(path, ""))
			return []string{path}
		}, report.Unsigned, "demo-1.0.0.iso"},
		{"what is not there", func(w *world) []string { return []string{w.path("nowhere.iso")} }, report.NotFound, "nowhere.iso"},
		{"the same twice", func(w *world) []string {
			path := w.archive("1.0.0")
			return []string{path, path}
		}, report.Usage, "both hold demo-1.0.0"},
		{"an older version than before", func(w *world) []string {
			if _, err := w.do(w.archive("2.0.0")); err != nil {
				w.t.Fatal(err)
			}
			return []string{w.archive("1.0.0")}
		}, report.Downgrade, "2.0.0"},
		{"another archive of the same version", func(w *world) []string {
			if _, err := w.do(w.archive("1.0.0")); err != nil {
				w.t.Fatal(err)
			}
			return []string{w.archive("1.0.0", "docs/more.txt", "more")}
		}, report.Replaced, "1.0.0"},
		{"what the cluster knows otherwise", func(w *world) []string {
			w.cluster.imports["demo-1.0.0"] = schema.Import{Name: "demo", Version: "1.0.0", Archive: schema.ImportedArchive{SHA256: "other"}}
			return []string{w.archive("1.0.0")}
		}, report.Replaced, "the cluster knows demo-1.0.0"},
		{"another registry than the first import's", func(w *world) []string {
			w.cluster.registry = &schema.ClusterRegistry{Mode: schema.RegistryOwn}
			w.options.RegistryMode = schema.RegistryMetalK8s
			return []string{w.archive("1.0.0")}
		}, report.Refused, "the first import chose registry mode own"},
		{"endpoints of MetalK8s", func(w *world) []string {
			w.options.RegistryMode, w.options.Endpoints = schema.RegistryMetalK8s, []string{"https://10.0.0.1:5000"}
			return []string{w.archive("1.0.0")}
		}, report.Usage, "--endpoint is for registry mode own"},
		{"an authority of no endpoint", func(w *world) []string {
			w.options.CA = "ca.crt"
			return []string{w.archive("1.0.0")}
		}, report.Usage, "--ca goes with --endpoint"},
		{"no mounts for MetalK8s", func(w *world) []string {
			w.options.RegistryMode, w.options.Mount = schema.RegistryMetalK8s, MountNever
			return []string{w.archive("1.0.0")}
		}, report.Usage, "mounted archives only"},
		{"mounts that are impossible", func(w *world) []string {
			w.mounts.impossible = report.Errorf(report.Refused, "no driver")
			w.options.Mount = MountAlways
			return []string{w.archive("1.0.0")}
		}, report.Refused, "no driver"},
		{"an override that no policy allows", func(w *world) []string {
			w.policy("allowOverride: false")
			w.options.SkipVerify = true
			return []string{w.archive("1.0.0")}
		}, report.Refused, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			paths := test.arrange(w)
			before := w.stored()
			_, err := w.do(paths...)
			checkCode(t, err, test.want)
			if !strings.Contains(err.Error(), test.text) {
				t.Errorf("%v does not say %q", err, test.text)
			}
			if got := w.stored(); !slices.Equal(got, before) {
				t.Errorf("stored: %q, want %q", got, before)
			}
		})
	}
}

// TestImport imports, with and without a cluster, and takes away again.
func TestImport(t *testing.T) {
	t.Run("a cluster that does not answer", func(t *testing.T) {
		w := newWorld(t)
		path := w.archive("1.0.0")
		w.cluster.absent = report.Errorf(report.Unavailable, "nobody answers")
		done, err := w.do(path)
		checkCode(t, err, report.Unavailable)
		if done == nil || done.Recorded || !slices.Equal(w.stored(), []string{"demo-1.0.0"}) {
			t.Errorf("%+v", done)
		}
		w.cluster.absent = nil
		if done, err = w.do(path); err != nil || !done.Recorded || done.Archives[0].Method != string(store.Present) {
			t.Errorf("%+v, %v", done, err)
		}
	})
	t.Run("a record that cannot be read", func(t *testing.T) {
		w := newWorld(t)
		w.cluster.damaged = report.Errorf(report.Corrupt, "Secret imports: unexpected EOF")
		if done, err := w.do(w.archive("1.0.0")); err != nil || !done.Recorded {
			t.Errorf("%+v, %v", done, err)
		}
	})
	t.Run("no cluster", func(t *testing.T) {
		w := newWorld(t)
		w.Cluster = nil
		if done, err := w.do(w.archive("1.0.0")); err != nil || done.Recorded {
			t.Errorf("%+v, %v", done, err)
		}
	})
	t.Run("mounted for MetalK8s", func(t *testing.T) {
		w := newWorld(t)
		w.options.RegistryMode = schema.RegistryMetalK8s
		done, err := w.do(w.archive("1.0.0", store.NginxTemplate, "# there are no images\n"))
		if err != nil || done.Archives[0].Mountpoint != "/srv/scality/demo-1.0.0" || done.RegistryMode != schema.RegistryMetalK8s {
			t.Fatalf("%+v, %v", done, err)
		}
		if files, _ := filepath.Glob(w.path("nginx/*")); len(files) != 1 {
			t.Errorf("nginx includes %q", files)
		}
		gone, err := w.Unimport(t.Context(), UnimportOptions{Archive: "demo", Version: "1.0.0"})
		if err != nil || len(w.mounts.mounted) > 0 || len(w.stored()) > 0 || !gone.Recorded {
			t.Fatalf("%+v, %v", gone, err)
		}
		if files, _ := filepath.Glob(w.path("nginx/*")); len(files) != 0 {
			t.Errorf("nginx still includes %q", files)
		}
	})
	t.Run("an override that the policy allows", func(t *testing.T) {
		w := newWorld(t)
		w.policy("allowOverride: true")
		w.options.SkipVerify = true
		path := w.archive("1.0.0")
		w.remove(sign.BundleName(path, ""))
		if done, err := w.do(path); err != nil || len(done.Archives[0].Signers) != 0 {
			t.Errorf("%+v, %v", done, err)
		}
		if signers := w.cluster.imports["demo-1.0.0"].Signers; signers == nil || len(signers) > 0 {
			t.Errorf("recorded signers: %#v", signers)
		}
	})
	t.Run("a hostile second signer", func(t *testing.T) {
		w := newWorld(t)
		path := w.archive("1.0.0")
		w.sign(path, "9.0.0", w.mallory, "mallory")
		done, err := w.do(path)
		if err != nil || !slices.Equal(done.Archives[0].Signers, []string{"acme"}) || !slices.Equal(w.stored(), []string{"demo-1.0.0"}) {
			t.Errorf("%+v, %v", done, err)
		}
		if signers := w.cluster.imports["demo-1.0.0"].Signers; !slices.Equal(signers, []string{"acme"}) {
			t.Errorf("recorded: %v", w.cluster.imports)
		}
	})
	t.Run("an endpoint, with the authority of this host", func(t *testing.T) {
		w := newWorld(t)
		w.options.Endpoints = []string{"https://127.0.0.1:1"}
		if _, err := w.do(w.archive("1.0.0")); err != nil {
			t.Fatal(err)
		}
		if r := w.cluster.registry; r == nil || !strings.Contains(r.CA, "BEGIN CERTIFICATE") || !slices.Equal(r.Endpoints, w.options.Endpoints) {
			t.Errorf("%+v", r)
		}
	})
}

func TestUnimport(t *testing.T) {
	for _, test := range []struct {
		name    string
		o       UnimportOptions
		arrange func(w *world)
		want    report.Code // "" for none
		text    string      // in the error, or the notices
		stays   bool
	}{
		{"by its id", UnimportOptions{Archive: "demo-1.0.0"}, nil, "", "", false},
		{"by name and version", UnimportOptions{Archive: "demo", Version: "1.0.0"}, nil, "", "", false},
		{"what was never there", UnimportOptions{Archive: "demo", Version: "3.0.0"}, nil, "", "there is nothing to do", true},
		{"what was never there, by its id", UnimportOptions{Archive: "other-3.0.0"}, nil, "", "there is nothing to do", true},
		{"the path of what is gone", UnimportOptions{Archive: "/mnt/demo-3.0.0.iso"}, nil, "", "there is nothing to do", true},
		{"the path of a typo", UnimportOptions{Archive: "dmeo-1.0.0.iso"}, nil, "", "did you mean demo-1.0.0?", true},
		{"the path of whatever it was", UnimportOptions{Archive: "./upload"}, nil, "", "there is nothing to do", true},
		{"a path of another host", UnimportOptions{Archive: "/there.iso"}, func(w *world) {
			w.cluster.imports["demo-2.0.0"] = schema.Import{Name: "demo", Version: "2.0.0", ImportedBy: "root@there", Archive: schema.ImportedArchive{Path: "/there.iso"}}
		}, report.NotFound, "imported on another host by root@there, as /there.iso", true},
		{"no version", UnimportOptions{Archive: "other"}, nil, report.NotFound, "other", true},
		{"imported elsewhere", UnimportOptions{Archive: "demo", Version: "2.0.0"}, func(w *world) {
			w.cluster.imports["demo-2.0.0"] = schema.Import{Name: "demo", Version: "2.0.0", ImportedBy: "root@there", Archive: schema.ImportedArchive{Path: "/there.iso"}}
		}, report.NotFound, "imported on another host by root@there, as /there.iso", true},
		{"a version, and no cluster", UnimportOptions{Archive: "demo", Version: "2.0.0"}, func(w *world) {
			w.cluster.absent = report.Errorf(report.Unavailable, "connection refused")
		}, report.Unavailable, "demo 2.0.0 was not imported on this host, and the cluster's records cannot be read: connection refused", true},
		{"a path, and a damaged record", UnimportOptions{Archive: "/there.iso"}, func(w *world) {
			w.cluster.damaged = report.Errorf(report.Corrupt, "unexpected EOF")
		}, report.Corrupt, "/there.iso was not imported on this host", true},
		{"no version, and no cluster", UnimportOptions{Archive: "other"}, func(w *world) {
			w.cluster.absent = report.Errorf(report.Unavailable, "connection refused")
		}, report.NotFound, "other", true},
		{"in use", UnimportOptions{Archive: "demo", Version: "1.0.0"}, func(w *world) { w.cluster.inUse = "demo-1.0.0" }, report.InUse, "is in an environment", true},
		{"active, says the file", UnimportOptions{Archive: "demo", Version: "1.0.0"}, func(w *world) {
			w.Cluster = nil
			w.activate("latest")
		}, report.InUse, "demo-1.0.0 is active", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			if _, err := w.do(w.archive("1.0.0")); err != nil {
				t.Fatal(err)
			}
			if test.arrange != nil {
				test.arrange(w)
			}
			done, err := w.Unimport(t.Context(), test.o)
			said := fmt.Sprint(err)
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				said = strings.Join(done.Notices, "\n")
				if done.Recorded == test.stays {
					t.Errorf("%+v", done)
				}
			} else {
				checkCode(t, err, test.want)
			}
			if !strings.Contains(said, test.text) {
				t.Errorf("%q does not say %q", said, test.text)
			}
			if stays := len(w.stored()) == 1; stays != test.stays {
				t.Errorf("stored: %q", w.stored())
			}
		})
	}
}

// activate writes a version of demo into MetalK8s' configuration.
func (w *world) activate(version string) {
	w.t.Helper()
	_, err := w.Configuration.Edit(w.t.Context(), func(c *schema.SolutionsConfiguration) { c.Active = map[string]string{"demo": version} })
	if err != nil {
		w.t.Fatal(err)
	}
}

// fakeVerbs carries out the part of a plan that concerns this host.
type fakeVerbs struct {
	plan      *schema.Convergence
	export    definitions.Export
	meanwhile func() // may be nil; called before anything changes
}

func (v *fakeVerbs) PlanConvergence(context.Context, deployer.PlanConvergenceOptions) (*schema.Convergence, error) {
	return v.plan, nil
}

func (v *fakeVerbs) Converge(ctx context.Context, o deployer.ConvergeOptions) error {
	plan, h := o.Plan, o.Host
	if o.Export != nil {
		v.export = o.Export("demo")
	}
	if v.meanwhile != nil {
		v.meanwhile()
	}
	for _, i := range plan.Import {
		if o.DryRun {
			return h.Judge(ctx, i.Path)
		}
		if err := h.Import(ctx, i.Path); err != nil {
			return err
		}
		if s, err := h.Identify(i.Path); err != nil || s.Spec.Version != i.Version {
			return fmt.Errorf("%+v, %w", s, err)
		}
		if p, err := h.Payload(i.Path); err != nil || p.Solution.Spec.Version != i.Version {
			return fmt.Errorf("%+v, %w", p, err)
		}
	}
	for _, s := range plan.Unimport {
		if err := h.Unimport(ctx, s.ID()); err != nil {
			return err
		}
	}
	stored, err := h.Stored()
	if err == nil && len(stored) != len(plan.Import) {
		err = fmt.Errorf("stored: %v", stored)
	}
	return err
}

func TestConverge(t *testing.T) {
	w := newWorld(t)
	old := w.archive("1.0.0")
	if _, err := w.do(old); err != nil {
		t.Fatal(err)
	}
	path := w.archive("2.0.0")
	c, _, err := schema.ParseSolutionsConfiguration("solutions.yaml", []byte(
		"apiVersion: solutions.metalk8s.scality.com/v1alpha1\nkind: SolutionsConfiguration\narchives: ["+path+"]\nactive: {demo: 2.0.0}\n"))
	if err != nil {
		t.Fatal(err)
	}
	verbs := &fakeVerbs{plan: &schema.Convergence{
		Import:   []schema.ConvergeImport{{SolutionAt: schema.SolutionAt{Solution: "demo", Version: "2.0.0"}, Path: path}},
		Unimport: []schema.SolutionAt{{Solution: "demo", Version: "1.0.0"}},
	}}
	o := ConvergeOptions{Configuration: c, Verbs: verbs, Import: w.options, Deploy: deployer.ConvergeOptions{Options: plan.Options{DryRun: true}}}
	if _, err = w.Converge(t.Context(), o); err != nil || !slices.Equal(w.stored(), []string{"demo-1.0.0"}) {
		t.Fatalf("a dry run left %q: %v", w.stored(), err)
	}
	o.Deploy.DryRun = false
	plan, err := w.Converge(t.Context(), o)
	if err != nil || !slices.Equal(w.stored(), []string{"demo-2.0.0"}) || !slices.Contains(plan.Notices, "recorded demo-2.0.0") {
		t.Fatalf("stored %q: %+v, %v", w.stored(), plan, err)
	}
	now, err := w.Configuration.Load()
	if err != nil || now.Active["demo"] != "2.0.0" {
		t.Errorf("%+v, %v", now, err)
	}
}
