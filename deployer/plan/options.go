package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Options are common to all verbs that deploy.
type Options struct {
	DryRun bool // only plan
	// Expect is the digest of a plan that was seen before: what would do anything else ends with a [ChangedError] before its
	// first change. "" expects nothing. Verbs that are not one plan refuse it.
	Expect string
	Adopt  bool // adopt objects that others made
	Force  bool // take fields of other managers
	// KeepEdits keeps changes that others made to objects which the plan leaves as they were deployed. Missing objects are created all the
	// same.
	KeepEdits bool
	NoWait    bool // do not wait until what was deployed is ready
	Timeout   time.Duration
	// Replace names objects, as KIND/NAME, that may be deleted and made again when they cannot be changed in place, where that
	// loses nothing, and Jobs to run again although they have ended.
	Replace []string
	// Allow are powers that are allowed in this run and recorded as approved: each is a NAME, for all of this name, or as [Allowance]
	// names that of one object. A later version that can do more asks again.
	Allow []string
	// Approved are powers that the user was shown and allows in this run. Unlike Allow, they allow exactly these or narrower ones.
	Approved []schema.Power
	// Refuse makes a dry run refuse powers that are not approved, as the run itself does. Otherwise its plan shows them.
	Refuse bool

	// ReplaceIfPlanned lets Replace name objects that are not part of the plan.
	ReplaceIfPlanned bool
}

func (o Options) engine() engine.PlanOptions {
	return engine.PlanOptions{Adopt: o.Adopt, Force: o.Force, KeepEdits: o.KeepEdits, Replace: o.Replace}
}

// checkReplace refuses to replace kinds that are never replaced, and objects that are not part of the plan.
func (r *Run) checkReplace() error {
	var has []string
	for _, p := range r.Plans {
		for _, object := range withTasks(&p.Release) {
			has = append(has, object.GetKind()+"/"+object.GetName())
		}
	}
	for _, text := range r.Replace {
		kind, name, ok := strings.Cut(text, "/")
		switch {
		case !ok || kind == "" || name == "" || strings.Contains(name, "/"):
			return report.Errorf(report.Usage, "%q is not KIND/NAME", text)
		case engine.ReplacedUnasked(kind):
			return report.Errorf(report.Usage, "a %s is replaced without being named, when it refers to another role", kind).WithHint("leave out --replace %s", text)
		case !engine.Replaceable(kind):
			return report.Errorf(report.Refused, "a %s is never replaced, as that could lose data", kind)
		case !r.ReplaceIfPlanned && !slices.ContainsFunc(has, func(known string) bool { return strings.EqualFold(known, text) }):
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
