package e2e_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/host/cri"
)

// layersOfImage is how many layers each pulled image has, of this many bytes.
const layersOfImage, sizeOfLayer = 10, 1 << 20

// writeImage writes an image of layers as 'docker save' does.
func writeImage(file string, random *rand.ChaCha8) error {
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	add := func(name string, data []byte) error {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	}
	var names, digests []string
	for i := range layersOfImage {
		var layer bytes.Buffer
		data := make([]byte, sizeOfLayer)
		_, _ = random.Read(data) // it never fails
		l := tar.NewWriter(&layer)
		err := l.WriteHeader(&tar.Header{Name: fmt.Sprintf("file-%d", i), Mode: 0o644, Size: sizeOfLayer})
		if err == nil {
			_, err = l.Write(data)
		}
		if err = errors.Join(err, l.Close()); err != nil {
			return err
		}
		digest := sha256.Sum256(layer.Bytes())
		names, digests = append(names, fmt.Sprintf("layer-%d.tar", i)), append(digests, "sha256:"+hex.EncodeToString(digest[:]))
		if err := add(names[i], layer.Bytes()); err != nil {
			return err
		}
	}
	config, err := json.Marshal(map[string]any{"os": "linux", "architecture": "amd64", "rootfs": map[string]any{"type": "layers", "diff_ids": digests}})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]any{map[string]any{"Config": "config.json", "RepoTags": []string{"app:1"}, "Layers": names}})
	if err != nil {
		return err
	}
	if err := errors.Join(add("config.json", config), add("manifest.json", manifest), w.Close()); err != nil {
		return err
	}
	return os.WriteFile(file, content.Bytes(), 0o600)
}

// site is a node with three hosts behind links of their own, which serve the same images by TLS.
type site struct {
	*testing.T
	cluster      *testcluster.Cluster
	dir, program string
	hosts        []*host
	runtime      *cri.Runtime
	pulls        int // images that were pulled
}

// host is one of them, with a service manager that does what systemd does for the unit of 'deploy serve'.
type host struct {
	*testcluster.Node
	site     *site
	name     string
	watchdog bool

	mu      sync.Mutex
	serve   *exec.Cmd
	stopped bool // it is not to be started again
	ended   chan struct{}
}

const images = 24

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, cluster: testcluster.StartFor(t, testcluster.Options{Node: true}), dir: t.TempDir()}
	s.program = testcluster.Program(t, s.dir)
	random := rand.NewChaCha8([32]byte{})
	build := []string{"build", "site", "--sign-key", "acme.key"}
	for i := range images {
		name := fmt.Sprintf("image%02d", i)
		if err := writeImage(filepath.Join(s.dir, name+".tar"), random); err != nil {
			t.Fatal(err)
		}
		build = append(build, "--add-image", name+":1=docker-archive:"+name+".tar")
	}
	s.run(s.cluster.Node, "keygen", "acme")
	s.run(s.cluster.Node, "init", "site")
	s.run(s.cluster.Node, build...)
	for i := range 3 {
		h := &host{site: s, name: fmt.Sprintf("host-%d", i)}
		var err error
		if h.Node, err = s.cluster.AddHost(h.name); err != nil {
			t.Fatal(err)
		}
		s.hosts = append(s.hosts, h)
		s.run(h.Node, "trust", "add", "acme", "acme.pub", "--trust-dir", "/var/lib/trust")
		s.run(h.Node, "deploy", "import", "site-0.1.0.iso", "--trust-dir", "/var/lib/trust", "--mount", "never", "--endpoint", "https://"+h.NodeAddress()+":5000")
		h.start()
		t.Cleanup(h.stop)
	}
	s.run(s.cluster.Node, "deploy", "node", "config")
	s.order()
	var err error
	if s.runtime, err = cri.Dial(filepath.Join(s.cluster.NodeRoot(), testcluster.ContainerdSocket)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.runtime.Close)
	return s
}

// order sorts the hosts as the node asks them.
func (s *site) order() {
	s.Helper()
	data, err := os.ReadFile(filepath.Join(s.cluster.NodeRoot(), "etc/containerd/certs.d/registry.solutionctl.invalid/hosts.toml"))
	if err != nil {
		s.Fatal(err)
	}
	_, asked, _ := strings.Cut(string(data), "\n[host.")
	place := func(h *host) int { // the server, which is named before, comes last
		if i := strings.Index(asked, h.NodeAddress()); i >= 0 {
			return i
		}
		return len(asked)
	}
	slices.SortFunc(s.hosts, func(a, b *host) int { return place(a) - place(b) })
}

func (s *site) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.program, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.Kubeconfig, "SOLUTIONCTL_PASSWORD=secret", "SOLUTIONCTL_CONFIG="+os.DevNull, "SOLUTIONCTL_NO_LINT=true")
	return cmd
}

// run runs the program on a machine.
func (s *site) run(n *testcluster.Node, args ...string) {
	s.Helper()
	s.runOn(n, s.command(args...))
}

func (s *site) runOn(n *testcluster.Node, cmd *exec.Cmd) {
	s.Helper()
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := n.RunOnNode(cmd); err != nil {
		s.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, &output)
	}
}

// shell runs lines of a shell on a host.
func (h *host) shell(lines string) {
	h.site.Helper()
	h.site.runOn(h.Node, exec.Command("sh", "-euc", lines))
}

// start starts the registry, and waits until it answers. It is started again when it ends, a second later, as with RestartSec.
func (h *host) start() {
	h.site.Helper()
	h.mu.Lock()
	h.stopped, h.ended = false, make(chan struct{})
	h.mu.Unlock()
	go h.manage()
	h.site.answers(h)
}

