package plan

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/kube/pods"
	"github.com/solutionctl/solutionctl/schema"
)

// consequences returns the effects of the planned releases and deletions; nil for a run that plans none. It sends no request.
func (r *Run) consequences() *schema.Consequences {
	if len(r.Plans)+len(r.Deleted)+r.Purged == 0 {
		return nil
	}
	c := &schema.Consequences{
		Versions: []schema.VersionChange{}, Programs: []schema.ProgramChange{}, Permissions: []string{},
		Namespaces: r.Deleted, Records: r.Purged, Data: mergeData(r.data), SafeDefinitions: append([]string{}, r.safe...),
	}
	var roles []engine.Object
	for _, p := range r.Plans {
		if p.Release.Component == "" {
			c.Versions = addVersion(c.Versions, p)
		}
		for _, object := range p.Objects() {
			if object.Action == schema.ActionUpdate || object.Action == schema.ActionAdopt || object.Action == schema.ActionReplace {
				c.Changed++
			}
			if program, affected := programOf(&object); affected {
				c.Programs = append(c.Programs, program)
			}
			if rights.IsRole(object.Object) {
				roles = append(roles, object)
			}
		}
	}
	wider, err := widened(roles)
	if err != nil { // too many to compare
		wider = []string{"not known: " + err.Error()}
	}
	c.Permissions = append(c.Permissions, wider...)
	return c
}

// signers returns by whom the versions are signed that the run brings, as far as their imports have recorded it.
func (r *Run) signers() (list []schema.VersionSigners) {
	if r.Catalog == nil {
		return nil
	}
	for _, p := range r.Plans {
		if p.Release.Component != "" || p.Release.Version == "" || p.Release.Version == p.Deployed() {
			continue
		}
		found, known := r.Catalog.Get(p.Release.Name + "-" + p.Release.Version)
		if !known || found.Signers == nil || slices.ContainsFunc(list, func(s schema.VersionSigners) bool { return s.Solution == found.Name && s.Version == found.Version }) {
			continue
		}
		list = append(list, schema.VersionSigners{Solution: found.Name, Version: found.Version, Signers: found.Signers})
	}
	return list
}

// addVersion adds the version of a Solution, together with other namespaces where it changes in the same way.
func addVersion(list []schema.VersionChange, p *engine.Plan) []schema.VersionChange {
	v := schema.VersionChange{Solution: p.Release.Name, From: p.Deployed(), To: p.Release.Version}
	if v.From == "" && v.To == "" {
		return list
	}
	if p.Release.Namespace == "" {
		return append(list, v)
	}
	i := slices.IndexFunc(list, func(other schema.VersionChange) bool {
		return other.Solution == v.Solution && other.From == v.From && other.To == v.To && len(other.Namespaces) > 0
	})
	if i < 0 {
		list, i = append(list, v), len(list)
	}
	list[i].Namespaces = append(list[i].Namespaces, p.Release.Namespace)
	return list
}

// widened returns the permissions that roles grant and those that they replace did not.
func widened(roles []engine.Object) ([]string, error) {
	if !slices.ContainsFunc(roles, func(o engine.Object) bool { return o.Action != schema.ActionNone && o.Desired != nil }) {
		return nil, nil
	}
	var before, after []*unstructured.Unstructured
	for _, role := range roles {
		existing := role.Existing
		if existing == nil && role.Action == schema.ActionNone {
			existing = role.Desired
		}
		if existing != nil {
			before = append(before, existing)
		}
		if role.Desired != nil {
			after = append(after, role.Desired)
		}
	}
	return rights.Widened(before, after)
}

// mergeData adds up what was found of each definition in several namespaces.
func mergeData(list []schema.DataChange) []schema.DataChange {
	merged := []schema.DataChange{}
	for _, d := range list {
		i := slices.IndexFunc(merged, func(other schema.DataChange) bool {
			return other.Definition == d.Definition && other.Outcome == d.Outcome
		})
		if i < 0 {
			merged = append(merged, d)
			continue
		}
		merged[i].Objects += d.Objects
		merged[i].Losing += d.Losing
		merged[i].Invalid += d.Invalid
	}
	return merged
}

