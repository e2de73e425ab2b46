package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/deployer/e2e/dex"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/docs/guides"
	"github.com/solutionctl/solutionctl/schema"
)

// TestNodeScript runs each script of testdata/node on the node of a new cluster, whose containers are real: as root, in the
// node's network, with its processes and its /etc, /run, /srv, /var/lib and /var/log. EXAMPLE is a copy of the example
// Solution, with the images of all its releases. The API server trusts a Dex that knows joe@example.com, an editor, and eve@example.com.
// One more command is
//
//	log-in ADDRESS FILE            log in, and write the header that a request of this person has
func TestNodeScript(t *testing.T) {
	t.Parallel()
	testcluster.RequireNode(t)
	scripts, err := filepath.Glob("testdata/node/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	example := copyExample(t)
	for _, script := range scripts {
		name := strings.TrimSuffix(filepath.Base(script), ".txtar")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if polls(t, script) {
				testcluster.Alone(t)
			} else {
				testcluster.Together(t)
			}
			if name != "air_gap" && name != "versions" {
				testcluster.Long(t, "air_gap and versions")
			}
			people := dex.Start(t, time.Hour, dex.User{Address: "joe@example.com", Groups: []string{"editors"}}, dex.User{Address: "eve@example.com"})
			people.Client(t, ownAddress)
			c := testcluster.StartFor(t, testcluster.Options{Node: true, Authentication: people.Authentication()})
			listener, err := c.ListenNode(t.Context(), "tcp", people.Address())
			if err != nil {
				t.Fatal(err)
			}
			people.Serve(t, listener)
			runScripts(t, script, c, example, c.EnterNode, scriptCommands{"log-in": logIn(people)})
		})
	}
}

// polls reports whether a script promises that every request is answered.
func polls(t *testing.T, script string) bool {
	t.Helper()
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(text, []byte("\npoll "))
}

// ownAddress is the address that users return to after a login: no server is there.
const ownAddress = "https://interface.invalid/callback"

// logIn writes the header of a request by a user who has logged in.
func logIn(people *dex.Provider) scriptCommand {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 2 {
			ts.Fatalf("usage: log-in ADDRESS FILE")
		}
		token, err := people.LogIn(context.Background(), args[0], ownAddress)
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte("Authorization: Bearer "+token+"\n"), 0o600))
	}
}

// TestCloud runs testdata/cloud on a real node as well. EXAMPLE is a copy of example-cloud, with its images and charts, and
// EXAMPLE/next is one of release 1.1.0.
func TestCloud(t *testing.T) {
	t.Parallel()
	testcluster.Long(t, "TestComponents in deployer/e2e/deployer")
	c := testcluster.StartFor(t, testcluster.Options{Node: true})
	example := copyModule(t, "example-cloud", "-version=1.0.0")
	if err := os.Rename(copyModule(t, "example-cloud", "-version=1.1.0"), filepath.Join(example, "next")); err != nil {
		t.Fatal(err)
	}
	runScripts(t, "testdata/cloud/profiles.txtar", c, example, c.EnterNode)
}

// TestImage makes the archive of solutionctl itself, looks at the program for each platform, and runs testdata/image on a real node.
// EXAMPLE is the directory of the archive.
func TestImage(t *testing.T) {
	t.Parallel()
	testcluster.RequireNode(t)
	testcluster.Long(t, "TestConsoleInTheCluster in deployer/e2e/guide")
	dir := t.TempDir()
	makeProgramArchive(t, dir)
	got := programs(t, filepath.Join(dir, "solutionctl-1.0.0.iso"))
	want := map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}
	if !maps.Equal(got, want) {
		t.Errorf("programs are %v, want %v", got, want)
	}
	c := testcluster.StartFor(t, testcluster.Options{Node: true})
	runScripts(t, "testdata/image/program.txtar", c, dir, c.EnterNode)
}

// TestLoader runs testdata/loader on a real node. EXAMPLE is a copy of example-cloud, with the archive of solutionctl beside it.
func TestLoader(t *testing.T) {
	t.Parallel()
	testcluster.RequireNode(t)
	testcluster.Long(t, "the script loader in TestScript")
	example := copyModule(t, "example-cloud", "-version=1.0.0")
	makeProgramArchive(t, example)
	c := testcluster.StartFor(t, testcluster.Options{Node: true})
	runScripts(t, "testdata/loader/edge.txtar", c, example, c.EnterNode)
}

