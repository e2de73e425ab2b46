package deployer

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
)

// ActivateOptions say what to activate.
type ActivateOptions struct {
	Options
	Solution string
	// Version is an imported version; "" and "latest" stand for the highest release.
	Version string
	// ClusterWide approves of parts that have rights on the whole cluster, or a say in changes of it. Nil leaves it as it was
	// said before.
	ClusterWide *bool
	// ProtectCRDs makes the API server refuse to delete the definitions until somebody allows it. Nil leaves it as it was.
	ProtectCRDs *bool
	// AcceptDataLoss are the CustomResourceDefinitions whose objects may lose data. All of these are exported before.
	AcceptDataLoss []string
	// AcceptInvalid are those of which stored objects may become invalid: nobody can change such an object until it is valid.
	AcceptInvalid []string
	// AcceptHazards are those of [Rendering], for components that live in the cluster.
	AcceptHazards []string
	Export        definitions.Export
	Parts         // components that live in the cluster

	later []schema.SolutionAt // what else becomes active, or with the version "" no longer is, in the run that this is a part of
}

// Activate makes one imported version of a Solution the active one: its CustomResourceDefinitions and what else belongs to
// the whole cluster. What stored objects need is never taken away; definitions that only the version before had stay.
func (d *Deployer) Activate(ctx context.Context, o ActivateOptions) (*schema.Operation, error) {
	return d.perform(ctx, o.Options, []string{clusterLock}, func(ctx context.Context) (*task, error) { return d.planActivation(ctx, o) })
}

// PreviewActivation is the plan of activating what is not imported yet. Nothing is changed.
func (d *Deployer) PreviewActivation(ctx context.Context, r records.ImportRecord) (*schema.Operation, error) {
	solution := r.Payload.Solution
	o := ActivateOptions{Options: Options{DryRun: true}, Solution: solution.Metadata.Name, Version: solution.Spec.Version}
	return d.perform(ctx, o.Options, nil, func(ctx context.Context) (*task, error) {
		catalog, err := d.Records.Catalog(ctx)
		if err != nil {
			return nil, err
		}
		if catalog, err = d.Records.Foresee(ctx, catalog, r); err != nil {
			return nil, err
		}
		return d.planActivationOf(ctx, o, catalog)
	})
}

func (d *Deployer) planActivation(ctx context.Context, o ActivateOptions) (*task, error) {
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	return d.planActivationOf(ctx, o, catalog)
}

func (d *Deployer) planActivationOf(ctx context.Context, o ActivateOptions, catalog *records.Catalog) (*task, error) {
	found, notice, err := catalog.Find(o.Solution, o.Version)
	if err != nil {
		return nil, err
	}
	t := &task{Operation: schema.Operation{Operation: schema.VerbActivate, Solution: found.Name, Version: found.Version}}
	if notice != "" {
		t.notice(notice)
	}
	payload, settings, err := d.settings(ctx, catalog, found)
	if err != nil {
		return nil, err
	}
	if err = d.checkKubernetes(ctx, payload); err != nil {
		return nil, err
	}
	if err = d.checkDependencies(ctx, catalog, dependencies.Activate(o.later, schema.SolutionAt{Solution: found.Name, Version: found.Version})); err != nil {
		return nil, err
	}
	release, err := d.activation(ctx, o, payload, settings)
	if err != nil {
		return nil, err
	}
	before, err := d.Records.Engine.State(ctx, release.Key)
	if err != nil {
		return nil, err
	}
	one := &placement{Import: found, operation: t.Operation.Operation, payload: payload, settings: settings, namespaces: []metalk8s.Namespace{{}}, Rendering: Rendering{Parts: o.Parts, ClusterWide: o.ClusterWide, AcceptHazards: o.AcceptHazards}}
	if err = d.giveAll(ctx, []*placement{one}, o.Options); err != nil {
		return nil, err
	}
	one.Rendering, release.Given = one.said[""], one.noted
	parts, notices, err := d.components(ctx, one, metalk8s.Namespace{}, release, before)
	if err != nil {
		return nil, err
	}
	t.notice(notices...)
	t.draws(one)
	if err = d.checkOwnNamespace(ctx, release.Objects); err != nil {
		return nil, err
	}
	if notices, err = d.Site.CheckDashboards(ctx, append(slices.Clip(parts), *release)...); err != nil {
		return nil, err
	}
	t.notice(notices...)
	migrations, err := d.judgeDefinitions(ctx, t, o, catalog, payload, release.Objects)
	if err != nil {
		return nil, err
	}
	if t.plans, err = d.Records.Engine.PlanAll(ctx, append([]engine.Release{*release}, parts...), o.plan()); err != nil {
		return nil, err
	}
	if err = d.judgePowers(ctx, t, o.Options, judgedIn([]*placement{one}, o.Options)...); err != nil {
		return nil, err
	}
	if err = noteComponents(t.plans); err != nil {
		return nil, err
	}
	if notices, err = d.Site.Remarks(ctx, append(parts, *release)...); err != nil {
		return nil, err
	}
	t.notice(notices...)
	plan := t.plans[0]
	moved, err := d.Site.MovedRules(ctx, plan)
	if err != nil {
		return nil, err
	}
	t.notice(append(moved, keptNotices(plan)...)...)
	if t.records, t.after, err = d.Records.SetActive(ctx, found.Name, found.Version); err != nil {
		return nil, err
	}
	if release.Settings[definitions.SettingProtect] == "true" && !o.NoWait {
		record := t.after
		t.after = func(ctx context.Context) error {
			if failure := record(ctx); failure != nil {
				return failure
			}
			return d.Definitions.AwaitProtection(ctx, definitions.ByName(release.Objects), o.Timeout)
		}
	}
	d.forget(t, one.taken)
	return t, d.prepareDefinitions(ctx, t, plan, migrations)
}

