package loader

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Launcher starts runs of the loader, follows them and returns their state. Both fields are required.
type Launcher struct {
	Deployer      *deployer.Deployer // with the rights of an administrator
	Configuration *schema.LoaderConfiguration
}

// spec returns the configuration with its defaults.
func (l *Launcher) spec() schema.LoaderSpec { return l.Configuration.Spec.Filled() }

// prepared is the pending work of the loader.
type prepared struct {
	schema.LoaderPlan
	digest     string // of the configuration, with versions in place of words
	parameters *schema.LoadParameters
	parts      []schema.LoadPart
	rights     []cluster.Permission
	plans      []string // digests
	progress   *schema.LoadProgress
}

// Plan returns the changes of [Launcher.Start], and changes nothing.
func (l *Launcher) Plan(ctx context.Context) (*schema.LoaderPlan, error) {
	p, err := l.prepare(ctx, preparation{dry: true})
	if err != nil {
		return nil, err
	}
	if err = l.leaveRepairs(ctx, p); err != nil {
		return nil, err
	}
	p.Notices = append(p.Notices, unlistedTexts(p.Unlisted)...)
	return &p.LoaderPlan, nil
}

func newPlan() schema.LoaderPlan {
	return schema.LoaderPlan{
		Create: []string{}, Activate: []*schema.Operation{}, Environments: []*schema.Operation{}, Unlisted: []schema.LoadedContent{}, Notices: []string{},
	}
}

// preparation has the options of prepare.
type preparation struct {
	dry   bool // only the plan
	local bool // the work is done in this process: no image is needed
}

// prepare plans the work of a run. Unless only the plan is wanted, it creates environments and activates versions, for
// which a pod has no permission.
func (l *Launcher) prepare(ctx context.Context, o preparation) (*prepared, error) {
	spec := l.spec()
	p := &prepared{LoaderPlan: newPlan()}
	var err error
	if p.parameters, err = l.resolve(ctx, spec); err != nil {
		return nil, err
	}
	p.digest = digestOf(p.parameters)
	if p.progress, _, err = readProgress(ctx, l.Deployer.Cluster); err != nil && report.CodeOf(err) != report.Corrupt {
		return nil, err
	}
	if p.progress == nil || p.progress.Digest != p.digest || p.progress.Phase != schema.LoadReady {
		if err = l.mayRun(ctx, spec, o.local); err != nil {
			return nil, err
		}
	}
	p.Unlisted = unlisted(p.progress, p.parameters)
	if err = l.activate(ctx, p, o.dry); err != nil {
		return nil, configurable(err)
	}
	for _, e := range p.parameters.Environments {
		if err = l.environment(ctx, p, e, o.dry); err != nil {
			return nil, configurable(fmt.Errorf("environment %s: %w", e.Name, err))
		}
	}
	if !slices.ContainsFunc(p.Environments, func(o *schema.Operation) bool { return !o.Empty() }) {
		return p, nil
	}
	if !o.local {
		if p.Image, err = l.image(ctx, spec.Image); err != nil {
			return nil, err
		}
	}
	p.Run = runName(p.digest, p.Image, p.plans)
	p.parameters.Run = p.Run
	p.rights = append(p.rights, rights.Loader(ProgressName)...)
	p.Rights = cluster.RulesByPlace(p.rights...)
	return p, nil
}

// mayRun checks with dry runs, before anything changes, that the API server accepts the Job and the CronJob: only the
// server knows all its rules.
func (l *Launcher) mayRun(ctx context.Context, spec schema.LoaderSpec, local bool) error {
	job, err := newJob(spec, spec.Image, "check", false)
	if err != nil {
		return err
	}
	cron, err := newCronJob(spec, spec.Image)
	if err != nil {
		return err
	}
	var objects []*unstructured.Unstructured
	if !local {
		objects = append(objects, job)
	}
	if spec.Repair.Mode != schema.RepairOff {
		objects = append(objects, cron)
	}
	for _, object := range objects {
		object.SetName("loader-check")
		if _, err = l.Deployer.Cluster.Create(ctx, object, cluster.WriteOptions{DryRun: true}); err != nil {
			return fmt.Errorf("the configuration of the loader: %w", err)
		}
	}
	return nil
}

// resolve replaces "latest" and other placeholders by versions.
func (l *Launcher) resolve(ctx context.Context, spec schema.LoaderSpec) (*schema.LoadParameters, error) {
	catalog, err := l.Deployer.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	timeout, err := time.ParseDuration(spec.Timeout)
	if err != nil {
		return nil, fmt.Errorf("timeout: %w", err)
	}
	p := &schema.LoadParameters{
		Stamp: schema.NewStamp("load", l.Deployer.Version), Timeout: max(int(timeout/time.Second), 1), Environments: make([]schema.EnvironmentContents, len(spec.Environments)),
	}
	for i, e := range spec.Environments {
		p.Environments[i] = schema.EnvironmentContents{Name: e.Name, Solutions: slices.Clone(e.Solutions)}
		for j := range p.Environments[i].Solutions {
			s := &p.Environments[i].Solutions[j]
			version := s.Version
			if version == "" {
				if version, err = l.Deployer.Records.Active(ctx, s.Name); err != nil {
					return nil, err
				}
			}
			found, _, err := catalog.Find(s.Name, version)
			if err != nil {
				return nil, err
			}
			s.Version = found.Version
		}
	}
	return p, nil
}

