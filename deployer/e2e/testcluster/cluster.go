package testcluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Options say what to start. The zero value is a control plane without nodes: objects are stored and controllers work on
// them, but no pod ever runs.
type Options struct {
	// Node adds a node that runs containers, see [CheckNode] for what that needs. The whole cluster is inside of it: its
	// processes see a network, a process table and an /etc, /run, /srv and /var of their own.
	Node bool

	// FakeNodes is how many nodes to add that only say that they run pods. Nothing runs, everything becomes ready.
	FakeNodes int

	// ReadyAtOnce lets the pods of fake nodes have run for a minute from the start, so that no test waits for the
	// minReadySeconds of a Deployment, or until it is sure that containers do not end again.
	ReadyAtOnce bool

	// Oldest makes the control plane one of [OldestKubernetes]. It cannot have a node that runs containers.
	Oldest bool

	// Authentication is an AuthenticationConfiguration in YAML: whose tokens the API server accepts besides its own.
	Authentication string

	// Audit is a Policy in YAML: which requests the API server notes in audit.log beside the logs of the components.
	Audit string

	// OneProcessor keeps each component of the control plane on one processor, which saves an eighth of their processor time where they have
	// more to do than there are processors: tests share a machine.
	OneProcessor bool

	// Lent is how many clusters [Borrow] lends to the tests of a package; 0 is two. One is enough for tests that hardly wait: it costs five
	// seconds of a processor to start another.
	Lent int

	// Progress is the output for reports about builds, which take minutes; nil means none.
	Progress io.Writer
}

// A Cluster is a running cluster. Its methods may be called from several goroutines, except those that stop or start.
type Cluster struct {
	Dir        string // everything the cluster has on disk
	Logs       string // directory with a file for every component, below Dir
	Host       string // URL of the API server
	Kubeconfig string // file of an administrator, member of the group system:masters
	Bin        string // directory with kubectl

	options Options
	address string // of the API server
	private string // of everything that only the components themselves talk to
	ports   struct{ etcdClient, etcdPeer, apiServer string }
	bin     binaries
	pki     string
	ca      *authority
	tokens  map[string]string // of the users for whom KubeconfigFor writes no certificate

	*Node             // nil without Options.Node
	second    *Node   // nil without AddNode
	hosts     []*Node // of AddHost
	launcher  *launcher
	processes components // of the control plane
	client    *kubernetes.Clientset
}

type binaries struct{ kubernetes, oldest, node, kwok string } // directories

const startTimeout = time.Minute // twice what it takes

// Start starts a cluster and returns when it answers, its controllers work and its nodes are ready.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	c := &Cluster{options: o, processes: components{}, launcher: newLauncher()}
	var err error
	if c.bin, err = build(ctx, o); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	ctx, cancel := context.WithTimeoutCause(ctx, Deadline(startTimeout), errors.New("the cluster did not start in time"))
	defer cancel()
	if err = c.prepare(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	if err = c.start(ctx); err != nil {
		logs, stopErr := c.keepLogs()
		return nil, errors.Join(fmt.Errorf("%w\nthe logs of the cluster are in %s", err, logs), stopErr)
	}
	return c, nil
}

// Build builds what a cluster with these options consists of, so that Start need not.
func Build(ctx context.Context, o Options) error {
	_, err := build(ctx, o)
	return err
}

func build(ctx context.Context, o Options) (bin binaries, err error) {
	if bin.kubernetes, err = kubernetesProgram.build(ctx, o.Progress); err != nil {
		return bin, err
	}
	if o.Oldest {
		if o.Node {
			return bin, errors.New("a cluster of the oldest version cannot have a node that runs containers")
		}
		if bin.oldest, err = oldestProgram.build(ctx, o.Progress); err != nil {
			return bin, err
		}
	}
	if o.Node {
		if err = CheckNode(); err != nil {
			return bin, err
		}
		if bin.node, err = nodePrograms.build(ctx, o.Progress); err != nil {
			return bin, err
		}
	}
	if o.FakeNodes > 0 {
		bin.kwok, err = kwokProgram.build(ctx, o.Progress)
	}
	return bin, err
}

