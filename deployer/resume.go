package deployer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ResumeOptions select the operations to resume; empty fields select all.
type ResumeOptions struct {
	plan.Options
	Environment, Solution string
}

// Resume finishes every interrupted operation by its own verb, with the saved options. A failure does not stop the others, and the result lists all
// of them. It deletes no custom resource: an operation that would delete more data than its user saw is refused.
func (d *Deployer) Resume(ctx context.Context, o ResumeOptions) (*schema.Resumption, error) {
	if err := o.ExpectsNothing("the rest of several commands"); err != nil {
		return nil, err
	}
	run := &resuming{Deployer: d, o: o}
	pending, errs, err := run.unfinished(ctx)
	if err != nil {
		return nil, err
	}
	result := &schema.Resumption{Planned: o.DryRun, Operations: []schema.ResumedOperation{}}
	for _, p := range pending {
		result.Operations = append(result.Operations, p.ResumedOperation)
		if o.DryRun {
			continue
		}
		done := &result.Operations[len(result.Operations)-1]
		if err := run.resume(ctx, p); err != nil {
			done.Error = err.Error()
			errs = append(errs, fmt.Errorf("finish %s of Solution %s in %s: %w", p.Operation, p.Solution, placeOf(p), err))
			continue
		}
		done.Finished = true
	}
	return result, errors.Join(errs...)
}

// resuming is a run of Resume.
type resuming struct {
	*Deployer
	o ResumeOptions
}

// unfinished is an interrupted operation, with its revision and the saved options.
type unfinished struct {
	schema.ResumedOperation
	revision *schema.DeploymentRevision
	saved    []byte
}

func placeOf(p unfinished) string {
	if p.Namespace == "" {
		return "the cluster"
	}
	return "namespace " + p.Namespace
}

// unfinished returns the interrupted operations: pending ones on record, activations that the document of MetalK8s lacks, and objects that waited for
// a kind that the cluster has by now. Activations come first and deactivations last. unread has an error for each record that cannot be read.
func (r *resuming) unfinished(ctx context.Context) (list []unfinished, unread []error, err error) {
	environments, err := r.Records.Documents.Environments(ctx)
	if err != nil {
		return nil, nil, err
	}
	if r.o.Environment != "" {
		if _, err = r.Records.Documents.Environment(ctx, r.o.Environment); err != nil {
			return nil, nil, err
		}
	}
	environmentOf := records.EnvironmentsByNamespace(environments)
	states, err := r.Records.Engine.States(ctx)
	if err != nil {
		return nil, nil, err
	}
	solutions, err := r.Records.Documents.Solutions(ctx)
	if err != nil {
		return nil, nil, err
	}
	states = slices.DeleteFunc(states, func(s *record.State) bool {
		return r.o.Solution != "" && s.Name != r.o.Solution || r.o.Environment != "" && environmentOf[s.Namespace] != r.o.Environment
	})
	if len(states) == 0 && r.o.Solution != "" {
		return nil, nil, records.NotDeployed(r.o.Solution)
	}
	for _, s := range states {
		if s.Damage != nil {
			unread = append(unread, fmt.Errorf("%s: %w", s, s.Damage))
			continue
		}
		if s.Component != "" && slices.ContainsFunc(list, func(u unfinished) bool { return u.Namespace == s.Namespace && u.Solution == s.Name }) {
			continue // it is finished with its Solution, whose record comes first
		}
		revision, err := r.unfinishedOf(ctx, s, solutions)
		if err != nil {
			return nil, nil, err
		}
		if revision == nil {
			continue
		}
		list = append(list, unfinished{revision: revision, saved: s.SavedOptions, ResumedOperation: schema.ResumedOperation{
			Environment: environmentOf[s.Namespace], Namespace: s.Namespace, Solution: s.Name,
			PendingOperation: schema.PendingOperation{
				Operation: revision.Operation, Version: revision.Version, User: revision.User, Started: revision.Started,
			},
		}})
	}
	rank := map[string]int{schema.VerbActivate: -1, schema.VerbDeactivate: 1}
	slices.SortStableFunc(list, func(a, b unfinished) int { return cmp.Compare(rank[a.Operation], rank[b.Operation]) })
	return list, unread, nil
}

