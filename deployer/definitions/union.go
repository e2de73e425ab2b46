package definitions

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// operator is an operator in a namespace and the custom resources that it works with.
type operator struct {
	records.Deployment
	required    []schema.CRDRequirement
	definitions map[string]*unstructured.Unstructured // as its own version has them
}

// operators returns those of a Solution in environments. Of a version that only MetalK8s imported nothing is known.
func (g *Guard) operators(ctx context.Context, catalog *records.Catalog, solution string) ([]operator, error) {
	deployed, err := g.Records.Deployments(ctx, solution)
	if err != nil {
		return nil, err
	}
	var found []operator
	byVersion := map[string]operator{}
	for _, there := range deployed {
		imported, ok := catalog.Get(solution + "-" + there.Version)
		if !ok {
			continue
		}
		o, ok := byVersion[there.Version]
		if !ok {
			if o, err = g.operatorOf(ctx, imported); err != nil {
				return nil, err
			}
			byVersion[there.Version] = o
		}
		o.Deployment = there
		found = append(found, o)
	}
	return found, nil
}

// operatorOf is the operator of an imported version, wherever it is.
func (g *Guard) operatorOf(ctx context.Context, i schema.Import) (o operator, err error) {
	p, err := g.Records.Payload(ctx, i)
	if err != nil {
		return o, err
	}
	if o.required, err = render.RequiredCRDs(p); err != nil {
		return o, err
	}
	own, err := render.Definitions(p)
	o.definitions = ByName(own)
	return o, err
}

// ByName finds the definitions among objects.
func ByName(objects []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	found := map[string]*unstructured.Unstructured{}
	for _, object := range objects {
		if object.GroupVersionKind() == cluster.DefinitionKind {
			found[object.GetName()] = object
		}
	}
	return found
}

// fit is the fate of an operator when other definitions replace those it works with.
type fit struct {
	operator
	kept    []schema.CRDRequirement // versions that must and can stay served for it
	missing []schema.CRDRequirement // versions that cannot
	reasons []string                // for each CRD that is missing something
}

// unite makes definitions serve the versions that operators in environments still use, if objects can be read in them,
// too. Definitions that are not among them stay in the cluster unchanged.
func (g *Guard) unite(ctx context.Context, definitions map[string]*unstructured.Unstructured, operators []operator) ([]fit, error) {
	alone := map[string]*unstructured.Unstructured{}
	for name, definition := range definitions {
		alone[name] = definition.DeepCopy()
	}
	fits := make([]fit, len(operators))
	for i, o := range operators {
		fits[i].operator = o
		for _, wanted := range lacking(o.required, alone) {
			live, err := g.Cluster.Definition(ctx, wanted.Name)
			if err != nil {
				return nil, err
			}
			if err := fits[i].keep(ctx, definitions[wanted.Name], wanted, live); err != nil {
				return nil, err
			}
		}
	}
	return fits, nil
}

// lacking returns the requirements that CRDs do not meet. A CRD that is not among them stays in the cluster unchanged.
func lacking(required []schema.CRDRequirement, definitions map[string]*unstructured.Unstructured) []schema.CRDRequirement {
	missing := render.MissingCRDs(required, func(name string) *unstructured.Unstructured { return definitions[name] })
	return slices.DeleteFunc(missing, func(r schema.CRDRequirement) bool { return definitions[r.Name] == nil })
}

func (f *fit) keep(ctx context.Context, definition *unstructured.Unstructured, wanted schema.CRDRequirement, live *unstructured.Unstructured) error {
	kept, missing := wanted, wanted
	kept.Versions, missing.Versions = nil, nil
	for _, version := range wanted.Versions {
		why, err := keepVersion(ctx, definition, version, live, f.definitions[wanted.Name])
		switch {
		case err != nil:
			return err
		case why == "":
			kept.Versions = append(kept.Versions, version)
		default:
			missing.Versions = append(missing.Versions, version)
			f.reasons = append(f.reasons, why)
		}
	}
	if len(kept.Versions) > 0 {
		f.kept = append(f.kept, kept)
	}
	if len(missing.Versions) > 0 {
		f.missing = append(f.missing, missing)
	}
	return nil
}