// answers waits until a host answers.
func (s *site) answers(h *host) {
	s.Helper()
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DialContext: s.cluster.DialNode, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // a test
	for deadline := time.Now().Add(testcluster.Deadline(20 * time.Second)); ; time.Sleep(pollInterval) {
		answer, err := client.Get("https://" + h.NodeAddress() + ":5000/readyz")
		if err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("%s does not answer: %v", h.name, err)
		}
	}
}

// manage runs the registry until it is stopped, and kills it when it gives no sign of life for five seconds.
func (h *host) manage() {
	defer close(h.ended)
	socket := filepath.Join(h.site.dir, h.name+".notify")
	for {
		_ = os.Remove(socket) // of the process before
		manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
		if err != nil {
			h.site.Error(err)
			return
		}
		cmd := h.site.command("deploy", "serve", "--listen", ":5000", "--progress", "plain", "--max-transfers", "2000") // one address has a quarter of them
		h.mu.Lock()
		if h.watchdog {
			cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=5000000")
		}
		if h.stopped {
			h.mu.Unlock()
			_ = manager.Close() // nothing was written
			return
		}
		err = h.StartOnNode(cmd)
		h.serve = cmd
		watched := h.watchdog
		h.mu.Unlock()
		if err != nil {
			h.site.Error(err)
			return
		}
		if watched {
			go watch(manager, cmd.Process)
		}
		_ = cmd.Wait()      // it is killed
		_ = manager.Close() // nothing was written
		time.Sleep(time.Second)
	}
}

// watch kills a process when it has been ready and then silent for five seconds.
func watch(manager *net.UnixConn, process *os.Process) {
	buffer := make([]byte, 100)
	for {
		n, err := manager.Read(buffer)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			_ = process.Kill()
			return
		case err != nil:
			return
		case string(buffer[:n]) == "READY=1", string(buffer[:n]) == "WATCHDOG=1":
			_ = manager.SetReadDeadline(time.Now().Add(5 * time.Second))
		}
	}
}

// stop ends the registry for good.
func (h *host) stop() {
	h.mu.Lock()
	h.stopped = true
	_ = h.serve.Process.Kill()
	ended := h.ended
	h.mu.Unlock()
	<-ended
}

func (h *host) signal(s syscall.Signal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.serve.Process.Signal(s); err != nil {
		h.site.Error(err)
	}
}

// pull pulls another image, and returns how long that took.
func (s *site) pull(ctx context.Context) time.Duration {
	s.Helper()
	if s.pulls == images {
		s.Fatal("there are no more images")
	}
	name := fmt.Sprintf("registry.solutionctl.invalid/site-0.1.0/image%02d:1", s.pulls)
	s.pulls++
	started := time.Now()
	if err := s.runtime.Pull(ctx, name); err != nil {
		s.Errorf("pull %s: %v", name, err)
	}
	return time.Since(started)
}

// TestDeadHosts lets each of three hosts die in each of five ways, one at a time, and pulls an image of ten layers. A pull takes at most 1.5 times
// as long as before and a second for each of its requests, and none fails.
func TestDeadHosts(t *testing.T) {
	t.Parallel()
	testcluster.RequireNode(t)
	testcluster.Alone(t)
	testcluster.Long(t, "TestNodeScript/several_hosts, in which a host is stopped")
	s := newSite(t)
	ways := []struct {
		name      string
		die, live func(h *host)
	}{
		{"stopped", (*host).stop, (*host).start},
		{
			"reset", func(h *host) {
				h.shell("nft add table inet dead; nft add chain inet dead in '{ type filter hook input priority 0; }'; nft add rule inet dead in tcp dport 5000 reject with tcp reset")
			},
			func(h *host) { h.shell("nft delete table inet dead") },
		},
		{
			"dropped packets", func(h *host) {
				h.shell("nft add table inet dead; nft add chain inet dead in '{ type filter hook input priority 0; policy drop; }'")
			},
			func(h *host) { h.shell("nft delete table inet dead") },
		},
		{
			"no ARP",
			func(h *host) {
				h.shell("ip link set eth0 arp off")
				s.runOn(s.cluster.Node, exec.Command("ip", "neigh", "flush", "all"))
			},
			func(h *host) { h.shell("ip link set eth0 arp on") },
		},
		{"frozen", func(h *host) { h.signal(syscall.SIGSTOP) }, func(h *host) { s.answers(h) }},
	}
	for _, h := range s.hosts {
		h.watchdog = true
		h.stop()
		h.start()
	}
	healthy := []time.Duration{s.pull(t.Context()), s.pull(t.Context()), s.pull(t.Context())}
	slices.Sort(healthy)
	const requests = 3 + layersOfImage // the tag, the manifest, the configuration and the layers
	most := healthy[1]*3/2 + requests*time.Second
	t.Logf("healthy: %v, at most %v", healthy, most)
	for _, way := range ways {
		for i, h := range s.hosts {
			way.die(h)
			took := s.pull(t.Context())
			way.live(h)
			s.answers(h)
			t.Logf("number %d %s: %v", i+1, way.name, took)
			if took > most {
				t.Errorf("number %d %s: a pull took %v, want at most %v", i+1, way.name, took, most)
			}
		}
	}
	// A frozen host that is not watched costs containerd's ten seconds for a TLS handshake in each request.
	h := s.hosts[0]
	h.stop()
	h.watchdog = false
	h.start()
	h.signal(syscall.SIGSTOP)
	t.Logf("number 1 frozen for good: %v", s.pull(t.Context()))
	h.signal(syscall.SIGCONT)
}
