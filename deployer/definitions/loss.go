package definitions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/kube/crd"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// lossJudge finds the data that stored objects lose when one CRD replaces another.
type lossJudge struct {
	before, after *crd.Definition
	old, new      *crd.Checker
	listed        kube.GroupVersionKind // the version that objects are read in
	removed       []string              // versions in which objects may be stored and that go away
	// moves is the version in which objects have to be stored because the one that they are stored in now is one of
	// those that go away; "" when it stays.
	moves string
	// hooked is true when a webhook defaults or changes objects of that version: losses only show when a request is
	// tried, and untried is the reason why that was not possible. tried has the objects, by UID, as they were then.
	hooked  bool
	untried string
	tried   map[types.UID]string

	objects  int
	lost     []string
	others   int
	refused  int
	refusals []string
}

func newLossJudge(before, after *crd.Definition) (*lossJudge, error) {
	j := &lossJudge{before: before, after: after, tried: map[types.UID]string{}}
	var err error
	if j.old, err = crd.NewChecker(before); err != nil {
		return nil, err
	}
	if j.new, err = crd.NewChecker(after); err != nil {
		return nil, err
	}
	for _, version := range before.Status.StoredVersions {
		if !hasVersion(after, version) {
			j.removed = append(j.removed, version)
		}
	}
	if len(j.removed) > 0 && !hasVersion(after, before.StorageVersion()) {
		j.moves = after.StorageVersion()
	}
	j.listed = kube.GroupVersionKind{Group: before.Spec.Group, Version: j.readIn(), Kind: before.Spec.Names.Kind}
	return j, nil
}

// readIn is the version in which to read objects. Without a webhook this is a version that will be removed: it shows
// the data that will be lost, even after an interrupted run has already stored some objects in another version.
func (j *lossJudge) readIn() string {
	if converts(j.before) {
		if j.hooked = serves(j.before, j.moves); j.hooked {
			return j.moves
		}
		return ServedVersion(j.before)
	}
	for _, version := range j.removed {
		if serves(j.before, version) {
			return version
		}
	}
	return ServedVersion(j.before)
}

// ServedVersion is the version to read objects in: the one they are stored in, if that is served.
func ServedVersion(d *crd.Definition) string {
	served := ""
	for _, version := range d.Spec.Versions {
		if version.Served && (version.Storage || served == "") {
			served = version.Name
		}
	}
	return served
}

