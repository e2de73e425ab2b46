package install

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/host/node"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// planTrust plans to trust the key of the vendor. The archives are verified as if it were trusted already.
func (p *Plan) planTrust(context.Context) error {
	if p.o.Key == nil {
		return nil
	}
	trusted := p.o.Import.Trusted
	store, err := trusted()
	if err != nil {
		return err
	}
	step := schema.InstallStep{Step: "trust", Name: p.o.KeyName, Note: p.o.Key.Fingerprint(), State: schema.StepPlanned}
	if store.Has(p.o.Key) {
		step.State = schema.StepUnchanged
		p.add(step, nil)
		return nil
	}
	if _, err = store.WithKey(p.o.KeyName, p.o.Key); err != nil {
		return err
	}
	p.o.Import.Trusted = func() (*trust.Store, error) {
		store, err := trusted()
		if err != nil {
			return nil, err
		}
		return store.WithKey(p.o.KeyName, p.o.Key)
	}
	p.add(step, func(context.Context) error {
		_, err := trust.Add(p.installer.TrustDir, p.o.KeyName, p.o.Key.PEM(), nil)
		return err
	})
	return nil
}

// planImport verifies and judges each of the archives.
func (p *Plan) planImport(ctx context.Context) error {
	var names []string
	known := true
	p.o.Import.Environment = p.o.Environment
	for _, file := range p.o.Import.Archives {
		one := p.o.Import
		one.Archives, one.Expect = []string{file}, nil
		e, err := p.installer.Host.Examine(ctx, one)
		if err != nil {
			return err
		}
		p.Archives = append(p.Archives, schema.InstalledArchive{File: file, Solution: e.Solution, Version: e.Version, SHA256: e.SHA256, Signers: e.Signers})
		if slices.ContainsFunc(p.wanted, func(w plan.Wanted) bool { return w.Solution == e.Solution }) {
			return report.Errorf(report.Usage, "two of the archives are of Solution %s", e.Solution).WithHint("install one version")
		}
		p.wanted = append(p.wanted, plan.Wanted{Solution: e.Solution, Version: e.Version})
		p.o.Import.Expect = append(p.o.Import.Expect, e.SHA256)
		names, known = append(names, e.Solution+"-"+e.Version), known && e.Known
		unapproved, err := p.installer.Deployer.Unapproved(ctx, e.Solution, e.Powers.Powers, p.o.Environment)
		if err != nil {
			return err
		}
		p.Powers = append(p.Powers, unapproved...)
	}
	if known {
		recorded, err := p.recorded(ctx)
		if err != nil {
			return err
		}
		known = recorded
	}
	p.imported = known
	p.add(schema.InstallStep{Step: "import", Name: strings.Join(names, ", "), State: stateOf(known)}, func(ctx context.Context) error {
		done, err := p.installer.Host.Import(ctx, p.o.Import)
		if done != nil {
			p.Notices = append(p.Notices, done.Notices...)
		}
		return err
	})
	return nil
}

// recorded reports whether the cluster knows all of the versions: its catalogue, and MetalK8s' document, which is written last.
func (p *Plan) recorded(ctx context.Context) (bool, error) {
	imports, err := p.installer.Deployer.Records.Imports(ctx)
	if err != nil {
		return false, err
	}
	solutions, err := p.installer.Deployer.Records.Documents.Solutions(ctx)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(p.wanted, func(w plan.Wanted) bool {
		_, listed := solutions.Find(w.Solution, w.Version)
		return !listed || !slices.ContainsFunc(imports, func(i schema.Import) bool { return i.Name == w.Solution && i.Version == w.Version })
	}), nil
}

// planImages plans how nodes get the images: the registry of this host, its address in the cluster, and the files of this node. Where
// MetalK8s serves and configures, there is nothing to do.
func (p *Plan) planImages(ctx context.Context) error {
	mode, err := p.installer.Host.RegistryMode(ctx, p.o.Import)
	if err != nil || mode == schema.RegistryMetalK8s {
		return err
	}
	if p.o.Endpoint == "" {
		if p.o.Endpoint, err = p.installer.endpoint(p.o.Serve); err != nil {
			return err
		}
	}
	if err = p.planRegistry(ctx); err != nil {
		return err
	}
	registry, err := p.planEndpoint(ctx)
	if err != nil {
		return err
	}
	return p.planNode(ctx, registry)
}

// endpoint is the address of this host on the way to the API server.
func (i *Installer) endpoint(serve host.ServeOptions) (string, error) {
	_, port, err := net.SplitHostPort(serve.Listen)
	if err != nil {
		return "", report.Errorf(report.Usage, "--listen: %w", err)
	}
	scheme := "https"
	if serve.PlainHTTP {
		scheme = "http"
	}
	address, err := addressTowards(i.Deployer.Cluster.Server())
	if err != nil {
		return "", report.As(report.Usage, err).WithHint("name the address at which nodes reach this host: --endpoint %s://HOST:%s", scheme, port)
	}
	return scheme + "://" + net.JoinHostPort(address, port), nil
}

// addressTowards returns the address from which this host talks to a server, or where that is the host itself, its first one that
// others can reach.
func addressTowards(server string) (string, error) {
	at, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	port := at.Port()
	if port == "" {
		port = "443"
	}
	connection, err := net.Dial("udp", net.JoinHostPort(at.Hostname(), port)) // nothing is sent
	if err != nil {
		return "", err
	}
	defer connection.Close() //nolint:errcheck // it was never used
	if own := connection.LocalAddr().(*net.UDPAddr).IP; !own.IsLoopback() {
		return own.String(), nil
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, address := range addresses {
		if n, ok := address.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP.String(), nil
		}
	}
	return "", errors.New("this host has no address that other hosts can reach")
}

