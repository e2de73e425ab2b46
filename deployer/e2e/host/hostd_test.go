package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/hostd"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
)

// consoleUser is the UID of the console.
const consoleUser = 65534

// TestHostd runs 'deploy hostd' as its units say: as root with a part of root's capabilities, on a file system of which it may
// write what the unit names, on a socket that it was given. A console without rights asks it, for people who have the roles that
// 'deploy roles' writes, or do not.
func TestHostd(t *testing.T) {
	h := newHost(t)
	d := h.hostd()
	archivist, stranger := h.person("archivist"), h.person("stranger")
	h.importers("system:serviceaccounts:" + archivist.namespace)
	good, unsigned := h.opened("1.0.0"), h.opened("1.1.0")
	unsigned.Bundles = nil

	expected, err := asConsole(func() (any, error) {
		return d.Examine(t.Context(), archivist.token, hostd.Archive{Bundles: good.Bundles}, nil)
	})
	if err != nil {
		t.Fatalf("what the signature says: %v, %v\n%s", expected, err, d.log())
	}
	imports := func(who person, a hostd.Archive) error {
		_, failure := asConsole(func() (any, error) { return d.Import(t.Context(), who.token, a, nil) })
		return failure
	}
	unimport := func(who person) error {
		_, failure := asConsole(func() (any, error) {
			return d.Unimport(t.Context(), who.token, hostd.Version{Solution: h.solution, Version: "1.0.0"}, nil)
		})
		return failure
	}
	h.code(report.Forbidden, imports(stranger, good))
	h.code(report.Unauthenticated, imports(person{token: "nonsense"}, good))
	h.code(report.Unsigned, imports(archivist, unsigned))
	_, err = d.Import(t.Context(), archivist.token, good, nil) // as root, who is not the console
	h.code(report.Forbidden, err)
	if stored, known := h.stored(), h.catalogue(); len(stored) > 0 || len(known) > 0 {
		t.Fatalf("what was refused is there: %q, %v", stored, known)
	}

	if err = imports(archivist, good); err != nil {
		t.Fatalf("%v\n%q\n%s", err, report.Hints(err), d.log())
	}
	id := h.solution + "-1.0.0"
	if by := h.catalogue()[id].ImportedBy; by != archivist.name() {
		t.Errorf("imported by %q, want %q", by, archivist.name())
	}
	if got, want := h.stored(), []string{id + ".iso", id + ".iso.sigstore.json", id + ".json"}; !slices.Equal(got, want) {
		t.Errorf("stored %q, want %q", got, want)
	}
	h.code(report.Forbidden, unimport(stranger))
	if err = unimport(archivist); err != nil {
		t.Fatalf("%v\n%q\n%s", err, report.Hints(err), d.log())
	}
	if stored, known := h.stored(), h.catalogue(); len(stored) > 0 || len(known) > 0 {
		t.Errorf("after unimport: %q, %v", stored, known)
	}
	for _, who := range []person{archivist, stranger} {
		if strings.Contains(d.log(), who.token) {
			t.Error("a token is in the log")
		}
	}
}

// daemon is a running hostd.
type daemon struct {
	hostd.Client
	log func() string
}

// hostd starts the program with the options of its unit, and ends it with the test.
func (h *host) hostd() *daemon {
	h.Helper()
	if os.Geteuid() != 0 {
		h.Skip("it takes root to run a service as systemd does")
	}
	for _, tool := range []string{"unshare", "setpriv", "mount"} {
		if _, err := exec.LookPath(tool); err != nil {
			h.Skip(err)
		}
	}
	const outside = "/var/tmp" // where the service has no write access
	text := h.ok("deploy", "hostd", "--print-unit", "--peer", "nobody", "--nginx-dir", filepath.Join(h.dir, "conf.d"))
	unit := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			unit[key] = value
		}
	}
	var capabilities []string
	for name := range strings.FieldsSeq(unit["CapabilityBoundingSet"]) {
		capabilities = append(capabilities, "+"+strings.ToLower(strings.TrimPrefix(name, "CAP_")))
	}
	if len(capabilities) == 0 || unit["ProtectSystem"] != "strict" || unit["NoNewPrivileges"] != "yes" || unit["PrivateTmp"] != "yes" {
		h.Fatalf("the unit protects nothing:\n%s", text)
	}
	// What systemd does before it starts the service: in this order, because a part of a file system that is its own mount stays
	// writable when the rest no longer is.
	script := "set -e; "
	if before := strings.TrimPrefix(unit["ExecStartPre"], "+"); before != "" {
		script += before + "; "
	}
	for word := range strings.FieldsSeq(unit["ReadWritePaths"]) {
		path, may := strings.CutPrefix(word, "-") // a missing path is not an error
		script += fmt.Sprintf("if test -e %[1]s || ! %[2]t; then mount --bind %[1]s %[1]s; fi; ", path, may)
	}
	script += "mount -o remount,bind,ro /; if touch " + outside + "/$$ 2>/dev/null; then exit 1; fi; umask " + unit["UMask"] + "; export LISTEN_FDS=1 LISTEN_PID=$$; " +
		"exec setpriv --no-new-privs --inh-caps=-all --bounding-set=-all," + strings.Join(capabilities, ",") + " " + unit["ExecStart"]

	// A directory that the console can look into.
	dir, err := os.MkdirTemp("", "hostd")
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err = os.Chmod(dir, 0o755); err != nil {
		h.Fatal(err)
	}
	d := &daemon{Client: hostd.Client{Socket: filepath.Join(dir, "s")}}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: d.Socket, Net: "unix"})
	if err == nil {
		err = errors.Join(os.Chown(d.Socket, 0, consoleUser), os.Chmod(d.Socket, 0o660))
	}
	if err != nil {
		h.Fatal(err)
	}
	socket, err := l.File()
	if err != nil {
		h.Fatal(err)
	}
	log := filepath.Join(dir, "log")
	output, err := os.Create(log)
	if err != nil {
		h.Fatal(err)
	}
	d.log = func() string {
		data, _ := os.ReadFile(log)
		return string(data)
	}
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", script) //nolint:noctx // it is told to end
	cmd.Env, cmd.Dir = h.command().Env, "/"
	cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = []*os.File{socket}, output, output
	if err = cmd.Start(); err != nil {
		h.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err = errors.Join(l.Close(), socket.Close()); err != nil { // the service ends without waiting
		h.Fatal(err)
	}
	h.Cleanup(func() {
		h.confined(cmd.Process.Pid, len(capabilities))
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := errors.Join(cmd.Wait(), output.Close()); err != nil {
			h.Errorf("it ends with %v\n%s", err, d.log())
		}
	})
	return d
}

