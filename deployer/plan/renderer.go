package plan

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
)

// Renderer renders a version of a Solution for this cluster.
type Renderer struct {
	*Planner
	Payload  *render.Payload
	Settings render.Settings
	// Allows reports whether the user allows the templates of charts a power; nil allows none.
	Allows func(schema.Power) bool
}

// metalk8sIngressClass is that of the proxy behind which MetalK8s shows user interfaces.
const metalk8sIngressClass = "nginx-control-plane"

// Renderer reads an imported version, and the settings that are the same everywhere in the cluster.
func (p *Planner) Renderer(ctx context.Context, catalog *records.Catalog, i schema.Import) (r Renderer, err error) {
	r.Planner = p
	if r.Payload, err = p.Records.Payload(ctx, i); err != nil {
		return r, err
	}
	group, within := errgroup.WithContext(ctx)
	if r.Payload.HasOperators() { // they are configured with all versions
		group.Go(func() (err error) {
			r.Settings.Imported, err = p.Records.Payloads(within, catalog, i.Name)
			return err
		})
	}
	if r.Payload.IsMonitored() {
		group.Go(func() (err error) {
			r.Settings.Monitoring, err = p.Records.Monitoring(within)
			return err
		})
	}
	registry, err := p.Records.Registry(ctx)
	if failure := group.Wait(); err == nil {
		err = failure
	}
	if err != nil {
		return r, err
	}
	if registry == nil {
		registry = &schema.ClusterRegistry{Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn}
	}
	r.Settings.Registry, r.Settings.Now = registry.Host, p.Now()
	if registry.Mode == schema.RegistryMetalK8s {
		r.Settings.IngressClass = metalk8sIngressClass
	}
	return r, nil
}

// In returns the renderer for a component in a namespace, or in the cluster.
func (r Renderer) In(n metalk8s.Namespace, c *schema.Component) Renderer {
	r.Settings.Namespace, r.Settings.Environment = n.Name, n.Environment
	if c.Scope == schema.ScopeCluster {
		r.Settings.Namespace = render.ComponentNamespace(r.Payload.Solution, c)
	}
	return r
}

// Environment renders the version for a namespace with the settings of a revision, without its components.
func (r Renderer) Environment(ctx context.Context, n metalk8s.Namespace, of map[string]string) ([]*unstructured.Unstructured, error) {
	s := r.Settings
	s.Namespace, s.Environment = n.Name, n.Environment
	s.Webhook = of[SettingWebhook] == "true"
	s.IngressClass = cmp.Or(of[SettingIngressClass], s.IngressClass)
	names, err := render.EnvironmentSecrets(r.Payload, s)
	if err != nil {
		return nil, err
	}
	if s.Secrets, err = r.secrets(ctx, n.Name, names); err != nil {
		return nil, err
	}
	return render.Environment(r.Payload, s)
}

// Activation renders the version for the whole cluster with the settings of a revision, without its components.
func (r Renderer) Activation(ctx context.Context, of map[string]string) ([]*unstructured.Unstructured, error) {
	key, s := record.Key{Name: r.Payload.Solution.Metadata.Name}, r.Settings
	names, err := render.ActivationSecrets(r.Payload, s)
	if err != nil {
		return nil, err
	}
	if s.Secrets, err = r.secrets(ctx, render.SystemNamespace(key.Name), names); err != nil {
		return nil, err
	}
	if s.Creates, err = r.missingNamespaces(ctx, key); err != nil {
		return nil, err
	}
	objects, err := render.Activation(r.Payload, s)
	if err == nil && of[definitions.SettingProtect] == "true" {
		objects = append(objects, definitions.Protect(key, objects)...)
	}
	return objects, err
}

