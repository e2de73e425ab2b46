package install

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/host/node"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// planHost plans to undo on this host what the first installation has done, if that was asked for and no archive is left.
func (p *UninstallPlan) planHost(ctx context.Context) error {
	if !p.o.CleanHost {
		return nil
	}
	if err := p.checkEmptied(); err != nil {
		return err
	}
	mode, err := p.installer.Host.RegistryMode(ctx, host.ImportOptions{})
	if err != nil || mode == schema.RegistryMetalK8s {
		return err
	}
	if err := p.planNodeRemoval(ctx); err != nil {
		return err
	}
	if err := p.planEndpointRemoval(ctx); err != nil {
		return err
	}
	if err := p.planStop(ctx); err != nil {
		return err
	}
	p.note("records stay in the cluster: '" + report.Run("deploy purge").String() + "' removes them")
	return nil
}

// checkEmptied refuses while this host keeps archives that are not uninstalled: their images come from here.
func (p *UninstallPlan) checkEmptied() error {
	entries, err := p.installer.Host.Store.Entries()
	if err != nil {
		return err
	}
	var kept []string
	for _, e := range entries {
		if !slices.ContainsFunc(p.leaving, func(l *leaving) bool {
			return l.solution == e.Name && !l.stays() && slices.Contains(l.versions, e.Version)
		}) {
			kept = append(kept, e.ID())
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return report.Errorf(report.InUse, "this host serves the images of %s as well", strings.Join(kept, ", ")).
		WithHint("uninstall these first, or leave the host as it is: without --clean-host")
}

// planNodeRemoval plans to remove the files by which the container runtime of this host finds the registry.
func (p *UninstallPlan) planNodeRemoval(ctx context.Context) error {
	others, err := p.installer.otherNodes(ctx, p.o.Node.Node)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		p.note("run '" + report.Run("deploy node config").With("remove").String() + "' on each other node: " + strings.Join(others, ", "))
	}
	removal := func() (*node.Plan, error) { return node.NewRemoval(p.installer.Root, p.o.Node.CertsDir) }
	planned, err := removal()
	if err != nil {
		return err
	}
	p.add(schema.InstallStep{Step: "unconfigure", Name: "this node", State: stateOf(!planned.Changed())}, func(context.Context) error {
		planned, err := removal()
		if err != nil {
			return err
		}
		p.note(planned.Notes...)
		return planned.Apply()
	})
	return nil
}

// planEndpointRemoval plans to remove the address of this host from the cluster.
func (p *UninstallPlan) planEndpointRemoval(ctx context.Context) (err error) {
	endpoint := p.o.Endpoint
	if endpoint == "" {
		if endpoint, err = p.installer.endpoint(p.o.Serve); err != nil {
			return err
		}
	}
	registry, err := p.installer.Deployer.Records.Registry(ctx)
	if err != nil {
		return err
	}
	recorded := false
	if registry != nil {
		recorded = slices.Contains(registry.Endpoints, endpoint)
		for _, other := range registry.Endpoints {
			if other != endpoint {
				p.note("the cluster keeps the endpoint " + other + ": '" + report.Run("deploy registry remove", other).String() + "' removes it")
			}
		}
	}
	p.add(schema.InstallStep{Step: "unregister", Name: endpoint, State: stateOf(!recorded)}, func(ctx context.Context) error {
		_, err := p.installer.Deployer.RemoveEndpoints(ctx, deployer.RemoveEndpointsOptions{Endpoints: []string{endpoint}})
		return err
	})
	return nil
}

// planStop plans to stop the registry and to remove its unit. Without systemd the user stops what the user has started.
func (p *UninstallPlan) planStop(ctx context.Context) error {
	i := p.installer
	if !i.Services.Available() {
		p.note("there is no systemd: stop '" + report.Run("deploy serve").String() + "' where you have started it")
		return nil
	}
	file := i.unitFile()
	_, err := os.Lstat(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	done := err != nil && !i.Services.Running(ctx, unitName)
	p.add(schema.InstallStep{Step: "stop", Name: unitName, Note: file, State: stateOf(done)}, func(ctx context.Context) error {
		if err := i.Services.Stop(ctx, unitName); err != nil {
			return err
		}
		if err := durable.Remove(file); err != nil {
			return err
		}
		return i.Services.Reload(ctx)
	})
	return nil
}

// planUntrust plans to stop trusting a key, if one was named. It is the last step: nothing depends on it then.
func (p *UninstallPlan) planUntrust(context.Context) error {
	name := p.o.Untrust
	if name == "" {
		return nil
	}
	trusted, err := trust.CheckRemoval(p.installer.TrustDir, name)
	if err != nil {
		return err
	}
	p.add(schema.InstallStep{Step: "untrust", Name: name, State: stateOf(!trusted)}, func(context.Context) error {
		return trust.Remove(p.installer.TrustDir, name)
	})
	return nil
}
