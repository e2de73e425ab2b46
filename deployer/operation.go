package deployer

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Options are those of every verb that deploys.
type Options struct {
	DryRun bool // only plan
	// Expect is the digest of a plan that was seen before: what would do anything else ends with a [PlanChangedError] before its
	// first change. "" expects nothing. [Deployer.Resume], [Deployer.Converge] and [Deployer.RebuildRecords], which are not one
	// plan, refuse it.
	Expect string
	Adopt  bool // take over objects that somebody else made
	Force  bool // take over fields that belong to somebody else
	// KeepEdits leaves as it is what somebody has changed of objects that are wanted as they were deployed. What is gone is made
	// again all the same.
	KeepEdits bool
	NoWait    bool // do not wait until what was deployed is ready
	Timeout   time.Duration
	// Replace names objects, as KIND/NAME, that may be deleted and made again when they cannot be changed in place, where that
	// loses nothing, and Jobs to run again although they have ended.
	Replace []string
	// Allow are powers that are allowed in this run and recorded as approved: each is a NAME, for all of this name, or as [Allowance]
	// names that of one object. A later version that can do more asks again.
	Allow []string
	// Refuse makes a dry run refuse what nobody has approved of, as the run itself does. Otherwise its plan shows it.
	Refuse bool

	ifThere bool // what Replace names need not be part of what is planned
}

func (o Options) plan() engine.PlanOptions {
	return engine.PlanOptions{Adopt: o.Adopt, Force: o.Force, KeepEdits: o.KeepEdits, Replace: o.Replace}
}

// checkReplace refuses to replace what is never replaced, and what a task does not have.
func (o Options) checkReplace(t *task) error {
	var has []string
	for _, p := range t.plans {
		for _, object := range p.Release.Objects {
			has = append(has, object.GetKind()+"/"+object.GetName())
		}
	}
	for _, text := range o.Replace {
		kind, name, ok := strings.Cut(text, "/")
		switch {
		case !ok || kind == "" || name == "" || strings.Contains(name, "/"):
			return report.Errorf(report.Usage, "%q is not KIND/NAME", text)
		case engine.ReplacedUnasked(kind):
			return report.Errorf(report.Usage, "a %s is replaced without being named, when it refers to another role", kind).WithHint("leave out --replace %s", text)
		case !engine.Replaceable(kind):
			return report.Errorf(report.Refused, "a %s is never replaced, as that could lose data", kind)
		case !o.ifThere && !slices.ContainsFunc(has, func(known string) bool { return strings.EqualFold(known, text) }):
			return report.Errorf(report.Usage, "there is no %s in what is deployed", text).WithHint("it has %s", strings.Join(replaceable(has), ", "))
		}
	}
	return nil
}