// missingNamespaces are the namespaces of cluster components that the cluster lacks, or has from an activation before.
func (r Renderer) missingNamespaces(ctx context.Context, activation record.Key) ([]string, error) {
	var missing []string
	for _, name := range render.ComponentNamespaces(r.Payload.Solution) {
		live, err := r.Cluster.GetMetadata(ctx, cluster.NamespaceKind, "", name)
		if err != nil {
			return nil, err
		}
		if live == nil || live.GetLabels()[schema.LabelRelease] == activation.ID() {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// secrets reads the Secrets of a namespace that a rendering needs.
func (r Renderer) secrets(ctx context.Context, namespace string, names []string) (map[string]*unstructured.Unstructured, error) {
	secrets := map[string]*unstructured.Unstructured{}
	for _, name := range names {
		secret, err := r.Cluster.Get(ctx, cluster.SecretKind, namespace, name)
		if err != nil {
			return nil, err
		}
		secrets[name] = secret
	}
	return secrets, nil
}

// Component renders a component that is not a chart into a release.
func (r Renderer) Component(node *components.Node, release *engine.Release) (err error) {
	if release.Objects, err = render.Component(r.Payload, node.Name, r.Settings); err == nil && node.Kind == schema.ComponentJob {
		release.Tasks, release.Objects = tasksOf([]render.Task{render.JobTask(node.Component, release.Objects[0])}), nil
	}
	return err
}

// Chart renders a component that is a chart into a release, with its stored values, and adds to these what the
// chart generates. Upgrade renders it as an upgrade, otherwise as an installation. The templates read those Secrets of others that r.Allows,
// or an approval on record, permits.
func (r Renderer) Chart(ctx context.Context, stored *render.ChartValues, upgrade bool, release *engine.Release) (*render.ChartObjects, error) {
	reads, err := r.lookups(release)
	if err != nil {
		return nil, err
	}
	with := render.ChartSettings{Values: stored.Values, Generated: stored.Generated, Upgrade: upgrade, Lookup: reads.find}
	if with.KubeVersion, err = r.Cluster.Version(ctx); err != nil {
		return nil, err
	}
	if with.APIVersions, err = r.Cluster.APIVersions(ctx); err != nil {
		return nil, err
	}
	rendered, err := render.Chart(ctx, r.Payload, release.Component, r.Settings, with)
	if err != nil {
		return nil, reads.explain(err)
	}
	rendered.Lookups = reads.powers
	release.Objects, release.Stay, release.Tasks = rendered.Objects, render.Staying(rendered.Objects), tasksOf(rendered.Tasks)
	stored.Generated = rendered.Generated
	release.GeneratedValues, err = stored.Encode()
	return rendered, err
}

// maxRecoveries limits the renderings of a chart that recover its generated values: each may find values that depend on those found before.
const maxRecoveries = 5

// RecoverChart recovers generated values of a chart from its existing objects, those that isMeant reports. It repeats the rendering while
// that recovers more values, and also returns the Secrets and ConfigMaps among the objects.
func (r Renderer) RecoverChart(ctx context.Context, stored *render.ChartValues, release *engine.Release, isMeant func(*unstructured.Unstructured) bool) (
	rendered *render.ChartObjects, live map[schema.ObjectRef]*unstructured.Unstructured, err error,
) {
	for range maxRecoveries {
		if rendered, err = r.Chart(ctx, stored, true, release); err != nil {
			return nil, nil, err
		}
		if live, err = r.liveData(ctx, release, isMeant); err != nil {
			return nil, nil, err
		}
		recovered := false
		for _, object := range withTasks(release) {
			if there := live[records.RefOf(object.GroupVersionKind(), object)]; there != nil && render.RecoverValues(stored.Generated, object, there) {
				recovered = true
			}
		}
		if !recovered {
			break
		}
	}
	return rendered, live, nil
}

// withTasks returns the objects of a release and those of its tasks.
func withTasks(release *engine.Release) []*unstructured.Unstructured {
	objects := slices.Clone(release.Objects)
	for _, task := range release.Tasks {
		objects = append(objects, task.Object)
	}
	return objects
}

// liveData returns those Secrets and ConfigMaps of a release that exist and that isMeant reports.
func (r Renderer) liveData(ctx context.Context, release *engine.Release, isMeant func(*unstructured.Unstructured) bool) (map[schema.ObjectRef]*unstructured.Unstructured, error) {
	live := map[schema.ObjectRef]*unstructured.Unstructured{}
	for _, object := range withTasks(release) {
		if render.Texts(object) == nil {
			continue
		}
		there, err := r.Cluster.Get(ctx, object.GroupVersionKind(), object.GetNamespace(), object.GetName())
		if err != nil {
			return nil, err
		}
		if there != nil && isMeant(there) {
			live[records.RefOf(object.GroupVersionKind(), object)] = there
		}
	}
	return live, nil
}
