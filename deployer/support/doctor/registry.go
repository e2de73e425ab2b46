package doctor

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/preload"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// registry asks every endpoint of the registry for an image of every imported version, as a node would.
func (x *examination) registry() {
	registry, err := x.Deployer.Records.Registry(x.ctx)
	if err != nil {
		x.failed("registry", "endpoints", err)
		return
	}
	if registry == nil {
		x.skip("registry", "endpoints", "the cluster knows no registry yet: nothing was imported")
		return
	}
	if x.Store != nil {
		x.node(registry)
	}
	catalog, err := x.Deployer.Records.Catalog(x.ctx)
	switch {
	case err != nil:
		x.failed("registry", "endpoints", err)
		return
	case len(catalog.Imports()) == 0:
		x.skip("registry", "endpoints", "nothing is imported")
		return
	case registry.Mode == schema.RegistryMetalK8s:
		x.skip("registry", "endpoints", "MetalK8s' nginx serves the images")
		return
	case len(registry.Endpoints) == 0:
		x.add(schema.CheckProblem, "registry", "endpoints", "the cluster does not know where nodes find images",
			fmt.Sprintf("on the host where '%s' runs, with its address: %s", report.Run("deploy serve"), records.RegistryRemedy()))
		return
	}
	for _, answer := range records.AskRegistry(x.ctx, registry, catalog.Imports(), timeout) {
		x.endpoint(answer, len(catalog.Imports()))
	}
}

// endpoint checks the answer of an endpoint of the registry.
func (x *examination) endpoint(a records.Answer, imports int) {
	problem := func(message, hint string) {
		x.add(schema.CheckProblem, "registry", "endpoints", a.Endpoint+" "+message, hint)
	}
	pushed := schema.IsPushedTo(a.Endpoint)
	name, wrongName := errors.AsType[x509.HostnameError](a.Err)
	switch {
	case a.IsUntrusted():
		problem("has a certificate that no authority of the registry has signed: nodes refuse it",
			fmt.Sprintf("if that host is the right one, run there: %s; then, on each node: %s", report.Run("deploy registry add", a.Endpoint).With("replace"), report.Run("deploy node config")))
		return
	case wrongName && !pushed:
		problem("has a certificate for other names and addresses: nodes refuse it",
			fmt.Sprintf("start it there with this name: %s", report.Run("deploy serve").With("tls-name", name.Host)))
		return
	case a.NeedsLogin():
		problem(fmt.Sprintf("is of no use to nodes: %v", a.Err), "make the project public for pulling, or give the logins to the container runtime of each node")
		return
	case a.Err != nil && pushed:
		problem(fmt.Sprintf("does not answer: %v", a.Err),
			fmt.Sprintf("see that the registry runs; if it is gone: %s", report.Run("deploy registry remove", a.Endpoint)))
		return
	case a.Err != nil:
		problem(fmt.Sprintf("does not answer: %v", a.Err),
			fmt.Sprintf("see that '%s' runs there; if that host is gone: %s", report.Run("deploy serve"), report.Run("deploy registry remove", a.Endpoint)))
		return
	}
	x.certificate("registry", "the certificate of "+a.Endpoint, a.Until, fmt.Sprintf("restart '%s' there, which renews it", report.Run("deploy serve")))
	if len(a.Missing) == 0 {
		x.ok("registry", "endpoints", "%s serves all %d imported versions", a.Endpoint, imports)
		return
	}
	if more := len(a.Missing) - maxRows; more > 0 {
		a.Missing = append(a.Missing[:maxRows], fmt.Sprintf("and %d more", more))
	}
	remedy := "import the archives on that host, too"
	if pushed {
		remedy = fmt.Sprintf("on a host that has the archives: %s", report.Run("deploy push", "SOLUTION", "VERSION", schema.EndpointPlace(a.Endpoint)))
	}
	problem("does not serve "+strings.Join(a.Missing, ", "), remedy)
}

// preloaded compares the images that nodes keep with those that are needed. The status of a Node lists 50 images only, so the record of
// 'deploy node preload' counts.
func (x *examination) preloaded() {
	known, err := x.Deployer.Records.Preloaded(x.ctx)
	if err != nil {
		x.failed("registry", "nodes", err)
		return
	}
	if known == nil {
		x.skip("registry", "nodes", "no node keeps the images of Solutions: to start them while the registry is away, run '%s'", report.Run("deploy node preload").With("nodes", "all"))
		return
	}
	needed, _, err := x.Deployer.Records.Needed(x.ctx, records.NeedOptions{})
	if err != nil {
		x.failed("registry", "nodes", err)
		return
	}
	nodes, err := preload.NodeNames(x.ctx, x.Deployer.Cluster)
	if report.CodeOf(err) == report.Forbidden {
		nodes, err = slices.Sorted(maps.Keys(known.Nodes)), nil
	}
	if err != nil {
		x.failed("registry", "nodes", err)
		return
	}
	slices.Sort(nodes)
	x.lacking(nodes, needed, known)
}

// lacking reports nodes without needed images, and those that do not keep them.
func (x *examination) lacking(nodes, needed []string, known *schema.PreloadedImages) {
	bad := 0
	for _, node := range nodes {
		missing := records.Lacking(needed, known, node)
		cure := report.Run("deploy node preload").With("nodes", node).String()
		switch {
		case len(missing) == 0 && !known.Nodes[node].Unpinned:
			continue
		case len(missing) == 0 && bad < maxRows:
			x.add(schema.CheckWarning, "registry", "nodes", fmt.Sprintf("node %s has the images of deployed Solutions, but its container runtime does not keep all of them", node), cure)
		case bad < maxRows:
			x.add(schema.CheckWarning, "registry", "nodes", fmt.Sprintf("node %s lacks %d of the %d images of deployed Solutions: %s", node, len(missing), len(needed), report.Some(missing)), cure)
		}
		bad++
	}
	if bad == 0 {
		x.ok("registry", "nodes", "the %s of deployed Solutions stay on %s", report.Count(len(needed), "image"), report.Count(len(nodes), "node"))
	} else if bad > maxRows {
		x.add(schema.CheckWarning, "registry", "nodes", fmt.Sprintf("%d more nodes lack images", bad-maxRows), report.Run("deploy node preload").With("nodes", "all").String())
	}
}
