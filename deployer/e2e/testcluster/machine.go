package testcluster

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// CheckNode returns the missing requirements of Options.Node on this host, as one line; nil means none.
func CheckNode() error {
	if os.Geteuid() != 0 {
		return errors.New("a node needs root")
	}
	var missing []string
	for _, tool := range []string{"runc", "nft", "ip", "mount"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing = append(missing, tool)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("a node needs %s; .ci/setup installs it", strings.Join(missing, ", "))
	}
	return nil
}

// A machine is a computer within this one: its processes see a network, a process table, an /etc, a /run, an /srv and a
// /var of their own. It is made of the kernel's namespaces, which end with the process that is the first in them, and with
// them everything that runs on the machine.
type machine struct {
	name    string
	near    *machine // to which it is connected by a pair of virtual network cards; nil is this host
	address string   // its own end
	gateway string   // the near end
	disk    string   // directory with what outlives a reboot
	cgroup  string
	card    string // the near network card, named after this process: the number of an init is soon that of another one
	rate    string // of the link in each direction, as tc writes it; "" is unlimited

	configured bool // there is something on the disk

	init     *process
	launcher *launcher // whose thread is inside
}

// subnet is where the network cards get their addresses: it is reserved for benchmarks of networks, in networks that are
// not connected to others.
var subnet = netip.MustParsePrefix("198.18.0.0/15")

// machines counts those of this process, which start side by side.
var machines atomic.Uint32

func newMachine(dir, name string, near *machine) (*machine, error) {
	number := machines.Add(1)
	m := &machine{
		name: name, near: near, disk: filepath.Join(dir, "disk-"+name),
		cgroup: fmt.Sprintf("solutionctl-test-%d-%d", os.Getpid(), number), card: fmt.Sprintf("sctl%d-%d", os.Getpid(), number),
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for _, address := range addresses {
		taken[address.String()] = true
	}
	for n := uint32(os.Getpid())*16 + number; ; n++ {
		m.gateway = nth(n%(1<<15)*4 + 1).String()
		m.address = nth(n%(1<<15)*4 + 2).String()
		if !taken[m.gateway+"/30"] {
			return m, nil
		}
	}
}

func nth(n uint32) netip.Addr {
	first := subnet.Addr().As4()
	var address [4]byte
	binary.BigEndian.PutUint32(address[:], binary.BigEndian.Uint32(first[:])+n)
	return netip.AddrFrom4(address)
}

// boot starts the machine, with the program as its first process, and makes its network and file systems.
func (m *machine) boot(host *launcher, program, logs string) error {
	cmd := exec.Command(program)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   unix.CLONE_NEWPID,
		Unshareflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
	}
	var err error
	if m.init, err = host.start("init", logs, cmd); err != nil {
		return fmt.Errorf("make namespaces: %w", err)
	}
	m.launcher = newLauncher()
	m.launcher.inside = true
	m.launcher.do(func() { err = join(m.init.cmd.Process.Pid) })
	if err != nil {
		return fmt.Errorf("enter namespaces: %w", err)
	}
	if err := m.connect(host); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if err := runScript(m.launcher, `
mount --make-rshared /
mount -t proc proc /proc
mount -t tmpfs -o mode=755 tmpfs /run
first=
[ -e "$1/overlay" ] || first=yes
for dir in etc srv var/lib var/log; do
	mkdir -p "$1/$dir" "$1/overlay/$dir"
	mount -t overlay -o "lowerdir=/$dir,upperdir=$1/$dir,workdir=$1/overlay/$dir" overlay "/$dir"
done
if [ "$first" ]; then rm -rf /var/lib/solutionctl; fi # on top of the overlay: a new machine has no deployments
for dir in containerd kubelet; do # which have file systems that cannot be on top of an overlay
	mkdir -p "$1/$dir" "/var/lib/$dir"
	mount --bind "$1/$dir" "/var/lib/$dir"
done
ip link set lo up
ip address add "$2/30" dev eth0
ip link set eth0 up
hostname "$3"
if [ "$4" ]; then
	ip route add default via "$4"
else
	ip route add "$5" dev eth0 # or nothing would be sent to a Service that has not been translated yet
fi`, m.disk, m.address, m.name, m.router(), serviceRange); err != nil {
		return fmt.Errorf("set up the machine: %w", err)
	}
	return m.makeCgroup()
}

// connect makes the pair of network cards. Only this host knows the processes of all machines.
func (m *machine) connect(host *launcher) error {
	near, where := host, os.Getpid()
	if m.near != nil {
		near, where = m.near.launcher, m.near.init.cmd.Process.Pid
	}
	_ = runScript(near, `ip link delete "$1"`, m.card) // of the boot before: it stays as long as any thread is where it leads
	pid := strconv.Itoa(m.init.cmd.Process.Pid)
	if err := runScript(host, `ip link add "$1" netns "$2" type veth peer name eth0 netns "$3"`, m.card, strconv.Itoa(where), pid); err != nil {
		return err
	}
	if err := runScript(near, `
ip address add "$2/30" dev "$1"
ip link set "$1" up`, m.card, m.gateway); err != nil {
		return err
	}
	return m.shape(near)
}

