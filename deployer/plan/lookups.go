package plan

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/kube/powers"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// lookups answers the lookups of one chart with the rights of the administrator, before the plan is approved. It records the powers
// that need an approval.
type lookups struct {
	Renderer
	owner   powers.Owner
	release *engine.Release
	chart   schema.ObjectRef
	powers  []schema.Power
	denied  []schema.Power // those of powers that are not approved
}

// lookups returns those for one rendering of a chart.
func (r Renderer) lookups(release *engine.Release) (*lookups, error) {
	var own []string
	if release.Namespace != "" {
		own = append(own, release.Namespace)
	}
	owner, err := render.Owner(r.Payload, own...)
	return &lookups{Renderer: r, owner: owner, release: release, chart: render.ChartRef(r.Settings.Namespace, release.Component)}, err
}

// find returns objects of the chart's namespace and cluster-wide ones, and none of other namespaces. Without an approval it returns no
// Secrets of other Solutions, and only objects of the release where the namespace does not belong to the Solution.
func (l *lookups) find(ctx context.Context, apiVersion, kind, namespace, name string) (map[string]any, error) {
	gvk := kube.FromAPIVersionAndKind(apiVersion, kind)
	mapping, err := l.Cluster.Mapping(ctx, gvk)
	switch {
	case errors.Is(err, cluster.ErrNoKind):
		return map[string]any{}, nil
	case err != nil:
		return nil, err
	case mapping.Scope.Name() == meta.RESTScopeNameRoot:
		namespace = ""
	case namespace != l.Settings.Namespace:
		return map[string]any{}, nil
	}
	found, err := l.read(ctx, gvk, namespace, name)
	if err != nil {
		return nil, err
	}
	if found, err = l.permitted(ctx, powers.Lookup{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}, found); err != nil {
		return nil, err
	}
	if name != "" {
		if len(found) == 0 {
			return map[string]any{}, nil
		}
		return found[0].Object, nil
	}
	items := make([]any, len(found))
	for i, object := range found {
		items[i] = object.Object
	}
	return map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind + "List", "items": items}, nil
}

// read reads one object, or with an empty name all of a kind.
func (l *lookups) read(ctx context.Context, kind kube.GroupVersionKind, namespace, name string) (found []*unstructured.Unstructured, err error) {
	if name != "" {
		object, err := l.Cluster.Get(ctx, kind, namespace, name)
		if err != nil || object == nil {
			return nil, err
		}
		return append(found, object), nil
	}
	return cluster.Collect(l.Cluster.List(ctx, kind, namespace, metav1.ListOptions{}))
}

// permitted returns those of the objects found that the templates may see.
func (l *lookups) permitted(ctx context.Context, asked powers.Lookup, found []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	isForeign := func(object *unstructured.Unstructured) bool {
		return object.GetLabels()[schema.LabelRelease] != l.release.ID()
	}
	if !l.owner.IsForeignSecret(asked) { // in the namespaces of an environment, other Solutions have Secrets, too
		isForeign = func(object *unstructured.Unstructured) bool {
			solution, _, deployed := strings.Cut(object.GetLabels()[schema.LabelRelease], ".")
			return deployed && solution != l.release.Name
		}
		asked.FindsOthers = slices.ContainsFunc(found, isForeign)
	}
	if !l.owner.IsForeignSecret(asked) || !slices.ContainsFunc(found, isForeign) {
		return found, nil
	}
	state, err := l.Records.Engine.State(ctx, record.Key{Namespace: l.release.Namespace, Name: l.release.Name})
	if err != nil {
		return nil, err
	}
	needed := powers.JudgeLookups(l.owner, l.chart, render.ChartFile(l.Payload, l.release.Component), []powers.Lookup{asked})
	l.powers = append(l.powers, needed...)
	missing := slices.DeleteFunc(powers.Uncovered(approvedPowers(state), needed), func(p schema.Power) bool { return l.Allows != nil && l.Allows(p) })
	if len(missing) == 0 {
		return found, nil
	}
	l.denied = append(l.denied, missing...)
	return slices.DeleteFunc(found, isForeign), nil
}

// explain adds to the error of a chart which Secrets could not be read.
func (l *lookups) explain(err error) error {
	if len(l.denied) == 0 {
		return err
	}
	return report.Errorf(report.Refused, "component %s cannot be rendered without powers that are not approved:\n  %w\n%w", l.release.Component, &PowersError{Powers: l.denied}, err).
		WithHint("if you trust it with that: %s", Approving(l.denied))
}

// addLookups adds the powers that the chart of a component used while it was rendered.
func (t *target) addLookups(found []schema.Power) {
	if len(found) == 0 {
		return
	}
	if t.lookups == nil {
		t.lookups = map[record.Key][]schema.Power{}
	}
	t.lookups[t.release.Key] = append(t.lookups[t.release.Key], found...)
}
