package deployer

import (
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
	"github.com/solutionctl/solutionctl/lint/crd"
	"github.com/solutionctl/solutionctl/schema/report"
)

// definition reads a CustomResourceDefinition for judgement.
func definition(object *unstructured.Unstructured) (*crd.Definition, error) {
	var typed apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
		return nil, report.Errorf(report.Invalid, "custom resource definition %s: %w", object.GetName(), err)
	}
	return crd.New(&typed)
}

// judgement is what replacing definitions in the cluster would do to the objects that are stored.
type judgement struct {
	notices    []string
	losses     []string // one line for each object or definition
	lossy      []string // the definitions that the losses are about
	invalid    []string // one line for each object that is not valid any more
	rejecting  []string // the definitions that these are about
	impossible []string // what the API server never does, one line for each definition
	migrations []migration
	// exported are definitions whose objects lose something that somebody accepted: they are written down before.
	exported []scope
}

// accepted are the names of definitions of whose objects somebody accepts that they lose data, or are not valid any more.
type accepted struct{ loss, invalid []string }

// judgeCRDs judges replacing definitions in the cluster by these. The error says what would be lost and what would not be
// valid any more, unless that is accepted for the definition, and what cannot be.
func (d *Deployer) judgeCRDs(ctx context.Context, objects []*unstructured.Unstructured, a accepted) (*judgement, error) {
	j, err := d.judgeDefinitions(ctx, byName(objects), a)
	if err == nil {
		err = j.refusal()
	}
	return j, err
}

// refusal is nil when nothing speaks against the definitions, or all of it is accepted.
func (j *judgement) refusal() error {
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
		texts = append(texts, "stored objects would not be valid any more, so that nobody could change them:\n  "+strings.Join(j.invalid, "\n  "))
	}
	if len(texts) == 0 {
		return nil
	}
	return report.Errorf(code, "%s", strings.Join(texts, "\n")).
		WithHint("change or delete these objects first, or choose a version that takes them as they are; to go on all the same: %s",
			acceptFlags(j.lossy, j.rejecting))
}