// unfinishedOf returns the revision of a record that has to be completed; nil for none.
func (r *resuming) unfinishedOf(ctx context.Context, s *record.State, solutions *metalk8s.Solutions) (*schema.DeploymentRevision, error) {
	switch {
	case s.Pending != nil:
		return s.Pending, nil
	case s.Current == nil:
		return nil, nil
	case s.Component != "":
		if at, err := r.planner().AdoptionLeft(ctx, s.Current.Settings); err != nil || at.Name != "" {
			return s.Current, err // only the release of Helm is left to delete
		}
	case s.Namespace == "" && s.Current.Version != solutions.Active(s.Name):
		return s.Current, nil
	}
	return awaited(ctx, r.Cluster, s)
}

// awaited returns a deployment of the same version that creates the objects that waited for a kind that the cluster has by now; nil for none. It is
// not a repair, which does not judge what they can do.
func awaited(ctx context.Context, c *cluster.Cluster, s *record.State) (*schema.DeploymentRevision, error) {
	if s.Current == nil {
		return nil, nil
	}
	for _, object := range s.Current.Waiting {
		_, err := c.Mapping(ctx, kube.FromAPIVersionAndKind(object.APIVersion, object.Kind))
		if errors.Is(err, cluster.ErrNoKind) {
			continue
		}
		if err != nil {
			return nil, err
		}
		verb := schema.VerbAdd
		if s.Namespace == "" {
			verb = schema.VerbActivate
		}
		return &schema.DeploymentRevision{Operation: verb, Version: s.Current.Version, User: s.Current.User, Started: s.Current.Started}, nil
	}
	return nil, nil
}

// resume runs the verb again.
func (r *resuming) resume(ctx context.Context, p unfinished) error {
	if p.Namespace != "" && p.Environment == "" {
		return report.Errorf(report.Refused, "namespace %s is part of no environment", p.Namespace).
			WithHint("'%s' removes the rest of a deleted environment", report.Run("deploy env delete", p.Namespace))
	}
	request, err := p.request(r.o.Options)
	if err != nil {
		return err
	}
	if p.Operation == schema.VerbAdd && len(request.With) > 0 {
		return r.resumeTogether(ctx, request)
	}
	_, err = r.Perform(ctx, request)
	return err
}

// request returns the interrupted verb with the options that its run saved, and o. A deactivation keeps the CRDs if the interrupted run kept them.
func (p *unfinished) request(o plan.Options) (Request, error) {
	saved, err := plan.ParseSavedOptions(record.Key{Namespace: p.Namespace, Name: p.Solution}, p.saved)
	request := Request{
		Verb: p.Operation, Options: saved.Options(o), Environment: p.Environment, Namespace: p.Namespace, Solution: p.Solution, Version: p.Version,
		With: p.revision.Together, Components: saved.Components,
	}
	switch {
	case p.Operation == schema.VerbActivate:
		request.begun = true
	case p.Operation == schema.VerbDelete:
		request.Data = plan.DeleteData
	case p.Operation == schema.VerbRemove && plan.Keeps(p.revision):
		request.Data = plan.KeepData
	case p.Operation == schema.VerbDeactivate:
		request.Data = plan.KeepData
		if request.begun = p.deletesCRDs(); request.begun {
			request.Data = plan.RefuseData
		}
	}
	return request, err
}

// deletesCRDs reports whether the interrupted run deletes CustomResourceDefinitions.
func (p *unfinished) deletesCRDs() bool {
	return p.revision.Outcome == schema.DeploymentPending && slices.ContainsFunc(p.revision.Objects, func(object schema.DeployedObject) bool {
		return object.Leaving && object.Kind == cluster.DefinitionKind.Kind
	})
}

// resumeTogether continues to add Solutions that were added in one run.
func (r *resuming) resumeTogether(ctx context.Context, add Request) error {
	ensure := EnsureOptions{Options: add.Options, Environment: add.Environment, Solutions: []plan.Wanted{{Solution: add.Solution, Version: add.Version}}}
	for _, at := range add.With {
		ensure.Solutions = append(ensure.Solutions, plan.Wanted{Solution: at.Solution, Version: at.Version})
	}
	_, err := r.Ensure(ctx, ensure)
	if report.CodeOf(err) == report.NotFound {
		return report.As(report.NotFound, err).WithHint("or add it alone: %s", report.Run("deploy add", add.Environment, add.Solution, add.Version))
	}
	return err
}
