package definitions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/kube/crd"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Parse reads a CustomResourceDefinition for judgement.
func Parse(object *unstructured.Unstructured) (*crd.Definition, error) {
	var typed apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
		return nil, report.Errorf(report.Invalid, "custom resource definition %s: %w", object.GetName(), err)
	}
	return crd.New(&typed)
}

// Judgement has the consequences of replacing definitions for the objects that are stored.
type Judgement struct {
	Notices    []string
	losses     []string // one line for each object or definition
	invalid    []string // one line for each object that is not valid any more
	accepted   Losses
	acceptable acceptable
	impossible []string // changes that the API server never makes, one line for each definition
	Migrations []Migration
	// Exported are CRDs whose objects lose data with the user's consent: the objects are exported before.
	Exported []Scope
	// Data counts the objects that were checked, and Safe has the CRDs whose changes affect no object, so that none was read.
	Data []schema.DataChange
	Safe []string
}

// Losses say which losses of stored objects the user accepts.
type Losses struct {
	AcceptDataLoss []string // CRDs whose objects may lose data. All of these objects are exported before.
	AcceptInvalid  []string // CRDs whose objects may become invalid. An invalid object cannot be changed until it is valid again.
	Export         Export   // where custom resources go before they lose data, or are deleted
}

// Judge compares CRDs of the cluster with their replacements. The error lists data that would be lost and objects that
// would become invalid, unless accepted for the CRD, and replacements that the API server would reject.
func (g *Guard) Judge(ctx context.Context, objects []*unstructured.Unstructured, a Losses) (*Judgement, error) {
	j, err := g.judgeAll(ctx, ByName(objects), a)
	if err == nil {
		err = j.refusal()
	}
	return j, err
}

// refusal is nil when nothing speaks against the definitions, or all of it is accepted.
func (j *Judgement) refusal() error {
	if len(j.impossible) > 0 {
		return report.Errorf(report.Refused, "the API server never replaces these definitions, so the version cannot become active:\n  %s",
			strings.Join(j.impossible, "\n  ")).
			WithHint("ask the vendor for a version that changes neither scope nor kind; without its data the Solution can be deactivated, and then this version activated")
	}
	code, texts := report.Refused, []string{}
	if len(j.losses) > 0 {
		code = report.DataLoss
		texts = append(texts, "stored objects would lose data:\n  "+strings.Join(j.losses, "\n  "))
	}
	if len(j.invalid) > 0 {
		texts = append(texts, "stored objects would become invalid, so that every change of them would be rejected:\n  "+strings.Join(j.invalid, "\n  "))
	}
	if len(texts) == 0 {
		return nil
	}
	return report.Errorf(code, "%s", strings.Join(texts, "\n")).
		WithHint("change or delete these objects first, or choose a version that accepts them unchanged; to continue nevertheless: %s",
			j.acceptable.remedy())
}

