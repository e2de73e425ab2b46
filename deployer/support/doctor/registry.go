package doctor

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// registry asks every endpoint of the registry for an image of every imported version, as a node would.
func (x *examination) registry() {
	registry, err := x.Deployer.Records.Registry(x.ctx)
	if err != nil {
		x.failed("registry", "endpoints", err)
		if x.Store != nil {
			x.unread("node", "registry", err)
		}
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
	row := func(result schema.CheckResult, message, hint string) {
		x.record(schema.Check{Area: "registry", Name: "endpoints", Object: a.Endpoint, Result: result, Message: a.Endpoint + " " + message, Hint: hint})
	}
	problem := func(message, hint string) { row(schema.CheckProblem, message, hint) }
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
	x.certificate("registry", a.Endpoint, "the certificate of "+a.Endpoint, a.Until, fmt.Sprintf("restart '%s' there, which renews it", report.Run("deploy serve")))
	if len(a.Missing) == 0 {
		row(schema.CheckOK, fmt.Sprintf("serves all %d imported versions", imports), "")
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
