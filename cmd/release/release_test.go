package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/key"
)

// standIn runs until it is killed.
const standIn = `package main

import (
	"os"
	"os/signal"
)

func main() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	<-c
}
`

// newInput returns the input of a release for three platforms, whose program is a stand-in.
func newInput(t *testing.T) string {
	t.Helper()
	dir, source := t.TempDir(), t.TempDir()
	for name, content := range map[string]string{
		"LICENSE": "licence", "CHANGELOG.md": "# Changelog", "man/solutionctl.1": ".Dd x\n", "completions/bash": "b", "completions/zsh": "z",
		"completions/fish": "f", "units/solutionctl-registry.service": "[Service]\nExecStart=/usr/bin/solutionctl\n",
	} {
		writeFile(t, filepath.Join(dir, name), content, 0o644)
	}
	writeFile(t, filepath.Join(source, "go.mod"), "module standin\n", 0o600)
	writeFile(t, filepath.Join(source, "main.go"), standIn, 0o600)
	for _, p := range []platform{{"linux", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}} {
		build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, "bin", p.String()), ".")
		build.Dir, build.Env = source, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+p.os, "GOARCH="+p.architecture)
		if p.os != "linux" {
			writeFile(t, filepath.Join(dir, "bin", p.String()), "", 0o755) // the same program: what it is for, only its archive shows
			build.Env = append(build.Env, "GOOS=linux", "GOARCH=amd64")
		}
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return dir
}

func writeFile(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// nfpm returns the program that makes packages. 'make check' installs it; compiling it takes too long for 'make test'.
func nfpm(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("makes packages, which 'make check' does")
	}
	path, err := filepath.Abs("../../bin/nfpm")
	if err != nil {
		t.Fatal(err)
	}
	return tool(t, path, ".ci/tools nfpm")
}

func tool(t *testing.T, program, remedy string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") == "true":
		t.Fatalf("%s is missing: %s", program, remedy)
	default:
		t.Skipf("%s is missing: %s", program, remedy)
	}
	return ""
}

