package node

import "strings"

// sockets are where the runtimes listen, unless their configuration sets another place.
var sockets = map[Runtime]string{
	Containerd: "/run/containerd/containerd.sock",
	CRIO:       "/run/crio/crio.sock",
	K3s:        "/run/k3s/containerd/containerd.sock",
	RKE2:       "/run/k3s/containerd/containerd.sock",
	K0s:        "/run/k0s/containerd.sock",
	MicroK8s:   "/var/snap/microk8s/common/run/containerd.sock",
}

// Socket is where a runtime listens, unless its configuration sets another place.
func Socket(r Runtime) string { return sockets[r] }

// FindSocket is where the runtime of the node below root listens: where its kubelet finds it, or the usual place.
func FindSocket(root string, r Runtime) string {
	s := system{root}
	for _, name := range kubeletFiles {
		data, _ := s.read(name) // a file that cannot be read is ignored
		for line := range strings.Lines(string(data)) {
			if !isEndpoint(line) {
				continue
			}
			if _, rest, found := strings.Cut(line, "unix://"); found {
				end := strings.IndexAny(rest+"\n", " \t\n\"'")
				return rest[:end]
			}
		}
	}
	return Socket(r)
}

// isEndpoint reports whether a line of a kubelet's files names the socket of its runtime.
func isEndpoint(line string) bool {
	return strings.Contains(line, "ontainer-runtime-endpoint") || strings.Contains(line, "ontainerRuntimeEndpoint")
}
