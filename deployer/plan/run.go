package plan

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Run is one run of a verb: its options, what was read for it, what it is to change, and what it reports. It is not safe for
// concurrent use. What it plans itself it plans with its methods; a caller with other things to do sets the exported fields.
type Run struct {
	schema.Operation
	Options
	*Planner

	definitions.Losses

	Catalog    *records.Catalog     // after ReadCatalog
	Namespaces []metalk8s.Namespace // of InNamespaces

	Plans   []*engine.Plan
	Changes []schema.Change        // by Before and After
	Needs   []cluster.Permission   // of Before and After, besides those for Changes
	Rebuilt []schema.OperationPart // records that were written again
	Ends    bool                   // the locks protect nothing afterwards
	// Deleted namespaces and Purged records are among the consequences.
	Deleted []schema.DeletedNamespace
	Purged  int
	// Before is called when the plans are on record and before objects are changed, and After when all of them are; either may be
	// nil. An interrupted run calls both again.
	Before, After func(context.Context) error

	only      string                        // the namespace of InNamespaces; "" for all of the environment
	unlocked  bool                          // it ends where there is something to do
	leaving   []removal                     // Solutions that are removed in the same run
	lost      []definitions.Scope           // objects that may lose data, which was accepted
	data      []schema.DataChange           // custom resources that were judged, for the consequences
	safe      []string                      // definitions that change without an effect on stored objects
	images    []schema.PreflightCheck       // of whether nodes can fetch images
	generated map[record.Key]string         // digest inputs of charts whose values are generated again
	lookups   map[record.Key][]schema.Power // powers that templates used while they were rendered
}

// Begin returns a run that has read nothing yet. The head names the verb and what it is about.
func (p *Planner) Begin(head schema.Operation, o Options) *Run {
	return &Run{Operation: head, Options: o, Planner: p}
}

// Do plans a run with prepare, checks that the user has all permissions, and carries it out under locks. A dry run ends after the check
// and takes no lock, which would be a change, too.
func (r *Run) Do(ctx context.Context, prepare func(context.Context) error, locks ...string) (done *schema.Operation, err error) {
	if r.DryRun {
		return r.plan(ctx, prepare)
	}
	if err = r.Cluster.Require(ctx, rights.Lock()); err != nil {
		return nil, err
	}
	err = r.Locked(ctx, func(ctx context.Context) (err error) {
		if done, err = r.plan(ctx, prepare); err != nil {
			return err
		}
		if err = r.carryOut(ctx); err == nil && r.Ends {
			cluster.DiscardLocks(ctx)
		}
		return err
	}, locks...)
	return done, err
}

// plan prepares a run and returns what it reports.
func (r *Run) plan(ctx context.Context, prepare func(context.Context) error) (*schema.Operation, error) {
	return r.planIn(cluster.WithMemory(ctx), prepare)
}

