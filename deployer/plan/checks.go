package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Choose returns the imported version that is named; "" names the active one, and "latest" the highest release, which a notice reports.
func (r *Run) Choose(ctx context.Context, solution, version string) (found schema.Import, err error) {
	if version == "" {
		if version, err = r.Records.Active(ctx, solution); err != nil {
			return found, err
		}
	}
	found, notice, err := r.Catalog.Find(solution, version)
	if err == nil && notice != "" {
		r.Notice(notice)
	}
	return found, err
}

// CheckAbsent refuses to add a version where another one is: that is an upgrade or a downgrade.
func (r *Run) CheckAbsent(ctx context.Context, i schema.Import) error {
	for _, n := range r.Namespaces {
		state, err := r.Records.Engine.State(ctx, record.Key{Namespace: n.Name, Name: i.Name})
		if err != nil {
			return err
		}
		if state.Current != nil && state.Current.Version != "" && state.Current.Version != i.Version {
			return report.Errorf(report.Conflict, "version %s of Solution %s is deployed in namespace %s", state.Current.Version, i.Name, n.Name).
				WithHint("%s", records.ChangeTo(n.Environment, state.Current.Version, i).In(r.only))
		}
	}
	return nil
}

// ImagesError is the refusal of versions whose images no node could pull.
type ImagesError struct{ error }

// Unwrap returns the refusal with its code and hints.
func (e ImagesError) Unwrap() error { return e.error }

// checkImages refuses versions whose images nodes cannot find. An endpoint that cannot be reached from here is only reported.
func (r *Run) checkImages(ctx context.Context, imports ...schema.Import) error {
	imports = slices.DeleteFunc(imports, func(i schema.Import) bool { return len(i.Images) == 0 })
	registry, err := r.Records.Registry(ctx)
	if err != nil || len(imports) == 0 {
		return err
	}
	if registry != nil && registry.Mode == schema.RegistryMetalK8s {
		r.images = []schema.PreflightCheck{{Name: schema.PreflightImages, Result: schema.PreflightPass, Message: "the registry of MetalK8s serves the images"}}
		return nil
	}
	if registry == nil || len(registry.Endpoints) == 0 {
		return ImagesError{report.Errorf(report.Refused, "the cluster has no record of where nodes find images: pods of %s could not start", imports[0].ID()).
			WithHint("on the host where '%s' runs, with its address: %s; then, on each node: %s", report.Run("deploy serve"), records.RegistryRemedy(), report.Run("deploy node config"))}
	}
	answers := records.AskRegistry(ctx, registry, imports, records.Briefly)
	var wrong, silent []string
	for _, a := range answers {
		switch {
		case a.IsUntrusted():
			wrong = append(wrong, a.Endpoint+" has a certificate that no recorded authority has signed")
		case a.Err != nil:
			silent = append(silent, fmt.Sprintf("%s: %v", a.Endpoint, a.Err))
		case len(a.Missing) > 0:
			wrong = append(wrong, fmt.Sprintf("%s does not serve %s", a.Endpoint, strings.Join(a.Missing, ", ")))
		}
	}
	r.images = []schema.PreflightCheck{imagesVerdict(answers, wrong, silent)}
	switch {
	case len(wrong) == len(answers):
		r.images[0].Result = schema.PreflightFail
		return ImagesError{report.Errorf(report.Refused, "no node could pull the images: %s", strings.Join(wrong, "; ")).
			WithHint("see the problem of each endpoint, and its remedy: %s", report.Run("deploy doctor"))}
	case len(silent) == len(answers):
		r.Notice("the registry does not answer from here, and pods wait until nodes reach it: " + strings.Join(silent, "; "))
	}
	return ctx.Err()
}

// previousSettings returns those of the revision that was begun last.
func (p *Planner) previousSettings(ctx context.Context, key record.Key) (map[string]string, error) {
	state, err := p.Records.Engine.State(ctx, key)
	if err != nil {
		return nil, err
	}
	return SettingsOf(LastRevision(state)), nil
}

// checkKubernetes refuses a Solution that does not support the version of the cluster.
func (r *Run) checkKubernetes(ctx context.Context, p *render.Payload) error {
	wanted := p.Solution.Spec.KubernetesVersion
	if wanted == "" {
		return nil
	}
	supported, err := schema.ParseRange(wanted)
	if err != nil {
		return fmt.Errorf("%s: kubernetesVersion: %w", p.Solution.ID(), err)
	}
	version, err := r.Cluster.Version(ctx)
	if err != nil {
		return err
	}
	fits, err := supported.ContainsKubernetes(version)
	if err != nil || fits {
		return err
	}
	return report.Errorf(report.Refused, "version %s of Solution %s supports Kubernetes %s, and this cluster is %s",
		p.Solution.Spec.Version, p.Solution.Metadata.Name, wanted, version).
		WithHint("choose a version of the Solution that supports the cluster")
}

// checkActive refuses to deploy an operator without the definitions that it works with.
func (r *Run) checkActive(ctx context.Context, p *render.Payload) error {
	required, err := render.RequiredCRDs(p)
	if err != nil {
		return err
	}
	missing, err := r.Definitions.Missing(ctx, required)
	if err != nil || len(missing) == 0 {
		return err
	}
	name, version := p.Solution.Metadata.Name, p.Solution.Spec.Version
	active, err := r.Records.Active(ctx, name)
	if err != nil {
		return err
	}
	brought, err := render.Definitions(p)
	if err != nil {
		return err
	}
	own := definitions.ByName(brought)
	others := slices.DeleteFunc(slices.Clone(missing), func(r schema.CRDRequirement) bool { return own[r.Name] != nil })
	if active == version && len(others) > 0 { // to activate it again makes none of them
		return report.Errorf(report.Refused, "version %s of Solution %s needs %s, which the cluster does not serve and the archive does not bring",
			version, name, definitions.Requirements(others)).WithHint("install what brings it, and run the command again")
	}
	e := report.Errorf(report.Refused, "version %s of Solution %s is active, which does not serve %s", active, name, definitions.Requirements(missing))
	if active == "" {
		e = report.Errorf(report.Refused, "Solution %s is not active: the cluster does not serve %s", name, definitions.Requirements(missing))
	}
	// The activation may be refused as well, for a reason of its own.
	other := r.Begin(schema.Operation{Operation: schema.VerbActivate}, Options{DryRun: true})
	_, refused := other.Do(ctx, func(ctx context.Context) error {
		if err := other.ReadCatalog(ctx); err != nil {
			return err
		}
		return other.Activate(ctx, Activation{Solution: name, Version: version})
	})
	switch report.CodeOf(refused) {
	case report.InUse, report.DataLoss, report.Refused:
		return report.Errorf(report.Refused, "%w; and version %s cannot become active: %w", e, version, refused)
	}
	return e.WithHint("%s", report.Run("deploy activate", name, version))
}
