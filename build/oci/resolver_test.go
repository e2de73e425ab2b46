package oci_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// sources returns the same two images in every form that needs no server.
func sources(t *testing.T) (builder *layoutBuilder, base string) {
	t.Helper()
	l := newLayout()
	image := l.image("linux/amd64", "base", "operator")
	l.tag("operator", image)
	l.tag("ui:2", l.multi(l.image("linux/amd64", "base", "ui"), l.image("linux/arm64/v8", "base-arm", "ui")))
	l.artifact("application/spdx+json", image)
	return l, l.dir(t)
}

func TestResolveForms(t *testing.T) {
	l, dir := sources(t)
	plain := tarOfFS(t, l.fs())
	base := t.TempDir()
	for name, data := range map[string][]byte{"a.tar": plain, "a.tar.gz": compressed(plain), "a.tar.zst": zstdOf(t, plain)} {
		if err := os.WriteFile(filepath.Join(base, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(base, "layout"), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	want := resolve(t, oci.Options{}, "oci:"+dir+":operator")
	if len(want.Manifests) != 2 || len(want.Blobs) != 5 {
		t.Fatalf("%d manifests and %d blobs, want the image, its SBOM and their blobs", len(want.Manifests), len(want.Blobs))
	}
	archive := mapFS(t, layoutOf(t, want))
	for _, source := range []string{
		"oci:layout:operator", "oci-archive:a.tar:operator", "oci-archive:a.tar.gz:operator", "oci-archive:a.tar.zst:operator",
		"docker-archive:a.tar:operator", "oci-archive:-:operator", "solution:old.iso:operator", "solution:old.iso:operator:1.0.0",
		"oci:layout:" + want.Root.Digest.String(), "oci:layout:@" + want.Root.Digest.String(),
	} {
		t.Run(source, func(t *testing.T) {
			got := resolve(t, oci.Options{BaseDir: base, Stdin: bytes.NewReader(compressed(plain)), OpenArchive: openMap(archive)}, source)
			if !slices.EqualFunc(got.Manifests, want.Manifests, func(a, b oci.Manifest) bool { return bytes.Equal(a.Data, b.Data) }) {
				t.Errorf("manifests differ: %v", got.Root)
			}
			if !slices.EqualFunc(got.Blobs, want.Blobs, func(a, b oci.Blob) bool { return a.Digest == b.Digest && a.Size == b.Size }) {
				t.Errorf("blobs differ")
			}
			if got.Ref != testRef || !slices.Equal(got.Platforms(), []schema.Platform{{OS: "linux", Architecture: "amd64"}}) {
				t.Errorf("%v for %v", got.Ref, got.Platforms())
			}
		})
	}
}

func layoutOf(t *testing.T, images ...*oci.Image) []oci.Entry {
	t.Helper()
	entries, err := oci.Layout(images)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func zstdOf(t *testing.T, plain []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(plain, nil)
}

func TestResolveDir(t *testing.T) {
	_, dir := sources(t)
	ui := resolve(t, oci.Options{}, "oci:"+dir+":ui:2")
	tree := t.TempDir()
	if err := os.CopyFS(tree, mapFS(t, layoutOf(t, ui))); err != nil {
		t.Fatal(err)
	}
	got := resolve(t, oci.Options{BaseDir: tree}, "dir:images/operator/1.0.0")
	if got.Root.Digest != ui.Root.Digest || len(got.Manifests) != 3 || len(got.Blobs) != len(ui.Blobs) {
		t.Errorf("%s with %d manifests and %d blobs", got.Root.Digest, len(got.Manifests), len(got.Blobs))
	}
	arm := resolve(t, oci.Options{BaseDir: tree, Platforms: []schema.Platform{{OS: "linux", Architecture: "arm64"}}}, "dir:images/operator/1.0.0")
	if arm.Root.Digest != ui.Manifests[2].Digest || arm.Note == "" {
		t.Errorf("arm64 is %s, %q", arm.Root.Digest, arm.Note)
	}
}

func TestResolveErrors(t *testing.T) {
	l, dir := sources(t)
	plain := writeFile(t, "a.tar", tarOfFS(t, l.fs()))
	noImage := writeFile(t, "b.tar", tarOf(map[string][]byte{"etc/passwd": []byte("root")}))
	xz := writeFile(t, "c.tar.xz", []byte("\xfd7zXZ\x00rest"))
	cut := writeFile(t, "d.tar", tarOfFS(t, l.fs())[:2000])
	for _, test := range []struct {
		source  string
		code    report.Code
		message string
		hint    string
	}{
		{"oci:" + dir + ":operatr", report.Invalid, `no image named "operatr"`, "operator, ui:2"},
		{"oci:" + dir, report.Invalid, "it holds 2 images", "operator, ui:2"},
		{"oci:" + dir + "/blobs", report.Invalid, "no index.json", "dir:DIR"},
		{"oci:" + plain, report.Invalid, "is a file", "oci-archive:FILE"},
		{"oci:/no/such", report.Invalid, "no such file", "directory of solution.yaml"},
		{"oci-archive:" + dir, report.Invalid, "is a directory", "oci:DIR"},
		{"docker-archive:/no/such.tar", report.Invalid, "no such file", "directory of solution.yaml"},
		{"docker-archive:" + noImage, report.Invalid, "neither index.json nor manifest.json", "docker save"},
		{"oci-archive:" + noImage, report.Invalid, "no index.json", "docker-archive:FILE"},
		{"docker-archive:" + xz, report.Invalid, "compressed with xz", "unxz"},
		{"docker-archive:" + cut, report.Corrupt, "tar", ""},
		{"docker-archive:-", report.Invalid, "no standard input", ""},
		{"dir:" + dir, report.Invalid, "no manifest.json", "oci:DIR"},
		{"solution:x.iso:ui", report.Invalid, `no image named "ui"`, "operator:1.0.0"},
	} {
		t.Run(test.source, func(t *testing.T) {
			archive := mapFS(t, layoutOf(t, resolve(t, oci.Options{}, "oci:"+dir+":operator")))
			r := newResolver(t, oci.Options{OpenArchive: openMap(archive)})
			_, err := r.Resolve(t.Context(), testRef, test.source)
			checkError(t, err, test.code, test.message, test.hint)
			if err != nil && !strings.HasPrefix(err.Error(), test.source+": ") {
				t.Errorf("%q does not name the source", err)
			}
		})
	}
}

// Images without names are identified by their digests, which become their names.
func TestUnnamedImages(t *testing.T) {
	l := newLayout()
	amd, arm := l.image("linux/amd64", "a"), l.image("linux/arm64", "b")
	l.index.Manifests = append(l.index.Manifests, amd, arm)
	dir := l.dir(t)
	_, err := newResolver(t, oci.Options{}).Resolve(t.Context(), testRef, "oci:"+dir)
	checkError(t, err, report.Invalid, "it holds 2 images", amd.Digest.String()+" (linux/amd64), "+arm.Digest.String()+" (linux/arm64)")
	if got := resolve(t, oci.Options{}, "oci:"+dir+":"+arm.Digest.String()); got.Root.Digest != arm.Digest {
		t.Errorf("got %s", got.Root.Digest)
	}

	files := dockerSave(map[string][]string{"a:1": {"a"}, "b:1": {"b"}})
	files["manifest.json"] = bytes.ReplaceAll(files["manifest.json"], []byte(`["a:1"]`), []byte("null"))
	source := "docker-archive:" + writeFile(t, "unnamed.tar", tarOf(files))
	_, err = newResolver(t, oci.Options{}).Resolve(t.Context(), testRef, source)
	checkError(t, err, report.Invalid, "it holds 2 images", "sha256:")
	_, id, _ := strings.Cut(strings.Join(report.Hints(err), ""), "sha256:")
	id, _, _ = strings.Cut(id, ",")
	resolve(t, oci.Options{}, source+":sha256:"+id)
}

func checkError(t *testing.T, err error, code report.Code, message, hint string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", message)
	}
	hints := strings.Join(report.Hints(err), "; ")
	if report.CodeOf(err) != code || !strings.Contains(err.Error(), message) || !strings.Contains(hints, hint) {
		t.Errorf("got %s %q with hint %q, want %s %q with %q", report.CodeOf(err), err, hints, code, message, hint)
	}
}

func TestRefIsChecked(t *testing.T) {
	_, dir := sources(t)
	for _, test := range []struct{ name, tag, message string }{
		{"a/b", "1", "several components"},
		{"{{x}}", "1", "not valid"},
		{"Upper", "1", "not valid"},
		{"a", "1+2", "tag"},
		{"a", "{{", "tag"},
		{"a", "", "tag"},
		{"..", "1", "not valid"},
		{"a", "..", "tag"},
	} {
		_, err := newResolver(t, oci.Options{}).Resolve(t.Context(), schema.ImageRef{Name: test.name, Tag: test.tag}, "oci:"+dir+":operator")
		checkError(t, err, report.Invalid, test.message, "")
	}
}

func TestChoosePlatforms(t *testing.T) {
	l := newLayout()
	amd, arm, s390 := l.image("linux/amd64", "a"), l.image("linux/arm64/v8", "b"), l.image("linux/s390x", "c")
	attestation := l.json("application/vnd.oci.image.manifest.v1+json", l.manifest("linux/amd64", "provenance"))
	attestation.Platform = platformOf("unknown/unknown")
	attestation.Annotations = map[string]string{"vnd.docker.reference.digest": arm.Digest.String()}
	unnamed := arm
	unnamed.Platform = nil
	l.tag("all", l.multi(amd, arm, s390, attestation))
	l.tag("silent", l.multi(amd, unnamed))
	dir := l.dir(t)

	for _, test := range []struct {
		source, platforms string
		manifests         int
		root              string // digest when it must be one of the source
		have              string
	}{
		{"all", "", 5, l.index.Manifests[0].Digest.String(), "linux/amd64 linux/arm64/v8 linux/s390x"},
		{"all", "linux/amd64 linux/arm64 linux/s390x", 5, l.index.Manifests[0].Digest.String(), "linux/amd64 linux/arm64/v8 linux/s390x"},
		{"all", "linux/amd64 linux/arm64", 4, "", "linux/amd64 linux/arm64/v8"},
		{"all", "linux/arm64", 1, arm.Digest.String(), "linux/arm64/v8"},
		{"all", "linux/amd64 linux/riscv64", 1, amd.Digest.String(), "linux/amd64"},
		{"silent", "", 3, l.index.Manifests[1].Digest.String(), "linux/amd64 linux/arm64"},
		{"silent", "linux/arm64", 1, arm.Digest.String(), "linux/arm64"},
	} {
		t.Run(test.source+" "+test.platforms, func(t *testing.T) {
			o := oci.Options{Platforms: parsePlatforms(test.platforms)}
			image := resolve(t, o, "oci:"+dir+":"+test.source)
			if test.root != "" && image.Root.Digest.String() != test.root {
				t.Errorf("root is %s, want %s", image.Root.Digest, test.root)
			}
			if len(image.Manifests) != test.manifests {
				t.Errorf("%d manifests, want %d", len(image.Manifests), test.manifests)
			}
			var have []string
			for _, p := range image.Platforms() {
				have = append(have, p.String())
			}
			if got := strings.Join(have, " "); got != test.have {
				t.Errorf("platforms are %s, want %s", got, test.have)
			}
			again := resolve(t, o, "oci:"+dir+":"+test.source)
			if again.Root.Digest != image.Root.Digest || (test.root == "" || test.manifests == 1) == (image.Note == "") {
				t.Errorf("%s then %s, note %q", image.Root.Digest, again.Root.Digest, image.Note)
			}
		})
	}
	_, err := newResolver(t, oci.Options{Platforms: parsePlatforms("linux/riscv64")}).Resolve(t.Context(), testRef, "oci:"+dir+":all")
	checkError(t, err, report.Invalid, "the image is for linux/amd64, linux/arm64/v8, linux/s390x, want linux/riscv64", "spec.platforms")
}

func parsePlatforms(s string) []schema.Platform {
	var platforms []schema.Platform
	for text := range strings.FieldsSeq(s) {
		p := platformOf(text)
		platforms = append(platforms, schema.Platform{OS: p.OS, Architecture: p.Architecture, Variant: p.Variant})
	}
	return platforms
}

func TestDockerArchive(t *testing.T) {
	files := dockerSave(map[string][]string{"acme/operator:1.0.0": {"base", "operator", "base"}, "acme/ui:1.0.0": {"base", "ui"}})
	plain := tarOf(files)
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	if _, err := w.Write(plain); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	archive := writeFile(t, "images.tar", plain)
	cache := t.TempDir()
	want := resolve(t, oci.Options{CacheDir: cache}, "docker-archive:"+archive+":acme/operator:1.0.0")
	if len(want.Blobs) != 3 || want.Origin != "docker.io/acme/operator:1.0.0" || want.Note == "" {
		t.Errorf("%d blobs, origin %q, note %q", len(want.Blobs), want.Origin, want.Note)
	}
	if config := readBlob(t, want.Blobs[0]); files[want.Blobs[0].Digest.Hex+".json"] == nil || len(config) == 0 {
		t.Errorf("the configuration changed: no image ID %s in the archive", want.Blobs[0].Digest)
	}
	// The bytes must not depend on the machine: nodes and signatures pin this digest.
	const golden = "sha256:5f6065f8076dd3ef700dc1c7a65b955e40a973992c0eac55478929bc6b38253d"
	if got := want.Root.Digest.String(); got != golden {
		t.Errorf("manifest is %s, want %s", got, golden)
	}
	for _, test := range []struct{ name, source string }{
		{"gzip", "docker-archive:" + writeFile(t, "images.tar.gz", gz.Bytes()) + ":docker.io/acme/operator:1.0.0"},
		{"stdin", "docker-archive:-:acme/operator:1.0.0"},
		{"image ID", "docker-archive:" + archive + ":" + want.Blobs[0].Digest.String()},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := resolve(t, oci.Options{CacheDir: t.TempDir(), Stdin: bytes.NewReader(plain)}, test.source)
			if got.Root.Digest != want.Root.Digest {
				t.Errorf("root is %s, want %s", got.Root.Digest, want.Root.Digest)
			}
		})
	}
	_, err := newResolver(t, oci.Options{CacheDir: cache}).Resolve(t.Context(), testRef, "docker-archive:"+archive)
	checkError(t, err, report.Invalid, "it holds 2 images", "acme/operator:1.0.0, acme/ui:1.0.0")
}

func TestLayerCache(t *testing.T) {
	files := dockerSave(map[string][]string{"a:1": {"one", "two"}})
	archive := writeFile(t, "a.tar", tarOf(files))
	cache := t.TempDir()
	first := resolve(t, oci.Options{CacheDir: cache}, "docker-archive:"+archive)

	for name := range files {
		if strings.HasSuffix(name, "layer.tar") {
			files[name] = bytes.Repeat([]byte{'x'}, len(files[name])) // who reads a layer again gets another digest
		}
	}
	changed := writeFile(t, "b.tar", tarOf(files))
	var events report.Recorder
	again := resolve(t, oci.Options{CacheDir: cache, Sink: &events}, "docker-archive:"+changed)
	if len(events.Events()) != 0 {
		t.Errorf("layers of the cache were compressed again: %v", events.Events())
	}
	if again.Root.Digest != first.Root.Digest {
		t.Errorf("root is %s, then %s", first.Root.Digest, again.Root.Digest)
	}

	_, err := newResolver(t, oci.Options{CacheDir: t.TempDir()}).Resolve(t.Context(), testRef, "docker-archive:"+changed)
	checkError(t, err, report.Corrupt, "its bytes have the digest", "")

	// A damaged entry is refused once, and gone afterwards.
	blobs, err := filepath.Glob(filepath.Join(cache, "layers", oci.Codec, "*.gz"))
	if err != nil || len(blobs) != 2 {
		t.Fatalf("cache holds %v, %v", blobs, err)
	}
	for _, name := range blobs {
		data, readErr := os.ReadFile(name)
		if readErr != nil {
			t.Fatal(readErr)
		}
		data[len(data)/2] ^= 1
		if err = os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	image, err := newResolver(t, oci.Options{CacheDir: cache}).Resolve(t.Context(), testRef, "docker-archive:"+archive)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range image.Blobs[1:] {
		r, err := b.Open(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, oci.VerifyReader(r, b.Descriptor))
		checkError(t, err, report.Corrupt, "cached layer", "run the command again")
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	resolve(t, oci.Options{CacheDir: cache}, "docker-archive:"+archive)
}

// dockerDaemon serves the API of a Docker engine on a socket.
func dockerDaemon(t *testing.T, handler http.HandlerFunc) (host string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "docker.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return "unix://" + socket
}

func TestDockerDaemon(t *testing.T) {
	plain := tarOf(dockerSave(map[string][]string{"acme/operator:1.0.0": {"base"}}))
	saved := 0
	daemon := dockerDaemon(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/images/get" || r.URL.Query().Get("names") != "acme/operator:1.0.0" {
			http.Error(w, `{"message":"No such image: nope:1"}`, http.StatusNotFound)
			return
		}
		saved++
		_, _ = w.Write(plain)
	})

	r := newResolver(t, oci.Options{DockerHost: daemon})
	for range 2 {
		image, resolveErr := r.Resolve(t.Context(), testRef, "docker-daemon:acme/operator:1.0.0")
		if resolveErr != nil {
			t.Fatal(resolveErr)
		}
		checkContent(t, image)
	}
	if saved != 1 {
		t.Errorf("image was saved %d times, want once", saved)
	}
	_, err := r.Resolve(t.Context(), testRef, "docker-daemon:nope:1")
	checkError(t, err, report.Invalid, "No such image", "docker pull nope:1")

	gone := newResolver(t, oci.Options{DockerHost: "unix:///no/such.sock"})
	_, err = gone.Resolve(t.Context(), testRef, "docker-daemon:x:1")
	checkError(t, err, report.Unavailable, "unix:///no/such.sock", "docker save x:1")
	windows := newResolver(t, oci.Options{DockerHost: "npipe:////./pipe/docker"})
	_, err = windows.Resolve(t.Context(), testRef, "docker-daemon:x:1")
	checkError(t, err, report.Invalid, "neither unix:// nor tcp://", "docker save")
}

// A docker of version 25 or later with a graph driver saves an OCI layout of plain tars: they are compressed.
func TestDockerArchiveWithPlainLayout(t *testing.T) {
	files := dockerSave(map[string][]string{"a:1": {"one"}})
	want := resolve(t, oci.Options{}, "docker-archive:"+writeFile(t, "old.tar", tarOf(files)))

	l := newLayout()
	m := l.manifest("linux/amd64", "one")
	m.Layers[0] = l.blob("application/vnd.oci.image.layer.v1.tar", layerTar("one"))
	d := l.json(m.MediaType, m)
	d.Annotations = map[string]string{"io.containerd.image.name": "docker.io/library/a:1", "org.opencontainers.image.ref.name": "1"}
	l.index.Manifests = append(l.index.Manifests, d)
	for name, f := range l.fs() {
		files[name] = f.Data
	}
	got := resolve(t, oci.Options{}, "docker-archive:"+writeFile(t, "new.tar", tarOf(files))+":a:1")
	if got.Root.Digest != want.Root.Digest {
		t.Errorf("root is %s, want the compressed image %s", got.Root.Digest, want.Root.Digest)
	}
	kept := resolve(t, oci.Options{}, "oci-archive:"+writeFile(t, "oci.tar", tarOfFS(t, l.fs()))+":a:1")
	if kept.Root.Digest != d.Digest || kept.Origin != "docker.io/library/a:1" || !strings.Contains(kept.Note, "uncompressed") {
		t.Errorf("an OCI source is kept as it is: %s from %q, %q", kept.Root.Digest, kept.Origin, kept.Note)
	}
}

func TestOddImages(t *testing.T) {
	l := newLayout()
	noType := l.manifest("linux/amd64", "x")
	noType.MediaType = ""
	l.tag("no-media-type", l.json("", noType))
	docker := l.manifest("linux/amd64", "x")
	docker.MediaType, docker.Config.MediaType = "application/vnd.docker.distribution.manifest.v2+json", "application/vnd.docker.container.image.v1+json"
	docker.Layers[0].MediaType = "application/vnd.docker.image.rootfs.diff.tar.gzip"
	l.tag("docker-types", l.json(docker.MediaType, docker))
	zstandard := l.manifest("linux/amd64", "z")
	zstandard.Layers[0] = l.blob("application/vnd.oci.image.layer.v1.tar+zstd", zstdOf(t, layerTar("z")))
	l.tag("zstd", l.json(zstandard.MediaType, zstandard))
	l.tag("no-layers", l.image("linux/amd64"))
	empty := l.manifest("linux/amd64")
	empty.Layers = append(empty.Layers, l.blob("application/octet-stream", nil), empty.Config)
	l.tag("zero-byte-blob-and-config-as-layer", l.json(empty.MediaType, empty))
	foreign := l.manifest("linux/amd64", "x")
	foreign.Layers[0].MediaType = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"
	foreign.Layers[0].URLs = []string{"https://vendor.example/layer"}
	l.tag("foreign-present", l.json(foreign.MediaType, foreign))
	gone := l.manifest("linux/amd64", "gone")
	gone.Layers[0].MediaType = "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip"
	l.tag("foreign-absent", l.json(gone.MediaType, gone))
	delete(l.files, "blobs/sha256/"+gone.Layers[0].Digest.Hex)
	lost := l.manifest("linux/amd64", "lost")
	l.tag("lost", l.json(lost.MediaType, lost))
	delete(l.files, "blobs/sha256/"+lost.Layers[0].Digest.Hex)
	short := l.manifest("linux/amd64", "short")
	l.tag("short", l.json(short.MediaType, short))
	l.files["blobs/sha256/"+short.Layers[0].Digest.Hex] = &fstest.MapFile{Data: []byte("short")}
	sha512 := l.manifest("linux/amd64", "x")
	sha512.Layers[0].Digest = oci.Digest{Algorithm: "sha512", Hex: strings.Repeat("ab", 64)}
	l.tag("sha512", l.json(sha512.MediaType, sha512))
	l.tag("schema1", l.blob("application/vnd.docker.distribution.manifest.v1+prettyjws", []byte(`{"schemaVersion":1,"fsLayers":[]}`)))
	l.tag("both", l.blob("", []byte(`{"schemaVersion":2,"layers":[],"manifests":[]}`)))
	l.tag("empty-index", l.multi())
	changed := l.image("linux/amd64", "changed")
	l.tag("changed", changed)
	l.files["blobs/sha256/"+changed.Digest.Hex].Data[0] = ' '
	dir := l.dir(t)

	for _, name := range []string{"no-media-type", "docker-types", "zstd", "no-layers", "zero-byte-blob-and-config-as-layer", "foreign-present"} {
		t.Run(name, func(t *testing.T) {
			image := resolve(t, oci.Options{}, "oci:"+dir+":"+name)
			got, err := oci.Open(mapFS(t, layoutOf(t, image)))
			if err != nil || got.Image(testRef).Root.Digest != image.Root.Digest {
				t.Errorf("not the same image in the archive: %v", err)
			}
		})
	}
	for _, test := range []struct {
		name    string
		code    report.Code
		message string
	}{
		{"foreign-absent", report.Invalid, "not distributed with the image"},
		{"lost", report.Corrupt, lost.Layers[0].Digest.Hex + " is missing"},
		{"short", report.Corrupt, "has 5 bytes, in its manifest"},
		{"sha512", report.Invalid, "sha512 is not supported"},
		{"schema1", report.Invalid, "schema 1"},
		{"both", report.Invalid, "an index and an image at once"},
		{"empty-index", report.Invalid, "is empty"},
		{"changed", report.Corrupt, "its bytes have the digest"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := newResolver(t, oci.Options{}).Resolve(t.Context(), testRef, "oci:"+dir+":"+test.name)
			checkError(t, err, test.code, test.message, "")
		})
	}
}
