package testcluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	modulePath = "github.com/solutionctl/solutionctl/deployer/e2e"

	// KubernetesVersion is the version that the API server reports. Every component needs it: without it, checks of the
	// version, those of kubectl included, do not work.
	KubernetesVersion = "v1.36.3"

	// OldestKubernetes is the same of a cluster with [Options.Oldest].
	OldestKubernetes = "v1.30.14"
)

var (
	kubernetesProgram = program{
		name: "kubernetes", module: "cmd/kubernetes", packages: []string{"."}, files: []string{"kubernetes"},
		ldflags: versionFlags(KubernetesVersion),
	}
	oldestProgram = program{
		name: "oldest", module: "cmd/kubernetes-1.30", packages: []string{"."}, files: []string{"kubernetes-1.30"},
		ldflags: versionFlags(OldestKubernetes),
	}
	nodePrograms = program{
		name: "node", module: "cmd/node", ldflags: "-s -w",
		packages: []string{
			"./pause",
			"github.com/containerd/containerd/v2/cmd/containerd",
			"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
			"github.com/containerd/containerd/v2/cmd/ctr",
			"github.com/containernetworking/plugins/plugins/ipam/host-local",
			"github.com/containernetworking/plugins/plugins/main/ptp",
		},
		files: []string{"containerd", "containerd-shim-runc-v2", "ctr", "ptp", "host-local", "pause"},
	}
	kwokProgram = program{
		name: "kwok", module: "cmd/node", packages: []string{"sigs.k8s.io/kwok/cmd/kwok"}, files: []string{"kwok"}, ldflags: "-s -w",
	}
	prometheusProgram = program{
		name: "prometheus", module: "cmd/prometheus", packages: []string{"github.com/prometheus/prometheus/cmd/prometheus"},
		files: []string{"prometheus"}, ldflags: "-s -w",
	}
	prometheusOperator = program{
		name: "prometheus-operator", module: "cmd/prometheus-operator", ldflags: "-s -w",
		packages: []string{prometheusOperatorModule + "/cmd/operator", prometheusOperatorModule + "/cmd/prometheus-config-reloader"},
		files:    []string{"operator", "prometheus-config-reloader"},
	}
)

const prometheusOperatorModule = "github.com/prometheus-operator/prometheus-operator"

func versionFlags(version string) string {
	const variable = " -X k8s.io/component-base/version."
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return "-s -w" + variable + "gitVersion=" + version + variable + "gitMajor=" + major + variable + "gitMinor=" + minor
}

// Prometheus returns a Prometheus that looks for pods, which Debian's cannot do. It is built when it is needed first.
func Prometheus(ctx context.Context, progress io.Writer) (path string, err error) {
	dir, err := prometheusProgram.build(ctx, progress)
	return filepath.Join(dir, "prometheus"), err
}

// PrometheusOperator returns directories with the programs of the Prometheus operator, operator and prometheus-config-reloader, which
// are built when they are needed first, and with the definitions of its custom resources.
func PrometheusOperator(ctx context.Context, progress io.Writer) (programs, definitions string, err error) {
	if programs, err = prometheusOperator.build(ctx, progress); err != nil {
		return "", "", err
	}
	source, err := prometheusOperator.source(ctx)
	if err != nil {
		return "", "", err
	}
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", prometheusOperatorModule)
	list.Dir = source
	dir, err := list.Output()
	if err != nil {
		return "", "", withStderr(err)
	}
	return programs, filepath.Join(string(bytes.TrimSpace(dir)), "example", "prometheus-operator-crd"), nil
}

// A program is a nested module whose packages are built when they are needed first: minutes the first time on a machine,
// seconds while Go's cache is warm, nothing while neither its sources nor Go have changed.
type program struct {
	name     string
	module   string   // directory, below the one of this module
	packages []string // what to build, as for 'go build'
	files    []string // what comes out
	ldflags  string
}

// build returns the directory with the program's files, which it builds if they are not in the user's cache.
func (p program) build(ctx context.Context, progress io.Writer) (string, error) {
	source, err := p.source(ctx)
	if err != nil {
		return "", err
	}
	key, err := p.key(ctx, source)
	if err != nil {
		return "", err
	}
	return keep(p.name, key, p.isBuilt, func(partial string) error { return p.compile(ctx, source, partial, progress) })
}

// compile builds the program's files into a directory.
func (p program) compile(ctx context.Context, source, dir string, progress io.Writer) error {
	fmt.Fprintf(progress, "compiling %s from Go modules, because no program is downloaded; the first time on a machine takes minutes\n", p.name)
	args := append([]string{"build", "-v", "-trimpath", "-ldflags", p.ldflags, "-o", dir + string(filepath.Separator)}, p.packages...)
	total := p.uncompiled(ctx, source)
	cmd := p.goCommand(ctx, source, args...)
	cmd.Stderr = &compilation{out: progress, name: p.name, total: total, started: time.Now(), reported: time.Now()}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s: %w", source, err)
	}
	if !p.isBuilt(dir) {
		return fmt.Errorf("build %s: not all of %v came out", source, p.files)
	}
	return nil
}