func makeRelease(t *testing.T, nfpm, input, version string, more ...string) string {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{"-version", version, "-created", "1700000000", "-commit", "c0ffee", "-nfpm", nfpm}, more...)
	if err := run(context.Background(), append(args, input, dir), io.Discard); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestSameBytes(t *testing.T) {
	program := nfpm(t)
	input := newInput(t)
	one, two := makeRelease(t, program, input, "0.1.0"), makeRelease(t, program, input, "0.1.0")
	var names []string
	entries, err := os.ReadDir(one)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
		a, errOne := os.ReadFile(filepath.Join(one, entry.Name()))
		b, errTwo := os.ReadFile(filepath.Join(two, entry.Name()))
		if errOne != nil || errTwo != nil || string(a) != string(b) {
			t.Errorf("%s: two releases differ: %v, %v", entry.Name(), errOne, errTwo)
		}
	}
	want := []string{
		"SHA256SUMS", "solutionctl-0.1.0-1.x86_64.rpm", "solutionctl-0.1.0-darwin-arm64.tar.gz", "solutionctl-0.1.0-linux-amd64.tar.gz",
		"solutionctl-0.1.0-windows-amd64.zip", "solutionctl-0.1.0.intoto.json", "solutionctl-0.1.0.spdx.json", "solutionctl_0.1.0_amd64.deb", "solutionctl_0.1.0_x86_64.apk",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// signedRelease makes a release that is signed with a new key.
func signedRelease(t *testing.T) (dir string, pair *key.Pair) {
	t.Helper()
	program := nfpm(t)
	pair, err := key.Generate([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	keyFile := filepath.Join(t.TempDir(), "release.key")
	writeFile(t, keyFile, string(pair.Private), 0o600)
	t.Setenv("SOLUTIONCTL_PASSWORD", "secret")
	return makeRelease(t, program, newInput(t), "0.1.0", "-key", keyFile), pair
}

// TestCheckDownload runs the commands by which users check what they have downloaded.
func TestCheckDownload(t *testing.T) {
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cosign := tool(t, filepath.Join(cache, "solutionctl-test", "cosign-v3.1.3", "cosign"), ".ci/install-cosign")
	dir, pair := signedRelease(t)
	writeFile(t, filepath.Join(dir, "release.pub"), string(pair.Public.PEM()), 0o644)
	page, err := os.ReadFile("../../docs/releases.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Check a download\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var commands []string
	for line := range strings.Lines(section) {
		if command, typed := strings.CutPrefix(line, "$ "); typed || strings.HasPrefix(line, "    --") {
			commands = append(commands, command)
		}
	}
	script := exec.CommandContext(t.Context(), "sh", "-c", "set -eu\n"+strings.Join(commands, ""))
	script.Dir, script.Env = dir, append(os.Environ(), "PATH="+filepath.Dir(cosign)+":"+os.Getenv("PATH"))
	out, err := script.CombinedOutput()
	if err != nil || strings.Count(string(out), "Verified OK\n") != 3 || strings.Count(string(out), ": OK\n") != 8 {
		t.Errorf("%v\n%s%s", err, strings.Join(commands, ""), out)
	}
}

// TestSignatures checks that SHA256SUMS has every file, and that it and the provenance are signed by the key. That cosign accepts
// signatures of this form is tested in package sign.
func TestSignatures(t *testing.T) {
	dir, pair := signedRelease(t)
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = dir
	out, err := check.Output()
	if err != nil || strings.Count(string(out), ": OK\n") != 8 {
		t.Errorf("%v\n%s", err, out)
	}
	read := func(name string) []byte {
		data, failure := os.ReadFile(filepath.Join(dir, name))
		if failure != nil {
			t.Fatal(failure)
		}
		return data
	}
	b, err := bundle.Parse(read("SHA256SUMS.sigstore.json"))
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(read("SHA256SUMS"))
	if err = b.VerifyKey(pair.Public, digest[:]); err != nil {
		t.Error(err)
	}
	var statement struct {
		Subject   []struct{ Name string }
		Predicate struct {
			BuildDefinition struct {
				ResolvedDependencies []struct{ Digest map[string]string }
			}
		}
	}
	if err = json.Unmarshal(read("solutionctl-0.1.0.intoto.json"), &statement); err != nil || len(statement.Subject) != 7 {
		t.Errorf("%d subjects, want 7: %v", len(statement.Subject), err)
	}
	if source := statement.Predicate.BuildDefinition.ResolvedDependencies; len(source) != 1 || source[0].Digest["gitCommit"] != "c0ffee" {
		t.Errorf("the provenance has the source %v", source)
	}
	if !strings.Contains(string(read("solutionctl-0.1.0.intoto.json.sigstore.json")), pair.Public.ID()) {
		t.Error("the provenance is not signed with the key")
	}
}

// TestArchives reads archives with the standard library.
func TestArchives(t *testing.T) {
	input := newInput(t)
	r := release{version: "0.1.0", created: time.Unix(1700000000, 0).UTC(), input: input, dir: t.TempDir()}
	for _, p := range []platform{{"linux", "amd64"}, {"windows", "amd64"}} {
		if err := r.writeArchive(p); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"CHANGELOG.md", "LICENSE", "completions/bash/solutionctl", "completions/fish/solutionctl.fish", "completions/zsh/_solutionctl",
		"man/man1/solutionctl.1", "solutionctl", "systemd/solutionctl-registry.service",
	}
	if diff := cmp.Diff(want, tarNames(t, filepath.Join(r.dir, "solutionctl-0.1.0-linux-amd64.tar.gz"), "solutionctl-0.1.0-linux-amd64/")); diff != "" {
		t.Error(diff)
	}
	z, err := zip.OpenReader(filepath.Join(r.dir, "solutionctl-0.1.0-windows-amd64.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close() //nolint:errcheck // opened for reading
	var names []string
	for _, f := range z.File {
		names = append(names, strings.TrimPrefix(f.Name, "solutionctl-0.1.0-windows-amd64/"))
	}
	if want := []string{"CHANGELOG.md", "LICENSE", "solutionctl.exe"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

func tarNames(t *testing.T, file, top string) (names []string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // opened for reading
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		executable := strings.HasSuffix(h.Name, "/solutionctl") && strings.Count(h.Name, "/") == 1
		if !h.ModTime.Equal(time.Unix(1700000000, 0)) || (h.Mode == 0o755) != executable || h.Uid != 0 || h.Uname != "" {
			t.Errorf("%+v", h)
		}
		names = append(names, strings.TrimPrefix(h.Name, top))
	}
}

// TestSBOM writes the bill of materials of this test, which has modules in it.
func TestSBOM(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	input := t.TempDir()
	if err = os.MkdirAll(filepath.Join(input, "bin"), 0o755); err == nil {
		err = os.Symlink(self, filepath.Join(input, "bin", "linux-amd64"))
	}
	r := release{version: "0.1.0", input: input, dir: t.TempDir()}
	if err = errors.Join(err, r.writeSBOM([]platform{{"linux", "amd64"}})); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(r.path(".spdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		SpdxVersion   string
		Packages      []struct{ SPDXID, Name, VersionInfo, SourceInfo string }
		Relationships []struct{ RelatedSpdxElement string }
	}
	if err = json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	if document.SpdxVersion != "SPDX-2.3" || len(document.Packages) < 20 || len(document.Relationships) != len(document.Packages) {
		t.Errorf("%s with %d packages and %d relationships", document.SpdxVersion, len(document.Packages), len(document.Relationships))
	}
	ids := map[string]bool{}
	for i, p := range document.Packages {
		if ids[p.SPDXID] || p.VersionInfo == "" || i > 1 && !strings.HasPrefix(p.SourceInfo, "go.sum: h1:") {
			t.Errorf("%+v", p)
		}
		ids[p.SPDXID] = true
	}
}

func TestRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing":      {nil, "usage:"},
		"no version":   {[]string{"input", "output"}, `version ""`},
		"no release":   {[]string{"-version", "v0.1", "input", "output"}, `version "v0.1"`},
		"no such key":  {[]string{"-version", "0.1.0", "-key", "absent", "input", "output"}, "absent"},
		"no programs":  {[]string{"-version", "0.1.0", "input", "output"}, "input/bin"},
		"unknown flag": {[]string{"-x"}, "-x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := run(t.Context(), test.args, io.Discard); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
