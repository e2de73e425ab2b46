package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/diff"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Deployed returns the releases of states as they were deployed, in their order. All states must have a Current. Releases whose
// stored objects are missing or corrupt are left out; unread has the reasons.
func (e *Engine) Deployed(ctx context.Context, states []*record.State) (releases []Release, unread map[record.Key]error, err error) {
	all := make([]*Release, len(states))
	errs := make([]error, len(states))
	if err := cluster.Each(len(states), func(i int) error {
		s := states[i]
		content, err := e.Content(ctx, s.Key, s.Current)
		if report.CodeOf(err) == report.Corrupt {
			errs[i] = err
			return nil
		}
		all[i] = &Release{
			Key: s.Key, Version: s.Current.Version, Operation: s.Current.Operation, Settings: s.Current.Settings, Components: s.Current.Components,
			Confined: s.Namespace != "",
			Objects:  content.Objects, Tasks: content.Tasks, GeneratedValues: content.GeneratedValues,
		}
		for _, name := range s.Current.Needs {
			all[i].Needs = append(all[i].Needs, Need{record.Key{Namespace: s.Namespace, Name: s.Name, Component: name}, schema.UntilReady})
		}
		for _, object := range s.Current.Objects {
			if object.Stays {
				all[i].Stay = append(all[i].Stay, object.ObjectRef)
			}
		}
		return err
	}); err != nil {
		return nil, nil, err
	}
	unread = map[record.Key]error{}
	for i, s := range states {
		if errs[i] != nil {
			unread[s.Key] = errs[i]
		} else {
			releases = append(releases, *all[i])
		}
	}
	return releases, unread, nil
}

// The notes of objects that a repair leaves out. It is not known whether what they can do was judged, so only a deployment restores them.
const (
	NeverCreated = "it was never created, because the cluster did not have its kind when it was deployed"
	NotRecorded  = "it was changed or deleted before the lost record was rebuilt"
)

// IsLeftOut reports whether a change of a repair leaves out an object.
func IsLeftOut(c schema.Change) bool { return c.Note == NeverCreated || c.Note == NotRecorded }

// decideRestore decides how to restore the deployed fields of an object. A field counts as changed if the engine does not own it any
// more, so a read-only plan needs no dry run and no right to write.
func (d *decider) decideRestore(ctx context.Context, s *step) error {
	kind := s.desired.GroupVersionKind()
	switch _, err := d.Cluster.Mapping(ctx, kind); {
	case errors.Is(err, cluster.ErrNoKind):
		s.Action, s.Note = schema.ActionSkip, noKind(kind)
		return nil
	case err != nil:
		return err
	}
	if done, err := d.decideEnded(ctx, s); done || err != nil {
		return err
	}
	switch {
	case d.hasWaited(s):
		s.Action, s.Note = schema.ActionSkip, NeverCreated
		return nil
	case s.known.Name == "" && !d.options.ReadOnly:
		s.Action, s.Note = schema.ActionSkip, NotRecorded
		return nil
	}
	live, err := d.Cluster.Get(ctx, kind, s.Object.Namespace, s.Object.Name)
	if err != nil {
		return err
	}
	s.live = live
	switch {
	case live == nil:
		s.Action, s.Note = schema.ActionCreate, "it does not exist"
	case live.GetDeletionTimestamp() != nil:
		s.Action, s.late, s.Note = schema.ActionCreate, !d.options.ReadOnly, terminating(live)
	default:
		s.Action, s.Fields = schema.ActionUpdate, diff.Drift(s.desired, live)
		if !d.belongs(s) {
			s.Action, s.Note = schema.ActionAdopt, "it was created again by another process: "+describe(live)
		} else if len(s.Fields) == 0 {
			s.Action = schema.ActionNone
		}
	}
	if s.known.Name == "" && s.Action != schema.ActionNone {
		s.Note = NotRecorded
	}
	if d.options.ReadOnly || s.Action == schema.ActionNone || s.Action == schema.ActionSkip || s.late {
		return nil
	}
	err = d.mayRestore(ctx, s)
	if d.options.Yield && conflicts(err) {
		s.Action, s.Note, err = schema.ActionKeep, err.Error(), nil
	}
	return err
}

// hasWaited reports whether the deployment left out the object, as the cluster did not have its kind. It was not known then whether that has namespaces.
func (d *decider) hasWaited(s *step) bool {
	return slices.ContainsFunc(d.waiting, func(o schema.ObjectRef) bool {
		if s.Object.Namespace == "" {
			o.Namespace = ""
		}
		return o == s.Object
	})
}

// mayRestore asks the server whether the planned change is possible. Fields that another manager applies are a conflict, because
// that manager would apply them again; edited fields are restored.
func (d *decider) mayRestore(ctx context.Context, s *step) error {
	phase := phaseOf(s.desired.GroupVersionKind().GroupKind())
	switch {
	case phase == phaseDefinitions:
		s.Action, s.Note = schema.ActionKeep, "a CustomResourceDefinition is only changed by activation"
		return nil
	case s.Action == schema.ActionCreate:
		_, err := d.tryCreate(ctx, s)
		return err
	}
	if !d.options.Force {
		if taken := appliedByOthers(s); len(taken) > 0 {
			return report.Errorf(report.Conflict, "%s: other managers apply these fields: %s", s.Object, strings.Join(taken, "; ")).
				WithHint("remove the fields from what the other manager applies, or take them with %s",
					report.Accept("force-conflicts").About(s.Object.String()+": "+strings.Join(taken, "; ")))
		}
	}
	drift, adopts := s.Fields, s.Action == schema.ActionAdopt
	if err := d.decideUpdate(ctx, s); err != nil || s.Action == schema.ActionNone || s.Action == schema.ActionReplace {
		return err
	}
	if !adopts {
		s.Fields = drift
	}
	return nil
}

// appliedByOthers lists the fields of a step that other managers have applied.
func appliedByOthers(s *step) []string {
	var taken []string
	for _, entry := range s.live.GetManagedFields() {
		if entry.Operation != metav1.ManagedFieldsOperationApply || entry.Manager == cluster.FieldManager {
			continue
		}
		for _, field := range s.Fields {
			if slices.Contains(strings.Split(field.Manager, ", "), entry.Manager) {
				taken = append(taken, fmt.Sprintf("%s (%q)", field.Path, entry.Manager))
			}
		}
	}
	return taken
}
