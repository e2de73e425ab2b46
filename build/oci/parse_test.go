package oci_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestParseSource(t *testing.T) {
	for _, test := range []struct {
		source string
		want   [3]string
	}{
		{"oci:dir", [3]string{"oci", "dir", ""}},
		{"oci:build/images:operator:1.0.0", [3]string{"oci", "build/images", "operator:1.0.0"}},
		{`oci:C:\images:operator`, [3]string{"oci", `C:\images`, "operator"}},
		{"oci:C:/images", [3]string{"oci", "C:/images", ""}},
		{"oci-archive:a.tar:", [3]string{"oci-archive", "a.tar", ""}},
		{"docker-archive:-:acme/ui:1", [3]string{"docker-archive", "-", "acme/ui:1"}},
		{"docker-daemon:acme/ui:1", [3]string{"docker-daemon", "", "acme/ui:1"}},
		{"docker-daemon://acme/ui:1", [3]string{"docker-daemon", "", "acme/ui:1"}},
		{"docker://ghcr.io:443/acme/ui:1", [3]string{"docker", "", "ghcr.io:443/acme/ui:1"}},
		{"dir:a:b", [3]string{"dir", "a:b", ""}},
		{"solution:old-1.0.0.iso:ui:1.0.0", [3]string{"solution", "old-1.0.0.iso", "ui:1.0.0"}},
	} {
		if got, err := oci.ParseSource(test.source); err != nil || got != test.want {
			t.Errorf("%s is %q, %v; want %q", test.source, got, err, test.want)
		}
	}
}

func TestParseSourceRefuses(t *testing.T) {
	for _, test := range []struct{ source, message, hint string }{
		{"", "no known form", "write one of oci:DIR"},
		{"ghcr.io/acme/ui:1", "no known form", "docker://ghcr.io/acme/ui:1"},
		{"nginx", "no known form", "docker://nginx"},
		{"./images", "no known form", "write one of oci:DIR"},
		{"docker:nginx:1", "lacks the slashes", "docker://nginx:1 for a registry, docker-daemon:nginx:1"},
		{"oci://ghcr.io/acme/ui:1", "mixes two forms", "docker://ghcr.io/acme/ui:1"},
		{"https://ghcr.io/acme/ui:1", "no known form", "docker://ghcr.io/acme/ui:1"},
		{"containers-storage:ui:1", "no known form", "podman save --format oci-archive"},
		{"oci:", "names no file or directory", "oci:DIR"},
		{"dir:", "names no file or directory", "dir:DIR"},
		{"docker://", "names no image", "docker://REGISTRY"},
		{"docker-daemon:", "names no image", "docker-daemon:REF"},
		{"solution:old.iso", "names no image", "solution:FILE.iso:IMAGE"},
		{"oci:a\x00b", "not a valid name", ""},
		{"https://me:secret@ghcr.io/x", "https://…@ghcr.io/x", "docker:"},
	} {
		_, err := oci.ParseSource(test.source)
		checkError(t, err, report.Invalid, test.message, test.hint)
		if text := err.Error() + strings.Join(report.Hints(err), " "); strings.Contains(text, "secret") {
			t.Errorf("%q tells a password", text)
		}
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"docker://me:secret@ghcr.io/x:1":             "docker://…@ghcr.io/x:1",
		"docker://nginx:1@sha256:abc":                "docker://nginx:1@sha256:abc",
		"docker://ghcr.io/x@sha256:abc":              "docker://ghcr.io/x@sha256:abc",
		"oci:dir:ref":                                "oci:dir:ref",
		"docker://me:secret@host@sha256:x@ghcr.io/x": "docker://…@ghcr.io/x",
	} {
		if got := oci.Redact(in); got != want {
			t.Errorf("Redact(%s) = %s, want %s", in, got, want)
		}
	}
}

func FuzzParseSource(f *testing.F) {
	for _, s := range []string{"oci:a:b", "docker://x", "docker:x", "solution:a:b", `oci:C:\a:b`, "https://a:b@c", "-:-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := oci.ParseSource(s)
		if err != nil {
			if report.CodeOf(err) != report.Invalid || len(report.Hints(err)) == 0 && !strings.Contains(s, "\x00") {
				t.Errorf("%q: %v without a code or a hint", s, err)
			}
			return
		}
		text := got[0] + ":" + got[1]
		switch got[0] {
		case "docker":
			text = "docker://" + got[2]
		case "docker-daemon":
			text = "docker-daemon:" + got[2]
		case "dir":
		default:
			text += ":" + got[2]
		}
		if again, err := oci.ParseSource(text); err != nil || again != got {
			t.Errorf("%q is %q, but %q is %q, %v", s, got, text, again, err)
		}
	})
}