// TestPreload runs testdata/preload on a real node. EXAMPLE is a copy of the example Solution, with the archive of solutionctl beside it.
func TestPreload(t *testing.T) {
	t.Parallel()
	testcluster.RequireNode(t)
	testcluster.Long(t, "the script air_gap in TestNodeScript")
	example := copyExample(t)
	makeProgramArchive(t, example)
	c := testcluster.StartFor(t, testcluster.Options{Node: true})
	runScripts(t, "testdata/preload/reboot.txtar", c, example, c.EnterNode)
}

// TestCollection lets the kubelet collect images that no pod uses. It looks for them every five minutes, whatever its configuration.
func TestCollection(t *testing.T) {
	t.Parallel()
	testcluster.RequireNode(t)
	testcluster.Together(t)
	testcluster.Long(t, "TestNodeScript/air_gap, where the runtime reports images as pinned")
	c := testcluster.StartFor(t, testcluster.Options{Node: true})
	collect := func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 1 {
			ts.Fatalf("usage: collect IMAGE, which goes")
		}
		ts.Check(c.ConfigureKubelet(t.Context(), "imageMinimumGCAge: 1s\nimageMaximumGCAge: 2s\n"))
		for deadline := time.Now().Add(5*time.Minute + testcluster.Deadline(time.Minute)); ; time.Sleep(pollInterval) {
			images, err := c.Images()
			ts.Check(err)
			if images[args[0]] == "" {
				return
			}
			if time.Now().After(deadline) {
				ts.Fatalf("%s was not collected", args[0])
			}
		}
	}
	runScripts(t, "testdata/preload/collection.txtar", c, t.TempDir(), c.EnterNode, scriptCommands{"collect": collect})
}

// makeProgramArchive writes solutionctl-1.0.0.iso into a directory.
func makeProgramArchive(t *testing.T, dir string) {
	t.Helper()
	script := exec.CommandContext(t.Context(), filepath.Join("..", "..", ".ci", "image"), dir)
	script.Env = append(os.Environ(), "VERSION=v1.0.0")
	if out, err := script.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// copyExample copies the example Solution with its images.
func copyExample(t *testing.T) string {
	t.Helper()
	return copyModule(t, "example-solution", ".", "releases/1.1.0", "releases/2.0.0")
}

// copyModule copies a module with the images of its releases.
func copyModule(t *testing.T, name string, releases ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	testcluster.Example(t, dir, name, releases...)
	return dir
}

// guide runs the commands of a guide that belong on a node.
func (s *session) guide(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: guide NAME SCRIPT")
	}
	steps, err := guides.NodeSteps(args[0])
	ts.Check(err)
	if len(steps) == 0 {
		ts.Fatalf("%s says nothing of a node", args[0])
	}
	for _, step := range steps {
		if step.File != "" {
			ts.Check(ts.Exec("mkdir", "-p", filepath.Dir(step.File)))
			ts.Check(ts.Exec("sh", "-c", `printf %s "$1" >"$2"`, "sh", step.Text, step.File))
			continue
		}
		script, reboots := strings.CutSuffix(step.Script, "reboot\n")
		if err := ts.Exec("sh", "-eu", "-c", script); err != nil {
			ts.Fatalf("%s:%d: %v", args[0], step.Line, err)
		}
		if line, missing := step.Missing(ts.ReadFile("stdout")); missing {
			ts.Fatalf("%s:%d: this is not printed: %s", args[0], step.Line, line)
		}
		if reboots {
			s.restart(ts, false, []string{"node"})
			ts.Check(ts.Exec("sh", "-eu", args[1]))
		}
	}
}

// inOrder checks that the Deployment of each component was made after the loader reported the components before it as ready.
func (s *session) inOrder(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: in-order NAMESPACE COMPONENT...")
	}
	ctx, client := context.Background(), s.cluster.Client()
	document, err := client.CoreV1().ConfigMaps("solutionctl-system").Get(ctx, "loader", metav1.GetOptions{})
	ts.Check(err)
	var progress schema.LoadProgress
	ts.Check(json.Unmarshal([]byte(document.Data["progress.json"]), &progress))
	ready := map[string]time.Time{}
	for _, part := range progress.Parts {
		ready[part.Component] = part.ReadyAt
	}
	for i, name := range args[2:] {
		before := args[1+i]
		made, err := client.AppsV1().Deployments(args[0]).Get(ctx, name, metav1.GetOptions{})
		ts.Check(err)
		if at := ready[before]; at.IsZero() || made.CreationTimestamp.Time.Before(at) {
			ts.Fatalf("%s was made at %s, and %s was ready at %s", name, made.CreationTimestamp, before, at)
		}
	}
}