// keepVersion adds a version to a CRD, with the schema from one of the sources. If nothing could convert objects to and
// from it, the CRD stays unchanged and why is the reason.
func keepVersion(ctx context.Context, object *unstructured.Unstructured, name string, sources ...*unstructured.Unstructured) (why string, err error) {
	united := object.DeepCopy()
	versions, _, err := unstructured.NestedSlice(united.Object, "spec", "versions")
	if err != nil {
		return "", report.Errorf(report.Invalid, "custom resource definition %s: %w", object.GetName(), err)
	}
	strategy, _, _ := unstructured.NestedString(object.Object, "spec", "conversion", "strategy")
	switch at := versionIndex(versions, name); {
	case at >= 0:
		versions[at].(map[string]any)["served"] = true
	case strategy == "Webhook":
		return fmt.Sprintf("its webhook is not known to convert %s, which the definition does not list", name), nil
	default:
		version := versionEntry(name, sources...)
		if version == nil {
			return "nothing describes " + name, nil
		}
		version["served"], version["storage"] = true, false
		versions = append(versions, version)
	}
	if err = unstructured.SetNestedSlice(united.Object, versions, "spec", "versions"); err != nil {
		return "", err
	}
	def, err := Parse(united)
	if err != nil {
		return "", err
	}
	for _, problem := range def.Judge(ctx) {
		if problem.Severity == report.SeverityError {
			return problem.Message, nil
		}
	}
	object.Object = united.Object
	return "", nil
}

// versionEntry returns a copy of the entry for a version from the first of these CRDs that has it; nil when none has.
func versionEntry(name string, definitions ...*unstructured.Unstructured) map[string]any {
	for _, definition := range definitions {
		if definition == nil {
			continue
		}
		versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		if at := versionIndex(versions, name); at >= 0 {
			return versions[at].(map[string]any)
		}
	}
	return nil
}

// versionIndex finds a version, which then is a map; -1 when it is not there.
func versionIndex(versions []any, name string) int {
	return slices.IndexFunc(versions, func(v any) bool {
		version, ok := v.(map[string]any)
		return ok && version["name"] == name
	})
}

// KeepServed makes the CRDs of a version serve the versions that operators in environments use in addition. It returns
// which versions stay for which operator, and refuses if an operator would lose its version.
func (g *Guard) KeepServed(ctx context.Context, catalog *records.Catalog, p *render.Payload, objects []*unstructured.Unstructured) ([]string, error) {
	name, version := p.Solution.Metadata.Name, p.Solution.Spec.Version
	operators, err := g.operators(ctx, catalog, name)
	if err != nil {
		return nil, err
	}
	next := &activation{Guard: g, catalog: catalog, payload: p, definitions: ByName(objects), operators: operators}
	fits, err := g.unite(ctx, next.definitions, operators)
	if err != nil {
		return nil, err
	}
	var notices, refusals []string
	var ways report.Remedies
	var lost []records.Deployment // nothing that is imported helps them
	for _, f := range fits {
		if len(f.kept) > 0 {
			notices = append(notices, fmt.Sprintf("stays served for version %s in %s: %s", f.Version, f.Deployment, Requirements(f.kept)))
		}
		if len(f.missing) == 0 {
			continue
		}
		refusals = append(refusals, fmt.Sprintf("%s has version %s, which needs %s: %s", f.Deployment, f.Version, Requirements(f.missing), strings.Join(f.reasons, "; ")))
		way, err := next.remedyFor(ctx, f.Deployment)
		if err != nil {
			return nil, err
		}
		if way.IsZero() {
			lost = append(lost, f.Deployment)
		} else {
			ways = append(ways, way)
		}
	}
	if len(refusals) == 0 {
		return notices, nil
	}
	if len(lost) > 0 {
		between, err := next.between(ctx)
		if err != nil {
			return nil, err
		}
		if between != "" {
			ways, lost = report.Remedies{report.Run("deploy activate", name, between)}, nil
		}
	}
	for _, there := range lost {
		ways = append(ways, report.Run("deploy remove", there.Environment, name).In(there.Namespace))
	}
	refusal := report.Errorf(report.InUse, "version %s of Solution %s cannot be active beside what is deployed:\n  %s", version, name, strings.Join(refusals, "\n  ")).
		WithHint("first: %s\nwhat goes together: %s", ways, report.Run("deploy compatibility", name))
	return nil, next.incompatible(ctx, refusal)
}

// activation is a version that is to become active beside the operators that are deployed.
type activation struct {
	*Guard
	catalog     *records.Catalog
	payload     *render.Payload
	definitions map[string]*unstructured.Unstructured // its CRDs, by name
	operators   []operator
}

// between returns an intermediate version: all present operators work with its CRDs, and its own operator works with
// the CRDs of the activation, or with versions that these can serve in addition. Once it is active and deployed, the CRDs can be
// replaced. It is "" when there is none.
func (a *activation) between(ctx context.Context) (string, error) {
	steps := a.catalog.Of(a.payload.Solution.Metadata.Name)
	slices.Reverse(steps)
	for _, step := range steps {
		if step.Version == a.payload.Solution.Spec.Version {
			continue
		}
		own, err := a.operatorOf(ctx, step)
		if err != nil {
			return "", err
		}
		fitting, _, err := a.fitting(ctx, a.definitions, []operator{own})
		if err != nil {
			return "", err
		}
		if !fitting {
			continue
		}
		fitting, definitions, err := a.fitting(ctx, own.definitions, a.operators)
		if err != nil {
			return "", err
		}
		if !fitting {
			continue
		}
		judged, err := a.judgeAll(ctx, definitions, Losses{})
		if err != nil {
			return "", err
		}
		if judged.refusal() == nil {
			return step.Version, nil
		}
	}
	return "", nil
}