// environment plans the contents of an environment, and creates it.
func (l *Launcher) environment(ctx context.Context, p *prepared, e schema.EnvironmentContents, dry bool) error {
	names, err := l.Deployer.Records.Documents.Outline(ctx, e.Name)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		p.Create = append(p.Create, e.Name)
		if !dry {
			if _, err = l.Deployer.CreateEnvironment(ctx, metalk8s.CreateOptions{Name: e.Name}); err != nil {
				return err
			}
		}
	}
	if dry && (len(names) == 0 || activates(p.Activate)) {
		return l.preview(ctx, p, e)
	}
	list, err := l.Deployer.Wanted(ctx, e)
	if err != nil {
		return err
	}
	plan, rights, err := l.Deployer.PlanEnsure(ctx, deployer.EnsureOptions{Options: plan.Options{KeepEdits: true, Refuse: !dry}, Environment: e.Name, Solutions: list})
	if err != nil {
		return err
	}
	p.Environments, p.plans = append(p.Environments, plan), append(p.plans, plan.Digest)
	p.rights = append(p.rights, rights...)
	if !plan.Empty() {
		p.Notices = append(p.Notices, plan.Notices...)
	}
	optional, err := l.optional(ctx, e)
	if err != nil {
		return err
	}
	for _, part := range plan.Parts {
		if part.Solution == "" || part.Version == "" {
			continue // shared documents, and deletions
		}
		is := schema.LoadPart{
			Environment: e.Name, Namespace: part.Namespace, Solution: part.Solution, Component: part.Component, Version: part.Version, State: schema.PartPending,
			Optional: optional[part.Solution+"."+part.Component], Kept: part.Empty(),
		}
		p.parts = append(p.parts, is)
	}
	return nil
}

// preview lists the contents of an environment that cannot be planned yet.
func (l *Launcher) preview(ctx context.Context, p *prepared, e schema.EnvironmentContents) error {
	list, err := l.Deployer.Wanted(ctx, e)
	if err != nil {
		return err
	}
	seen, err := l.Deployer.PreviewEnsure(ctx, deployer.EnsureOptions{Environment: e.Name, Solutions: list})
	notice := fmt.Sprintf("what environment %s gets can be compared with the cluster when it exists and its Solutions are active, which '%s' does",
		e.Name, report.Run("deploy loader start"))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		notice += fmt.Sprintf("; it cannot be listed before: %v", err)
	case !seen.Empty():
		p.Afterwards = append(p.Afterwards, seen)
	}
	p.Notices = append(p.Notices, notice)
	return nil
}

// optional returns the components without which a run succeeds: optional ones, and those whose failure others tolerate.
func (l *Launcher) optional(ctx context.Context, e schema.EnvironmentContents) (map[string]bool, error) {
	catalog, err := l.Deployer.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	optional := map[string]bool{}
	for _, s := range e.Solutions {
		found, _, err := catalog.Find(s.Name, s.Version)
		if err != nil {
			return nil, err
		}
		payload, err := l.Deployer.Records.Payload(ctx, found)
		if err != nil {
			return nil, err
		}
		for _, c := range payload.Solution.Spec.Components {
			if c.Select == schema.SelectOptional || c.OnFailure == schema.FailureContinues {
				optional[s.Name+"."+c.Name] = true
			}
		}
	}
	return optional, nil
}

// image is the reference of the loader's image: of an imported Solution, or as it stands in the configuration.
func (l *Launcher) image(ctx context.Context, text string) (string, error) {
	if strings.Contains(text, "@") {
		return text, served(ctx, l.Deployer, text)
	}
	reference, _, err := l.Deployer.Records.ProgramImage(ctx, text, "")
	if report.CodeOf(err) == report.NotImported {
		return "", report.Errorf(report.NotImported, "the loader has no image: Solution %s was not imported", text).
			WithHint("import the archive of solutionctl: %s; or do without a pod: %s",
				report.Run("deploy import", "solutionctl-VERSION.iso"), report.Run("deploy loader start").With("local", ""))
	}
	return reference, err
}

// served is an error when an image by its name comes from the archives of this site, and no imported version brings it.
func served(ctx context.Context, d *deployer.Deployer, reference string) error {
	registry, err := d.Records.Registry(ctx)
	if err != nil || registry == nil || !strings.HasPrefix(reference, registry.Host+"/") {
		return err
	}
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return err
	}
	name, digest, _ := strings.Cut(strings.TrimPrefix(reference, registry.Host+"/"), "@")
	for _, imported := range catalog.Imports() {
		for image, is := range imported.Images {
			title, _, _ := strings.Cut(image, ":")
			if is == digest && (name == imported.ID()+"/"+image || name == imported.ID()+"/"+title) {
				return nil
			}
		}
	}
	return report.Errorf(report.NotImported, "the loader has no image: no imported version brings %s", reference).
		WithHint("import the archive of solutionctl, and name its Solution as image: %s; or do without a pod: %s",
			report.Run("deploy import", "solutionctl-VERSION.iso"), report.Run("deploy loader start").With("local", ""))
}

// digestOf is the digest of the parameters.
func digestOf(p *schema.LoadParameters) string {
	text, _ := json.Marshal(p.Environments) // it was read from JSON
	return fmt.Sprintf("sha256:%x", sha256.Sum256(text))
}

// runName names a run: the same for the same work.
func runName(digest, image string, plans []string) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{digest, image}, plans...), "\n")))
	return hex.EncodeToString(sum[:5])
}
