package deployer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/cluster"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/engine"
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
	Export        Export

	later []schema.SolutionAt // what else becomes active, or with the version "" no longer is, in the run that this is a part of
}

// Activate makes one imported version of a Solution the active one: its CustomResourceDefinitions and what else belongs to
// the whole cluster. What stored objects need is never taken away; definitions that only the version before had stay.
func (d *Deployer) Activate(ctx context.Context, o ActivateOptions) (*schema.Operation, error) {
	return d.perform(ctx, o.Options, []string{clusterLock}, func(ctx context.Context) (*task, error) { return d.planActivation(ctx, o) })
}

func (d *Deployer) planActivation(ctx context.Context, o ActivateOptions) (*task, error) {
	catalog, err := d.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	found, notice, err := catalog.Find(o.Solution, o.Version)
	if err != nil {
		return nil, err
	}
	t := &task{Operation: schema.Operation{Operation: "activate", Solution: found.Name, Version: found.Version}}
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
	if err = d.checkDependencies(ctx, catalog, activate(o.later, schema.SolutionAt{Solution: found.Name, Version: found.Version})); err != nil {
		return nil, err
	}
	release, err := d.activation(ctx, o, payload, settings)
	if err != nil {
		return nil, err
	}
	if err = d.checkOwnNamespace(ctx, release.Objects); err != nil {
		return nil, err
	}
	kept, err := d.keepServed(ctx, catalog, payload, release.Objects)
	if err != nil {
		return nil, err
	}
	if len(o.later) == 0 { // a run of several names what others lose, too
		if err = o.accepted().check(byName(release.Objects)); err != nil {
			return nil, err
		}
	}
	judged, err := d.judgeCRDs(ctx, release.Objects, o.accepted())
	if err != nil {
		return nil, err
	}
	t.notice(slices.Concat(kept, judged.notices)...)
	t.exported, t.export = judged.exported, o.Export
	plan, err := d.engine.Plan(ctx, *release, o.plan())
	if err != nil {
		return nil, err
	}
	t.plans = []*engine.Plan{plan}
	t.notice(keptNotices(plan)...)
	if t.records, t.after, err = d.setActive(ctx, found.Name, found.Version); err != nil {
		return nil, err
	}
	if release.Settings[settingProtect] == "true" && !o.NoWait {
		record := t.after
		t.after = func(ctx context.Context) error {
			if failure := record(ctx); failure != nil {
				return failure
			}
			return d.awaitProtection(ctx, byName(release.Objects), o.Timeout)
		}
	}
	return t, d.prepareDefinitions(ctx, t, plan, judged.migrations)
}

func (o *ActivateOptions) accepted() accepted { return accepted{o.AcceptDataLoss, o.AcceptInvalid} }

// activation is what a version is for the whole cluster, as it was and is now asked for.
func (d *Deployer) activation(ctx context.Context, o ActivateOptions, p *render.Payload, settings render.Settings) (*engine.Release, error) {
	key := engine.Key{Solution: p.Solution.Metadata.Name}
	previous, err := d.previousSettings(ctx, key)
	if err != nil {
		return nil, err
	}
	said := Rendering{ClusterWide: o.ClusterWide}.merge(previous)
	if o.ProtectCRDs == nil && previous[settingProtect] == "true" || o.ProtectCRDs != nil && *o.ProtectCRDs {
		said[settingProtect] = "true"
	}
	objects, err := d.clusterObjects(ctx, p, settings, said)
	if err != nil {
		return nil, err
	}
	return &engine.Release{Key: key, Version: p.Solution.Spec.Version, Operation: "activate", Objects: objects, Settings: said}, nil
}

// clusterObjects renders a version for the whole cluster as the settings of a revision say.
func (d *Deployer) clusterObjects(ctx context.Context, p *render.Payload, s render.Settings, said map[string]string) ([]*unstructured.Unstructured, error) {
	key := engine.Key{Solution: p.Solution.Metadata.Name}
	s.ClusterWide = said[settingClusterWide] == "true"
	names, err := render.ActivationSecrets(p, s)
	if err != nil {
		return nil, err
	}
	if s.Secrets, err = d.secrets(ctx, render.SystemNamespace(key.Solution), names); err != nil {
		return nil, err
	}
	objects, err := render.Activation(p, s)
	if err == nil && said[settingProtect] == "true" {
		objects = append(objects, protect(key, objects)...)
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

// settings are how a version is rendered for this cluster, as far as that does not depend on the place.
func (d *Deployer) settings(ctx context.Context, catalog *Catalog, i schema.Import) (*render.Payload, render.Settings, error) {
	imported, err := d.allPayloads(ctx, catalog, i.Name)
	if err != nil {
		return nil, render.Settings{}, err
	}
	at := slices.IndexFunc(imported, func(p *render.Payload) bool { return p.Solution.Spec.Version == i.Version })
	registry, err := d.Registry(ctx)
	if err != nil {
		return nil, render.Settings{}, err
	}
	if registry == nil {
		registry = &schema.ClusterRegistry{Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn}
	}
	settings := render.Settings{Registry: registry.Host, Imported: imported, Now: d.Now()}
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

// requirements lists CRDs with the versions that are asked of them.
func requirements(list []schema.CRDRequirement) string {
	var texts []string
	for _, r := range list {
		texts = append(texts, fmt.Sprintf("%s (%s)", r.Name, strings.Join(r.Versions, ", ")))
	}
	return strings.Join(texts, ", ")
}

// getCRD returns a lookup of definitions in the cluster that remembers its first failure.
func (d *Deployer) getCRD(ctx context.Context, failure *error) func(string) *unstructured.Unstructured {
	return func(name string) *unstructured.Unstructured {
		object, err := d.Cluster.Get(ctx, cluster.DefinitionKind, "", name)
		if err != nil && *failure == nil {
			*failure = err
		}
		return object
	}
}

// crdRef names a CustomResourceDefinition.
func crdRef(name string) schema.ObjectRef {
	return schema.ObjectRef{APIVersion: kube.GroupVersion{Group: cluster.DefinitionKind.Group, Version: cluster.DefinitionKind.Version}.String(), Kind: cluster.DefinitionKind.Kind, Name: name}
}
