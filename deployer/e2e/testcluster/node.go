package testcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	podRange   = "10.88.0.0/16"
	pauseImage = "solutionctl.invalid/pause:test"

	// ContainerdSocket is where containerd listens, on the node.
	ContainerdSocket = "/run/containerd/containerd.sock"
)

// A Node is a machine that runs containers. The first one, which is part of its [Cluster], runs the control plane as well.
type Node struct {
	cluster   *Cluster
	machine   *machine
	name      string
	pods      string // the range of its pods' addresses
	logs      string // directory
	processes components
}

// newNode makes a node that is connected to this host, or to another node.
func (c *Cluster) newNode(name, pods string, near *machine) (*Node, error) {
	m, err := newMachine(c.Dir, name, near)
	return &Node{cluster: c, machine: m, name: name, pods: pods, logs: c.Logs, processes: components{}}, err
}

// AddNode adds the second node, behind the first one, and returns when it is ready for pods.
func (c *Cluster) AddNode(ctx context.Context) (*Node, error) {
	n, err := c.newNode("worker", "10.88.128.0/17", c.machine)
	if err != nil {
		return nil, err
	}
	n.logs = filepath.Join(c.Logs, n.name)
	c.second = n
	if err = os.Mkdir(n.logs, 0o755); err != nil {
		return nil, err
	}
	return n, n.Boot(ctx)
}

// AddHost adds a machine behind the first node that is not part of the cluster, such as one that serves images.
func (c *Cluster) AddHost(name string) (*Node, error) {
	n, err := c.newNode(name, "", c.machine)
	if err != nil {
		return nil, err
	}
	c.hosts = append(c.hosts, n)
	n.logs = filepath.Join(c.Logs, name)
	if err = os.Mkdir(n.logs, 0o755); err != nil {
		return nil, err
	}
	return n, n.machine.boot(c.launcher, filepath.Join(c.bin.node, "pause"), n.logs)
}

// Shape limits the link of an added machine in each direction, to a rate as tc writes it, such as 100mbit, also after it has started again.
func (n *Node) Shape(rate string) error {
	n.machine.rate = rate
	return n.machine.shape(n.machine.near.launcher)
}

// Boot starts the second node, also again after it has failed, and returns when it is ready for pods.
func (n *Node) Boot(ctx context.Context) error {
	if err := n.machine.boot(n.cluster.launcher, filepath.Join(n.cluster.bin.node, "pause"), n.logs); err != nil {
		return err
	}
	if err := runScript(n.cluster.machine.launcher, `
echo 1 > /proc/sys/net/ipv4/ip_forward
ip route replace "$1" via "$2"`, n.pods, n.machine.address); err != nil {
		return fmt.Errorf("route to %s: %w", n.name, err)
	}
	return n.start(ctx)
}

// Fail pulls the plug of the machine: the kubelet, containerd and every container end. Its disk remains.
func (n *Node) Fail() {
	n.processes.endAll()
	n.machine.shutDown()
}

// run starts a component of Kubernetes, runProgram any program.
func (n *Node) run(name string, args ...string) error {
	return n.runProgram(name, filepath.Join(n.cluster.bin.kubernetes, "kubernetes"), append([]string{name}, args...)...)
}

func (n *Node) runProgram(name, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Dir = n.cluster.Dir
	return n.processes.start(n.machine.launcher, name, n.logs, cmd)
}

// start configures and starts what a node runs, and returns when it is ready for pods.
func (n *Node) start(ctx context.Context) error {
	if err := n.configure(); err != nil {
		return fmt.Errorf("configure the node: %w", err)
	}
	if err := n.StartContainerd(ctx); err != nil {
		return err
	}
	if err := n.importPause(); err != nil {
		return fmt.Errorf("import the image %s: %w", pauseImage, err)
	}
	if err := n.StartKubelet(ctx); err != nil {
		return err
	}
	return n.startProxy(ctx)
}