// converts reports whether a webhook converts between the versions of a CRD.
func converts(d *crd.Definition) bool {
	return d.Spec.Conversion != nil && d.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

// look judges one object.
func (j *lossJudge) look(ctx context.Context, object *unstructured.Unstructured) error {
	j.objects++
	fields, problems, err := j.judge(ctx, object)
	if err != nil {
		return err
	}
	j.lose(cluster.NameOf(object), fields)
	j.reject(cluster.NameOf(object), problems)
	return nil
}

func (j *lossJudge) lose(name string, fields []string) {
	switch {
	case len(fields) == 0:
	case len(j.lost) == report.MaxSome:
		j.others++
	default:
		j.lost = append(j.lost, fmt.Sprintf("%s: %s", name, strings.Join(fields, ", ")))
	}
}

func (j *lossJudge) reject(name string, problems []string) {
	if len(problems) == 0 {
		return
	}
	j.refused++
	if len(j.refusals) < report.MaxSome {
		j.refusals = append(j.refusals, fmt.Sprintf("%s: %s", name, problems[0]))
	}
}

// converted are the versions besides the listed one in which a webhook shows objects, now and afterwards, and whose schema is
// among these changes.
func (j *lossJudge) converted(changes []crd.Change) []string {
	if !converts(j.before) || !converts(j.after) {
		return nil
	}
	var versions []string
	for _, version := range j.after.Spec.Versions {
		if version.Served && serves(j.before, version.Name) && version.Name != j.listed.Version &&
			slices.ContainsFunc(changes, func(c crd.Change) bool { return c.Version == version.Name }) {
			versions = append(versions, version.Name)
		}
	}
	return versions
}

// lookConverted checks the result of a webhook for an object in a version.
func (j *lossJudge) lookConverted(ctx context.Context, object *unstructured.Unstructured, version string) error {
	problems, err := j.problems(ctx, object, version)
	j.reject(cluster.NameOf(object)+" as "+version, problems)
	return err
}

// problems returns the reasons why an object would be invalid in a version, except those for which it is invalid
// already.
func (j *lossJudge) problems(ctx context.Context, object *unstructured.Unstructured, version string) ([]string, error) {
	invalid, _, err := j.new.Check(ctx, version, object.Object)
	if err != nil || len(invalid) == 0 {
		return nil, err
	}
	same := j.listed.Version
	if hasVersion(j.before, version) {
		same = version
	}
	known, _, err := j.old.Check(ctx, same, object.Object)
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, problem := range invalid {
		if !slices.Contains(known, problem) {
			problems = append(problems, problem.String())
		}
	}
	return problems, nil
}

// judge returns the lost fields of an object, and the reasons why it is invalid, in each version in which it can be
// read afterwards. The result of a conversion webhook is unknown here, so with one only the storage version counts.
func (j *lossJudge) judge(ctx context.Context, object *unstructured.Unstructured) (fields, problems []string, err error) {
	stored := cmp.Or(j.moves, j.listed.Version)
	for _, version := range j.after.Spec.Versions {
		if !version.Served && !version.Storage || converts(j.after) && version.Name != stored {
			continue
		}
		_, lost, err := j.new.Check(ctx, version.Name, object.Object)
		if err != nil {
			return nil, nil, err
		}
		more, err := j.problems(ctx, object, version.Name)
		if err != nil {
			return nil, nil, err
		}
		problems = append(problems, more...)
		known, err := j.lostBefore(ctx, version, object)
		if err != nil {
			return nil, nil, err
		}
		for _, field := range lost {
			if !known[field.Path] {
				fields = append(fields, field.Path)
			}
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields), problems, nil
}

// lostBefore are the fields that reading the object in this version drops already. They are still in the store until the
// object is stored in that version itself.
func (j *lossJudge) lostBefore(ctx context.Context, version apiextensionsv1.CustomResourceDefinitionVersion, object *unstructured.Unstructured) (map[string]bool, error) {
	if version.Name == j.listed.Version || !hasVersion(j.before, version.Name) || version.Storage && len(j.removed) > 0 {
		return nil, nil
	}
	_, lost, err := j.old.Check(ctx, version.Name, object.Object)
	known := map[string]bool{}
	for _, field := range lost {
		known[field.Path] = true
	}
	return known, err
}

// migration returns the work on the objects before versions may go away, nil when there is none.
func (j *lossJudge) migration(live, desired *unstructured.Unstructured) *Migration {
	m := &Migration{Definition: live, version: j.moves, through: j.listed.Version, judge: j}
	switch {
	case len(j.removed) == 0:
		return nil
	case j.moves == "":
		m.version = j.before.StorageVersion()
		if serves(j.before, m.version) {
			m.through = m.version
		}
	case !hasVersion(j.before, j.moves):
		m.added = versionEntry(j.moves, desired)
	}
	return m
}

func (j *lossJudge) losses() []string {
	losses := j.lost
	if j.others > 0 {
		losses = append(losses, fmt.Sprintf("and %d more", j.others))
	}
	if j.untried != "" && j.objects > 0 {
		losses = append(losses, fmt.Sprintf("%s: version %s goes away, and %s stored in it; only its webhook knows what version %s cannot hold, and %s",
			j.before.Name, j.before.StorageVersion(), counted(j.objects, "object is", "objects are"), j.moves, j.untried))
	}
	return losses
}

// data counts the objects.
func (j *lossJudge) data() schema.DataChange {
	d := schema.DataChange{
		Definition: j.before.Name, Kind: j.before.Spec.Names.Kind, Outcome: schema.DataChecked,
		Objects: j.objects, Losing: len(j.lost) + j.others, Invalid: j.refused,
	}
	if j.untried != "" {
		d.Losing = j.objects
	}
	return d
}

// invalid are objects that the new schema refuses.
func (j *lossJudge) invalid() []string {
	lines := j.refusals
	if more := j.refused - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return lines
}