// replaceable are the names among some that can be replaced, each once.
func replaceable(names []string) []string {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		kind, _, _ := strings.Cut(name, "/")
		return !engine.Replaceable(kind)
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// task is a verb of which everything was read and judged, and nothing done.
type task struct {
	schema.Operation
	plans   []*engine.Plan
	rebuilt []schema.OperationPart // records that were made again
	drawn   map[engine.Key]string  // what stands for objects that are others in each plan
	// before is done when the plans are on record and before objects are changed, and after when all of them are; either may
	// be nil. Both may be done again by the next run.
	before, after func(context.Context) error
	records       []schema.Change      // what before and after change in the shared documents
	needs         []cluster.Permission // what before takes
	gone          []departure          // what leaves in the same run
	ends          bool                 // what the locks protect is gone afterwards
	// exported may lose data, which was accepted, and go to export before anything else is done.
	exported []definitions.Scope
	export   definitions.Export
}

// perform prepares a verb and carries it out under its locks. A dry run takes none: a lock is a change, too.
func (d *Deployer) perform(ctx context.Context, o Options, locks []string, prepare func(context.Context) (*task, error)) (*schema.Operation, error) {
	if o.DryRun {
		ctx = cluster.WithMemory(ctx)
		t, err := prepare(ctx)
		if err != nil {
			return nil, err
		}
		t.Planned = true
		if err = d.mayDo(ctx, t, o); err != nil {
			return nil, err
		}
		return t.settle(o)
	}
	if err := d.Cluster.Require(ctx, rights.Lock()); err != nil {
		return nil, err
	}
	var done *schema.Operation
	err := d.Locked(ctx, func(ctx context.Context) error {
		planning := cluster.WithMemory(ctx)
		t, err := prepare(planning)
		if err != nil {
			return err
		}
		if err = d.mayDo(planning, t, o); err != nil {
			return err
		}
		if done, err = t.settle(o); err != nil {
			return err
		}
		if err = d.carryOut(ctx, t, o); err == nil && t.ends {
			cluster.DiscardLocks(ctx)
		}
		return err
	}, locks...)
	return done, err
}

// mayDo checks that what the options allow applies to a task, and that the user has all permissions to carry it out, so that nothing is
// left half-done for lack of one.
func (d *Deployer) mayDo(ctx context.Context, t *task, o Options) error {
	if err := o.checkReplace(t); err != nil {
		return err
	}
	required, err := t.work().Required(ctx, d.Cluster, !o.NoWait)
	if err != nil {
		return err
	}
	return d.Cluster.Require(ctx, required)
}

// work returns the changes of a task, for its permissions.
func (t *task) work() *rights.Work {
	return &rights.Work{Plans: t.plans, Records: t.records, Also: t.needs}
}

// inNamespaces performs a verb under the locks of namespaces of an environment: of one, or for "" of all of them.
func (d *Deployer) inNamespaces(ctx context.Context, o Options, environment, namespace string, prepare func(context.Context, []metalk8s.Namespace) (*task, error)) (*schema.Operation, error) {
	done, err := d.underLocks(ctx, o, environment, namespace, prepare)
	return done, rights.Explain(ctx, d.Cluster, err, cmp.Or(namespace, environment))
}

func (d *Deployer) underLocks(ctx context.Context, o Options, environment, namespace string, prepare func(context.Context, []metalk8s.Namespace) (*task, error)) (*schema.Operation, error) {
	for first := true; ; first = false {
		names, err := d.lockable(ctx, environment, namespace, first)
		if err != nil {
			return nil, err
		}
		locks := make([]string, len(names))
		for i, name := range names {
			locks[i] = lockOf(name)
		}
		joined := false
		done, err := d.perform(ctx, o, locks, func(ctx context.Context) (*task, error) {
			// What was read without the locks may not be so any more, and what was not there has none.
			current, failed := d.Records.Namespaces(ctx, environment, namespace)
			if failed != nil {
				return nil, failed
			}
			for _, n := range current {
				if !slices.Contains(names, n.Name) {
					joined = true
					return nil, report.Errorf(report.Conflict, "namespace %s became part of environment %s meanwhile", n.Name, environment).
						WithHint("run the command again")
				}
			}
			if len(current) > fewNamespaces {
				if failed = d.Records.Engine.ReadAhead(ctx); failed != nil {
					return nil, failed
				}
			}
			t, failed := prepare(ctx, current)
			if failed == nil && namespace == "" && slices.ContainsFunc(current, func(n metalk8s.Namespace) bool { return n.Alone }) {
				t.notice("this is about namespace " + current[0].Name + " only: you do not have permission to list namespaces, and others of environment " +
					environment + ", if there are any, stay as they are")
			}
			return t, failed
		})
		if !joined || !first {
			return done, err
		}
	}
}

// fewNamespaces is for how many namespaces records are read one by one.
const fewNamespaces = 3

// lockable returns the names of the namespaces that a verb may be for. At first what the API server remembers will do: a
// namespace that it does not know yet is found when the locks are held.
func (d *Deployer) lockable(ctx context.Context, environment, namespace string, remembered bool) ([]string, error) {
	if remembered {
		names, err := d.Records.Documents.Outline(ctx, environment)
		switch {
		case err != nil && report.CodeOf(err) != report.Forbidden:
			return nil, err
		case namespace == "" && len(names) > 0:
			return names, nil
		case slices.Contains(names, namespace):
			return []string{namespace}, nil
		}
	}
	found, err := d.Records.Namespaces(ctx, environment, namespace)
	if err != nil {
		return nil, err
	}
	return metalk8s.NamesOf(found), nil
}

// imported reads what was imported, for a verb that only takes away. While the record of it is damaged the verb goes on without, and
// says what nobody can check then.
func (d *Deployer) imported(ctx context.Context, t *task) (*records.Catalog, error) {
	catalog, err := d.Records.CatalogOrDamage(ctx)
	switch {
	case err != nil:
		return nil, err
	case report.CodeOf(catalog.Damage) == report.Corrupt:
		t.notice("whether others need what goes, and what definitions archives have that are not active, is not known: " + catalog.Unread())
	case catalog.Damage != nil:
		return nil, catalog.Damage // it is of a newer version of this program
	}
	return catalog, nil
}

// checkDependencies refuses a change of what is deployed that leaves a Solution without another one that it needs.
func (d *Deployer) checkDependencies(ctx context.Context, catalog *records.Catalog, change func(dependencies.Holdings)) error {
	if !dependencies.AnyDeclared(catalog) {
		return nil
	}
	held, err := dependencies.Read(ctx, d.Records)
	if err != nil {
		return err
	}
	return dependencies.Check(catalog, held, change)
}

func (d *Deployer) carryOut(ctx context.Context, t *task, o Options) error {
	if err := d.Definitions.ExportAll(ctx, t.exported, t.export); err != nil {
		return err
	}
	err := d.Records.Engine.ApplyAll(ctx, t.plans, engine.ApplyOptions{Timeout: o.Timeout, NoWait: o.NoWait, Prepare: t.before})
	if err != nil {
		return err
	}
	if t.after != nil {
		return t.after(ctx)
	}
	return nil
}

// finish returns what is told about the task.
func (t *task) finish() *schema.Operation {
	t.Parts = append([]schema.OperationPart{}, t.rebuilt...)
	records := t.records
	for _, p := range t.plans {
		part := schema.OperationPart{Namespace: p.Release.Namespace, Component: p.Release.Component, Resumes: p.Resumes != nil, Changes: []schema.Change{}}
		if len(p.Release.Together) > 0 || t.Operation.Operation == schema.VerbEnsure {
			part.Solution, part.Version = p.Release.Name, p.Release.Version
		}
		records = slices.DeleteFunc(slices.Clone(records), func(c schema.Change) bool {
			mine := p.Release.Component == "" && recordOf(c, p.Release.Namespace)
			if mine {
				part.Changes = append(part.Changes, c)
			}
			return mine
		})
		part.Changes = append(part.Changes, p.Changes...)
		for _, change := range p.Changes {
			if change.Action == schema.ActionSkip && !t.Planned { // a plan lists it
				t.notice("skipped " + change.Object.String() + ": " + change.Note)
			}
		}
		t.Parts = append(t.Parts, part)
	}
	if len(records) > 0 {
		t.Parts = append(t.Parts, schema.OperationPart{Changes: records})
	}
	if t.Notices == nil {
		t.Notices = []string{}
	}
	return &t.Operation
}

// recordOf tells whether a change of a shared document is shown with what happens in a namespace, "" for the cluster.
func recordOf(c schema.Change, namespace string) bool {
	if namespace == "" {
		return c.Object.Name == metalk8s.SolutionsConfigMap
	}
	return c.Object.Namespace == namespace
}

// draws takes over what a placement noted of components that draw something again.
func (t *task) draws(one *placement) {
	if t.drawn == nil {
		t.drawn = map[engine.Key]string{}
	}
	maps.Copy(t.drawn, one.drawn)
}

// notice tells whoever runs the command something they should know.
func (t *task) notice(texts ...string) { t.Notices = append(t.Notices, texts...) }
