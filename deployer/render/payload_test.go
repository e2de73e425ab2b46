package render_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const dbManifest = `apiVersion: solutions.metalk8s.scality.com/v1alpha1
kind: Solution
metadata: {name: db}
spec: {version: 1.0.0}
`

func image(name, tag string) render.Image {
	return render.Image{Ref: schema.ImageRef{Name: name, Tag: tag}, Digest: "sha256:" + strings.Repeat("ab", 32)}
}

func newPayload(tb testing.TB, files map[string]string, images ...render.Image) *render.Payload {
	tb.Helper()
	if files["manifest.yaml"] == "" {
		files["manifest.yaml"] = dbManifest
	}
	if images == nil {
		images = []render.Image{image("db-operator", "1.0.0"), image("db-ui", "1.0.0")}
	}
	p, err := render.NewPayload(files, images...)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func TestFromArchive(t *testing.T) {
	a, err := archive.FromFS(fstest.MapFS{
		"manifest.yaml":             {Data: []byte(dbManifest)},
		"operator/deploy/role.yaml": {Data: []byte("{}")},
		"ui/ui.yaml":                {Data: []byte("{}")},
		"charts/db-1.0.0.tgz":       {Data: []byte{0x1f, 0x8b}},
		"sbom/db.spdx.json":         {Data: []byte("{}")},
		"docs/guide.md":             {Data: []byte("#")},
		"registry-config.inc.j2":    {Data: []byte("#")},
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := render.FromArchive(a)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(paths(t, p), []string{"charts/db-1.0.0.tgz", "manifest.yaml", "operator/deploy/role.yaml", "ui/ui.yaml"}); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(p.SpareCharts(), []string{"charts/db-1.0.0.tgz"}); diff != "" {
		t.Error(diff)
	}
	if p.Solution.Spec.Operator.Image.Name != "db-operator" {
		t.Errorf("the manifest is not merged: %+v", p.Solution.Spec)
	}
	if err := fstest.TestFS(p, paths(t, p)...); err != nil {
		t.Error(err)
	}
}

func paths(t *testing.T, fsys fs.FS) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestPayloadComesBack(t *testing.T) {
	ui := image("db-ui", "1.0.0")
	ui.Origin = "ghcr.io/acme/ui:1.0.0"
	p := newPayload(t, map[string]string{"ui/ui.yaml": "{}", "a": "", "operator/deploy/role.yaml": "# none\n"}, image("db-operator", "1.0.0"), ui)
	data, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.Encode()
	if err != nil || !bytes.Equal(data, again) {
		t.Errorf("the same payload is encoded differently, %v", err)
	}
	back, err := render.DecodePayload(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.Images, back.Images); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(p.Solution, back.Solution); diff != "" {
		t.Error(diff)
	}
	for _, name := range paths(t, p) {
		want, err := fs.ReadFile(p, name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := fs.ReadFile(back, name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}

// entry is one member of a tar file.
type entry struct {
	name string
	kind byte
	data string
}

func packed(tb testing.TB, entries ...entry) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		if e.kind == 0 {
			e.kind = tar.TypeReg
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: e.kind, Name: e.name, Size: int64(len(e.data)), Linkname: "/etc/passwd"}); err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write([]byte(e.data)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

const goodHead = `{"formatVersion": 1, "writtenBy": "0.1.0", "images": []}`

func TestDecodeRefuses(t *testing.T) {
	head, manifest := entry{name: "payload.json", data: goodHead}, entry{name: "files/manifest.yaml", data: dbManifest}
	large := strings.Repeat("\x00", 9<<20)
	many := []entry{head, manifest}
	for i := range 25_001 {
		many = append(many, entry{name: fmt.Sprintf("files/%d", i)})
	}
	digest := `"digest": "sha256:` + strings.Repeat("0", 64) + `"`
	whole := packed(t, head, manifest)
	for name, test := range map[string]struct {
		data    []byte
		code    report.Code
		message string
	}{
		"nothing":          {nil, report.Corrupt, "EOF"},
		"not gzip":         {[]byte("hello, world"), report.Corrupt, "gzip"},
		"cut off":          {whole[:len(whole)-20], report.Corrupt, "EOF"},
		"no head":          {packed(t, manifest), report.Corrupt, "want payload.json"},
		"empty":            {packed(t), report.Corrupt, "payload.json is missing"},
		"newer format":     {packed(t, entry{name: "payload.json", data: strings.Replace(goodHead, "1", "2", 1)}), report.Refused, "format 2"},
		"unknown field":    {packed(t, entry{name: "payload.json", data: strings.Replace(goodHead, "{", `{"more": 1, `, 1)}), report.Corrupt, "more"},
		"images twice":     {packed(t, entry{name: "payload.json", data: strings.Replace(goodHead, "[]", `[{"name": "a:1", `+digest+`}, {"name": "a:1", `+digest+`}]`, 1)}), report.Corrupt, "not sorted"},
		"images unsorted":  {packed(t, entry{name: "payload.json", data: strings.Replace(goodHead, "[]", `[{"name": "b:1", `+digest+`}, {"name": "a:1", `+digest+`}]`, 1)}), report.Corrupt, "not sorted"},
		"no manifest":      {packed(t, head), report.Corrupt, "manifest.yaml is missing"},
		"bad manifest":     {packed(t, head, entry{name: "files/manifest.yaml", data: "kind: Solution"}), report.Corrupt, "apiVersion"},
		"outside":          {packed(t, head, manifest, entry{name: "etc/passwd"}), report.Corrupt, "not a file in files/"},
		"climbing":         {packed(t, head, manifest, entry{name: "files/../../etc/passwd"}), report.Corrupt, "not a path"},
		"absolute":         {packed(t, head, manifest, entry{name: "files//etc/passwd"}), report.Corrupt, "not a path"},
		"link":             {packed(t, head, manifest, entry{name: "files/a", kind: tar.TypeSymlink}), report.Corrupt, "not a file in files/"},
		"device":           {packed(t, head, manifest, entry{name: "files/a", kind: tar.TypeChar}), report.Corrupt, "not a file in files/"},
		"twice":            {packed(t, head, manifest, manifest), report.Corrupt, "there twice"},
		"file and dir":     {packed(t, head, manifest, entry{name: "files/a"}, entry{name: "files/a/b"}), report.Corrupt, "there twice"},
		"dir and file":     {packed(t, head, manifest, entry{name: "files/a/b"}, entry{name: "files/a"}), report.Corrupt, "there twice"},
		"large file":       {packed(t, head, manifest, entry{name: "files/a", data: large}), report.Corrupt, "larger than 8 MiB"},
		"too many files":   {packed(t, many...), report.Corrupt, "25000 files"},
		"compression bomb": {packed(t, head, manifest, entry{name: "files/a", data: large[:8<<20]}, entry{name: "files/b", data: large[:8<<20]}, entry{name: "files/c", data: large[:8<<20]}, entry{name: "files/d", data: large[:8<<20]}), report.Corrupt, "32 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render.DecodePayload(test.data)
			if report.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.message) {
				t.Errorf("got %s: %v", report.CodeOf(err), err)
			}
		})
	}
}

// FuzzDecodePayload: an accepted payload is the same after encoding and decoding.
func FuzzDecodePayload(f *testing.F) {
	f.Add(packed(f, entry{name: "payload.json", data: goodHead}, entry{name: "files/manifest.yaml", data: dbManifest}))
	p := newPayload(f, map[string]string{"ui/ui.yaml": "{}"})
	data, err := p.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := render.DecodePayload(data)
		if err != nil {
			if code := report.CodeOf(err); code != report.Corrupt && code != report.Refused {
				t.Fatalf("%s: %v", code, err)
			}
			return
		}
		encoded, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := render.DecodePayload(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(paths(t, p), paths(t, back)) || !slices.Equal(p.Images, back.Images) {
			t.Error("the payload differs after writing and reading it")
		}
	})
}
