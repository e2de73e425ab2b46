package artifact_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/build/artifact"
	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// hostile is an artifact that a registry has in place of an archive.
type hostile struct {
	kind     string
	document []byte
	layers   []oci.Blob
	about    []oci.Artifact
}

// genuine is the artifact of an archive, to be changed by a test.
func genuine(t *testing.T, data []byte) (*hostile, *schema.ArchiveArtifact) {
	t.Helper()
	a, err := artifact.New(t.Context(), source(data), nil, report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	h := &hostile{kind: artifact.Type, layers: a.Image.Blobs[1:]}
	document := schema.NewArchiveArtifact(a.Layout)
	return h, &document
}

func (s *server) pushHostile(t *testing.T, h *hostile) {
	t.Helper()
	config := oci.BytesBlob("application/vnd.solutionctl.archive.layout.v1+json", h.document)
	image, err := oci.ArtifactImage(oci.Artifact{Type: h.kind, Config: &config, Layers: h.layers}, h.about...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := oci.NewPush(t.Context(), []oci.Upload{{Repository: s.reference.Repository, Image: image, Tags: []string{s.reference.Tag}}}, nil, oci.PushOptions{})
	if err == nil {
		err = p.Run(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRefusals pulls other artifacts, and archives that differ from their layouts. Nothing is left behind.
func TestRefusals(t *testing.T) {
	first, second, _ := versions(t)
	for _, test := range []struct {
		name   string
		change func(h *hostile, a *schema.ArchiveArtifact)
		code   report.Code
	}{
		{"another kind of artifact", func(h *hostile, _ *schema.ArchiveArtifact) { h.kind = "application/vnd.cncf.helm.config.v1+json" }, report.Invalid},
		{"a layer too few", func(h *hostile, _ *schema.ArchiveArtifact) { h.layers = h.layers[:len(h.layers)-1] }, report.Invalid},
		{"layers in another order", func(h *hostile, _ *schema.ArchiveArtifact) { h.layers[1], h.layers[2] = h.layers[2], h.layers[1] }, report.Invalid},
		{"another digest of the whole", func(_ *hostile, a *schema.ArchiveArtifact) { a.Layout.SHA256 = strings.Repeat("a", 64) }, report.Corrupt},
		{"segments that are more than the archive", func(_ *hostile, a *schema.ArchiveArtifact) { a.Layout.Segments[0].Size++ }, report.Invalid},
		{"sizes that overflow", func(_ *hostile, a *schema.ArchiveArtifact) {
			a.Layout.Size, a.Layout.Segments[0].Size = math.MaxInt64, math.MaxInt64
		}, report.Invalid},
		{"a newer format", func(_ *hostile, a *schema.ArchiveArtifact) { a.FormatVersion = 99 }, report.Refused},
		{"a frame that cannot be decompressed", func(h *hostile, _ *schema.ArchiveArtifact) {
			h.layers[0] = oci.BytesBlob("application/vnd.solutionctl.archive.frame.v1+zstd", bytes.Repeat([]byte{7}, int(h.layers[0].Size)))
		}, report.Corrupt},
		{"the frame of another archive", func(_ *hostile, a *schema.ArchiveArtifact) { a.Layout.Frame.Blocks[0]++ }, report.Invalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newServer(t, true)
			h, a := genuine(t, first)
			test.change(h, a)
			var err error
			if h.document, err = json.Marshal(a); err != nil {
				t.Fatal(err)
			}
			s.pushHostile(t, h)
			dir := t.TempDir()
			if _, err = s.pull(t.Context(), filepath.Join(dir, "demo.iso"), second); report.CodeOf(err) != test.code {
				t.Errorf("%v (%s), want %s", err, report.CodeOf(err), test.code)
			}
			if entries, err := os.ReadDir(dir); len(entries) > 0 || err != nil {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
}

// TestNoSpace asks a registry for nothing when the archive, as its layout has it, does not fit on the disk.
func TestNoSpace(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("space is reserved on Linux only")
	}
	first, _, _ := versions(t)
	s := newServer(t, true)
	h, a := genuine(t, first)
	const size = 1 << 50
	l := &a.Layout
	for i := range l.Segments {
		if l.Segments[i].SHA256 != "" {
			l.Size += size - l.Segments[i].Size
			l.Segments[i].Size = size
			break
		}
	}
	h.layers[1].Size = size
	document, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	config := oci.BytesBlob("application/vnd.solutionctl.archive.layout.v1+json", document)
	image, err := oci.ArtifactImage(oci.Artifact{Type: h.kind, Config: &config, Layers: h.layers})
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string][]byte{"/manifests/": image.Manifests[0].Data, "/blobs/" + config.Digest.String(): document}
	s.spoil = func(w http.ResponseWriter, r *http.Request) bool {
		for path, data := range answers {
			if strings.Contains(r.URL.Path, path) {
				w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
				_, _ = w.Write(data) // the client has gone otherwise
				return true
			}
		}
		if strings.Contains(r.URL.Path, "/blobs/") {
			t.Errorf("asked for %s", r.URL.Path)
		}
		return false
	}
	dir := t.TempDir()
	if _, err = s.pull(t.Context(), filepath.Join(dir, "demo.iso")); report.CodeOf(err) != report.NoSpace {
		t.Errorf("%v (%s), want %s", err, report.CodeOf(err), report.NoSpace)
	}
	if entries, err := os.ReadDir(dir); len(entries) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// signatureOf is a signature that a signer has added.
func signatureOf(signer string, layers ...string) oci.Artifact {
	const kind = "application/vnd.dev.sigstore.bundle.v0.3+json"
	a := oci.Artifact{Type: kind, Annotations: map[string]string{"io.solutionctl.signer": signer}}
	for _, text := range layers {
		a.Layers = append(a.Layers, oci.BytesBlob(kind, []byte(text)))
	}
	return a
}

// withSignatures opens an archive in the registry to which these signatures were added.
func (s *server) withSignatures(t *testing.T, about ...oci.Artifact) *artifact.Remote {
	t.Helper()
	first, _, _ := versions(t)
	h, a := genuine(t, first)
	var err error
	if h.document, err = json.Marshal(a); err != nil {
		t.Fatal(err)
	}
	h.about = about
	s.pushHostile(t, h)
	remote, err := artifact.Open(t.Context(), oci.NewResolver(oci.Options{}), s.reference)
	if err != nil {
		t.Fatal(err)
	}
	return remote
}

// TestForeignSignatures names the files of signatures that others have added, whatever name these have for it.
func TestForeignSignatures(t *testing.T) {
	s := newServer(t, true)
	var about []oci.Artifact
	for _, signer := range []string{"", "", "../../etc/passwd", "site", "site", "a/b", strings.Repeat("x", 200)} {
		about = append(about, signatureOf(signer, `{"n":`+strconv.Itoa(len(about))+`}`))
	}
	remote := s.withSignatures(t, about...)
	bundles, err := remote.Bundles(t.Context())
	if err != nil || len(bundles) != len(about) {
		t.Fatalf("%d signatures, want %d: %v", len(bundles), len(about), err)
	}
	names := map[string]bool{}
	for _, b := range bundles {
		if strings.ContainsAny(b.Signer, "/\\") || len(b.Signer) > 64 || names[b.Signer] {
			t.Errorf("signer %q", b.Signer)
		}
		names[b.Signer] = true
	}
	dir := t.TempDir()
	if err = layout.WriteBundles(filepath.Join(dir, "demo.iso"), bundles); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); len(entries) != len(bundles) || err != nil {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestNamesOfSignatures keeps the file of a vendor's signature: others have added smaller ones, some of them under its digest.
func TestNamesOfSignatures(t *testing.T) {
	s := newServer(t, false)
	var about []oci.Artifact
	good, second := strings.Repeat("good", 10), strings.Repeat("second", 10)
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte(second)))
	for _, b := range []layout.Bundle{
		{Data: []byte(good)}, {Data: []byte("small")}, {Signer: digest, Data: []byte(strings.Repeat("later", 100))}, {Data: []byte(second)},
	} {
		about = append(about, signatureOf(b.Signer, string(b.Data)))
	}
	remote := s.withSignatures(t, about...)
	bundles, err := remote.Bundles(t.Context())
	archive := filepath.Join(t.TempDir(), "demo.iso")
	if err = errors.Join(err, layout.WriteBundles(archive, bundles)); err != nil {
		t.Fatal(err)
	}
	for signer, want := range map[string]string{"": good, digest: second} {
		if data, err := os.ReadFile(layout.BundleFile(archive, signer)); err != nil || string(data) != want {
			t.Errorf("signer %q: %.20q, %v", signer, data, err)
		}
	}
}

// TestOddSignatures finds the signature of a vendor among those that others have added: more than a reader would take, large ones, and artifacts that are none.
func TestOddSignatures(t *testing.T) {
	s := newServer(t, true)
	var about []oci.Artifact
	add := func(layers ...string) { about = append(about, signatureOf("", layers...)) }
	add()
	add("one", "two")
	for i := range 10 {
		add(strings.Repeat(string(rune('a'+i)), 8<<20))
	}
	add(strings.Repeat("x", 8<<20+1))
	for i := range 70 {
		add(strconv.Itoa(i))
	}
	large := signatureOf("", "large")
	large.Annotations["a"] = strings.Repeat("x", 64<<10)
	about = append(about, large)
	good := strings.Repeat("good", 1000)
	add(good)
	remote := s.withSignatures(t, about...)
	bundles, err := remote.Bundles(t.Context())
	if err != nil || !slices.ContainsFunc(bundles, func(b layout.Bundle) bool { return string(b.Data) == good }) {
		t.Fatalf("the signature is not among %d: %v", len(bundles), err)
	}
	total := 0
	for _, b := range bundles {
		total += len(b.Data)
	}
	if total > 64<<20 {
		t.Errorf("%d bytes of signatures", total)
	}
	s.spoil = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/blobs/") {
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		return false
	}
	if _, err = remote.Bundles(t.Context()); report.CodeOf(err) != report.Unavailable {
		t.Errorf("%v, want that the registry cannot be read", err)
	}
}

// TestDamagedBase asks the registry for a blob that is damaged in the older archive.
func TestDamagedBase(t *testing.T) {
	s := newServer(t, true)
	first, second, _ := versions(t)
	s.push(t, first, "1.0.0")
	old := bytes.Clone(second)
	for at := range old {
		if at > len(old)/4 && at%5000 == 0 {
			old[at] ^= 1
		}
	}
	file := filepath.Join(t.TempDir(), "demo.iso")
	if _, err := s.pull(t.Context(), file, old); err != nil {
		t.Fatal(err)
	}
	checkFile(t, file, first)
}

// TestDamagedArchive pushes no archive whose blobs do not have their names.
func TestDamagedArchive(t *testing.T) {
	first, _, _ := versions(t)
	damaged := bytes.Clone(first)
	damaged[len(damaged)/2] ^= 1
	if _, err := artifact.New(t.Context(), source(damaged), nil, report.Discard); report.CodeOf(err) != report.Corrupt {
		t.Errorf("%v, want %s", err, report.Corrupt)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := artifact.New(ctx, source(first), nil, report.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the context has ended", err)
	}
}

// TestFrameFromOffset continues the upload of a frame anywhere.
func TestFrameFromOffset(t *testing.T) {
	first, _, _ := versions(t)
	a, err := artifact.New(t.Context(), source(first), nil, report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	frame := a.Image.Blobs[1]
	whole, err := oci.ReadBlob(t.Context(), frame, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for offset := int64(0); offset <= frame.Size; offset += max(1, frame.Size/17) {
		r, err := frame.Open(t.Context(), offset)
		if err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil || !bytes.Equal(rest, whole[offset:]) {
			t.Errorf("from %d: %d bytes, want %d: %v", offset, len(rest), len(whole)-int(offset), err)
		}
	}
}

func TestParseReference(t *testing.T) {
	const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for _, test := range []struct {
		text string
		want artifact.Reference // the zero value: refused
	}{
		{"oci://r.example.com/a/demo:1.0.0", artifact.Reference{Repository: "r.example.com/a/demo", Tag: "1.0.0"}},
		{"oci://r.example.com:5000/demo", artifact.Reference{Repository: "r.example.com:5000/demo"}},
		{"oci://r.example.com/demo@" + digest, artifact.Reference{Repository: "r.example.com/demo", Digest: digest}},
		{"oci://r.example.com/demo:1.0.0@" + digest, artifact.Reference{Repository: "r.example.com/demo", Digest: digest}},
		{"r.example.com/demo:1.0.0", artifact.Reference{}},
		{"docker://r.example.com/demo:1.0.0", artifact.Reference{}},
		{"oci://demo", artifact.Reference{}},
		{"oci:///demo", artifact.Reference{}},
		{"oci://r.example.com/Demo:1.0.0", artifact.Reference{}},
		{"oci://r.example.com/demo:a/b", artifact.Reference{}},
		{"oci://r.example.com/demo:../../x", artifact.Reference{}},
		{"oci://r.example.com/demo:a?b", artifact.Reference{}},
		{"oci://r.example.com/demo@sha512:aa", artifact.Reference{}},
		{"oci://r.example.com/", artifact.Reference{}},
		{"oci://user:secret@r.example.com/demo:1.0.0", artifact.Reference{}},
		{"", artifact.Reference{}},
	} {
		got, err := artifact.ParseReference(test.text)
		if got != test.want || (err == nil) != (test.want != artifact.Reference{}) {
			t.Errorf("%q: %+v, %v", test.text, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the login is shown: %v", err)
		}
	}
}

// FuzzLayout reads foreign layouts: one that is accepted has segments that are the whole archive.
func FuzzLayout(f *testing.F) {
	f.Add([]byte(`{"formatVersion":1,"writtenBy":"0.1.0","layout":{"name":"demo","version":"1.0.0","size":10,"sha256":"` + strings.Repeat("a", 64) +
		`","frame":{"size":10,"blockSize":65536,"blocks":[20]},"segments":[{"size":10}]}}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := schema.ParseArchiveArtifact(data)
		if err != nil {
			return
		}
		sum := int64(0)
		for _, s := range a.Layout.Segments {
			sum += s.Size
		}
		if sum != a.Layout.Size {
			t.Errorf("segments of %d bytes, an archive of %d", sum, a.Layout.Size)
		}
	})
}