// fitting reports whether CRDs can serve the versions that operators use, and returns them with these versions added.
func (g *Guard) fitting(ctx context.Context, definitions map[string]*unstructured.Unstructured, operators []operator) (bool, map[string]*unstructured.Unstructured, error) {
	united := map[string]*unstructured.Unstructured{}
	for name, definition := range definitions {
		united[name] = definition.DeepCopy()
	}
	fits, err := g.unite(ctx, united, operators)
	return !slices.ContainsFunc(fits, func(f fit) bool { return len(f.missing) > 0 }), united, err
}

// remedyFor returns the next step for an operator that does not work with CRDs: a change to a version that works with
// both the served CRDs and the new ones, preferably the active version; nothing when there is none.
func (a *activation) remedyFor(ctx context.Context, there records.Deployment) (report.Remedy, error) {
	solution := a.payload.Solution.Metadata.Name
	none := report.Remedy{}
	active, err := a.Records.Active(ctx, solution)
	if err != nil {
		return none, err
	}
	steps := a.catalog.Of(solution)
	slices.Reverse(steps)
	if at := slices.IndexFunc(steps, func(i schema.Import) bool { return i.Version == active }); at >= 0 {
		steps = slices.Concat(steps[at:at+1], steps[:at], steps[at+1:])
	}
	for _, step := range steps {
		p, err := a.Records.Payload(ctx, step)
		if err != nil {
			return none, err
		}
		required, err := render.RequiredCRDs(p)
		if err != nil {
			return none, err
		}
		missing, err := a.Missing(ctx, required)
		if err != nil {
			return none, err
		}
		if len(missing) == 0 && len(lacking(required, a.definitions)) == 0 {
			return records.ChangeTo(there.Environment, there.Version, step).In(there.Namespace), nil
		}
	}
	return none, nil
}

// Unneeded reports versions of CRDs that the active version does not serve by itself and that no operator uses any more
// once these namespaces have another version: the next activation removes them.
func (g *Guard) Unneeded(ctx context.Context, catalog *records.Catalog, next *render.Payload, namespaces []metalk8s.Namespace) (notices []string, err error) {
	active, err := g.Records.Active(ctx, next.Solution.Metadata.Name)
	if err != nil {
		return nil, err
	}
	imported, ok := catalog.Get(next.Solution.Metadata.Name + "-" + active)
	if !ok {
		return nil, nil
	}
	p, err := g.Records.Payload(ctx, imported)
	if err != nil {
		return nil, err
	}
	own, err := render.Definitions(p)
	if err != nil {
		return nil, err
	}
	extra, err := g.servedBeside(ctx, own)
	if err != nil || len(extra) == 0 {
		return nil, err
	}
	needed, err := render.RequiredCRDs(next)
	if err != nil {
		return nil, err
	}
	operators, err := g.operators(ctx, catalog, imported.Name)
	if err != nil {
		return nil, err
	}
	for _, o := range operators {
		if !slices.ContainsFunc(namespaces, func(n metalk8s.Namespace) bool { return n.Name == o.Namespace }) {
			needed = append(needed, o.required...)
		}
	}
	for _, left := range extra {
		left.Versions = slices.DeleteFunc(left.Versions, func(version string) bool {
			return slices.ContainsFunc(needed, func(r schema.CRDRequirement) bool {
				return r.Name == left.Name && slices.Contains(r.Versions, version)
			})
		})
		if len(left.Versions) > 0 {
			notices = append(notices, fmt.Sprintf("nothing works with %s any more: '%s' lets it go",
				Requirements([]schema.CRDRequirement{left}), report.Run("deploy activate", imported.Name, active)))
		}
	}
	return notices, nil
}

// servedBeside are the versions that the cluster serves and the definitions do not.
func (g *Guard) servedBeside(ctx context.Context, definitions []*unstructured.Unstructured) ([]schema.CRDRequirement, error) {
	var extra []schema.CRDRequirement
	for _, definition := range definitions {
		live, err := g.Cluster.Definition(ctx, definition.GetName())
		if err != nil {
			return nil, err
		}
		if live == nil {
			continue
		}
		versions := slices.DeleteFunc(render.ServedVersions(live), func(version string) bool {
			return slices.Contains(render.ServedVersions(definition), version)
		})
		if len(versions) > 0 {
			extra = append(extra, schema.CRDRequirement{Name: live.GetName(), Versions: versions})
		}
	}
	return extra, nil
}
