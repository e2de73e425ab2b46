package plan

import (
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/kube/images"
	"github.com/solutionctl/solutionctl/schema"
)

// Placement is a version of a Solution that namespaces are to have.
type Placement struct {
	schema.Import
	Rendering
	Verb       string // add, upgrade or downgrade
	Namespaces []metalk8s.Namespace

	renderer Renderer
	together []schema.SolutionAt     // the others that change in the same run
	merged   map[string]Rendering    // options by namespace: those of this run over those of an interrupted one
	saved    []byte                  // the options of this run, stored until it is complete
	adopted  []*adoption             // releases of Helm
	foreign  map[string][]images.Use // images that no archive has, by the component whose chart names them
}

// Place plans placements, whatever the namespaces have now. Versions have to meet what they need of each other when all of them are there.
func (r *Run) Place(ctx context.Context, list []*Placement) (err error) {
	if err = r.readPlacements(ctx, list); err != nil {
		return err
	}
	err = r.CheckDependencies(ctx, func(h dependencies.Holdings) {
		for _, p := range list {
			dependencies.Put(p.Name, p.Version, p.Namespaces...)(h)
		}
		for _, d := range r.leaving {
			dependencies.Put(d.Solution, "", d.namespaces...)(h)
		}
	})
	if err != nil {
		return err
	}
	if err = r.mergeOptions(ctx, list); err != nil {
		return err
	}
	var releases, parts []engine.Release
	for _, p := range list {
		p.together = others(list, p)
		own, more, failure := r.releases(ctx, p)
		if failure != nil {
			return failure
		}
		releases, parts = append(releases, own...), append(parts, more...)
		r.takeFromHelm(p.adopted)
	}
	r.addNeeds(releases, parts)
	return r.planPlacements(ctx, list, slices.Concat(releases, parts))
}

// planPlacements plans the releases of placements, and after them those of Solutions that leave.
func (r *Run) planPlacements(ctx context.Context, list []*Placement, staying []engine.Release) error {
	leaving := r.removals(staying)
	if err := r.remark(ctx, staying); err != nil {
		return err
	}
	all := slices.Concat(staying, leaving)
	if err := r.checkDashboards(ctx, all); err != nil {
		return err
	}
	r.Before = func(ctx context.Context) error { return r.recordPlacements(ctx, list) }
	if err := r.Plan(ctx, all...); err != nil {
		return err
	}
	if err := r.judgePowers(ctx, r.judgedIn(list)...); err != nil {
		return err
	}
	return recordComponents(r.Plans)
}

// readPlacements reads what versions are made of, and refuses those that the cluster cannot have.
func (r *Run) readPlacements(ctx context.Context, list []*Placement) error {
	imports := make([]schema.Import, len(list))
	for i, p := range list {
		imports[i] = p.Import
	}
	if err := r.checkImages(ctx, imports...); err != nil {
		return err
	}
	for _, p := range list {
		var err error
		if p.renderer, err = r.Renderer(ctx, r.Catalog, p.Import); err != nil {
			return err
		}
		if err := r.checkKubernetes(ctx, p.renderer.Payload); err != nil {
			return err
		}
		if spare := p.renderer.Payload.SpareCharts(); len(spare) > 0 {
			r.Notice("no component deploys " + strings.Join(spare, ", "))
		}
		if err := r.checkActive(ctx, p.renderer.Payload); err != nil {
			return err
		}
	}
	return nil
}

// remark reports which monitors and rules of releases no Prometheus will select.
func (r *Run) remark(ctx context.Context, releases []engine.Release) error {
	remarks, err := r.Site.Remarks(ctx, releases...)
	r.Notice(remarks...)
	return err
}

// checkDashboards refuses dashboards that hide those of other Solutions.
func (r *Run) checkDashboards(ctx context.Context, releases []engine.Release) error {
	notices, err := r.Site.CheckDashboards(ctx, releases...)
	r.Notice(notices...)
	return err
}

// recordPlacements writes the versions of placements into MetalK8s' documents.
func (r *Run) recordPlacements(ctx context.Context, list []*Placement) error {
	for _, p := range list {
		if err := r.recordVersions(ctx, p); err != nil {
			return err
		}
	}
	for _, d := range r.leaving {
		if err := r.setVersion(ctx, d.Solution, "", d.namespaces); err != nil {
			return err
		}
	}
	return nil
}

// others returns the versions that are added in the same run as one, or for one that changes those that change.
func others(list []*Placement, one *Placement) []schema.SolutionAt {
	var together []schema.SolutionAt
	for _, other := range list {
		if other.Name != one.Name && (other.Verb == schema.VerbAdd) == (one.Verb == schema.VerbAdd) {
			together = append(together, schema.SolutionAt{Solution: other.Name, Version: other.Version})
		}
	}
	return together
}

// releases renders a placement for each of its namespaces: its own part, and its components.
func (r *Run) releases(ctx context.Context, p *Placement) (own, parts []engine.Release, err error) {
	for _, n := range p.Namespaces {
		if n.Terminating {
			return nil, nil, r.Records.Documents.Terminating(ctx, n.Name)
		}
		t := r.target(p, n)
		more, err := t.render(ctx)
		if err != nil {
			return nil, nil, err
		}
		own, parts = append(own, t.release), append(parts, more...)
		r.noticeOnce(t.notices...)
		r.Changes = append(r.Changes, records.EntryChange(n.Name, metalk8s.EnvironmentConfigMap, "data."+p.Name, n.Versions[p.Name], p.Version)...)
	}
	return own, parts, nil
}

// recordVersions writes the version into the namespaces' documents. By then our records say that it is deployed: an unimport
// that read them before reads them again after it took the version away. The later of the two gives way.
func (r *Run) recordVersions(ctx context.Context, p *Placement) error {
	namespaces := slices.DeleteFunc(slices.Clone(p.Namespaces), func(n metalk8s.Namespace) bool { return n.Versions[p.Name] == p.Version })
	if err := r.setVersion(ctx, p.Name, p.Version, namespaces); err != nil {
		return err
	}
	catalog, err := r.Records.Catalog(ctx)
	if err != nil {
		return err
	}
	if _, _, err = catalog.Find(p.Name, p.Version); err == nil {
		return nil
	}
	for _, n := range namespaces {
		err = errors.Join(err, r.Records.Documents.SetVersion(ctx, n.Name, p.Name, n.Versions[p.Name]))
	}
	return err
}

// setVersion writes a version of a Solution, or with "" that it has none, into the document of each namespace.
func (r *Run) setVersion(ctx context.Context, solution, version string, namespaces []metalk8s.Namespace) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(records.Parallel)
	for _, n := range namespaces {
		group.Go(func() error { return r.Records.Documents.SetVersion(ctx, n.Name, solution, version) })
	}
	return group.Wait()
}