// unitName is the unit of the registry.
const unitName = "solutionctl-registry.service"

func (i *Installer) unitFile() string { return filepath.Join(i.Root, "etc/systemd/system", unitName) }

// planRegistry plans to serve the images: by a unit of systemd, or without systemd by a process that the user starts.
func (p *Plan) planRegistry(ctx context.Context) error {
	i := p.installer
	step := schema.InstallStep{Step: "serve", Name: p.o.Endpoint, State: schema.StepPlanned}
	if !i.Services.Available() {
		step.State = stateOf(p.answers(ctx))
		command := report.Run("deploy serve").With("listen", p.o.Serve.Listen)
		if step.State == schema.StepPlanned {
			step.Note = "there is no systemd: start '" + command.String() + "'"
		}
		p.add(step, func(ctx context.Context) error {
			if p.answers(ctx) {
				return nil
			}
			return report.Errorf(report.Refused, "the registry does not answer, and there is no systemd to start it").
				WithHint("start '%s' in another terminal or by your service manager, then run the same command again", command)
		})
		return nil
	}
	text, err := p.o.Serve.Unit(i.Program)
	if err != nil {
		return err
	}
	file := i.unitFile()
	have, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	step.Note = file
	step.State = stateOf(string(have) == text && i.Services.Running(ctx, unitName))
	p.add(step, func(ctx context.Context) error {
		if string(have) != text {
			// A registry that still runs as its former file had it would count as done, if this ended before the start.
			if err := i.Services.Stop(ctx, unitName); err != nil {
				return err
			}
			if err := durable.WriteFile(file, []byte(text), 0o644); err != nil {
				return err
			}
		}
		return i.Services.Start(ctx, unitName)
	})
	return nil
}

// answers reports whether the registry of this host answers at its endpoint, as a node would find it.
func (p *Plan) answers(ctx context.Context) bool {
	registry := schema.ClusterRegistry{Endpoints: []string{p.o.Endpoint}}
	authority := cmp.Or(p.o.Import.CA, host.AuthorityFile(p.installer.Host.Dir))
	if data, err := os.ReadFile(authority); err == nil { // without it the registry was never started
		registry.CA = string(data)
	}
	return records.AskRegistry(ctx, &registry, nil, records.Briefly)[0].Err == nil
}

// planEndpoint plans to record where nodes find the images, and returns what is recorded now.
func (p *Plan) planEndpoint(ctx context.Context) (*schema.ClusterRegistry, error) {
	registry, err := p.installer.Deployer.Records.Registry(ctx)
	if err != nil {
		return nil, err
	}
	recorded := registry != nil && slices.Contains(registry.Endpoints, p.o.Endpoint)
	p.add(schema.InstallStep{Step: "register", Name: p.o.Endpoint, State: stateOf(recorded)}, func(ctx context.Context) error {
		_, err := p.installer.Host.AddEndpoints(ctx, host.EndpointOptions{URLs: []string{p.o.Endpoint}, CA: p.o.Import.CA})
		return err
	})
	return registry, nil
}

// planNode plans the files by which the container runtime of this host finds the registry. Other nodes are only named.
func (p *Plan) planNode(ctx context.Context, registry *schema.ClusterRegistry) error {
	others, err := p.installer.otherNodes(ctx, p.o.Node.Node)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		p.Notices = append(p.Notices, "run '"+report.Run("deploy node config").String()+"' on each other node, once: "+strings.Join(others, ", "))
	}
	runtime, err := node.Detect(p.installer.Root)
	if err != nil {
		if p.o.Node.Runtime == "" {
			p.Notices = append(p.Notices, "this host is not configured as a node: "+err.Error())
			return nil
		}
		runtime = p.o.Node.Runtime
	}
	p.o.Node.Runtime = runtime
	step := schema.InstallStep{Step: "configure", Name: string(runtime) + " of this node", State: schema.StepPlanned}
	if registry != nil && slices.Contains(registry.Endpoints, p.o.Endpoint) {
		plan, err := p.nodePlan(registry)
		if err != nil {
			return err
		}
		step.State = stateOf(!plan.Changed())
	}
	p.add(step, func(ctx context.Context) error {
		registry, err := p.installer.Deployer.Records.Registry(ctx)
		if err != nil {
			return err
		}
		plan, err := p.nodePlan(registry)
		if err != nil {
			return err
		}
		p.Notices = append(p.Notices, plan.Notes...)
		return plan.Apply()
	})
	return nil
}

func (p *Plan) nodePlan(registry *schema.ClusterRegistry) (*node.Plan, error) {
	c := p.o.Node
	c.Host, c.Endpoints, c.CA = registry.Host, registry.Endpoints, []byte(registry.CA)
	return node.NewPlan(p.installer.Root, c)
}

var nodeKind = corev1.SchemeGroupVersion.WithKind("Node")

// otherNodes are the nodes of the cluster but this one. Users without the permission to list nodes are shown none.
func (i *Installer) otherNodes(ctx context.Context, this string) (others []string, err error) {
	for n, err := range i.Deployer.Cluster.ListMetadata(ctx, nodeKind, "", metav1.ListOptions{}) {
		if report.CodeOf(err) == report.Forbidden {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if n.GetName() != this {
			others = append(others, n.GetName())
		}
	}
	return others, nil
}