// judgeDefinitions judges what definitions mean for operators in environments and for what is stored, and returns how that moves.
func (d *Deployer) judgeDefinitions(ctx context.Context, t *task, o ActivateOptions, catalog *records.Catalog, p *render.Payload, objects []*unstructured.Unstructured) ([]definitions.Migration, error) {
	kept, err := d.Definitions.KeepServed(ctx, catalog, p, objects)
	if err != nil {
		return nil, err
	}
	if len(o.later) == 0 { // a run of several names what others lose, too
		if err = o.accepted().Check(definitions.ByName(objects)); err != nil {
			return nil, err
		}
	}
	judged, err := d.Definitions.Judge(ctx, objects, o.accepted())
	if err != nil {
		return nil, err
	}
	t.notice(slices.Concat(kept, judged.Notices)...)
	t.exported, t.export = judged.Exported, o.Export
	return judged.Migrations, nil
}

func (o *ActivateOptions) accepted() definitions.Accepted {
	return definitions.Accepted{Loss: o.AcceptDataLoss, Invalid: o.AcceptInvalid}
}

// activation returns the release of a version for the whole cluster, with the settings that were and are asked for.
func (d *Deployer) activation(ctx context.Context, o ActivateOptions, p *render.Payload, settings render.Settings) (*engine.Release, error) {
	key := engine.Key{Name: p.Solution.Metadata.Name}
	previous, err := d.previousSettings(ctx, key)
	if err != nil {
		return nil, err
	}
	said := Rendering{ClusterWide: o.ClusterWide, AcceptHazards: o.AcceptHazards}.merge(previous)
	if o.ProtectCRDs == nil && previous[definitions.SettingProtect] == "true" || o.ProtectCRDs != nil && *o.ProtectCRDs {
		said[definitions.SettingProtect] = "true"
	}
	objects, err := d.clusterObjects(ctx, p, settings, said)
	if err != nil {
		return nil, err
	}
	return &engine.Release{Key: key, Version: p.Solution.Spec.Version, Operation: schema.VerbActivate, Objects: objects, Settings: said}, nil
}

// clusterObjects renders a version for the whole cluster as the settings of a revision say.
func (d *Deployer) clusterObjects(ctx context.Context, p *render.Payload, s render.Settings, said map[string]string) ([]*unstructured.Unstructured, error) {
	key := engine.Key{Name: p.Solution.Metadata.Name}
	names, err := render.ActivationSecrets(p, s)
	if err != nil {
		return nil, err
	}
	if s.Secrets, err = d.secrets(ctx, render.SystemNamespace(key.Name), names); err != nil {
		return nil, err
	}
	objects, err := render.Activation(p, s)
	if err == nil && said[definitions.SettingProtect] == "true" {
		objects = append(objects, definitions.Protect(key, objects)...)
	}
	return objects, err
}

// keptNotices name what the version before had, that this one does not have, and that stays for the sake of data.
func keptNotices(plan *engine.Plan) []string {
	var names []string
	for _, change := range plan.Changes {
		if change.Action == schema.ActionKeep {
			names = append(names, change.Object.String())
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"not needed any more, and kept for the sake of data: " + strings.Join(names, ", ")}
}

// metalk8sIngressClass is that of the proxy behind which MetalK8s shows user interfaces.
const metalk8sIngressClass = "nginx-control-plane"

// settings returns those settings for rendering a version that are the same everywhere in this cluster.
func (d *Deployer) settings(ctx context.Context, catalog *records.Catalog, i schema.Import) (*render.Payload, render.Settings, error) {
	imported, err := d.Records.Payloads(ctx, catalog, i.Name)
	if err != nil {
		return nil, render.Settings{}, err
	}
	at := slices.IndexFunc(imported, func(p *render.Payload) bool { return p.Solution.Spec.Version == i.Version })
	registry, err := d.Records.Registry(ctx)
	if err != nil {
		return nil, render.Settings{}, err
	}
	if registry == nil {
		registry = &schema.ClusterRegistry{Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn}
	}
	var monitoring schema.Monitoring
	if imported[at].IsMonitored() {
		if monitoring, err = d.Records.Monitoring(ctx); err != nil {
			return nil, render.Settings{}, err
		}
	}
	settings := render.Settings{Registry: registry.Host, Imported: imported, Monitoring: monitoring, Now: d.Now()}
	if registry.Mode == schema.RegistryMetalK8s {
		settings.IngressClass = metalk8sIngressClass
	}
	return imported[at], settings, nil
}

// secrets reads the Secrets of a namespace that a rendering asks for.
func (d *Deployer) secrets(ctx context.Context, namespace string, names []string) (map[string]*unstructured.Unstructured, error) {
	secrets := map[string]*unstructured.Unstructured{}
	for _, name := range names {
		secret, err := d.Cluster.Get(ctx, cluster.SecretKind, namespace, name)
		if err != nil {
			return nil, err
		}
		secrets[name] = secret
	}
	return secrets, nil
}