// keep returns the directory of a name and a key in the user's cache, where every package of tests looks for it. If it is not complete,
// one process fills it while others wait.
func keep(name, key string, complete func(dir string) bool, fill func(dir string) error) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	parent := filepath.Join(cache, "solutionctl-test")
	dir := filepath.Join(parent, name+"-"+key)
	if complete(dir) {
		return dir, nil
	}
	if err = os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	unlock, err := lockFile(filepath.Join(parent, name+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if complete(dir) {
		return dir, nil
	}
	partial, err := os.MkdirTemp(parent, name+"-partial-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(partial) }()
	if err := fill(partial); err != nil {
		return "", err
	}
	if err := removeOlder(parent, name); err != nil {
		return "", err
	}
	return dir, os.Rename(partial, dir)
}

// goCommand returns a command of Go in the program's module.
func (p program) goCommand(ctx context.Context, source string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	return cmd
}

// uncompiled returns how many packages of the program are not in Go's cache; 0 if that cannot be found out.
func (p program) uncompiled(ctx context.Context, source string) int {
	const missing = `{{if and .Stale (ne .StaleReason "not installed but available in build cache")}}{{.ImportPath}}{{end}}`
	out, err := p.goCommand(ctx, source, append([]string{"list", "-deps", "-trimpath", "-f", missing}, p.packages...)...).Output()
	if err != nil {
		return 0
	}
	return bytes.Count(out, []byte("\n"))
}

// compilation reports every now and then how far 'go build -v' is, which prints the name of each package; all other output it prints at
// once.
type compilation struct {
	out               io.Writer
	name              string
	packages          int // compiled
	total             int // to be compiled; 0 if that is not known
	started, reported time.Time
	line              []byte
}

// compilationPause is the least time between two reports.
const compilationPause = 20 * time.Second

func (c *compilation) Write(p []byte) (int, error) {
	c.line = append(c.line, p...)
	for {
		line, rest, ended := bytes.Cut(c.line, []byte("\n"))
		if !ended {
			return len(p), nil
		}
		c.line = rest
		if len(line) == 0 || bytes.ContainsAny(line, " :#") {
			if _, err := fmt.Fprintf(c.out, "%s\n", line); err != nil {
				return 0, err
			}
			continue
		}
		c.packages++
		if now := time.Now(); now.Sub(c.reported) >= compilationPause {
			c.reported = now
			fmt.Fprintln(c.out, c.progress(now.Sub(c.started)))
		}
	}
}

// progress returns a line with a bar and an estimate. Packages differ in size, and the largest come last, so that the estimate grows a little.
func (c *compilation) progress(elapsed time.Duration) string {
	const width = 20
	passed := elapsed.Round(time.Second)
	if c.total < c.packages || c.packages == 0 {
		return fmt.Sprintf("  %s: %d packages compiled in %s", c.name, c.packages, passed)
	}
	full := width * c.packages / c.total
	left := elapsed * time.Duration(c.total-c.packages) / time.Duration(c.packages)
	return fmt.Sprintf("  %s: [%s%s] %d of %d packages in %s, about %s left",
		c.name, strings.Repeat("#", full), strings.Repeat(".", width-full), c.packages, c.total, passed, left.Round(10*time.Second))
}

// isBuilt reports whether all of it is there, and notes that it is in use.
func (p program) isBuilt(dir string) bool {
	use(dir)
	for _, name := range p.files {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// use notes that a directory is in use, for removeOlder.
func use(dir string) {
	now := time.Now()
	_ = os.Chtimes(dir, now, now)
}

// source is the directory of the program's module in the checkout that the process was started in.
func (p program) source(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", modulePath).Output()
	if err != nil {
		return "", fmt.Errorf("not inside of the module %s: %w", modulePath, withStderr(err))
	}
	return filepath.Join(string(bytes.TrimSpace(out)), filepath.FromSlash(p.module)), nil
}

// key is a digest of everything that the program is made of.
func (p program) key(ctx context.Context, source string) (string, error) {
	return digest(ctx, source, fmt.Sprintf("%q %q", p.packages, p.ldflags))
}

// digest is one of all files of a module, of the Go that compiles it, and of how.
func digest(ctx context.Context, source, how string) (string, error) {
	hash := sha256.New()
	version, err := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOOS", "GOARCH").Output()
	if err != nil {
		return "", withStderr(err)
	}
	fmt.Fprintf(hash, "%s%s\n", version, how)
	err = filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(hash, "%s %d\n%s", strings.TrimPrefix(path, source), len(data), data)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil))[:16], err
}

// removeOlder removes what was built of the program before and has not been needed for a while: another checkout, or a
// cluster that is running, may have its own.
func removeOlder(parent, name string) error {
	older, err := filepath.Glob(filepath.Join(parent, name+"-"+strings.Repeat("[0-9a-f]", 16)))
	if err != nil {
		return err
	}
	for _, dir := range older {
		if info, statErr := os.Stat(dir); statErr == nil && time.Since(info.ModTime()) > 24*time.Hour {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return err
}

// lockFile waits until no other process has locked the file.
func lockFile(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return err
}
