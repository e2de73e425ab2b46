package plan

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
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Activation reports which version of a Solution becomes active, and how.
type Activation struct {
	Solution, Version string // an imported version; "" and "latest" stand for the highest release
	Rendering                // ClusterWide, AcceptHazards and Parts
	// ProtectCRDs makes the API server refuse to delete the CustomResourceDefinitions. Nil leaves it as it was.
	ProtectCRDs *bool
	// Later are the other activations of the run that this is a part of; version "" is a deactivation.
	Later []schema.SolutionAt
}

// activation is one on its way to a plan.
type activation struct {
	Activation
	*target
	migrations []definitions.Migration
}

// Activate plans that one imported version of a Solution becomes the active one.
func (r *Run) Activate(ctx context.Context, o Activation) error {
	found, notice, err := r.Catalog.Find(o.Solution, o.Version)
	if err != nil {
		return err
	}
	r.Solution, r.Version = found.Name, found.Version
	if notice != "" {
		r.Notice(notice)
	}
	p := &Placement{Import: found, Rendering: o.Rendering, Verb: schema.VerbActivate, Namespaces: []metalk8s.Namespace{{}}}
	if p.renderer, err = r.Renderer(ctx, r.Catalog, found); err != nil {
		return err
	}
	if err = r.checkKubernetes(ctx, p.renderer.Payload); err != nil {
		return err
	}
	if err = r.CheckDependencies(ctx, dependencies.Activate(o.Later, schema.SolutionAt{Solution: found.Name, Version: found.Version})); err != nil {
		return err
	}
	a := &activation{Activation: o, target: r.target(p, metalk8s.Namespace{})}
	parts, err := a.render(ctx)
	if err != nil {
		return err
	}
	if err = r.checkOwnNamespace(ctx, a.release.Objects); err != nil {
		return err
	}
	if err = r.checkDashboards(ctx, append(slices.Clip(parts), a.release)); err != nil {
		return err
	}
	if err = a.judgeDefinitions(ctx); err != nil {
		return err
	}
	if err = r.Plan(ctx, append([]engine.Release{a.release}, parts...)...); err != nil {
		return err
	}
	if err = r.judgePowers(ctx, r.judgedIn([]*Placement{p})...); err != nil {
		return err
	}
	if err = recordComponents(r.Plans); err != nil {
		return err
	}
	if err = r.remark(ctx, append(parts, a.release)); err != nil {
		return err
	}
	return a.complete(ctx)
}

// render renders the release of the cluster, and returns those of the components that live there.
func (a *activation) render(ctx context.Context) (parts []engine.Release, err error) {
	previous, err := a.previousSettings(ctx, a.release.Key)
	if err != nil {
		return nil, err
	}
	a.release.Settings = Rendering{ClusterWide: a.ClusterWide}.merge(previous)
	if a.ProtectCRDs == nil && previous[definitions.SettingProtect] == "true" || a.ProtectCRDs != nil && *a.ProtectCRDs {
		a.release.Settings[definitions.SettingProtect] = "true"
	}
	if a.release.Objects, err = a.of.renderer.Activation(ctx, a.release.Settings); err != nil {
		return nil, err
	}
	if a.before, err = a.Records.Engine.State(ctx, a.release.Key); err != nil {
		return nil, err
	}
	if err = a.mergeOptions(ctx, []*Placement{a.of}); err != nil {
		return nil, err
	}
	a.wanted, a.release.SavedOptions = a.of.merged[""], a.of.saved
	parts, err = a.components(ctx)
	a.Notice(a.notices...)
	return parts, err
}

// complete plans the steps beside the releases: to record the version as the active one, and to prepare definitions and their objects.
func (a *activation) complete(ctx context.Context) (err error) {
	own := a.Plans[0]
	moved, err := a.Site.MovedRules(ctx, own)
	if err != nil {
		return err
	}
	a.Notice(append(moved, keptNotices(own)...)...)
	if a.Changes, a.After, err = a.Records.SetActive(ctx, a.of.Name, a.of.Version); err != nil {
		return err
	}
	if a.release.Settings[definitions.SettingProtect] == "true" && !a.NoWait {
		record := a.After
		a.After = func(ctx context.Context) error {
			if failure := record(ctx); failure != nil {
				return failure
			}
			return a.Definitions.AwaitProtection(ctx, definitions.ByName(a.release.Objects), a.Timeout)
		}
	}
	a.takeFromHelm(a.of.adopted)
	return a.prepareDefinitions(ctx, own, a.migrations)
}

// checkOwnNamespace refuses to put what a Solution has for the whole cluster into a namespace of an environment.
func (p *Planner) checkOwnNamespace(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if object.GetKind() != cluster.NamespaceKind.Kind || object.GroupVersionKind().Group != "" {
			continue
		}
		live, err := p.Cluster.Get(ctx, cluster.NamespaceKind, "", object.GetName())
		if err != nil {
			return err
		}
		if live == nil || live.GetLabels()[metalk8s.EnvironmentLabel] == "" {
			continue
		}
		environment := live.GetLabels()[metalk8s.EnvironmentLabel]
		return report.Errorf(report.Refused, "namespace %s, which the Solution needs for itself, is part of environment %s", object.GetName(), environment).
			WithHint("if nothing in it is needed: %s", report.Run("deploy env delete", environment).With("namespace", object.GetName()))
	}
	return nil
}

// judgeDefinitions judges what CustomResourceDefinitions mean for operators in environments and for stored objects, and plans how these move.
func (a *activation) judgeDefinitions(ctx context.Context) error {
	kept, err := a.Definitions.KeepServed(ctx, a.Catalog, a.of.renderer.Payload, a.release.Objects)
	if err != nil {
		return err
	}
	if len(a.Later) == 0 { // a run of several names what others lose, too
		if err = a.CheckLosses(definitions.ByName(a.release.Objects)); err != nil {
			return err
		}
	}
	judged, err := a.Definitions.Judge(ctx, a.release.Objects, a.Losses)
	if err != nil {
		return err
	}
	a.Notice(slices.Concat(kept, judged.Notices)...)
	a.lost, a.migrations = judged.Exported, judged.Migrations
	a.data, a.safe = judged.Data, judged.Safe
	return nil
}

// keptNotices names objects of the previous version that this one does not have, and that stay for the sake of data.
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