func TestParseManifest(t *testing.T) {
	const digest = `"digest":"sha256:0000000000000000000000000000000000000000000000000000000000000000"`
	config := `"config":{"mediaType":"application/vnd.oci.image.config.v1+json","size":2,` + digest + `}`
	for _, test := range []struct{ name, data, want, message string }{
		{"image", `{"schemaVersion":2,` + config + `,"layers":[]}`, "application/vnd.oci.image.manifest.v1+json", ""},
		{"docker", `{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json",` + config + `}`, "application/vnd.docker.distribution.manifest.v2+json", ""},
		{"index", `{"schemaVersion":2,"manifests":[]}`, "application/vnd.oci.image.index.v1+json", ""},
		{"old artifact", `{"mediaType":"application/vnd.oci.artifact.manifest.v1+json","blobs":[{"size":2,` + digest + `}]}`, "application/vnd.oci.artifact.manifest.v1+json", ""},
		{"index with layers", `{"manifests":[],"layers":[]}`, "", "an index and an image at once"},
		{"image called index", `{"mediaType":"application/vnd.oci.image.index.v1+json",` + config + `}`, "", "shape of its media type"},
		{"index called image", `{"mediaType":"application/vnd.oci.image.manifest.v1+json","manifests":[]}`, "", "shape of its media type"},
		{"no config", `{"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":[]}`, "", "shape of its media type"},
		{"negative size", `{"layers":[{"size":-1,` + digest + `}],` + config + `}`, "", "has the size -1"},
		{"no digest", `{"config":{"size":1}}`, "", "without a digest"},
		{"short digest", `{"config":{"digest":"sha256:00"}}`, "", "manifest is not valid"},
		{"path as digest", `{"config":{"digest":"sha256:../../etc/passwd"}}`, "", "manifest is not valid"},
		{"many", `{"manifests":[` + strings.Repeat(`{"size":1,`+digest+`},`, 5000) + `{}]}`, "", "refers to 5001 objects"},
		{"list", `[]`, "", "manifest is not valid"},
		{"nothing", `{}`, "", "not an image manifest"},
		{"other media type", `{"mediaType":"text/plain","manifests":[]}`, "", `its media type is "text/plain"`},
		{"schema 1", `{"schemaVersion":1}`, "", "schema 1"},
		{"large", strings.Repeat(" ", 9<<20), "", "the limit is"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := oci.ParseManifest([]byte(test.data))
			if test.message != "" {
				checkError(t, err, report.Invalid, test.message, "")
			} else if err != nil || got != test.want {
				t.Errorf("%s, %v; want %s", got, err, test.want)
			}
		})
	}
}

func FuzzParseManifest(f *testing.F) {
	l := newLayout()
	l.artifact("application/spdx+json", l.image("linux/amd64", "a"))
	l.multi(l.image("linux/amd64", "b"))
	for _, file := range l.fs() {
		if len(file.Data) < 2000 {
			f.Add(file.Data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		mediaType, err := oci.ParseManifest(data)
		if (err == nil) == (mediaType == "") {
			t.Errorf("media type %q, %v", mediaType, err)
		}
	})
}

// For any index.json, Open ends, and an accepted one can be laid out again.
func FuzzOpen(f *testing.F) {
	l := newLayout()
	image := l.image("linux/amd64", "a")
	l.tag("a:1", image)
	l.tag("b:1", l.multi(image))
	l.artifact("application/spdx+json", image)
	files := l.fs()
	f.Add(files["index.json"].Data, files["blobs/sha256/"+image.Digest.Hex].Data)
	f.Fuzz(func(t *testing.T, index, manifest []byte) {
		changed := maps.Clone(files)
		digest, _, err := v1.SHA256(bytes.NewReader(manifest))
		if err != nil {
			t.Fatal(err)
		}
		changed["index.json"] = &fstest.MapFile{Data: index}
		changed["blobs/sha256/"+digest.Hex] = &fstest.MapFile{Data: manifest}
		store, err := oci.Open(changed)
		if err != nil {
			return
		}
		if _, err := oci.Layout(store.Images()); err != nil {
			t.Errorf("what was read cannot be laid out: %v", err)
		}
		if _, err := oci.RegistryConfig(store.Images(), oci.Extended); err != nil {
			t.Errorf("what was read cannot be served: %v", err)
		}
	})
}

func TestVerifyReader(t *testing.T) {
	const text = "some content"
	digest, size, err := v1.SHA256(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	empty, _, _ := v1.SHA256(strings.NewReader(""))
	for _, test := range []struct {
		name, text string
		d          oci.Descriptor
		message    string
	}{
		{"right", text, oci.Descriptor{Digest: digest, Size: size}, ""},
		{"empty", "", oci.Descriptor{Digest: empty}, ""},
		{"other bytes", "SOME content", oci.Descriptor{Digest: digest, Size: size}, "its bytes have the digest"},
		{"too short", text[:5], oci.Descriptor{Digest: digest, Size: size}, "5 bytes, want 12"},
		{"too long", text + "!", oci.Descriptor{Digest: digest, Size: size}, "more than 12 bytes"},
		{"not empty", "x", oci.Descriptor{Digest: empty}, "more than 0 bytes"},
		{"empty with a wrong digest", "", oci.Descriptor{Digest: digest}, "its bytes have the digest"},
	} {
		for reader, wrap := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "with EOF": iotest.DataErrReader,
		} {
			t.Run(test.name+"/"+reader, func(t *testing.T) {
				got, err := io.ReadAll(oci.VerifyReader(wrap(strings.NewReader(test.text)), test.d))
				if test.message == "" {
					if err != nil || string(got) != test.text {
						t.Errorf("%q, %v", got, err)
					}
					return
				}
				checkError(t, err, report.Corrupt, test.message, "")
			})
		}
	}
	// Who reads exactly as many bytes as there are learns of a wrong one, too.
	r := oci.VerifyReader(strings.NewReader("SOME content"), oci.Descriptor{Digest: digest, Size: size})
	if _, err := r.Read(make([]byte, 100)); report.CodeOf(err) != report.Corrupt {
		t.Errorf("Read = %v", err)
	}
	if _, err := r.Read(make([]byte, 1)); report.CodeOf(err) != report.Corrupt {
		t.Errorf("the error is forgotten: %v", err)
	}
	r = oci.VerifyReader(iotest.ErrReader(io.ErrClosedPipe), oci.Descriptor{Digest: digest, Size: size})
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Read = %v", err)
	}
	r = oci.VerifyReader(strings.NewReader(text), oci.Descriptor{Digest: oci.Digest{Algorithm: "md5"}, Size: size})
	if _, err := r.Read(make([]byte, 1)); err == nil {
		t.Error("an unknown algorithm verifies")
	}
}