// prepare makes directories, addresses, certificates and kubeconfig files.
func (c *Cluster) prepare() (err error) {
	if c.Dir, err = os.MkdirTemp("", "solutionctl-cluster-"); err != nil {
		return err
	}
	c.Bin, c.Logs, c.pki = filepath.Join(c.Dir, "bin"), filepath.Join(c.Dir, "logs"), filepath.Join(c.Dir, "pki")
	if err = errors.Join(os.Mkdir(c.Bin, 0o755), os.Mkdir(c.Logs, 0o755), os.Mkdir(c.pki, 0o755),
		os.Symlink(filepath.Join(c.bin.kubernetes, "kubernetes"), filepath.Join(c.Bin, "kubectl"))); err != nil {
		return err
	}
	if err = c.chooseAddresses(); err != nil {
		return err
	}
	c.Host = "https://" + net.JoinHostPort(c.address, c.ports.apiServer)
	if c.ca, err = newAuthority(); err != nil {
		return err
	}
	if err = errors.Join(
		os.WriteFile(filepath.Join(c.pki, "ca.crt"), c.ca.pem, 0o644),
		os.WriteFile(filepath.Join(c.pki, "authentication.yaml"), []byte(c.options.Authentication), 0o644),
		os.WriteFile(filepath.Join(c.pki, "audit.yaml"), []byte(c.options.Audit), 0o644),
		writeServiceAccountKeys(c.pki),
		c.writeTokens(),
		c.ca.writeIdentity(c.pki, "apiserver", "kube-apiserver", nil, c.address, serviceAddress,
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"),
		c.ca.writeIdentity(c.pki, "apiserver-kubelet", "kube-apiserver-kubelet", []string{"system:masters"}),
		c.ca.writeIdentity(c.pki, "front-proxy", "front-proxy", nil),
	); err != nil {
		return err
	}
	if c.Kubeconfig, err = c.KubeconfigFor("administrator", administrators); err != nil {
		return err
	}
	config, err := c.Config()
	if err != nil {
		return err
	}
	c.client, err = kubernetes.NewForConfig(config)
	return err
}

func (c *Cluster) chooseAddresses() error {
	if c.options.Node {
		var err error
		if c.Node, err = c.newNode("node", "10.88.0.0/17", nil); err != nil {
			return err
		}
		c.address, c.private = c.machine.address, "127.0.0.1"
		// The cluster is alone, so it can have the well-known ports.
		c.ports.etcdClient, c.ports.etcdPeer, c.ports.apiServer = "2379", "2380", "6443"
		return nil
	}
	c.address = loopback(os.Getpid())
	c.private = c.address
	return freePorts(c.address, &c.ports.etcdClient, &c.ports.etcdPeer, &c.ports.apiServer)
}

// loopback is an address on which only this process listens, so that a port found to be free stays free.
func loopback(pid int) string {
	return fmt.Sprintf("127.%d.%d.%d", 64|pid>>16&63, pid>>8&255, pid&255)
}

func freePorts(address string, ports ...*string) error {
	for _, port := range ports {
		l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
		if err != nil {
			return err
		}
		defer func() { _ = l.Close() }() // all of them stay open until each has its own
		_, *port, err = net.SplitHostPort(l.Addr().String())
		if err != nil {
			return err
		}
	}
	return nil
}

// start boots the machine, if there is one, and starts every component; also again, after the machine was stopped.
func (c *Cluster) start(ctx context.Context) error {
	if c.Node != nil {
		if err := c.machine.boot(c.launcher, filepath.Join(c.bin.node, "pause"), c.Logs); err != nil {
			return err
		}
	}
	if err := c.startEtcd(); err != nil {
		return err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	if err := c.startControllerManager(ctx); err != nil {
		return err
	}
	if !c.options.Node && c.options.FakeNodes == 0 {
		return nil
	}
	if err := c.startScheduler(); err != nil {
		return err
	}
	if c.options.FakeNodes > 0 {
		if err := c.startFakeNodes(ctx); err != nil {
			return err
		}
	}
	if c.options.Node {
		return c.Node.start(ctx)
	}
	return nil
}

const (
	serviceRange   = "10.96.0.0/16"
	serviceAddress = "10.96.0.1" // of the API server, for pods
)

func (c *Cluster) startEtcd() error {
	client, peer := "http://"+net.JoinHostPort(c.private, c.ports.etcdClient), "http://"+net.JoinHostPort(c.private, c.ports.etcdPeer)
	return c.run("etcd",
		"--data-dir="+filepath.Join(c.Dir, "etcd"),
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer,
		"--unsafe-no-fsync", "--log-level=warn")
}

// StartAPIServer starts the API server again after StopAPIServer, at the same address, and returns when it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	pki := func(name string) string { return filepath.Join(c.pki, name) }
	more := []string{"--advertise-address=" + c.address}
	if c.Node == nil { // a loopback address cannot be an endpoint, and there are no pods that would look for one
		more = []string{"--endpoint-reconciler-type=none"}
	}
	if c.options.Authentication != "" {
		more = append(more, "--authentication-config="+pki("authentication.yaml"))
	}
	if c.options.Audit != "" {
		more = append(more, "--audit-policy-file="+pki("audit.yaml"), "--audit-log-path="+filepath.Join(c.Logs, "audit.log"))
	}
	err := c.run("kube-apiserver", append(more,
		"--etcd-servers=http://"+net.JoinHostPort(c.private, c.ports.etcdClient),
		"--bind-address="+c.address, "--secure-port="+c.ports.apiServer,
		"--service-cluster-ip-range="+serviceRange,
		"--tls-cert-file="+pki("apiserver.crt"), "--tls-private-key-file="+pki("apiserver.key"),
		"--client-ca-file="+pki("ca.crt"), "--token-auth-file="+pki("tokens.csv"),
		"--kubelet-client-certificate="+pki("apiserver-kubelet.crt"), "--kubelet-client-key="+pki("apiserver-kubelet.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file="+pki("ca.crt"), "--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+pki("front-proxy.crt"), "--proxy-client-key-file="+pki("front-proxy.key"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+pki("sa.pub"), "--service-account-signing-key-file="+pki("sa.key"),
		"--authorization-mode=Node,RBAC", "--allow-privileged", "--profiling=false")...)
	if err != nil {
		return err
	}
	return await(ctx, "wait for the API server", func(ctx context.Context) error {
		return c.client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	}, c.processes["etcd"], c.processes["kube-apiserver"])
}

// StopAPIServer ends the API server at once, as a crash does; requests that it was working on are cut.
func (c *Cluster) StopAPIServer() { c.end("kube-apiserver") }

// RestartAPIServer is StopAPIServer and StartAPIServer.
func (c *Cluster) RestartAPIServer(ctx context.Context) error {
	c.StopAPIServer()
	return c.StartAPIServer(ctx)
}

// startControllerManager starts the controllers. Nothing asks them or the scheduler how they are: a port would cost each a key of RSA.
func (c *Cluster) startControllerManager(ctx context.Context) error {
	kubeconfig, err := c.KubeconfigFor(controllerManager, administrators)
	if err != nil {
		return err
	}
	var pace []string
	if c.options.FakeNodes > 0 { // who has many pods does not want to wait for the default of 20 requests per second
		// Fake nodes do not report that they live, as thousands of them would keep the machine busy.
		pace = []string{"--kube-api-qps=500", "--kube-api-burst=1000", "--node-monitor-grace-period=24h"}
	}
	err = c.run("kube-controller-manager", append(pace,
		"--kubeconfig="+kubeconfig,
		"--secure-port=0",
		"--root-ca-file="+filepath.Join(c.pki, "ca.crt"),
		"--service-account-private-key-file="+filepath.Join(c.pki, "sa.key"),
		"--leader-elect=false", "--profiling=false")...)
	if err != nil {
		return err
	}
	return await(ctx, "wait for the controllers", func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	}, c.processes["kube-controller-manager"])
}

func (c *Cluster) startScheduler() error {
	kubeconfig, err := c.KubeconfigFor(scheduler, administrators)
	if err != nil {
		return err
	}
	return c.run("kube-scheduler",
		"--kubeconfig="+kubeconfig,
		"--secure-port=0",
		"--leader-elect=false", "--profiling=false")
}

// run starts a component of the control plane from the multi-call binary, on the first node if there is one.
func (c *Cluster) run(name string, args ...string) error {
	program := filepath.Join(c.bin.kubernetes, "kubernetes")
	if c.options.Oldest && name != "etcd" {
		program = filepath.Join(c.bin.oldest, oldestProgram.files[0])
	}
	return c.runProgram(name, program, append([]string{name}, args...)...)
}

func (c *Cluster) runProgram(name, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Dir = c.Dir
	if c.options.OneProcessor {
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	}
	launcher := c.launcher
	if c.Node != nil {
		launcher = c.machine.launcher
	}
	return c.processes.start(launcher, name, c.Logs, cmd)
}

// end ends a component at once, as a crash does.
func (c *Cluster) end(name string) { c.processes.end(name) }

func (c *Cluster) endAll() {
	for _, n := range c.added() {
		n.Fail()
	}
	c.processes.endAll()
	if c.Node != nil {
		c.Fail()
	}
}

// added returns the machines that were added to the first node.
func (c *Cluster) added() []*Node {
	if c.second == nil {
		return c.hosts
	}
	return append(slices.Clone(c.hosts), c.second)
}

// Stop ends every process and removes everything, even of a cluster that did not start completely.
func (c *Cluster) Stop() error {
	c.endAll()
	c.launcher.close()
	var err error
	for _, n := range c.added() {
		err = errors.Join(err, n.machine.remove())
	}
	if c.Node != nil {
		err = errors.Join(err, c.machine.remove())
	}
	return errors.Join(err, os.RemoveAll(c.Dir))
}

// keepLogs ends every process and removes everything but the logs.
func (c *Cluster) keepLogs() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "solutionctl-logs-"); err != nil {
		return "", errors.Join(err, c.Stop())
	}
	return dir, errors.Join(os.Rename(c.Logs, filepath.Join(dir, "logs")), c.Stop())
}