// programOf returns what a change does to the pods of a workload, if anything.
func programOf(o *engine.Object) (schema.ProgramChange, bool) {
	object := cmp.Or(o.Desired, o.Existing)
	if object == nil {
		return schema.ProgramChange{}, false
	}
	template, path := pods.Template(object.Object)
	if template == nil || len(path) == 0 && o.Action == schema.ActionUpdate { // labels of a Pod
		return schema.ProgramChange{}, false
	}
	w := workload{object: object.Object, existing: cmp.Or(o.Existing, object).Object, change: &o.Change, template: strings.Join(path, ".")}
	p := schema.ProgramChange{Object: o.Object, Effect: w.effect()}
	if p.Effect == schema.ProgramRestarts || p.Effect == schema.ProgramLater {
		p.Image = w.changesImage()
	}
	p.Interrupted = p.Effect == schema.ProgramRestarts && w.isInterrupted()
	return p, p.Effect != ""
}

// workload is an object with a template of pods, and its change.
type workload struct {
	object   map[string]any // as it is wanted, or the one to delete
	existing map[string]any // the same for a new one
	change   *schema.Change
	template string // the path to it
}

// startsLater lists kinds whose pods start when something else creates them.
var startsLater = []string{"CronJob", "PodTemplate"}

// effect returns what the change does to the pods, "" for nothing.
func (w *workload) effect() schema.ProgramEffect {
	kind := w.change.Object.Kind
	before, after := w.replicas()
	later := slices.Contains(startsLater, kind)
	switch action := w.change.Action; {
	case kind == "Job" && (action == schema.ActionCreate || action == schema.ActionReplace):
		return schema.ProgramRuns
	case action == schema.ActionReplace && later:
		return schema.ProgramLater
	case action == schema.ActionReplace:
		return schema.ProgramRestarts
	case action == schema.ActionCreate && !later && after > 0:
		return schema.ProgramStarts
	case action == schema.ActionDelete && !later && kind != "Job" && before > 0:
		return schema.ProgramStops
	case action == schema.ActionUpdate, action == schema.ActionAdopt:
		return w.effectOfUpdate(before, after)
	}
	return ""
}

func (w *workload) effectOfUpdate(before, after int64) schema.ProgramEffect {
	switch {
	case before == 0 && after > 0:
		return schema.ProgramStarts
	case before > 0 && after == 0:
		return schema.ProgramStops
	case after == 0, !w.changesTemplate():
		return ""
	}
	switch w.change.Object.Kind {
	case "Deployment":
		if paused, _, _ := unstructured.NestedBool(w.object, "spec", "paused"); !paused {
			return schema.ProgramRestarts
		}
	case "StatefulSet", "DaemonSet":
		if strategy, _, _ := unstructured.NestedString(w.object, "spec", "updateStrategy", "type"); strategy != "OnDelete" {
			return schema.ProgramRestarts
		}
	}
	return schema.ProgramLater
}

// replicas returns how many pods the workload has before and after its change; 1 where the number is not its own.
func (w *workload) replicas() (before, after int64) {
	n, found, err := unstructured.NestedInt64(w.existing, "spec", "replicas")
	if !found || err != nil {
		n = 1
	}
	before, after = n, n
	for _, f := range w.change.Fields {
		if f.Path == "spec.replicas" {
			before, after = countOf(f.From), countOf(f.To)
		}
	}
	return before, after
}

// countOf reads a number of replicas; one is the default.
func countOf(text string) int64 {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	return 1
}

// changesTemplate reports whether the pods of the workload change.
func (w *workload) changesTemplate() bool {
	return slices.ContainsFunc(w.change.Fields, func(f schema.FieldChange) bool { return w.inTemplate(f.Path) })
}

func (w *workload) inTemplate(path string) bool {
	rest, below := strings.CutPrefix(path, w.template)
	return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// changesImage reports whether a container of the workload gets another image.
func (w *workload) changesImage() bool {
	return slices.ContainsFunc(w.change.Fields, func(f schema.FieldChange) bool {
		return w.inTemplate(f.Path) && strings.HasSuffix(f.Path, "].image") && f.From != "" && f.To != ""
	})
}

// isInterrupted reports whether the pods end before the new ones serve: all at once, or the only one of a StatefulSet.
func (w *workload) isInterrupted() bool {
	strategy, _, _ := unstructured.NestedString(w.object, "spec", "strategy", "type")
	_, after := w.replicas()
	return w.change.Action == schema.ActionReplace || strategy == "Recreate" || w.change.Object.Kind == "StatefulSet" && after == 1
}
