package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ChangedError refuses a plan that differs from the one that the user expects.
type ChangedError struct {
	Plan *schema.Operation // as it is now
}

func (e *ChangedError) Error() string {
	return "the plan is no longer what it was when it was looked at; nothing was changed"
}

// Settle returns what the user is shown of a planned run, unless the user expects another plan.
func (r *Run) Settle() (*schema.Operation, error) {
	digest, err := r.digest()
	if err != nil {
		return nil, err
	}
	r.Digest, r.Consequences, r.Signers = digest, r.consequences(), r.signers()
	if r.Expect == "" || r.Expect == digest {
		return r.Report(), nil
	}
	r.Planned = true
	return nil, report.Errorf(report.Conflict, "%w", &ChangedError{Plan: r.Report()}).
		WithHint("look at what would be done now; to do that: --expect %s", digest)
}

// digest is the same for plans that would do the same, and for no others. Beside what a plan shows it is about the objects
// themselves, of which a plan shows no more than the name when they are new, and about what the user has accepted. It does not
// depend on the order of a cluster's answers, nor on times, certificates and generated values, which are new in each plan.
func (r *Run) digest() (string, error) {
	type release struct {
		Namespace, Name, Version string
		Settings                 map[string]string
		Objects                  []string
		Changes                  []string
		Resumes                  bool
	}
	var plan struct {
		Operation, Solution, Version, Environment string
		Adopt, Force                              bool
		Replace, Notices, Records, Rebuilt, Lost  []string
		Powers                                    []string `json:",omitempty"`
		Releases                                  []release
	}
	head := &r.Operation
	plan.Operation, plan.Solution, plan.Version, plan.Environment = head.Operation, head.Solution, head.Version, head.Environment
	plan.Adopt, plan.Force = r.Adopt, r.Force
	plan.Replace, plan.Notices = sorted(r.Replace), sorted(r.Notices)
	plan.Records = changeLines(r.Changes)
	for _, part := range r.Rebuilt {
		plan.Rebuilt = append(plan.Rebuilt, fmt.Sprintf("%s %s %s %q", part.Namespace, part.Solution, part.Version, changeLines(part.Changes)))
	}
	slices.Sort(plan.Rebuilt)
	for _, scope := range r.lost {
		plan.Lost = append(plan.Lost, scope.String())
	}
	slices.Sort(plan.Lost)
	for _, p := range r.Powers { // approvals change nothing
		text, err := json.Marshal(p.Power)
		if err != nil {
			return "", err
		}
		plan.Powers = append(plan.Powers, p.Solution+" "+string(text))
	}
	slices.Sort(plan.Powers)
	for _, p := range r.Plans {
		planned := release{
			Namespace: p.Release.Namespace, Name: p.Release.Label(), Version: p.Release.Version, Settings: p.Release.Settings,
			Changes: changeLines(p.Changes), Resumes: p.Resumes != nil,
		}
		var err error
		if input, ok := r.generated[p.Release.Key]; ok {
			planned.Objects, planned.Changes = []string{fmt.Sprintf("%x", sha256.Sum256([]byte(input)))}, changeLines(withoutFields(p.Changes))
		} else if planned.Objects, err = objectDigests(&p.Release); err != nil {
			return "", err
		}
		plan.Releases = append(plan.Releases, planned)
	}
	slices.SortFunc(plan.Releases, func(a, b release) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	text, err := json.Marshal(plan)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(text)), nil
}

// objectDigests returns the digests of the objects and tasks of a release, sorted.
func objectDigests(r *engine.Release) ([]string, error) {
	var contents []any
	for _, object := range r.Objects {
		contents = append(contents, render.WithoutCertificates(object))
	}
	for _, task := range r.Tasks {
		contents = append(contents, []any{task.Task, task.Object})
	}
	var digests []string
	for _, content := range contents {
		text, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		digests = append(digests, fmt.Sprintf("%x", sha256.Sum256(text)))
	}
	slices.Sort(digests)
	return digests, nil
}

// withoutFields returns changes without the fields that they change.
func withoutFields(changes []schema.Change) []schema.Change {
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].Fields = nil
	}
	return changes
}

// changeLines returns changes as sorted texts, without the times of the last changes: other managers may write their fields again and again.
func changeLines(changes []schema.Change) []string {
	var lines []string
	for _, change := range changes {
		words := []string{fmt.Sprintf("%s %s %q %q", change.Action, change.Object.APIVersion, change.Object.String(), change.Note)}
		for _, field := range change.Fields {
			from, to := render.ValueWithoutCertificates(field.Path, field.From), render.ValueWithoutCertificates(field.Path, field.To)
			words = append(words, fmt.Sprintf("%q %q %q %q", field.Path, field.Manager, from, to))
		}
		lines = append(lines, strings.Join(words, "\n"))
	}
	slices.Sort(lines)
	return lines
}

// ExpectsNothing refuses Expect for a verb that has no single plan.
func (o Options) ExpectsNothing(what string) error {
	if o.Expect == "" {
		return nil
	}
	return report.Errorf(report.Usage, "%s is not one plan that can be expected", what)
}

func sorted(texts []string) []string { return slices.Sorted(slices.Values(texts)) }
