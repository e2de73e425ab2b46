// Package scale makes a site with many environments and nodes, and counts what each verb of the program asks of its API server.
//
// Nodes are simulated, with images and a pod each as real ones have. Everything else is real: the API server and its controllers, the
// program, signed archives in a store.
package scale

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/proxy"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
)

// Options describe the cluster of a site.
var Options = testcluster.Options{FakeNodes: 3, ReadyAtOnce: true}

// The Solution of the site, and its versions.
const (
	name                   = "demo"
	older, newer, imported = "0.1.0", "0.2.0", "0.3.0"
)

// Site is a host with archives, and a cluster behind a proxy that counts.
type Site struct {
	cluster      *testcluster.Cluster
	proxy        *proxy.Proxy
	counts       proxy.Counts
	dir, program string
	deployer     *deployer.Deployer // past the proxy

	environments, nodes int // beside the nodes of the cluster
}

// New makes a site in a directory: two versions of a Solution are imported, and the newer one is active. The caller closes it.
func New(ctx context.Context, dir, program string, c *testcluster.Cluster) (*Site, error) {
	s := &Site{cluster: c, dir: dir, program: program}
	connected, err := cluster.Connect(cluster.Options{Kubeconfig: c.Kubeconfig, Now: time.Now})
	if err != nil {
		return nil, err
	}
	s.deployer = deployer.New(deployer.Config{Cluster: connected, Now: time.Now, Version: "1.0.0", Identity: "scale", LockWait: time.Minute})
	if s.proxy, err = proxy.Start(c, s.counts.Count); err != nil {
		return nil, err
	}
	for _, line := range []string{
		"keygen acme", "trust add acme acme.pub", "init " + name, "init other",
		"build demo --version 0.1.0 --sign-key acme.key", "build demo --version 0.2.0 --sign-key acme.key", "build demo --version 0.3.0 --sign-key acme.key",
		"build other --sign-key acme.key",
		"deploy import demo-0.1.0.iso demo-0.2.0.iso other-0.1.0.iso --endpoint http://127.0.0.1:9", "deploy activate demo 0.2.0",
	} {
		if output, err := s.Command(ctx, line).CombinedOutput(); err != nil {
			s.Close()
			return nil, fmt.Errorf("%s: %w\n%s", line, err, output)
		}
	}
	return s, nil
}

// Close ends the proxy. The cluster and the directory belong to the caller.
func (s *Site) Close() { s.proxy.Close() }

// Command prepares a run of the program on the host of the site.
func (s *Site) Command(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.program, strings.Fields(line)...)
	cmd.Dir = s.dir
	path := func(name string) string { return filepath.Join(s.dir, name) }
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.proxy.Kubeconfig, "SOLUTIONCTL_PASSWORD=secret", "SOLUTIONCTL_CONFIG="+os.DevNull,
		"SOLUTIONCTL_NO_LINT=true", "SOLUTIONCTL_TRUST_DIR="+path("trust"), "SOLUTIONCTL_STORE="+path("store"), "SOLUTIONCTL_STATE="+path("state.json"),
		"SOLUTIONCTL_SOLUTIONS_FILE="+path("solutions.yaml"), "SOLUTIONCTL_NGINX_DIR="+path("nginx"), "SOLUTIONCTL_MOUNT=never")
	return cmd
}

// Counts returns the requests since it was called last.
func (s *Site) Counts() map[string]proxy.Count { return s.counts.Take() }

// Verb is a command of the program.
type Verb struct {
	Name string
	Line string
	Of   Scope

	MayFail bool // it finds problems
}

// Scope is the part of a site that the answer of a verb depends on.
type Scope int

// The scopes.
const (
	OfOne          Scope = iota // one environment, or what the cluster has once
	OfEnvironments              // all environments
	OfNodes                     // all nodes
	OfAll                       // all environments and all nodes
)

// Verbs are measured one after the other: each leaves what the next one needs, and all together leave nothing.
var Verbs = []Verb{
	{"import", "deploy import demo-0.3.0.iso", OfOne, false},
	{"affected", "deploy affected pkg:deb/debian/openssl@<3.0.15", OfEnvironments, false},
	{"unimport", "deploy unimport demo 0.3.0", OfEnvironments, false},
	{"registry list", "deploy registry list", OfOne, false},
	{"activate", "deploy activate other 0.1.0", OfEnvironments, false},
	{"activate again", "deploy activate other 0.1.0", OfEnvironments, false},
	{"deactivate", "deploy deactivate other", OfEnvironments, false},
	{"env create", "deploy env create probe", OfOne, false},
	{"plan add", "deploy plan add probe demo 0.1.0", OfOne, false},
	{"add", "deploy add probe demo 0.1.0", OfOne, false},
	{"add again", "deploy add probe demo 0.1.0", OfOne, false},
	{"values", "deploy values probe demo", OfOne, false},
	{"env show", "deploy env show probe", OfOne, false},
	{"diff of one", "deploy diff probe demo", OfOne, false},
	{"repair of one", "deploy repair probe demo", OfOne, false},
	{"history of one", "deploy history probe demo", OfOne, false},
	{"logs", "deploy logs probe demo", OfOne, true},
	{"events", "deploy events probe demo", OfOne, false},
	{"upgrade", "deploy upgrade probe demo 0.2.0", OfOne, false},
	{"downgrade", "deploy downgrade probe demo 0.1.0", OfOne, false},
	{"rollback", "deploy rollback probe demo", OfOne, false},
	{"compatibility", "deploy compatibility demo", OfEnvironments, false},
	{"status", "deploy status", OfEnvironments, false},
	{"status --drift", "deploy status --drift", OfEnvironments, false},
	{"env list", "deploy env list", OfEnvironments, false},
	{"history", "deploy history", OfEnvironments, false},
	{"resume", "deploy resume", OfEnvironments, false},
	{"doctor", "deploy doctor", OfAll, true},
	{"support-bundle", "deploy support-bundle bundle.tar.gz", OfAll, true},
	{"node preload, planned", "deploy node preload --nodes all --dry-run", OfAll, false},
	{"node preload of one node, planned", "deploy node preload --nodes fake-0 --dry-run", OfEnvironments, false},
	{"remove", "deploy remove probe demo", OfOne, false},
	{"env delete", "deploy env delete probe --yes", OfOne, false},
}