// planIn is plan with a context that has a memory.
func (r *Run) planIn(ctx context.Context, prepare func(context.Context) error) (*schema.Operation, error) {
	if err := prepare(ctx); err != nil {
		return nil, err
	}
	r.Planned = r.DryRun
	if err := r.checkReplace(); err != nil {
		return nil, err
	}
	group, within := errgroup.WithContext(ctx)
	group.Go(func() error { return r.checkPermissions(within) })
	if r.DryRun {
		group.Go(func() error { return r.checkCluster(within) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	done, refusal := r.Settle()
	if r.Planned && !r.DryRun { // another plan was expected, and this one is shown
		if err := r.checkCluster(ctx); err != nil {
			return nil, err
		}
	}
	return done, refusal
}

// checkPermissions checks that the user has all permissions of the run.
func (r *Run) checkPermissions(ctx context.Context) error {
	required, err := r.Work().Required(ctx, r.Cluster, !r.NoWait)
	if err != nil {
		return err
	}
	return r.Cluster.Require(ctx, required)
}

// Work returns what a planned run changes, for its permissions.
func (r *Run) Work() *rights.Work {
	return &rights.Work{Plans: r.Plans, Records: r.Changes, Also: r.Needs}
}

func (r *Run) carryOut(ctx context.Context) error {
	if err := r.Definitions.ExportAll(ctx, r.lost, r.Export); err != nil {
		return err
	}
	err := r.Records.Engine.ApplyAll(ctx, r.Plans, engine.ApplyOptions{Timeout: r.Timeout, NoWait: r.NoWait, Prepare: r.Before})
	if err != nil || r.After == nil {
		return err
	}
	return r.After(ctx)
}

// Begun returns the namespaces in which the run has recorded the pending revision of a Solution.
func (r *Run) Begun(solution string) (namespaces []string) {
	for _, p := range r.Plans {
		if p.Begun && p.Release.Name == solution && p.Release.Component == "" {
			namespaces = append(namespaces, p.Release.Namespace)
		}
	}
	return namespaces
}

// InNamespaces is like Do under the locks of namespaces of the run's environment: of one, or for "" of all of them.
func (r *Run) InNamespaces(ctx context.Context, namespace string, prepare func(context.Context) error) (*schema.Operation, error) {
	r.only = namespace
	done, err := r.underLocks(ctx, namespace, prepare)
	return done, rights.Explain(ctx, r.Cluster, err, cmp.Or(namespace, r.Environment))
}

func (r *Run) underLocks(ctx context.Context, namespace string, prepare func(context.Context) error) (*schema.Operation, error) {
	for first := true; ; first = false {
		names, err := r.lockable(ctx, namespace, first)
		if err != nil {
			return nil, err
		}
		locks := make([]string, len(names))
		for i, name := range names {
			locks[i] = cluster.LockOf(name)
		}
		joined := false
		prepareLocked := func(ctx context.Context) (err error) {
			// Values that were read without the locks may be outdated; for new locks, nothing was read.
			if joined, err = r.readNamespaces(ctx, namespace, names); err != nil {
				return err
			}
			if err = prepare(ctx); err != nil {
				return err
			}
			if namespace == "" && slices.ContainsFunc(r.Namespaces, func(n metalk8s.Namespace) bool { return n.Alone }) {
				r.Notice("this is about namespace " + r.Namespaces[0].Name + " only: you do not have permission to list namespaces, and others of environment " +
					r.Environment + ", if there are any, stay as they are")
			}
			return nil
		}
		if first {
			if done := r.unchanged(ctx, names, prepareLocked); done != nil {
				return done, nil
			}
		}
		done, err := r.Do(ctx, prepareLocked, locks...)
		if !joined || !first {
			return done, err
		}
	}
}

// fewNamespaces is for how many namespaces records are read one by one.
const fewNamespaces = 3

// readNamespaces reads the namespaces of the run, all of which have to be among the locked ones: joined reports that one is not.
func (r *Run) readNamespaces(ctx context.Context, namespace string, locked []string) (joined bool, err error) {
	var ahead sync.WaitGroup
	ahead.Go(func() { r.readAhead(ctx, locked) })
	r.Namespaces, err = r.Records.Namespaces(ctx, r.Environment, namespace)
	if ahead.Wait(); err != nil {
		return false, err
	}
	for _, n := range r.Namespaces {
		if !slices.Contains(locked, n.Name) {
			return true, report.Errorf(report.Conflict, "namespace %s became part of environment %s meanwhile", n.Name, r.Environment).
				WithHint("run the command again")
		}
	}
	if len(r.Namespaces) > fewNamespaces {
		return false, r.Records.Engine.ReadAhead(ctx)
	}
	return false, nil
}

// readAhead reads what a plan for a few namespaces needs of our own records, at the same time: it is in the memory of ctx then. An error is met
// again by the plan.
func (r *Run) readAhead(ctx context.Context, namespaces []string) {
	var documents []string
	switch r.Operation.Operation {
	case schema.VerbAdd, schema.VerbUpgrade, schema.VerbDowngrade:
		documents = append(documents, records.RegistryName)
	case schema.VerbRemove:
	default:
		return
	}
	var keys []record.Key
	if r.Solution != "" && len(namespaces) <= fewNamespaces {
		for _, namespace := range namespaces {
			keys = append(keys, record.Key{Namespace: namespace, Name: r.Solution})
		}
	}
	r.Records.ReadAhead(ctx, documents, keys...)
}

// lockable returns the names of the namespaces that a verb may be for. At first the API server's cache is enough: a namespace that it does
// not know yet is found when the locks are held.
func (r *Run) lockable(ctx context.Context, namespace string, cached bool) ([]string, error) {
	if cached {
		names, err := r.Records.Documents.Outline(ctx, r.Environment)
		switch {
		case err != nil && report.CodeOf(err) != report.Forbidden:
			return nil, err
		case namespace == "" && len(names) > 0:
			return names, nil
		case slices.Contains(names, namespace):
			return []string{namespace}, nil
		}
	}
	found, err := r.Records.Namespaces(ctx, r.Environment, namespace)
	if err != nil {
		return nil, err
	}
	return metalk8s.NamesOf(found), nil
}

// ReadCatalog reads which versions are imported.
func (r *Run) ReadCatalog(ctx context.Context) (err error) {
	r.Catalog, err = r.Records.Catalog(ctx)
	return err
}

// ReadCatalogIfIntact is ReadCatalog for verbs that only remove: a damaged record is an empty catalogue, with a notice of the checks
// that are left out.
func (r *Run) ReadCatalogIfIntact(ctx context.Context) (err error) {
	if r.Catalog, err = r.Records.CatalogOrDamage(ctx); err != nil {
		return err
	}
	if report.CodeOf(r.Catalog.Damage) == report.Corrupt {
		r.Notice("whether others need what goes, and what definitions archives have that are not active, is not known: " + r.Catalog.Unread())
		return nil
	}
	return r.Catalog.Damage // a newer version of this program wrote it
}

// CheckDependencies refuses a change that leaves a deployed Solution without another one that it needs.
func (r *Run) CheckDependencies(ctx context.Context, change func(dependencies.Holdings)) error {
	if !dependencies.AnyDeclared(r.Catalog) {
		return nil
	}
	held, err := dependencies.Read(ctx, r.Records)
	if err != nil {
		return err
	}
	return dependencies.Check(r.Catalog, held, change)
}

// Plan plans the releases of a run that has no others.
func (r *Run) Plan(ctx context.Context, releases ...engine.Release) (err error) {
	r.Plans, err = r.Records.Engine.PlanAll(ctx, releases, r.engine())
	return err
}

// Restore is Plan for releases as they were deployed: it brings back what was changed of them. With yield it leaves to others what they have
// made again.
func (r *Run) Restore(ctx context.Context, yield bool, releases ...engine.Release) (err error) {
	options := r.engine()
	options.Restore, options.Yield = true, yield
	r.Plans, err = r.Records.Engine.PlanAll(ctx, releases, options)
	return err
}

// Notice reports something that the user should know.
func (r *Run) Notice(texts ...string) { r.Notices = append(r.Notices, texts...) }

// noticeOnce reports texts that no notice has yet.
func (r *Run) noticeOnce(texts ...string) {
	for _, text := range texts {
		if !slices.Contains(r.Notices, text) {
			r.Notice(text)
		}
	}
}

// Report returns what the user is shown of a run.
func (r *Run) Report() *schema.Operation {
	r.Parts = append([]schema.OperationPart{}, r.Rebuilt...)
	changes := r.Changes
	for _, p := range r.Plans {
		part := schema.OperationPart{Namespace: p.Release.Namespace, Component: p.Release.Component, Resumes: p.Resumes != nil, Changes: []schema.Change{}}
		if len(p.Release.Together) > 0 || r.Operation.Operation == schema.VerbEnsure {
			part.Solution, part.Version = p.Release.Name, p.Release.Version
		}
		changes = slices.DeleteFunc(slices.Clone(changes), func(c schema.Change) bool {
			own := p.Release.Component == "" && IsRecordOf(c, p.Release.Namespace)
			if own {
				part.Changes = append(part.Changes, c)
			}
			return own
		})
		part.Changes = append(part.Changes, p.Changes...)
		for _, change := range p.Changes {
			if change.Action == schema.ActionSkip && !engine.IsLeftOut(change) && !r.Planned { // a plan lists it
				r.Notice("skipped " + change.Object.String() + ": " + change.Note)
			}
		}
		r.Parts = append(r.Parts, part)
	}
	if len(changes) > 0 {
		r.Parts = append(r.Parts, schema.OperationPart{Changes: changes})
	}
	if r.Notices == nil {
		r.Notices = []string{}
	}
	return &r.Operation
}

// IsRecordOf reports whether a change of a shared document is shown with the changes in a namespace, "" for the cluster.
func IsRecordOf(c schema.Change, namespace string) bool {
	if namespace == "" {
		return c.Object.Name == metalk8s.SolutionsConfigMap
	}
	return c.Object.Namespace == namespace
}