func (g *Guard) judgeAll(ctx context.Context, definitions map[string]*unstructured.Unstructured, a Losses) (*Judgement, error) {
	j := &Judgement{accepted: a}
	existing, err := g.Existing(ctx, slices.Sorted(maps.Keys(definitions))...)
	if err != nil {
		return nil, err
	}
	for _, live := range existing {
		if live.GetDeletionTimestamp() != nil {
			return nil, report.Errorf(report.Conflict, "custom resource definition %s is being deleted: %s",
				live.GetName(), strings.Join(health.Explain(ctx, g.Cluster, live), "; ")).
				WithHint("remove what holds it, wait until it is gone, and run the command again")
		}
		if err := g.judgeOne(ctx, j, live, definitions[live.GetName()]); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// Existing returns those of the named CustomResourceDefinitions that the cluster has.
func (g *Guard) Existing(ctx context.Context, names ...string) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, name := range names {
		live, err := g.Cluster.Definition(ctx, name)
		if err != nil {
			return nil, err
		}
		if live != nil {
			found = append(found, live)
		}
	}
	return found, nil
}

// CheckLosses refuses names without a CRD, which are probably misspelt.
func (a Losses) CheckLosses(definitions map[string]*unstructured.Unstructured) error {
	for _, name := range slices.Concat(a.AcceptDataLoss, a.AcceptInvalid) {
		if definitions[name] == nil {
			return report.Errorf(report.Usage, "a loss is accepted for %s, which is not a CustomResourceDefinition of this version", name).
				WithHint("it has %s", strings.Join(slices.Sorted(maps.Keys(definitions)), ", "))
		}
	}
	return nil
}

// acceptable collects the flags with which a user accepts loss of data and invalid objects.
type acceptable struct{ loss, invalid report.Remedy }

func (a *acceptable) loses(definition string, lines []string) {
	a.loss = a.loss.With("accept-data-loss", definition).About(lines...)
}

func (a *acceptable) rejects(definition string, lines []string) {
	a.invalid = a.invalid.With("accept-invalid", definition).About(lines...)
}

func (a *acceptable) remedy() report.Remedy {
	return report.Remedy{Options: slices.Concat(a.loss.Options, a.invalid.Options)}
}

func (g *Guard) judgeOne(ctx context.Context, j *Judgement, live, desired *unstructured.Unstructured) error {
	before, err := Parse(live)
	if err != nil {
		return err
	}
	after, err := Parse(desired)
	if err != nil {
		return err
	}
	if why := crd.Impossible(before, after); why != "" {
		j.impossible = append(j.impossible, fmt.Sprintf("custom resource definition %s: %s", live.GetName(), why))
		return nil
	}
	changes := crd.Compare(before, after)
	grave := graveChanges(changes)
	if len(grave) == 0 {
		if len(changes) > 0 {
			j.Safe = append(j.Safe, live.GetName())
		}
		return nil
	}
	judge, err := newLossJudge(before, after)
	if err != nil {
		return err
	}
	if err = g.showObjects(ctx, live, judge, grave); err != nil {
		return err
	}
	if judge.hooked && judge.objects > 0 {
		if err = g.tryConversion(ctx, live, judge); err != nil {
			return err
		}
	}
	lossAccepted := slices.Contains(j.accepted.AcceptDataLoss, live.GetName())
	if m := judge.migration(live, desired); m != nil {
		m.accepted = lossAccepted
		j.Migrations = append(j.Migrations, *m)
		// Losses in versions without stored objects do not count.
		before.CustomResourceDefinition = before.DeepCopy()
		before.Status.StoredVersions = []string{m.version}
		grave = graveChanges(crd.Compare(before, after))
		j.Notices = append(j.Notices, fmt.Sprintf("custom resource definition %s: %s stored again in version %s before version %s goes away",
			live.GetName(), counted(judge.objects, "object is", "objects are"), m.version, strings.Join(judge.removed, ", ")))
	}
	for _, change := range grave {
		j.Notices = append(j.Notices, fmt.Sprintf("custom resource definition %s: %s", live.GetName(), change))
	}
	if judge.objects > 0 {
		j.Data = append(j.Data, judge.data())
	}
	switch invalid := judge.invalid(); {
	case len(invalid) == 0:
	case slices.Contains(j.accepted.AcceptInvalid, live.GetName()):
		for _, line := range invalid {
			j.Notices = append(j.Notices, "accepted, though not valid any more: "+line)
		}
	default:
		j.invalid = append(j.invalid, invalid...)
		j.acceptable.rejects(live.GetName(), invalid)
	}
	switch losses := judge.losses(); {
	case len(losses) == 0:
	case lossAccepted:
		j.Exported = append(j.Exported, Scope{definition: live})
		for _, loss := range losses {
			j.Notices = append(j.Notices, "accepted loss of data: "+loss)
		}
	default:
		j.losses = append(j.losses, losses...)
		j.acceptable.loses(live.GetName(), losses)
	}
	return nil
}

// showObjects shows a judge every object of a definition. Where a webhook makes something else of each in every version, those
// whose schema changes are looked at as well.
func (g *Guard) showObjects(ctx context.Context, live *unstructured.Unstructured, judge *lossJudge, grave []crd.Change) error {
	for object, err := range g.objectsOf(ctx, live, judge.listed, "", g.Cluster.List) {
		if err != nil {
			return err
		}
		if err := judge.look(ctx, object); err != nil {
			return err
		}
	}
	for _, version := range judge.converted(grave) {
		kind := judge.listed
		kind.Version = version
		for object, err := range g.objectsOf(ctx, live, kind, "", g.Cluster.List) {
			if err != nil {
				return err
			}
			if err := judge.lookConverted(ctx, object, version); err != nil {
				return err
			}
		}
	}
	return nil
}

func graveChanges(changes []crd.Change) []crd.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c crd.Change) bool { return c.Severity == crd.Safe })
}

// lister is [cluster.Cluster.List] or [cluster.Cluster.ListMetadata].
type lister func(context.Context, kube.GroupVersionKind, string, metav1.ListOptions) iter.Seq2[*unstructured.Unstructured, error]

