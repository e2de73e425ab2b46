package testcluster

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	nodeName   = "node"
	podRange   = "10.88.0.0/16"
	pauseImage = "solutionctl.invalid/pause:test"

	// ContainerdSocket is where containerd listens, on the node.
	ContainerdSocket = "/run/containerd/containerd.sock"
)

// startNode configures and starts what a node runs, and returns when it is ready for pods.
func (c *Cluster) startNode(ctx context.Context) error {
	if err := c.configureNode(); err != nil {
		return fmt.Errorf("configure the node: %w", err)
	}
	if err := c.StartContainerd(ctx); err != nil {
		return err
	}
	if err := c.importPause(); err != nil {
		return fmt.Errorf("import the image %s: %w", pauseImage, err)
	}
	if err := c.StartKubelet(ctx); err != nil {
		return err
	}
	return c.startProxy(ctx)
}

// configureNode writes what an installer writes to a new machine, once.
func (c *Cluster) configureNode() error {
	if c.machine.configured {
		return nil
	}
	for _, dir := range []string{"cni", "containerd", "kubernetes"} { // of this host, if it is a node itself
		if err := os.RemoveAll(filepath.Join(c.NodeRoot(), "etc", dir)); err != nil {
			return err
		}
	}
	admin, err := os.ReadFile(c.Kubeconfig)
	if err != nil {
		return err
	}
	pki, err := os.ReadFile(filepath.Join(c.pki, "ca.crt"))
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
`, pauseImage, c.bin.node, filepath.Join(c.bin.node, "containerd-shim-runc-v2"), runc),
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
`, podRange),
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
`, c.machine.cgroup, ContainerdSocket),
	} {
		name = filepath.Join(c.NodeRoot(), name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o600)); err != nil {
			return err
		}
	}
	c.machine.configured = true
	return nil
}

// StartContainerd starts containerd, and returns when it answers.
func (c *Cluster) StartContainerd(ctx context.Context) error {
	if err := c.runProgram("containerd", filepath.Join(c.bin.node, "containerd")); err != nil {
		return err
	}
	return await(ctx, "wait for containerd", func(context.Context) error {
		_, err := c.ctr("version")
		return err
	}, c.processes["containerd"])
}

// StopContainerd ends containerd; containers continue.
func (c *Cluster) StopContainerd() { c.end("containerd") }

// RestartContainerd is StopContainerd and StartContainerd.
func (c *Cluster) RestartContainerd(ctx context.Context) error {
	c.StopContainerd()
	return c.StartContainerd(ctx)
}

// StartKubelet starts the kubelet, and returns when the API server has the node as ready.
func (c *Cluster) StartKubelet(ctx context.Context) error {
	kubeconfig, err := c.KubeconfigFor("system:node:"+nodeName, "system:nodes")
	if err != nil {
		return err
	}
	before, err := c.heartbeat(ctx)
	if err != nil {
		return err
	}
	for {
		err = c.run("kubelet",
			"--config=/etc/kubernetes/kubelet.yaml", "--kubeconfig="+kubeconfig,
			"--hostname-override="+nodeName, "--node-ip="+c.address)
		if err != nil {
			return err
		}
		err = await(ctx, "wait for the node", func(ctx context.Context) error {
			now, failure := c.heartbeat(ctx)
			if failure == nil && (now == "" || now == before) {
				failure = errors.New("it is not ready")
			}
			return failure
		}, c.processes["kubelet"], c.processes["containerd"])
		if !isTooEarly(err) {
			return err
		}
		c.end("kubelet")
	}
}

// isTooEarly reports whether the kubelet has ended because containerd answers, but is not initialized for Kubernetes yet: then systemd
// starts it again.
func isTooEarly(err error) bool {
	return errors.Is(err, errEnded) && strings.Contains(err.Error(), "server is not initialized yet")
}

// heartbeat is different each time after the node has reported that it is ready, and empty when it is not.
func (c *Cluster) heartbeat(ctx context.Context) (string, error) {
	nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + nodeName})
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

// StopKubelet ends the kubelet; containers continue.
func (c *Cluster) StopKubelet() { c.end("kubelet") }

// RestartKubelet is StopKubelet and StartKubelet.
func (c *Cluster) RestartKubelet(ctx context.Context) error {
	c.StopKubelet()
	return c.StartKubelet(ctx)
}

// RestartNode pulls the plug of the machine and starts it again: the control plane, the kubelet, containerd and every
// container. What is on its disk stays.
func (c *Cluster) RestartNode(ctx context.Context) error {
	c.endAll()
	return c.start(ctx)
}

func (c *Cluster) startProxy(ctx context.Context) error {
	kubeconfig, err := c.KubeconfigFor("system:kube-proxy", "system:node-proxier")
	if err != nil {
		return err
	}
	err = c.run("kube-proxy",
		"--kubeconfig="+kubeconfig, "--hostname-override="+nodeName, "--proxy-mode=nftables", "--cluster-cidr="+podRange,
		"--conntrack-max-per-core=0", "--conntrack-min=0", "--oom-score-adj=0",
		"--healthz-bind-address=127.0.0.1:10256", "--metrics-bind-address=127.0.0.1:10249")
	if err != nil {
		return err
	}
	return await(ctx, "wait for Services to be reachable", func(ctx context.Context) error {
		conn, err := c.DialNode(ctx, "tcp", serviceAddress+":443")
		if err != nil {
			return err
		}
		return conn.Close()
	}, c.processes["kube-proxy"])
}

// Images are the references of the images that the node has, by the digest each of them has: names with a tag, with a
// digest, and what Kubernetes calls an image's ID.
func (c *Cluster) Images() (map[string]string, error) {
	out, err := c.ctr("images", "list")
	if err != nil {
		return nil, err
	}
	images := map[string]string{}
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] != "REF" {
			images[fields[0]] = fields[2]
		}
	}
	return images, nil
}

// ForgetImages removes all images from the node but the one that every pod has, as if none had ever been pulled.
func (c *Cluster) ForgetImages() error {
	images, err := c.Images()
	if err != nil {
		return err
	}
	remove := []string{"images", "remove", "--sync"} // with their content
	for name, digest := range images {
		if digest != images[pauseImage] {
			remove = append(remove, name)
		}
	}
	if len(remove) > 3 {
		_, err = c.ctr(remove...)
	}
	return err
}

// Content are the digests of all that the node has stored of images.
func (c *Cluster) Content() ([]string, error) {
	out, err := c.ctr("content", "list", "--quiet")
	return strings.Fields(out), err
}

// ctr runs containerd's own client.
func (c *Cluster) ctr(args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(c.bin.node, "ctr"), append([]string{"--address", ContainerdSocket, "--namespace", "k8s.io"}, args...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := c.RunOnNode(cmd); err != nil {
		return "", fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}

// importPause gives containerd the only image that does not come out of a registry: of the container that holds a pod's
// namespaces.
func (c *Cluster) importPause() error {
	images, err := c.Images()
	if err != nil || images[pauseImage] != "" {
		return err
	}
	return c.importProgram(pauseImage, "/pause", "65535:65535", map[string]string{"/pause": filepath.Join(c.bin.node, "pause")})
}

// ImportProgram gives the node an image that starts a program of this host as root. It has the program in /bin, and the libraries that
// the program needs and further files of this host where they are here.
func (c *Cluster) ImportProgram(ctx context.Context, image, program string, files ...string) error {
	shared, err := libraries(ctx, program)
	if err != nil {
		return err
	}
	entrypoint := "/bin/" + filepath.Base(program)
	content := map[string]string{entrypoint: program}
	for _, file := range slices.Concat(shared, files) {
		content[file] = file
	}
	return c.importProgram(image, entrypoint, "0:0", content)
}

// libraries are the files that the dynamic linker wants for a program.
func libraries(ctx context.Context, program string) ([]string, error) {
	file, err := elf.Open(program)
	if err != nil {
		return nil, err
	}
	wanted, err := file.ImportedLibraries()
	if err = errors.Join(err, file.Close()); err != nil || len(wanted) == 0 {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "ldd", program).Output()
	if err != nil {
		return nil, fmt.Errorf("ldd %s: %w", program, withStderr(err))
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(field string) bool { return !strings.HasPrefix(field, "/") }), nil
}

// importProgram gives the node an image of files of this host, by their names in it.
func (c *Cluster) importProgram(image, entrypoint, user string, files map[string]string) error {
	content := map[string][]byte{}
	for name, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		content[strings.TrimPrefix(name, "/")] = data
	}
	archive, err := imageArchive(image, entrypoint, user, content)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(c.Dir, "image-*.tar")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(archive)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	_, err = c.ctr("images", "import", file.Name())
	return err
}

// imageArchive is an image with nothing but the files, as 'docker save' writes it.
func imageArchive(image, entrypoint, user string, files map[string][]byte) ([]byte, error) {
	layer, err := tarball(files)
	if err != nil {
		return nil, err
	}
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err = w.Write(layer); err != nil {
		return nil, err
	}
	if err = w.Close(); err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{entrypoint}, "User": user},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{image}, "Layers": []string{"layer.tar.gz"}}})
	if err != nil {
		return nil, err
	}
	return tarball(map[string][]byte{"manifest.json": manifest, "config.json": config, "layer.tar.gz": compressed.Bytes()})
}

func tarball(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for name, data := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(data))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(data); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}
