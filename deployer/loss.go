package deployer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/lint/crd"
)

// lossJudge tells what stored objects lose when one definition replaces another.
type lossJudge struct {
	before, after *crd.Definition
	old, new      *crd.Checker
	listed        kube.GroupVersionKind // the version that objects are read in
	removed       []string              // versions in which objects may be stored and that go away
	// moves is the version in which objects have to be stored because the one that they are stored in now is one of
	// those that go away; "" when it stays.
	moves string
	// converted is true when a webhook makes the objects of that version: only it knows what gets lost.
	converted bool

	objects  int
	lost     []string
	others   int
	refused  int
	refusals []string
}

func newLossJudge(before, after *crd.Definition) (*lossJudge, error) {
	j := &lossJudge{before: before, after: after}
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
	if len(j.removed) > 0 && !hasVersion(after, storageVersion(before)) {
		j.moves = storageVersion(after)
	}
	j.listed = kube.GroupVersionKind{Group: before.Spec.Group, Version: j.readIn(), Kind: before.Spec.Names.Kind}
	return j, nil
}

// readIn is the version to read objects in. Without a webhook that is one that goes away: it shows what is going to be
// lost, also after a run that was interrupted when objects were already written in another one.
func (j *lossJudge) readIn() string {
	if converts(j.before) {
		if j.converted = serves(j.before, j.moves); j.converted {
			return j.moves
		}
		return servedVersion(j.before)
	}
	for _, version := range j.removed {
		if serves(j.before, version) {
			return version
		}
	}
	return servedVersion(j.before)
}

// servedVersion is the version to read objects in: the one they are stored in, if that is served.
func servedVersion(d *crd.Definition) string {
	served := ""
	for _, version := range d.Spec.Versions {
		if version.Served && (version.Storage || served == "") {
			served = version.Name
		}
	}
	return served
}

func hasVersion(d *crd.Definition, name string) bool {
	return slices.ContainsFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name })
}

func storageVersion(d *crd.Definition) string {
	for _, version := range d.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

// converts tells whether a webhook converts between the versions of a definition.
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
	name := objectName(object)
	switch {
	case len(fields) == 0:
	case len(j.lost) == maxLosses:
		j.others++
	default:
		j.lost = append(j.lost, fmt.Sprintf("%s: %s", name, strings.Join(fields, ", ")))
	}
	if len(problems) > 0 {
		j.refused++
		if len(j.refusals) < maxLosses {
			j.refusals = append(j.refusals, fmt.Sprintf("%s: %s", name, problems[0]))
		}
	}
	return nil
}

// judge tells which fields of an object are lost, and why it is not valid, in each version in which it can be read
// afterwards. What a webhook makes of it is not known here, so only the version it is stored in counts where there is one.
func (j *lossJudge) judge(ctx context.Context, object *unstructured.Unstructured) (fields, problems []string, err error) {
	stored := j.moves
	if stored == "" {
		stored = j.listed.Version
	}
	for _, version := range j.after.Spec.Versions {
		if !version.Served && !version.Storage || converts(j.after) && version.Name != stored {
			continue
		}
		invalid, lost, err := j.new.Check(ctx, version.Name, object.Object)
		if err != nil {
			return nil, nil, err
		}
		known, err := j.lostBefore(ctx, version, object)
		if err != nil {
			return nil, nil, err
		}
		for _, field := range lost {
			if !known[field.Path] {
				fields = append(fields, field.Path)
			}
		}
		for _, problem := range invalid {
			problems = append(problems, problem.String())
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

// migration is what has to be done to the objects before versions may go away, nil when nothing has.
func (j *lossJudge) migration(live, desired *unstructured.Unstructured) *migration {
	m := &migration{definition: live, version: j.moves, through: j.listed.Version, judge: j}
	switch {
	case len(j.removed) == 0:
		return nil
	case j.moves == "":
		m.version = storageVersion(j.before)
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
	if j.converted && j.objects > 0 {
		losses = append(losses, fmt.Sprintf("%s: version %s goes away, and %s stored in it; only its webhook knows what version %s cannot hold",
			j.before.Name, storageVersion(j.before), counted(j.objects, "object is", "objects are"), j.moves))
	}
	return losses
}

// invalid are objects that the new schema refuses. They stay as they are until somebody changes them.
func (j *lossJudge) invalid() []string {
	var notices []string
	for _, refusal := range j.refusals {
		notices = append(notices, "not valid any more: "+refusal)
	}
	if more := j.refused - len(j.refusals); more > 0 {
		notices = append(notices, fmt.Sprintf("and %d more", more))
	}
	return notices
}