// objectsOf lists the objects of a CRD in a namespace, or in all of them for "". A CRD that the API server does not
// serve may still have stored objects. A CRD that is deleted meanwhile has none: its objects go with it.
func (g *Guard) objectsOf(ctx context.Context, live *unstructured.Unstructured, kind kube.GroupVersionKind, namespace string, list lister) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		there, err := g.mayHaveObjects(ctx, live, kind)
		if err != nil {
			yield(nil, err)
			return
		}
		if !there {
			return
		}
		for object, failed := range list(ctx, kind, namespace, metav1.ListOptions{}) {
			if errors.Is(failed, cluster.ErrNoKind) && g.isGone(ctx, live) || !yield(object, failed) {
				return
			}
		}
	}
}

// isGone reports whether a CRD was deleted since it was read.
func (g *Guard) isGone(ctx context.Context, definition *unstructured.Unstructured) bool {
	live, err := g.Cluster.Get(ctx, cluster.DefinitionKind, "", definition.GetName())
	return err == nil && (live == nil || live.GetUID() != definition.GetUID())
}

// mayHaveObjects fails when a definition may have objects and they cannot be read.
func (g *Guard) mayHaveObjects(ctx context.Context, live *unstructured.Unstructured, kind kube.GroupVersionKind) (bool, error) {
	if !health.IsTrue(live, "Established") {
		return false, nil // it never was: once it is, it stays so
	}
	if kind.Version == "" {
		return false, report.Errorf(report.Refused, "no version of CustomResourceDefinition %s is served, so its objects cannot be listed", live.GetName()).
			WithHint("make it serve the version that is stored: kubectl edit crd %s", live.GetName())
	}
	_, err := g.Cluster.Mapping(ctx, kind)
	if errors.Is(err, cluster.ErrNoKind) {
		g.Cluster.Refresh()
		_, err = g.Cluster.Mapping(ctx, kind)
	}
	if errors.Is(err, cluster.ErrNoKind) {
		if g.isGone(ctx, live) {
			return false, nil
		}
		return false, report.Errorf(report.Unavailable, "the API server does not serve CustomResourceDefinition %s: %w", live.GetName(), err).
			WithHint("run the command again; if that does not help, 'kubectl get crd %s -o yaml' shows the reason", live.GetName())
	}
	return err == nil, err
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Requirements lists CRDs with the versions that are asked of them.
func Requirements(list []schema.CRDRequirement) string {
	var texts []string
	for _, r := range list {
		texts = append(texts, fmt.Sprintf("%s (%s)", r.Name, strings.Join(r.Versions, ", ")))
	}
	return strings.Join(texts, ", ")
}

// Missing returns the requirements that the cluster does not meet, each with the versions that it lacks.
func (g *Guard) Missing(ctx context.Context, required []schema.CRDRequirement) (missing []schema.CRDRequirement, err error) {
	missing = render.MissingCRDs(required, func(name string) *unstructured.Unstructured {
		object, failure := g.Cluster.Definition(ctx, name)
		err = cmp.Or(err, failure)
		return object
	})
	return missing, err
}

// Ref names a CustomResourceDefinition.
func Ref(name string) schema.ObjectRef {
	return schema.ObjectRef{APIVersion: kube.GroupVersion{Group: cluster.DefinitionKind.Group, Version: cluster.DefinitionKind.Version}.String(), Kind: cluster.DefinitionKind.Kind, Name: name}
}

// versionOf returns a version of a CRD, nil if it does not have it.
func versionOf(d *crd.Definition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range d.Spec.Versions {
		if d.Spec.Versions[i].Name == name {
			return &d.Spec.Versions[i]
		}
	}
	return nil
}

func hasVersion(d *crd.Definition, name string) bool { return versionOf(d, name) != nil }

func serves(d *crd.Definition, name string) bool {
	v := versionOf(d, name)
	return v != nil && v.Served
}

// Scales reports whether instances have the scale subresource.
func Scales(d *crd.Definition, version string) bool {
	v := versionOf(d, version)
	return v != nil && v.Subresources != nil && v.Subresources.Scale != nil
}

// ReportsHealth reports whether the status of instances has conditions.
func ReportsHealth(d *crd.Definition, version string) bool {
	v := versionOf(d, version)
	if v == nil || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return false
	}
	_, found := v.Schema.OpenAPIV3Schema.Properties["status"].Properties["conditions"]
	return found
}
