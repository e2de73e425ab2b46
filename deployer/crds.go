package deployer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/lint/crd"
	"github.com/solutionctl/solutionctl/schema/report"
)

var crdKind = kube.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// maxLosses bounds how many objects a refusal names; the rest are counted.
const maxLosses = 10

// definition reads a CustomResourceDefinition for judgement.
func definition(object *unstructured.Unstructured) (*crd.Definition, error) {
	var typed apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
		return nil, report.Errorf(report.Invalid, "custom resource definition %s: %w", object.GetName(), err)
	}
	return crd.New(&typed)
}

// judgeCRDs tells what replacing the definitions in the cluster would do to the objects that are stored. What is only
// awkward comes back as notices, and with them the definitions whose objects have to be stored anew before;
// an error of code data-loss says what would be lost.
func (d *Deployer) judgeCRDs(ctx context.Context, objects []*unstructured.Unstructured) (notices []string, migrations []migration, err error) {
	var losses []string
	for _, object := range objects {
		if object.GroupVersionKind() != crdKind {
			continue
		}
		live, err := d.Cluster.Get(ctx, crdKind, "", object.GetName())
		if err != nil {
			return nil, nil, err
		}
		if live == nil {
			continue
		}
		if live.GetDeletionTimestamp() != nil {
			return nil, nil, report.Errorf(report.Conflict, "custom resource definition %s is being deleted: %s",
				live.GetName(), strings.Join(health.Explain(ctx, d.Cluster, live), "; ")).
				WithHint("remove what holds it, wait until it is gone, and run the command again")
		}
		more, lost, migrate, err := d.judgeCRD(ctx, live, object)
		if err != nil {
			return nil, nil, err
		}
		if migrate != nil {
			migrations = append(migrations, *migrate)
		}
		notices = append(notices, more...)
		losses = append(losses, lost...)
	}
	if len(losses) > 0 {
		return nil, nil, report.Errorf(report.DataLoss, "stored objects would lose data:\n  %s", strings.Join(losses, "\n  ")).
			WithHint("change or delete these objects first, or choose a version that keeps their fields")
	}
	return notices, migrations, nil
}

func (d *Deployer) judgeCRD(ctx context.Context, live, desired *unstructured.Unstructured) (notices, losses []string, migrate *migration, err error) {
	before, err := definition(live)
	if err != nil {
		return nil, nil, nil, err
	}
	after, err := definition(desired)
	if err != nil {
		return nil, nil, nil, err
	}
	grave := graveChanges(before, after)
	if len(grave) == 0 {
		return nil, nil, nil, nil
	}
	judge, err := newLossJudge(before, after)
	if err != nil {
		return nil, nil, nil, err
	}
	for object, err := range d.Cluster.List(ctx, judge.listed, "", metav1.ListOptions{}) {
		if err != nil {
			return nil, nil, nil, err
		}
		if err := judge.look(ctx, object); err != nil {
			return nil, nil, nil, err
		}
	}
	if version := judge.keeps(); version != "" {
		migrate = &migration{live, version}
		// What the versions in which nothing is stored any more would have lost does not count.
		before.CustomResourceDefinition = before.DeepCopy()
		before.Status.StoredVersions = []string{version}
		grave = graveChanges(before, after)
		notices = append(notices, fmt.Sprintf("custom resource definition %s: %s stored anew in version %s before version %s goes away",
			live.GetName(), counted(judge.objects, "object is", "objects are"), version, strings.Join(judge.removed, ", ")))
	}
	for _, change := range grave {
		notices = append(notices, fmt.Sprintf("custom resource definition %s: %s", live.GetName(), change))
	}
	return append(notices, judge.invalid()...), judge.losses(), migrate, nil
}

func graveChanges(before, after *crd.Definition) []crd.Change {
	return slices.DeleteFunc(crd.Compare(before, after), func(c crd.Change) bool { return c.Severity == crd.Safe })
}

// lossJudge tells what stored objects lose when one definition replaces another.
type lossJudge struct {
	before, after *crd.Definition
	old, new      *crd.Checker
	listed        kube.GroupVersionKind // the version that objects are read in
	removed       []string              // versions in which objects may be stored and that go away

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
	j.listed = kube.GroupVersionKind{Group: before.Spec.Group, Version: servedVersion(before), Kind: before.Spec.Names.Kind}
	for _, version := range before.Status.StoredVersions {
		if !hasVersion(after, version) {
			j.removed = append(j.removed, version)
		}
	}
	return j, nil
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

// look judges one object in each version in which it can be read afterwards. What a webhook makes of it is not known
// here, so only the version it was read in counts where there is one.
func (j *lossJudge) look(ctx context.Context, object *unstructured.Unstructured) error {
	j.objects++
	converts := j.after.Spec.Conversion != nil && j.after.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
	var fields, problems []string
	for _, version := range j.after.Spec.Versions {
		if !version.Served && !version.Storage || converts && version.Name != j.listed.Version {
			continue
		}
		invalid, lost, err := j.new.Check(ctx, version.Name, object.Object)
		if err != nil {
			return err
		}
		known, err := j.lostBefore(ctx, version.Name, object)
		if err != nil {
			return err
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
	name := objectName(object)
	if len(fields) > 0 {
		slices.Sort(fields)
		if len(j.lost) == maxLosses {
			j.others++
		} else {
			j.lost = append(j.lost, fmt.Sprintf("%s: %s", name, strings.Join(slices.Compact(fields), ", ")))
		}
	}
	if len(problems) > 0 {
		j.refused++
		if len(j.refusals) < maxLosses {
			j.refusals = append(j.refusals, fmt.Sprintf("%s: %s", name, problems[0]))
		}
	}
	return nil
}

// lostBefore are the fields that reading the object in this version drops already.
func (j *lossJudge) lostBefore(ctx context.Context, version string, object *unstructured.Unstructured) (map[string]bool, error) {
	if version == j.listed.Version || !hasVersion(j.before, version) {
		return nil, nil
	}
	_, lost, err := j.old.Check(ctx, version, object.Object)
	known := map[string]bool{}
	for _, field := range lost {
		known[field.Path] = true
	}
	return known, err
}

// keeps is the version in which objects can be stored before the versions they may be stored in go away; "" when there is
// none. Where there are objects, only the version that is stored now will do: going back to another one would lose what
// only the present one has.
func (j *lossJudge) keeps() string {
	present, next := storageVersion(j.before), storageVersion(j.after)
	switch {
	case len(j.removed) == 0:
		return ""
	case hasVersion(j.after, present):
		return present
	case j.objects == 0 && hasVersion(j.before, next):
		return next
	default:
		return ""
	}
}

func storageVersion(d *crd.Definition) string {
	for _, version := range d.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

func (j *lossJudge) losses() []string {
	losses := j.lost
	if j.others > 0 {
		losses = append(losses, fmt.Sprintf("and %d more", j.others))
	}
	if j.keeps() != "" {
		return losses
	}
	for _, version := range j.removed {
		losses = append(losses, fmt.Sprintf("%s: version %s goes away, and %s stored in it", j.before.Name, version,
			counted(j.objects, "object may be", "objects may be")))
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

// objectName is an object as people call it: "Website test/shop".
func objectName(object *unstructured.Unstructured) string {
	name := object.GetName()
	if object.GetNamespace() != "" {
		name = object.GetNamespace() + "/" + name
	}
	return object.GetKind() + " " + name
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
