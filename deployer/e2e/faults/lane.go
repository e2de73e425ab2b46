//go:build linux

package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/durable/trace"
)

// Lane is a cluster and a host on which the program is killed, one run after the other.
type Lane struct {
	cluster   *testcluster.Cluster
	program   string
	dir       string // of the host, where the program runs
	direct    string // kubeconfig of the cluster
	through   string // kubeconfig of the proxy
	proxy     *proxy
	client    dynamic.Interface
	resources []schema.GroupVersionResource
	builtIn   map[string]bool // what the cluster had before anything was done

	ours []string // what had the label of a release when the cluster was dumped last

	environment string // of the run
	runs        int

	dead map[string]bool // holders of locks that were killed

	base    base            // the imported and active versions; unknown after a run that changes them
	secrets map[string]bool // our Secrets at that time
	clean   map[string]*Clean
	bases   map[base]*snapshot
}

// NewLane prepares a host, in an existing empty directory, for runs of a program on a cluster without other users.
func NewLane(ctx context.Context, c *testcluster.Cluster, program, dir string) (*Lane, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	l := &Lane{cluster: c, program: program, dir: dir, direct: c.Kubeconfig, base: unknown, environment: environments + "0000", clean: map[string]*Clean{}, bases: map[base]*snapshot{}, dead: map[string]bool{}}
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	if l.client, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if l.proxy, err = newProxy(config); err != nil {
		return nil, err
	}
	l.through = filepath.Join(c.Dir, "proxy.kubeconfig")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "proxy", "clusters": [{"name": "proxy", "cluster": {"server": %q}}],
"contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": ""}}]}`, l.proxy.URL)
	if err := os.WriteFile(l.through, []byte(text), 0o600); err != nil {
		return nil, err
	}
	if err := l.packArchives(ctx); err != nil {
		return nil, err
	}
	return l, l.noteBuiltIn(ctx)
}

// Use makes another build of the program the one that is killed.
func (l *Lane) Use(program string) {
	l.program, l.base, l.clean, l.bases = program, unknown, map[string]*Clean{}, map[base]*snapshot{}
}

// Close ends what NewLane has started, but not the cluster.
func (l *Lane) Close() error { return l.proxy.server.Close() }

// result is how a run of the program ended.
type result struct {
	command string
	status  unix.WaitStatus
	output  string // of both streams
}

// ok returns an error unless the run succeeded.
func (r *result) ok() error {
	if r.status.Exited() && r.status.ExitStatus() == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s\n%s", r.command, describe(r.status), r.output)
}

func describe(status unix.WaitStatus) string {
	if status.Signaled() {
		return status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}

// code is the error code that the run ended with, "" without one.
func (r *result) code() string {
	_, text, _ := strings.Cut(r.output, "solutionctl: code: ")
	code, _, _ := strings.Cut(text, " ")
	return code
}

func (l *Lane) command(ctx context.Context, kubeconfig string, args []string) *exec.Cmd {
	args = slices.Clone(args)
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, inEnvironment, l.environment)
	}
	cmd := exec.CommandContext(ctx, l.program, args...)
	cmd.Dir = l.dir
	for variable, file := range map[string]string{
		"STORE": "store", "STATE": "store/state.json", "TRUST_DIR": "trust", "SOLUTIONS_FILE": "metalk8s/solutions.yaml", "NGINX_DIR": "conf.d",
	} {
		cmd.Env = append(cmd.Env, "SOLUTIONCTL_"+variable+"="+filepath.Join(l.dir, file))
	}
	cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"), "HOME="+l.dir, "USER=tester", "KUBECONFIG="+kubeconfig, "TMPDIR="+os.TempDir(),
		"SOLUTIONCTL_CONFIG="+os.DevNull, "SOLUTIONCTL_NO_LINT=true", "SOLUTIONCTL_MOUNT=never", "SOLUTIONCTL_ENDPOINT=http://127.0.0.1:9", "SOLUTIONCTL_VERBOSE=true", "SOLUTIONCTL_PASSWORD=secret")
	return cmd
}

// run runs the program, and nothing happens to it.
func (l *Lane) run(ctx context.Context, args ...string) (*result, error) {
	return l.finish(ctx, l.command(ctx, l.direct, args))
}

// must runs the program, which must succeed.
func (l *Lane) must(ctx context.Context, args ...string) error {
	r, err := l.run(ctx, args...)
	if err != nil {
		return err
	}
	return r.ok()
}

func (l *Lane) finish(ctx context.Context, cmd *exec.Cmd) (*result, error) {
	output, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		return nil, err
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		return nil, err
	}
	return &result{strings.Join(cmd.Args[1:], " "), unix.WaitStatus(status), string(output)}, ctx.Err()
}

// runCalls runs the program and kills it at a call to the API server; 0 is none. It returns the calls, and whether it was
// killed.
func (l *Lane) runCalls(ctx context.Context, fatal int, after bool, args []string) (r *result, calls []string, killed bool, err error) {
	cmd := l.command(ctx, l.through, args)
	l.proxy.arm(fatal, after, func() { _ = cmd.Process.Kill() })
	r, err = l.finish(ctx, cmd)
	calls, killed = l.proxy.over()
	return r, calls, killed && r != nil && r.status.Signaled(), err
}

// runFiles runs the program and kills it at a change of a file of the host; 0 is none.
func (l *Lane) runFiles(ctx context.Context, fatal int, after bool, args []string) (*result, *trace.Tracer, error) {
	cmd := l.command(ctx, l.direct, args)
	output, err := os.CreateTemp("", "solutionctl-output-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.Remove(output.Name()) }() // temporary
	defer func() { _ = output.Close() }()           // it was only read
	cmd.Stdout, cmd.Stderr = output, output
	t := &trace.Tracer{Below: l.dir, Fatal: fatal, After: after}
	status, err := t.Run(ctx, cmd)
	if err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(output.Name())
	return &result{strings.Join(args, " "), *status, string(text)}, t, err
}
