package testcluster

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var (
	solutionctlProgram = program{
		name: "solutionctl", module: filepath.Join("..", ".."), packages: []string{"./cmd/solutionctl"}, files: []string{"solutionctl"},
		ldflags: "-s -w",
	}
	helmProgram = program{
		name: "helm", module: "cmd/rivals", packages: []string{"helm.sh/helm/v4/cmd/helm"}, files: []string{"helm"}, ldflags: "-s -w",
	}
)

// Program puts solutionctl into a directory and returns its file.
func Program(tb testing.TB, dir string) string {
	tb.Helper()
	return install(tb, currentProgram, dir)
}

// Helm puts Helm's program into a directory and returns its file.
func Helm(tb testing.TB, dir string) string {
	tb.Helper()
	return install(tb, func() (string, error) {
		built, err := helmProgram.build(context.Background(), os.Stderr)
		return filepath.Join(built, helmProgram.files[0]), err
	}, dir)
}

// Example puts a copy of an example, which is a module of its own, into a directory, with the images of its releases as its README
// describes. They are made once until a file of the example changes: three releases take 80 seconds of a processor.
func Example(tb testing.TB, dir, module string, releases ...string) {
	tb.Helper()
	source, err := program{module: filepath.Join("..", "..", module)}.source(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	key, err := digest(tb.Context(), source, fmt.Sprintf("%q", releases))
	if err != nil {
		tb.Fatal(err)
	}
	made, err := keep(module, key, isKept, func(partial string) error { return makeExample(tb.Context(), source, partial, releases) })
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(made)); err != nil {
		tb.Fatal(err)
	}
}

func isKept(dir string) bool {
	use(dir)
	_, err := os.Stat(dir)
	return err == nil
}

func makeExample(ctx context.Context, source, dir string, releases []string) error {
	if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
		return err
	}
	for _, release := range releases {
		image := exec.CommandContext(ctx, "go", "run", "./image", release)
		image.Dir = dir
		if out, err := image.CombinedOutput(); err != nil {
			return fmt.Errorf("make the images of %s, %s: %w\n%s", filepath.Base(source), release, err, out)
		}
	}
	return nil
}

func install(tb testing.TB, build func() (string, error), dir string) string {
	tb.Helper()
	built, err := build()
	if err != nil {
		tb.Fatal(err)
	}
	file := filepath.Join(dir, filepath.Base(built))
	if os.Link(built, file) == nil {
		return file
	}
	if err := copyFile(built, file); err != nil { // another file system
		tb.Fatal(err)
	}
	return file
}

// currentProgram builds solutionctl in the user's cache, where the processes of all packages find it: linking it takes ten seconds of a
// processor, and 'go build' links only what has changed.
var currentProgram = sync.OnceValues(func() (string, error) {
	ctx := context.Background()
	source, err := solutionctlProgram.source(ctx)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	parent := filepath.Join(cache, "solutionctl-test")
	if err = os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	unlock, err := lockFile(filepath.Join(parent, solutionctlProgram.name+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	checkout := sha256.Sum256([]byte(source)) // each has its own, which replaces no other
	dir := filepath.Join(parent, solutionctlProgram.name+"-"+hex.EncodeToString(checkout[:])[:16])
	if err = os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(dir, solutionctlProgram.files[0])
	cmd := solutionctlProgram.goCommand(ctx, source, append(
		[]string{"build", "-trimpath", "-buildvcs=false", "-ldflags", solutionctlProgram.ldflags, "-o", file}, solutionctlProgram.packages...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build solutionctl: %w\n%s", err, out)
	}
	use(dir)
	return file, removeOlder(parent, solutionctlProgram.name)
})

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Certificate writes a certificate for the loopback addresses of this host into a directory, tls.crt, and its key, tls.key.
func Certificate(tb testing.TB, dir string) {
	tb.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler()) // which has one
	defer server.Close()
	private, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		tb.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: server.Certificate().Raw}, "tls.key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err = os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
}