// Grow brings the site to a number of environments, each with the Solution, and of simulated nodes.
func (s *Site) Grow(ctx context.Context, environments, nodes int) error {
	if err := s.addEnvironments(ctx, environments); err != nil {
		return err
	}
	if nodes < s.nodes {
		if err := s.removeNodes(ctx); err != nil {
			return err
		}
	}
	return s.addNodes(ctx, nodes)
}

// addEnvironments deploys the Solution in further environments.
func (s *Site) addEnvironments(ctx context.Context, n int) error {
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for ; s.environments < n; s.environments++ {
		environment := fmt.Sprintf("env-%04d", s.environments)
		group.Go(func() error {
			if _, err := s.deployer.CreateEnvironment(inGroup, metalk8s.CreateOptions{Name: environment}); err != nil {
				return err
			}
			_, err := s.deployer.Add(inGroup, deployer.AddOptions{Options: plan.Options{NoWait: true}, Environment: environment, Solution: name, Version: older})
			return err
		})
	}
	return group.Wait()
}

const simulated = "solutionctl.io/simulated"

// addNodes adds nodes, each with a pod.
func (s *Site) addNodes(ctx context.Context, n int) error {
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(16)
	client := s.cluster.Client().CoreV1()
	for ; s.nodes < n; s.nodes++ {
		node := newNode(s.nodes)
		group.Go(func() error {
			if _, err := client.Nodes().Create(inGroup, node, metav1.CreateOptions{}); err != nil {
				return err
			}
			_, err := client.Pods(metav1.NamespaceSystem).Create(inGroup, newPod(node.Name), metav1.CreateOptions{})
			return err
		})
	}
	return group.Wait()
}

func (s *Site) removeNodes(ctx context.Context) error {
	client := s.cluster.Client().CoreV1()
	now, these := int64(0), metav1.ListOptions{LabelSelector: simulated}
	if err := client.Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, these); err != nil {
		return err
	}
	s.nodes = 0
	return client.Pods(metav1.NamespaceSystem).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, these)
}

// imagesOfNode is how many images a kubelet reports at most, unless it is configured.
const imagesOfNode = 50

// newNode returns a node as large as real ones.
func newNode(i int) *corev1.Node {
	name := fmt.Sprintf("worker-%04d", i)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110"),
		corev1.ResourceEphemeralStorage: resource.MustParse("500Gi"), "hugepages-1Gi": resource.MustParse("0"), "hugepages-2Mi": resource.MustParse("0"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				simulated: "true", corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
				corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3), corev1.LabelTopologyRegion: "region", corev1.LabelInstanceTypeStable: "large",
			},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake", "volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		},
		Status: corev1.NodeStatus{
			Allocatable: capacity, Capacity: capacity,
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.%d.%d.%d", 100+i>>16, i>>8&255, i&255)}, {Type: corev1.NodeHostName, Address: name}},
			NodeInfo: corev1.NodeSystemInfo{
				Architecture: "amd64", OperatingSystem: "linux", OSImage: "Debian GNU/Linux 12 (bookworm)", KernelVersion: "6.1.0-26-amd64",
				ContainerRuntimeVersion: "containerd://2.2.0", KubeletVersion: "v" + testcluster.KubernetesVersion,
				MachineID: strings.Repeat("0123456789abcdef", 2), SystemUUID: "01234567-89ab-cdef-0123-456789abcdef", BootID: "01234567-89ab-cdef-0123-456789abcdef",
			},
		},
	}
	for _, condition := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		status := corev1.ConditionFalse
		if condition == corev1.NodeReady {
			status = corev1.ConditionTrue
		}
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: condition, Status: status, Reason: "Kubelet" + string(condition), Message: "kubelet has reported " + string(condition),
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		})
	}
	for j := range imagesOfNode {
		repository := fmt.Sprintf("registry.example.com/team-%02d/application-%02d", j%7, j)
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names: []string{repository + "@sha256:" + strings.Repeat("0123456789abcdef", 4), repository + ":1.12.3"}, SizeBytes: int64(j) << 22,
		})
	}
	return node
}

// newPod returns a pod of a node, such as that of its network.
func newPod(node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "network-" + node, Labels: map[string]string{simulated: "true", "app": "network"}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "network", Image: "registry.example.com/network:1.12.3",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
		}}},
	}
}