// shape limits the rate of both network cards.
func (m *machine) shape(near *launcher) error {
	if m.rate == "" {
		return nil
	}
	const script = `tc qdisc replace dev "$1" root tbf rate "$2" burst 128kb latency 100ms`
	return errors.Join(runScript(m.launcher, script, "eth0", m.rate), runScript(near, script, m.card, m.rate))
}

// router is the machine to which this one sends what is for others; "" where it sends nothing.
func (m *machine) router() string {
	if m.near == nil {
		return ""
	}
	return m.gateway
}

// join moves the calling thread, and thereby what is started from it, to the namespaces of a process.
func join(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // which another thread cannot share across file systems
		return err
	}
	return unix.Setns(fd, unix.CLONE_NEWNS|unix.CLONE_NEWNET|unix.CLONE_NEWPID|unix.CLONE_NEWIPC|unix.CLONE_NEWUTS)
}

func runScript(l *launcher, script string, args ...string) error {
	var output bytes.Buffer
	cmd := exec.Command("sh", append([]string{"-euc", script, "sh"}, args...)...)
	cmd.Stdout, cmd.Stderr = &output, &output
	err := l.launch(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(output.Bytes()))
	}
	return nil
}

const cgroups = "/sys/fs/cgroup"

// makeCgroup makes the cgroup that contains those of all pods, in every hierarchy there is. Those of the boot before are gone, as on a machine
// that starts: the kubelet would look for three seconds for each of their containers.
func (m *machine) makeCgroup() error {
	return m.eachCgroup(func(dir string) error {
		if err := removeCgroup(dir); err != nil {
			return err
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // start empty in version 1, and empty is of no use
			parent, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
			if err != nil {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, file), parent, 0o644); err != nil {
				return err
			}
		}
		return nil
	})
}

func (m *machine) eachCgroup(do func(dir string) error) error {
	if _, err := os.Stat(filepath.Join(cgroups, "cgroup.controllers")); err == nil { // version 2
		return do(filepath.Join(cgroups, m.cgroup))
	}
	hierarchies, err := os.ReadDir(cgroups)
	if err != nil {
		return err
	}
	for _, hierarchy := range hierarchies {
		if hierarchy.IsDir() { // others are links to them
			err = errors.Join(err, do(filepath.Join(cgroups, hierarchy.Name(), m.cgroup)))
		}
	}
	return err
}

// shutDown ends everything on the machine at once, as pulling the plug does; boot starts it again.
func (m *machine) shutDown() {
	if m.init != nil {
		m.init.kill()
		m.init = nil
	}
	if m.launcher != nil {
		m.launcher.close()
		m.launcher = nil
	}
}

// remove removes the parts of the machine outside of its directory.
func (m *machine) remove() error {
	return m.eachCgroup(removeCgroup)
}

// removeCgroup removes a cgroup and those in it; their files are not files that could be removed.
func removeCgroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if entry.IsDir() {
			err = errors.Join(err, removeCgroup(filepath.Join(dir, entry.Name())))
		}
	}
	return errors.Join(err, os.Remove(dir))
}

// StartOnNode starts a command on the node, where it sees the node's network, processes and files. It ends with the
// cluster at the latest; the caller waits for it.
func (n *Node) StartOnNode(cmd *exec.Cmd) error { return n.machine.launcher.launch(cmd) }

// RunOnNode is like StartOnNode, and waits.
func (n *Node) RunOnNode(cmd *exec.Cmd) error {
	if err := n.StartOnNode(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}

// EnterNode moves the calling goroutine onto the node, on a thread that ends with it: what it starts, and the files that it
// opens by name, are the node's. After it was restarted it has to enter again.
func (n *Node) EnterNode() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := join(n.machine.init.cmd.Process.Pid); err != nil {
		return err
	}
	return unix.Chdir(dir) // which only this thread does
}

// DialNode connects to an IP address and port as a program on the node does: also to those of pods and Services.
func (n *Node) DialNode(ctx context.Context, network, address string) (conn net.Conn, err error) {
	dialer := net.Dialer{Timeout: 5 * time.Second} // nothing is far away
	n.machine.launcher.do(func() { conn, err = dialer.DialContext(ctx, network, address) })
	return conn, err
}

// ListenNode listens at an address as a program on the node does: also at one of its loopback.
func (n *Node) ListenNode(ctx context.Context, network, address string) (listener net.Listener, err error) {
	var config net.ListenConfig
	n.machine.launcher.do(func() { listener, err = config.Listen(ctx, network, address) })
	return listener, err
}

// NodeRoot is the node's root directory, seen from outside.
func (n *Node) NodeRoot() string {
	return filepath.Join("/proc", strconv.Itoa(n.machine.init.cmd.Process.Pid), "root")
}

// NodePID is the process that a person enters the node through: nsenter --all --target PID.
func (n *Node) NodePID() int { return n.machine.init.cmd.Process.Pid }

// NodeAddress is the node's address, reachable from here if it is the first one.
func (n *Node) NodeAddress() string { return n.machine.address }

// HostAddress is the address of the other end of the node's network card: of this host, or of the first node.
func (n *Node) HostAddress() string { return n.machine.gateway }
