package e2e_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/solution"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema/report/scripttest"
	"github.com/solutionctl/solutionctl/sign/key/keytest"
)

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{FakeNodes: 3}) }

// TestScript runs the scripts of testdata/script as a user who reaches the cluster from another host: KUBECONFIG is an administrator's,
// ROLES has those that we ship. The nodes are fake: pods become ready, but nothing runs. Each script has the cluster for itself, leaves
// nothing behind for the next one, and uses names of its own.
//
// Commands in addition to those of testscript:
//
//	fails CODE COMMAND [ARG...]    the command must fail with this error code and its exit status
//	judge PROGRAM [ARG...]         an independent tool has to be content; where it is missing, only CI fails
//	key NAME                       write NAME.key and NAME.pub, as keygen does, but without a password, which costs time at each use
//	await COMMAND [ARG...]         run the command until it succeeds
//	as USER [GROUP...]             continue as another user of the cluster
//	api-server stop|start          end the API server as a crash does; start it again
//	restart COMPONENT              of api-server, kubelet, containerd, node
//	guide NAME SCRIPT              run a guide's commands for a node; where that reboots, the node starts SCRIPT
//	in-order NAMESPACE COMPONENT...
//	                               the loader has made the Deployment of each component when the one before was ready
//	http-get NAMESPACE/SERVICE     print the answer of a Service as soon as there is one
//	boot NAMESPACE [PREFIX]        boot a server in the cloud of example-cloud whose Services have this prefix, and print its answer
//	pulled LOG                     every image that is on the node and that a container runs came from the registry with
//	                               this access log
//	make-image FILE PROGRAM SOURCE.go
//	                               compile a program and write an image with nothing else, as 'docker save' does
//	sidecar DIR LABEL [ANNOTATION] write dashboards into a directory, as the sidecar of Grafana's charts does
//	poll NAMESPACE/SERVICE         ask a Service all the time, in the background
//	poll-until TEXT                wait for an answer with this text
//	poll-result                    end the poll: every request must have been answered
func TestScript(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txtar"), func(t *testing.T) {
			t.Parallel()
			c := testcluster.Borrow(t)
			runScripts(t, script, c, "", func() error { return nil })
			// The record of the loader's last run stays by design, and the next script would find it.
			err := c.Client().CoreV1().ConfigMaps(cluster.SystemNamespace).Delete(context.Background(), records.LoaderName, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		})
	}
}

type scriptCommand = func(ts *testscript.TestScript, neg bool, args []string)

type scriptCommands map[string]scriptCommand

// runScripts runs a script in a goroutine that has entered where its commands run.
func runScripts(t *testing.T, script string, c *testcluster.Cluster, example string, enter func() error, more ...scriptCommands) {
	t.Helper()
	bin := t.TempDir()
	testcluster.Program(t, bin)
	s := &session{cluster: c, enter: enter}
	if example != "" {
		var err error
		if s.content, err = c.Content(); err != nil {
			t.Fatal(err)
		}
	}
	roles, err := filepath.Abs("../../docs/installer-role")
	if err != nil {
		t.Fatal(err)
	}
	params := testscript.Params{
		Files:               []string{script},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: scriptCommands{
			"fails": scripttest.Fails, "judge": scripttest.Judge, "key": writeKey, "await": await, "as": s.as, "api-server": s.apiServer, "restart": s.restart,
			"http-get": s.httpGet, "boot": s.boot, "pulled": s.pulled, "make-image": s.makeImage,
			"poll": s.poll, "poll-until": s.pollUntil, "poll-result": s.pollResult,
			"sidecar": s.sidecar, "guide": s.guide, "in-order": s.inOrder,
		},
		Setup: func(env *testscript.Env) error {
			scripttest.InheritMemory(env)
			env.Setenv("KUBECONFIG", c.Kubeconfig)
			env.Setenv("ROLES", roles)
			env.Setenv("PATH", strings.Join([]string{bin, c.Bin, env.Getenv("PATH")}, string(filepath.ListSeparator)))
			env.Setenv("SOLUTIONCTL_CONFIG", os.DevNull) // what is installed on this host does not matter
			env.Setenv("SOLUTIONCTL_NO_LINT", "true")    // some scripts deploy archives with faults
			if example != "" {
				env.Setenv("EXAMPLE", example)
				env.Setenv("NODE", c.NodeAddress())
				return nil
			}
			// The files on the host of a user who cannot have them in their usual place.
			for variable, file := range map[string]string{
				"STORE": "store", "STATE": "store/state.json", "TRUST_DIR": "trust",
				"SOLUTIONS_FILE": "metalk8s/solutions.yaml", "NGINX_DIR": "metalk8s/conf.d",
			} {
				env.Setenv("SOLUTIONCTL_"+variable, filepath.Join(env.WorkDir, file))
			}
			env.Setenv("SOLUTIONCTL_MOUNT", "never")
			env.Setenv("SOLUTIONCTL_ENDPOINT", solution.Endpoint)
			return nil
		},
	}
	for _, commands := range more {
		maps.Copy(params.Cmds, commands)
	}
	testscript.RunT(serial{t, enter}, params)
}

// serial runs scripts one after the other: they share a cluster.
type serial struct {
	*testing.T
	enter func() error
}

func (s serial) Parallel()     {}
func (s serial) Verbose() bool { return testing.Verbose() }

func (s serial) Run(name string, script func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) {
		if err := s.enter(); err != nil {
			t.Fatal(err)
		}
		script(serial{t, s.enter})
	})
}

type session struct {
	cluster *testcluster.Cluster
	enter   func() error
	poller  *poller
	content []string // digests of what the node had stored of images before the script
}

const pollInterval = 500 * time.Millisecond

// waitDeadline is when a command of a script gives up to wait for what takes seconds.
func waitDeadline() time.Time { return time.Now().Add(testcluster.Deadline(90 * time.Second)) }

func writeKey(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: key NAME")
	}
	ts.Check(keytest.Write(ts.MkAbs(args[0])))
}

func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: await COMMAND [ARG...]")
	}
	deadline := waitDeadline()
	for {
		err := ts.Exec(args[0], args[1:]...)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%v", err)
		}
		time.Sleep(pollInterval)
	}
}

func (s *session) as(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: as USER [GROUP...]")
	}
	kubeconfig, err := s.cluster.KubeconfigFor(args[0], args[1:]...)
	ts.Check(err)
	ts.Setenv("KUBECONFIG", kubeconfig)
}

func (s *session) apiServer(ts *testscript.TestScript, neg bool, args []string) {
	switch {
	case !neg && slices.Equal(args, []string{"stop"}):
		s.cluster.StopAPIServer()
	case !neg && slices.Equal(args, []string{"start"}):
		ts.Check(s.cluster.StartAPIServer(context.Background()))
	default:
		ts.Fatalf("usage: api-server stop|start")
	}
}

func (s *session) restart(ts *testscript.TestScript, neg bool, args []string) {
	components := map[string]func(context.Context) error{
		"api-server": s.cluster.RestartAPIServer, "kubelet": s.cluster.RestartKubelet,
		"containerd": s.cluster.RestartContainerd, "node": s.cluster.RestartNode,
	}
	if neg || len(args) != 1 || components[args[0]] == nil {
		ts.Fatalf("usage: restart api-server|kubelet|containerd|node")
	}
	ctx, cancel := context.WithDeadline(context.Background(), waitDeadline())
	defer cancel()
	ended := make(chan error)
	go func() { ended <- components[args[0]](ctx) }() // outside of the node
	ts.Check(<-ended)
	if args[0] == "node" {
		ts.Check(s.enter())
	}
}