// configure writes what an installer writes to a new machine, once.
func (n *Node) configure() error {
	if n.machine.configured {
		return nil
	}
	for _, dir := range []string{"cni", "containerd", "kubernetes"} { // of this host, if it is a node itself
		if err := os.RemoveAll(filepath.Join(n.NodeRoot(), "etc", dir)); err != nil {
			return err
		}
	}
	admin, err := os.ReadFile(n.cluster.Kubeconfig)
	if err != nil {
		return err
	}
	pki, err := os.ReadFile(filepath.Join(n.cluster.pki, "ca.crt"))
	if err != nil {
		return err
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		return err
	}
	for name, content := range map[string]string{
		"/etc/kubernetes/admin.conf": string(admin),
		"/etc/kubernetes/pki/ca.crt": string(pki),
		// restrict_oom_score_adj: without the capability SYS_RESOURCE, it cannot be lowered.
		"/etc/containerd/config.toml": fmt.Sprintf(`version = 3
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.erofs", "io.containerd.snapshotter.v1.zfs"]

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = %q

[plugins."io.containerd.cri.v1.images".registry]
config_path = "/etc/containerd/certs.d"

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = [%q]
use_internal_loopback = true

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
runtime_path = %q

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = %q
SystemdCgroup = false
`, pauseImage, n.cluster.bin.node, filepath.Join(n.cluster.bin.node, "containerd-shim-runc-v2"), runc),
		// ptp routes between pods, where a bridge would carry answers past the address translation of Services.
		"/etc/cni/net.d/10-pods.conflist": fmt.Sprintf(`{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [
    {
      "type": "ptp",
      "ipam": {"type": "host-local", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}
    }
  ]
}
`, n.pods),
		"/etc/kubernetes/kubelet.yaml": fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
cgroupRoot: /%s
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix://%s
enforceNodeAllocatable: []
evictionHard: {memory.available: 1Mi, nodefs.available: 1Mi, nodefs.inodesFree: 1%%, imagefs.available: 1Mi}
failCgroupV1: false
failSwapOn: false
fileCheckFrequency: 1h
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
localStorageCapacityIsolation: false
nodeStatusReportFrequency: 10s
nodeStatusUpdateFrequency: 1s
oomScoreAdj: 0
registerNode: true
shutdownGracePeriod: 0s
syncFrequency: 5s
`, n.machine.cgroup, ContainerdSocket),
	} {
		name = filepath.Join(n.NodeRoot(), name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o600)); err != nil {
			return err
		}
	}
	n.machine.configured = true
	return nil
}

// StartContainerd starts containerd, and returns when it answers.
func (n *Node) StartContainerd(ctx context.Context) error {
	if err := n.runProgram("containerd", filepath.Join(n.cluster.bin.node, "containerd")); err != nil {
		return err
	}
	return await(ctx, "wait for containerd", func(context.Context) error {
		_, err := n.ctr("version")
		return err
	}, n.processes["containerd"])
}

// StopContainerd ends containerd; containers continue.
func (n *Node) StopContainerd() { n.processes.end("containerd") }

// RestartContainerd is StopContainerd and StartContainerd.
func (n *Node) RestartContainerd(ctx context.Context) error {
	n.StopContainerd()
	return n.StartContainerd(ctx)
}

// StartKubelet starts the kubelet, and returns when the API server has the node as ready.
func (n *Node) StartKubelet(ctx context.Context) error {
	kubeconfig, err := n.cluster.KubeconfigFor("system:node:"+n.name, "system:nodes")
	if err != nil {
		return err
	}
	before, err := n.heartbeat(ctx)
	if err != nil {
		return err
	}
	for {
		err = n.run("kubelet",
			"--config=/etc/kubernetes/kubelet.yaml", "--kubeconfig="+kubeconfig,
			"--hostname-override="+n.name, "--node-ip="+n.machine.address)
		if err != nil {
			return err
		}
		err = await(ctx, "wait for the node", func(ctx context.Context) error {
			now, failure := n.heartbeat(ctx)
			if failure == nil && (now == "" || now == before) {
				failure = errors.New("it is not ready")
			}
			return failure
		}, n.processes["kubelet"], n.processes["containerd"])
		if !isTooEarly(err) {
			return err
		}
		n.processes.end("kubelet")
	}
}

// isTooEarly reports whether the kubelet has ended because containerd answers, but is not initialized for Kubernetes yet: then systemd
// starts it again.
func isTooEarly(err error) bool {
	return errors.Is(err, errEnded) && strings.Contains(err.Error(), "server is not initialized yet")
}

// heartbeat is different each time after the node has reported that it is ready, and empty when it is not.
func (n *Node) heartbeat(ctx context.Context) (string, error) {
	nodes, err := n.cluster.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + n.name})
	if err != nil {
		return "", err
	}
	for _, node := range nodes.Items {
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return condition.LastHeartbeatTime.String(), nil
			}
		}
	}
	return "", nil
}

// ConfigureKubelet starts the kubelet again with lines added to its configuration.
func (n *Node) ConfigureKubelet(ctx context.Context, lines string) error {
	if err := runScript(n.machine.launcher, `printf %s "$1" >>/etc/kubernetes/kubelet.yaml`, lines); err != nil {
		return err
	}
	n.StopKubelet()
	return n.StartKubelet(ctx)
}

// StopKubelet ends the kubelet; containers continue.
func (n *Node) StopKubelet() { n.processes.end("kubelet") }

// RestartKubelet is StopKubelet and StartKubelet.
func (n *Node) RestartKubelet(ctx context.Context) error {
	n.StopKubelet()
	return n.StartKubelet(ctx)
}

func (n *Node) startProxy(ctx context.Context) error {
	kubeconfig, err := n.cluster.KubeconfigFor("system:kube-proxy", "system:node-proxier")
	if err != nil {
		return err
	}
	err = n.run("kube-proxy",
		"--kubeconfig="+kubeconfig, "--hostname-override="+n.name, "--proxy-mode=nftables", "--cluster-cidr="+podRange,
		"--conntrack-max-per-core=0", "--conntrack-min=0", "--oom-score-adj=0",
		"--healthz-bind-address=127.0.0.1:10256", "--metrics-bind-address=127.0.0.1:10249")
	if err != nil {
		return err
	}
	return await(ctx, "wait for Services to be reachable", func(ctx context.Context) error {
		conn, err := n.DialNode(ctx, "tcp", serviceAddress+":443")
		if err != nil {
			return err
		}
		return conn.Close()
	}, n.processes["kube-proxy"])
}

// RestartNode pulls the plug of the machine and starts it again: the control plane, the kubelet, containerd and every
// container. What is on its disk stays.
func (c *Cluster) RestartNode(ctx context.Context) error {
	c.endAll()
	return c.start(ctx)
}