// Config is the administrator's connection, without a limit to the rate of requests.
func (c *Cluster) Config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// KubernetesVersion is the version that the API server reports.
func (c *Cluster) KubernetesVersion() string {
	if c.options.Oldest {
		return OldestKubernetes
	}
	return KubernetesVersion
}

// Client is a client of the administrator.
func (c *Cluster) Client() *kubernetes.Clientset { return c.client }

const administrators = "system:masters"

// The components with tokens, which send most requests.
const (
	controllerManager = "system:kube-controller-manager"
	scheduler         = "system:kube-scheduler"
	fakeKubelet       = "kwok"
)

// writeTokens gives tokens to components: with each request of a client that has a certificate, the API server verifies that.
func (c *Cluster) writeTokens() error {
	c.tokens = map[string]string{}
	var lines strings.Builder
	for _, user := range []string{controllerManager, scheduler, fakeKubelet} {
		c.tokens[user] = rand.Text()
		fmt.Fprintf(&lines, "%s,%s,%[2]s,%s\n", c.tokens[user], user, administrators)
	}
	return os.WriteFile(filepath.Join(c.pki, "tokens.csv"), []byte(lines.String()), 0o600)
}

// KubeconfigFor writes a kubeconfig file for a user who is a member of the groups. A user has only the rights of roles bound to them or to
// a group; members of system:masters have all.
func (c *Cluster) KubeconfigFor(user string, groups ...string) (string, error) {
	authentication := &clientcmdapi.AuthInfo{Token: c.tokens[user]}
	if authentication.Token == "" {
		var err error
		if authentication.ClientCertificateData, authentication.ClientKeyData, err = c.ca.identity(user, groups); err != nil {
			return "", err
		}
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["testcluster"] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthorityData: c.ca.pem}
	config.AuthInfos[user] = authentication
	config.Contexts["testcluster"] = &clientcmdapi.Context{Cluster: "testcluster", AuthInfo: user}
	config.CurrentContext = "testcluster"
	file := filepath.Join(c.Dir, strings.ReplaceAll(user, ":", "-")+".kubeconfig")
	return file, clientcmd.WriteToFile(*config, file)
}