// boot asks the cloud of a namespace for a server, with a token that it gives, until there is one.
func (s *session) boot(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 || len(args) > 2 {
		ts.Fatalf("usage: boot NAMESPACE [PREFIX]")
	}
	prefix := strings.Join(args[1:], "")
	deadline := waitDeadline()
	for {
		body, err := s.server(args[0], prefix)
		if err == nil {
			_, err = ts.Stdout().Write(append(body, '\n'))
			ts.Check(err)
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%v", err)
		}
		time.Sleep(pollInterval)
	}
}

func (s *session) server(namespace, prefix string) ([]byte, error) {
	identity, err := s.asker(namespace, prefix+"identity")
	if err != nil {
		return nil, err
	}
	token, err := identity("/token")
	if err != nil {
		return nil, err
	}
	compute, err := s.asker(namespace, prefix+"compute")
	if err != nil {
		return nil, err
	}
	return compute("/boot?token=" + string(token))
}

// httpGet asks a Service until it answers, and prints the answer.
func (s *session) httpGet(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || !strings.Contains(args[0], "/") {
		ts.Fatalf("usage: http-get NAMESPACE/SERVICE")
	}
	namespace, name, _ := strings.Cut(args[0], "/")
	deadline := waitDeadline()
	for {
		body, err := s.get(namespace, name)
		if err == nil {
			_, err = ts.Stdout().Write(body)
			ts.Check(err)
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%v", err)
		}
		time.Sleep(pollInterval)
	}
}

func (s *session) get(namespace, name string) ([]byte, error) {
	ask, err := s.asker(namespace, name)
	if err != nil {
		return nil, err
	}
	return ask("/")
}

// asker returns a function that asks a Service for a path, each time over a new connection.
func (s *session) asker(namespace, name string) (func(path string) ([]byte, error), error) {
	service, err := s.cluster.Client().CoreV1().Services(namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	client := http.Client{Transport: &http.Transport{DialContext: s.cluster.DialNode, DisableKeepAlives: true}, Timeout: 10 * time.Second}
	return func(path string) ([]byte, error) {
		resp, err := client.Get(fmt.Sprintf("http://%s:%d%s", service.Spec.ClusterIP, service.Spec.Ports[0].Port, path))
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(resp.Body)
		if closeErr := resp.Body.Close(); err == nil {
			err = closeErr
		}
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", resp.Status, body)
		}
		return body, err
	}, nil
}

// pulled checks that all images on the node came from the registry that wrote this log, and that containers run only these. It waits for
// those that start.
func (s *session) pulled(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: pulled LOG")
	}
	served := map[string]bool{}
	lines := bufio.NewScanner(strings.NewReader(ts.ReadFile(args[0])))
	for lines.Scan() {
		var access schema.RegistryAccess
		ts.Check(json.Unmarshal(lines.Bytes(), &access))
		if access.Method == http.MethodGet && access.Status == http.StatusOK && access.Error == "" {
			served[access.Digest] = true
		}
	}
	ts.Check(lines.Err())
	content, err := s.cluster.Content()
	ts.Check(err)
	for _, digest := range content {
		if !served[digest] && !slices.Contains(s.content, digest) {
			ts.Fatalf("%s is on the node, but did not come from the registry", digest)
		}
	}
	deadline := waitDeadline()
	for {
		running, waits, err := s.containers(served)
		ts.Check(err)
		if waits == "" && running > 0 {
			ts.Logf("%d containers run images that came from the registry", running)
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%d containers run; %s", running, waits)
		}
		time.Sleep(pollInterval)
	}
}

// containers counts the containers that run, of pods that are not to end, and names one that does not run yet. Each must have an image
// that was served.
func (s *session) containers(served map[string]bool) (running int, waits string, err error) {
	pods, err := s.cluster.Client().CoreV1().Pods(metav1.NamespaceAll).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return 0, "", err
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if len(pod.Status.ContainerStatuses) == 0 {
			waits = fmt.Sprintf("pod %s/%s has not started", pod.Namespace, pod.Name)
		}
		for _, container := range pod.Status.ContainerStatuses {
			_, digest, _ := strings.Cut(container.ImageID, "@")
			switch {
			case container.State.Running == nil:
				waits = fmt.Sprintf("pod %s/%s: container %s does not run", pod.Namespace, pod.Name, container.Name)
			case !served[digest]:
				return 0, "", fmt.Errorf("pod %s/%s: container %s runs %s, which did not come from the registry", pod.Namespace, pod.Name, container.Name, container.ImageID)
			default:
				running++
			}
		}
	}
	return running, waits, nil
}
