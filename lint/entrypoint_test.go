package lint_test

import (
	"archive/tar"
	"bytes"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/solutionctl/solutionctl/schema/report"
)

const operatorPath = "usr/local/bin/demo-operator"

func directory(name string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}
}

func executable(name string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755}
}

func plainFile(name string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644}
}

func link(name, target string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}
}

func hardLink(name, target string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: target, Mode: 0o755}
}

// TestSearchLayers looks for the executable as a container runtime would.
func TestSearchLayers(t *testing.T) {
	amd64 := func(layers ...[]tar.Header) [][]byte {
		var packed [][]byte
		for _, files := range layers {
			packed = append(packed, packLayer(t, "program", "amd64", files...))
		}
		return packed
	}
	in := func(files ...tar.Header) []tar.Header { return files }
	tests := map[string]struct {
		layers [][]byte
		want   string
	}{
		"in one layer":             {amd64(in(executable(operatorPath))), ""},
		"name with a dot":          {amd64(in(executable("./" + operatorPath))), ""},
		"gzip":                     {compressed(t, "gzip", amd64(in(executable(operatorPath)))), ""},
		"zstd":                     {compressed(t, "zstd", amd64(in(executable(operatorPath)))), ""},
		"in an earlier layer":      {amd64(in(executable(operatorPath)), in(plainFile("etc/passwd"))), ""},
		"symbolic link":            {amd64(in(executable("opt/demo/bin/run"), link(operatorPath, "/opt/demo/bin/run"))), ""},
		"relative link":            {amd64(in(executable("usr/local/lib/run"), link(operatorPath, "../lib/run"))), ""},
		"linked directory":         {amd64(in(executable("usr/bin/demo-operator"), link("bin", "usr/bin"))), ""},
		"hard link":                {amd64(in(executable("opt/run"), hardLink(operatorPath, "opt/run"))), ""},
		"nowhere":                  {amd64(in(executable("opt/demo-operator"))), "no directory of PATH"},
		"a directory of that name": {amd64(in(directory(operatorPath))), "no directory of PATH"},
		"not executable":           {amd64(in(plainFile(operatorPath))), "is not executable"},
		"deleted":                  {amd64(in(executable(operatorPath)), in(plainFile("usr/local/bin/.wh.demo-operator"))), "no directory of PATH"},
		"deleted with its parent":  {amd64(in(executable(operatorPath)), in(plainFile("usr/.wh.local"))), "no directory of PATH"},
		"hidden by a new parent":   {amd64(in(executable(operatorPath)), in(plainFile("usr/local/bin/.wh..wh..opq"))), "no directory of PATH"},
		"deleted and added again": {amd64(in(executable(operatorPath)), in(plainFile("usr/local/bin/.wh.demo-operator")),
			in(executable(operatorPath))), ""},
		"whiteout and file in one layer": {amd64(in(plainFile("usr/local/bin/.wh..wh..opq"), executable(operatorPath))), ""},
		"links in a circle":              {amd64(in(link(operatorPath, "/usr/bin/a"), link("usr/bin/a", "/"+operatorPath))), "no directory of PATH"},
		"dangling link":                  {amd64(in(link(operatorPath, "/gone"))), "no directory of PATH"},
		"another machine":                {[][]byte{packLayer(t, "program", "arm64", executable(operatorPath))}, "the executable is for EM_AARCH64"},
		"big-endian machine":             {[][]byte{packLayer(t, "program", "s390x", executable(operatorPath))}, "the executable is for EM_S390"},
		"not an archive":                 {[][]byte{bytes.Repeat([]byte("x"), 1024)}, "its layers cannot be read"},
		"truncated":                      {[][]byte{packLayer(t, "program", "amd64", executable(operatorPath))[:540]}, "its layers cannot be read"},
		"no layer":                       {[][]byte{}, "its image has no layers"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			findings := of("SOL412", run(t, deepTarget(t, tt.layers)))
			if tt.want == "" && len(findings) > 0 {
				t.Errorf("got %s", text(findings))
			}
			if tt.want != "" && (len(findings) != 1 || !strings.Contains(findings[0].Message, tt.want)) {
				t.Errorf("got %q, want one finding with %q", text(findings), tt.want)
			}
		})
	}
}

// deepTarget is the archive of the examples with an operator of these layers.
func deepTarget(tb testing.TB, layers [][]byte) *judged {
	tb.Helper()
	files := readExample(tb, "base.txtar").files
	addImages(tb, files, []testImage{{ref: "demo-operator:1.0.0", platforms: []string{"linux/amd64"}, entrypoint: "/manager", layers: layers}})
	opened := openDirectory(tb, files)
	opened.deep = true
	return opened
}

func compressed(tb testing.TB, how string, layers [][]byte) [][]byte {
	tb.Helper()
	var all [][]byte
	for _, layer := range layers {
		var packed bytes.Buffer
		var w interface {
			Write([]byte) (int, error)
			Close() error
		} = gzip.NewWriter(&packed)
		if how == "zstd" {
			var err error
			w, err = zstd.NewWriter(&packed)
			check(tb, err)
		}
		_, err := w.Write(layer)
		check(tb, err)
		check(tb, w.Close())
		all = append(all, packed.Bytes())
	}
	return all
}

// An image without layers, as in a new project, is reported without --deep as well.
func TestPlaceholderImage(t *testing.T) {
	opened := deepTarget(t, [][]byte{})
	opened.deep = false
	findings := of("SOL412", run(t, opened))
	if len(findings) != 1 || !strings.Contains(findings[0].Message, "the operator cannot start: its image has no layers") ||
		findings[0].Severity != report.SeverityWarning {
		t.Errorf("got %q, want one warning of an image without layers", text(findings))
	}
}
