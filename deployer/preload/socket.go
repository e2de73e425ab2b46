package preload

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/host/node"
)

// socketOf is the socket of the container runtime of a node: as kubeadm has noted it, or that of the distribution which the kubelet is part of.
func socketOf(object *unstructured.Unstructured) string {
	const noted = "kubeadm.alpha.kubernetes.io/cri-socket"
	if socket := strings.TrimPrefix(object.GetAnnotations()[noted], "unix://"); socket != "" {
		return socket
	}
	info := func(field string) string {
		text, _, _ := unstructured.NestedString(object.Object, "status", "nodeInfo", field)
		return text
	}
	runtime, _, _ := strings.Cut(info("containerRuntimeVersion"), "://")
	kubelet := info("kubeletVersion")
	switch {
	case runtime == "cri-o":
		return node.Socket(node.CRIO)
	case runtime != "containerd":
		return ""
	case strings.Contains(kubelet, "+k3s"):
		return node.Socket(node.K3s)
	case strings.Contains(kubelet, "+rke2"):
		return node.Socket(node.RKE2)
	case strings.Contains(kubelet, "+k0s"):
		return node.Socket(node.K0s)
	case object.GetLabels()["microk8s.io/cluster"] == "true":
		return node.Socket(node.MicroK8s)
	}
	return node.Socket(node.Containerd)
}