// confined looks at what the kernel lets the service do.
func (h *host) confined(pid, capabilities int) {
	h.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		h.Error(err)
	}
	status := map[string]string{}
	for line := range bytes.Lines(data) {
		key, value, _ := strings.Cut(string(line), ":")
		status[key] = strings.TrimSpace(value)
	}
	var effective uint64
	if _, err = fmt.Sscanf(status["CapEff"], "%x", &effective); err != nil {
		h.Error(err)
	}
	set := 0
	for ; effective > 0; effective &= effective - 1 {
		set++
	}
	if set != capabilities || status["CapBnd"] != status["CapEff"] || status["NoNewPrivs"] != "1" || !strings.HasPrefix(status["Uid"], "0\t") {
		h.Errorf("it runs with other rights than the unit gives: capabilities %s of %s, NoNewPrivs %s, Uid %s", status["CapEff"], status["CapBnd"], status["NoNewPrivs"], status["Uid"])
	}
}

// asConsole does something as the user of the console: on a thread of its own, which ends with that.
func asConsole[T any](do func() (T, error)) (result T, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never released: no other goroutine must get a thread of another user
		for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
			if _, _, errno := unix.RawSyscall(call, consoleUser, consoleUser, consoleUser); errno != 0 {
				err = errno
				return
			}
		}
		result, err = do()
	}()
	<-done
	return result, err
}

func (h *host) code(want report.Code, err error) {
	h.Helper()
	if report.CodeOf(err) != want {
		h.Errorf("%v (%s), want %s", err, report.CodeOf(err), want)
	}
}

// opened is an archive as the console sends it.
func (h *host) opened(version string) hostd.Archive {
	h.Helper()
	path := filepath.Join(h.dir, h.file(version))
	bundles, err := sign.FindBundles(path)
	if err != nil {
		h.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = f.Close() })
	return hostd.Archive{Name: filepath.Base(path), File: f, Bundles: bundles}
}

// person is a user with a token that the API server knows.
type person struct{ namespace, token string }

func (p person) name() string { return "system:serviceaccount:" + p.namespace + ":person" }

func (h *host) person(name string) person {
	h.Helper()
	client := testcluster.Shared(h).Client().CoreV1()
	p := person{namespace: h.solution + "-" + name}
	_, err := client.Namespaces().Create(h.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}, metav1.CreateOptions{})
	if err == nil {
		_, err = client.ServiceAccounts(p.namespace).Create(h.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "person"}}, metav1.CreateOptions{})
	}
	if err != nil {
		h.Fatal(err)
	}
	request, err := client.ServiceAccounts(p.namespace).CreateToken(h.Context(), "person", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		h.Fatal(err)
	}
	p.token = request.Status.Token
	return p
}

// importers applies the roles of importers as the guide does, and waits until the API server, which learns of roles by watching,
// knows all of them.
func (h *host) importers(group string) {
	h.Helper()
	c := testcluster.Shared(h)
	apply := exec.CommandContext(h.Context(), filepath.Join(c.Bin, "kubectl"), "--kubeconfig", c.Kubeconfig, "apply", "-f", "-")
	apply.Stdin = strings.NewReader(h.ok("deploy", "roles", "--importers", group))
	if out, err := apply.CombinedOutput(); err != nil {
		h.Fatalf("%v\n%s", err, out)
	}
	for _, right := range []authorizationv1.ResourceAttributes{
		{Verb: "unimport", Group: "archives.solutionctl.io", Resource: "archives"},
		{Verb: "update", Resource: "secrets", Namespace: "solutionctl-system"},
		{Verb: "update", Resource: "configmaps", Namespace: "metalk8s-solutions", Name: "metalk8s-solutions"},
	} {
		asked := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{Groups: []string{group}, ResourceAttributes: &right}}
		err := wait.PollUntilContextTimeout(h.Context(), 20*time.Millisecond, testcluster.Deadline(time.Minute), true, func(ctx context.Context) (bool, error) {
			review, err := c.Client().AuthorizationV1().SubjectAccessReviews().Create(ctx, asked, metav1.CreateOptions{})
			return err == nil && review.Status.Allowed, err
		})
		if err != nil {
			h.Fatalf("%s may not %s %s: %v", group, right.Verb, right.Resource, err)
		}
	}
}
