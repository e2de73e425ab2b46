package rebuild

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/kube/pods"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// candidate is the comparison with a version that a broken record may be about, and what to report of it.
type candidate struct {
	*engine.Match
	notices []string
}

// bestMatch returns the imported version of which the cluster has the most objects.
func (r *Record) bestMatch(ctx context.Context) (best *candidate, err error) {
	catalog, err := r.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	likely, err := r.likelyVersions(ctx, catalog)
	if err != nil {
		return nil, err
	}
	for _, i := range likely {
		m, err := r.matchVersion(ctx, catalog, i)
		if err != nil {
			return nil, err
		}
		if best == nil || len(m.Objects) > len(best.Objects) {
			best = m
		}
		if len(m.Changed)+len(m.Missing)+len(m.Foreign) == 0 && len(m.Objects) > 0 {
			return m, nil
		}
	}
	return best, nil
}

// likelyVersions returns the imported versions that may be deployed, the likeliest first: the recorded one, else the version that the documents
// of MetalK8s or other records have, then from the highest down.
func (r *Record) likelyVersions(ctx context.Context, catalog *records.Catalog) ([]schema.Import, error) {
	versions := catalog.Of(r.key.Name)
	asked := r.namespace.Versions[r.key.Name]
	if r.key.Namespace == "" {
		solutions, err := r.Records.Documents.Solutions(ctx)
		if err != nil {
			return nil, err
		}
		asked = solutions.Active(r.key.Name)
	}
	parts, err := r.partStates(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range append(parts, r.owner) {
		if s.Current != nil {
			asked = cmp.Or(s.Current.Version, asked)
		}
	}
	if r.known() {
		asked = r.state.Current.Version
		versions = slices.DeleteFunc(versions, func(i schema.Import) bool { return i.Version != asked })
	}
	if len(versions) == 0 {
		return nil, report.Errorf(report.NotImported, "no version of Solution %s that it could be is imported", r.key.Name).
			WithHint("import its archive and run the command again, or give the record up: kubectl delete secret -n %s %s", cluster.SystemNamespace, r.key.SecretName())
	}
	slices.Reverse(versions)
	if at := slices.IndexFunc(versions, func(i schema.Import) bool { return i.Version == asked }); at > 0 {
		versions = slices.Concat(versions[at:at+1], versions[:at], versions[at+1:])
	}
	return versions, nil
}

// matchVersion renders a version as it may have been deployed and compares it with the cluster.
func (r *Record) matchVersion(ctx context.Context, catalog *records.Catalog, i schema.Import) (*candidate, error) {
	renderer, err := r.Renderer(ctx, catalog, i)
	if err != nil {
		return nil, err
	}
	if renderer.Settings.Imported, err = r.knownToOperator(ctx, renderer.Settings.Imported); err != nil {
		return nil, err
	}
	if r.key.Component != "" {
		return r.matchComponent(ctx, renderer)
	}
	p := renderer.Payload
	release := engine.Release{Key: r.key, Version: i.Version, Operation: schema.VerbRepair}
	if release.Settings, err = r.settings(ctx, p); err != nil {
		return nil, err
	}
	if r.key.Namespace == "" {
		release.Objects, err = renderer.Activation(ctx, release.Settings)
	} else {
		release.Objects, err = renderer.Environment(ctx, r.namespace, release.Settings)
	}
	if err != nil {
		return nil, err
	}
	if r.key.Namespace == "" {
		// CRDs of versions that no longer fit together are reported as changed.
		_, _ = r.Definitions.KeepServed(ctx, catalog, p, release.Objects)
	}
	if err = r.listComponents(ctx, p, &release); err != nil {
		return nil, err
	}
	m, err := r.Records.Engine.Match(ctx, release)
	return &candidate{Match: m}, err
}

// settings returns the recorded settings, or those that follow from the objects in the cluster.
func (r *Record) settings(ctx context.Context, p *render.Payload) (map[string]string, error) {
	if r.known() {
		return r.state.Current.Settings, nil
	}
	settings := map[string]string{}
	if p.Solution.Spec.Operator != nil && p.Solution.Spec.Operator.ClusterWide {
		settings[plan.SettingClusterWide] = "true"
	}
	if r.lost == nil {
		return settings, nil
	}
	for _, f := range r.lost.Ours {
		switch object := f.Object; {
		case r.key.Namespace == "" && object.GetKind() == "ClusterRoleBinding":
			settings[plan.SettingClusterWide] = "true"
		case r.key.Namespace == "" && object.GetKind() == "ValidatingAdmissionPolicyBinding" && object.GetName() == definitions.ProtectionName(r.key):
			settings[definitions.SettingProtect] = "true"
		case object.GetKind() == "Ingress", object.GetKind() == cluster.DeploymentKind.Kind && object.GetName() == records.OperatorName(r.key.Name):
			live, err := r.Cluster.Get(ctx, object.GroupVersionKind(), object.GetNamespace(), object.GetName())
			if err != nil {
				return nil, err
			}
			if live == nil {
				continue
			}
			if class, _, _ := unstructured.NestedString(live.Object, "spec", "ingressClassName"); class != "" {
				settings[plan.SettingIngressClass] = class
			}
			volumes, _ := pods.Spec(live.Object)["volumes"].([]any)
			if slices.ContainsFunc(volumes, func(v any) bool {
				volume, _ := v.(map[string]any)
				return volume["name"] == "cert"
			}) {
				settings[plan.SettingWebhook] = "true"
			}
		}
	}
	return settings, nil
}

// knownToOperator returns the versions in the configuration of a deployed operator: those that were imported when it was deployed.
func (r *Record) knownToOperator(ctx context.Context, imported []*render.Payload) ([]*render.Payload, error) {
	if r.key.Namespace == "" {
		return imported, nil
	}
	object, err := r.Cluster.Get(ctx, cluster.ConfigMapKind, r.key.Namespace, cmp.Or(r.key.Component, records.OperatorName(r.key.Name))+"-config")
	if err != nil || object == nil {
		return imported, err
	}
	text, _, _ := unstructured.NestedString(object.Object, "data", "operator.yaml")
	config, err := schema.ParseOperatorConfig("operator.yaml", []byte(text))
	if err != nil {
		return imported, nil //nolint:nilerr // it is reported as changed
	}
	return slices.DeleteFunc(slices.Clone(imported), func(p *render.Payload) bool {
		return config.Repositories[p.Solution.Spec.Version] == nil
	}), nil
}