func (d *Deployer) judgeDefinitions(ctx context.Context, definitions map[string]*unstructured.Unstructured, a accepted) (*judgement, error) {
	j := &judgement{}
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		live, err := d.Cluster.Get(ctx, cluster.DefinitionKind, "", name)
		if err != nil {
			return nil, err
		}
		if live == nil {
			continue
		}
		if live.GetDeletionTimestamp() != nil {
			return nil, report.Errorf(report.Conflict, "custom resource definition %s is being deleted: %s",
				name, strings.Join(health.Explain(ctx, d.Cluster, live), "; ")).
				WithHint("remove what holds it, wait until it is gone, and run the command again")
		}
		if err := d.judgeCRD(ctx, j, live, definitions[name], a); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// check refuses names that no definition has: what is accepted should be what is meant.
func (a accepted) check(definitions map[string]*unstructured.Unstructured) error {
	for _, name := range slices.Concat(a.loss, a.invalid) {
		if definitions[name] == nil {
			return report.Errorf(report.Usage, "something is accepted for %s, which is no custom resource definition of this version", name).
				WithHint("it has %s", strings.Join(slices.Sorted(maps.Keys(definitions)), ", "))
		}
	}
	return nil
}

// acceptFlags are the flags that accept the loss of data of some definitions, and the objects that others reject.
func acceptFlags(lossy, rejecting []string) string {
	var flags []string
	if len(lossy) > 0 {
		flags = append(flags, "--accept-data-loss "+strings.Join(lossy, ","))
	}
	if len(rejecting) > 0 {
		flags = append(flags, "--accept-invalid "+strings.Join(rejecting, ","))
	}
	return strings.Join(flags, " ")
}

func (d *Deployer) judgeCRD(ctx context.Context, j *judgement, live, desired *unstructured.Unstructured, a accepted) error {
	before, err := definition(live)
	if err != nil {
		return err
	}
	after, err := definition(desired)
	if err != nil {
		return err
	}
	if why := crd.Impossible(before, after); why != "" {
		j.impossible = append(j.impossible, fmt.Sprintf("custom resource definition %s: %s", live.GetName(), why))
		return nil
	}
	grave := graveChanges(before, after)
	if len(grave) == 0 {
		return nil
	}
	judge, err := newLossJudge(before, after)
	if err != nil {
		return err
	}
	if err = d.showObjects(ctx, live, judge, grave); err != nil {
		return err
	}
	if judge.hooked && judge.objects > 0 {
		if err = d.tryConversion(ctx, live, judge); err != nil {
			return err
		}
	}
	lossAccepted := slices.Contains(a.loss, live.GetName())
	if m := judge.migration(live, desired); m != nil {
		m.accepted = lossAccepted
		j.migrations = append(j.migrations, *m)
		// What the versions in which nothing is stored any more would have lost does not count.
		before.CustomResourceDefinition = before.DeepCopy()
		before.Status.StoredVersions = []string{m.version}
		grave = graveChanges(before, after)
		j.notices = append(j.notices, fmt.Sprintf("custom resource definition %s: %s stored anew in version %s before version %s goes away",
			live.GetName(), counted(judge.objects, "object is", "objects are"), m.version, strings.Join(judge.removed, ", ")))
	}
	for _, change := range grave {
		j.notices = append(j.notices, fmt.Sprintf("custom resource definition %s: %s", live.GetName(), change))
	}
	switch invalid := judge.invalid(); {
	case len(invalid) == 0:
	case slices.Contains(a.invalid, live.GetName()):
		for _, line := range invalid {
			j.notices = append(j.notices, "accepted, though not valid any more: "+line)
		}
	default:
		j.invalid, j.rejecting = append(j.invalid, invalid...), append(j.rejecting, live.GetName())
	}
	switch losses := judge.losses(); {
	case len(losses) == 0:
	case lossAccepted:
		j.exported = append(j.exported, scope{definition: live})
		for _, loss := range losses {
			j.notices = append(j.notices, "accepted loss of data: "+loss)
		}
	default:
		j.losses, j.lossy = append(j.losses, losses...), append(j.lossy, live.GetName())
	}
	return nil
}

// showObjects shows a judge every object of a definition. Where a webhook makes something else of each in every version, those
// whose schema changes are looked at as well.
func (d *Deployer) showObjects(ctx context.Context, live *unstructured.Unstructured, judge *lossJudge, grave []crd.Change) error {
	for object, err := range d.objectsOf(ctx, live, judge.listed, "", d.Cluster.List) {
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
		for object, err := range d.objectsOf(ctx, live, kind, "", d.Cluster.List) {
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

func graveChanges(before, after *crd.Definition) []crd.Change {
	return slices.DeleteFunc(crd.Compare(before, after), func(c crd.Change) bool { return c.Severity == crd.Safe })
}

// lister is [cluster.Cluster.List] or [cluster.Cluster.ListMetadata].
type lister func(context.Context, kube.GroupVersionKind, string, metav1.ListOptions) iter.Seq2[*unstructured.Unstructured, error]

// objectsOf lists the objects of a definition in a namespace, for "" in all of them. That the API server does not serve
// them is no proof that there are none; a definition that somebody deletes meanwhile takes them with it.
func (d *Deployer) objectsOf(ctx context.Context, live *unstructured.Unstructured, kind kube.GroupVersionKind, namespace string, list lister) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		there, err := d.mayHaveObjects(ctx, live, kind)
		if err != nil {
			yield(nil, err)
			return
		}
		if !there {
			return
		}
		for object, failed := range list(ctx, kind, namespace, metav1.ListOptions{}) {
			if errors.Is(failed, cluster.ErrNoKind) && d.isGone(ctx, live) || !yield(object, failed) {
				return
			}
		}
	}
}

// isGone tells whether a definition was deleted since it was read.
func (d *Deployer) isGone(ctx context.Context, definition *unstructured.Unstructured) bool {
	live, err := d.Cluster.Get(ctx, cluster.DefinitionKind, "", definition.GetName())
	return err == nil && (live == nil || live.GetUID() != definition.GetUID())
}

// mayHaveObjects fails when a definition may have objects and they cannot be read.
func (d *Deployer) mayHaveObjects(ctx context.Context, live *unstructured.Unstructured, kind kube.GroupVersionKind) (bool, error) {
	if !established(live) {
		return false, nil // it never was: once it is, it stays so
	}
	if kind.Version == "" {
		return false, report.Errorf(report.Refused, "no version of custom resource definition %s is served, so nobody can tell which objects it has", live.GetName()).
			WithHint("make it serve the version that is stored: kubectl edit crd %s", live.GetName())
	}
	_, err := d.Cluster.Mapping(ctx, kind)
	if errors.Is(err, cluster.ErrNoKind) {
		d.Cluster.Refresh()
		_, err = d.Cluster.Mapping(ctx, kind)
	}
	if errors.Is(err, cluster.ErrNoKind) {
		if d.isGone(ctx, live) {
			return false, nil
		}
		return false, report.Errorf(report.Unavailable, "the API server does not serve custom resource definition %s: %w", live.GetName(), err).
			WithHint("run the command again; if that does not help, 'kubectl get crd %s -o yaml' says why", live.GetName())
	}
	return err == nil, err
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Established" && condition["status"] == "True"
	})
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
