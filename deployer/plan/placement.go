package plan

import (
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
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
	wanted, left := entries{}, entries{}
	for _, p := range list {
		wanted.add(p.Name, p.Version, p.outdated())
	}
	if err := r.setVersions(ctx, wanted); err != nil {
		return err
	}
	if err := r.confirmImports(ctx, list); err != nil {
		return err
	}
	for _, d := range r.leaving {
		left.add(d.Solution, "", d.namespaces)
	}
	return r.setVersions(ctx, left)
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

// outdated returns the namespaces whose document does not have the version of a placement.
func (p *Placement) outdated() []metalk8s.Namespace {
	return slices.DeleteFunc(slices.Clone(p.Namespaces), func(n metalk8s.Namespace) bool { return n.Versions[p.Name] == p.Version })
}

// confirmImports checks that the versions of placements are still imported, and takes the others out of the namespaces' documents. By now our
// records say that they are deployed: an unimport that read them before reads them again after it took the version away. The later of the
// two gives way. What was deployed before this run needs no check: each unimport has seen it.
func (r *Run) confirmImports(ctx context.Context, list []*Placement) error {
	list = slices.DeleteFunc(slices.Clone(list), func(p *Placement) bool { return len(p.outdated()) == 0 && r.isDeployed(p) })
	if len(list) == 0 {
		return nil
	}
	catalog, err := r.Records.Catalog(ctx)
	if err != nil {
		return err
	}
	for _, p := range list {
		_, _, missing := catalog.Find(p.Name, p.Version)
		if missing == nil {
			continue
		}
		for _, n := range p.outdated() {
			missing = errors.Join(missing, r.Records.Documents.SetVersion(ctx, n.Name, p.Name, n.Versions[p.Name]))
		}
		err = errors.Join(err, missing)
	}
	return err
}

// isDeployed reports whether the records of a placement had its version, completely, when the run was planned.
func (r *Run) isDeployed(p *Placement) bool {
	return !slices.ContainsFunc(p.Namespaces, func(n metalk8s.Namespace) bool {
		for planned := range r.plansOf(record.Key{Namespace: n.Name, Name: p.Name}) {
			if planned.Release.Component == "" {
				return planned.Deployed() != p.Version
			}
		}
		return true
	})
}

// entries are versions of Solutions that the documents of namespaces are to have; "" for none.
type entries map[string]entry

// entry has the versions for one namespace.
type entry struct {
	metalk8s.Namespace
	versions map[string]string
}

func (e entries) add(solution, version string, namespaces []metalk8s.Namespace) {
	for _, n := range namespaces {
		if e[n.Name].versions == nil {
			e[n.Name] = entry{n, map[string]string{}}
		}
		e[n.Name].versions[solution] = version
	}
}

// setVersions writes entries into the documents of their namespaces.
func (r *Run) setVersions(ctx context.Context, all entries) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(records.Parallel)
	for _, e := range all {
		group.Go(func() error { return r.Records.Documents.SetVersions(ctx, e.Namespace, e.versions) })
	}
	return group.Wait()
}
