package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/diff"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

var shop = record.Key{Namespace: "shop", Name: "demo"}

// stepOf returns a step for a desired and an existing object; "" for neither.
func stepOf(t *testing.T, desired, live string) *step {
	t.Helper()
	s := &step{}
	if live != "" {
		s.live = object(t, live)
		s.Object = refOf(s.live)
	}
	if desired != "" {
		s.desired = object(t, desired)
		s.Object = refOf(s.desired)
		s.phase = phaseOfObject(s.desired)
		var err error
		if s.hash, err = hashOf(s.desired); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// refusal returns the error of an API server that rejects fields.
func refusal(fields ...string) error {
	status := metav1.Status{Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid, Message: "field is immutable", Details: &metav1.StatusDetails{}}
	for _, field := range fields {
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Field: field, Message: "may not be specified"})
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// TestRemovals checks the decision on existing objects that the release does not have any more.
func TestRemovals(t *testing.T) {
	label := ", labels: {" + schema.LabelRelease + ": " + shop.ID() + "}"
	ours := label + ", managedFields: [{manager: " + cluster.FieldManager + "}]"
	const deleted = `, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [example.com/f]`
	for name, test := range map[string]struct {
		kind, metadata string
		uid            string // on record
		restore, named bool
		action         schema.Action
		note           string
		ask            bool
	}{
		"an object of ours":                           {kind: "ConfigMap", metadata: ours, action: schema.ActionDelete, ask: true},
		"ours without its label":                      {kind: "ConfigMap", uid: "u", action: schema.ActionDelete, ask: true},
		"another object of its name":                  {kind: "ConfigMap", uid: "old"},
		"a copy with our label":                       {kind: "ConfigMap", metadata: label + ", managedFields: [{manager: kubectl-create}]"},
		"never recorded and without a label":          {kind: "ConfigMap"},
		"restoring removes nothing":                   {kind: "ConfigMap", metadata: ours, restore: true, action: schema.ActionKeep},
		"a volume claim":                              {kind: "PersistentVolumeClaim", metadata: ours, action: schema.ActionKeep, note: "a PersistentVolumeClaim is never deleted as a side effect"},
		"a namespace":                                 {kind: "Namespace", metadata: ours, action: schema.ActionKeep, note: "a Namespace is never deleted as a side effect"},
		"a volume claim that was named":               {kind: "PersistentVolumeClaim", metadata: ours, named: true, action: schema.ActionDelete, ask: true},
		"being deleted already":                       {kind: "ConfigMap", metadata: ours + deleted, action: schema.ActionDelete, note: "it is being deleted; finalizers: example.com/f"},
		"protected by a policy, and named":            {kind: "ConfigMap", metadata: ours + `, annotations: {` + AnnotationAllowDeletion + `: "false"}`, named: true, action: schema.ActionDelete},
		"protected by a policy, and not named":        {kind: "ConfigMap", metadata: ours + `, annotations: {` + AnnotationAllowDeletion + `: "false"}`, action: schema.ActionDelete, ask: true},
		"protection lifted, and named":                {kind: "ConfigMap", metadata: ours + `, annotations: {` + AnnotationAllowDeletion + `: "true"}`, named: true, action: schema.ActionDelete, ask: true},
		"another volume claim of its name, and named": {kind: "PersistentVolumeClaim", uid: "old", named: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := stepOf(t, "", "{apiVersion: v1, kind: "+test.kind+", metadata: {name: a, namespace: shop, uid: u"+test.metadata+"}}")
			s.known = schema.DeployedObject{ObjectRef: s.Object, UID: test.uid}
			d := &decider{release: Release{Key: shop}, options: PlanOptions{Restore: test.restore}}
			if test.named {
				d.release.Delete = []schema.ObjectRef{s.Object}
			}
			if ask := d.decideLive(s); ask != test.ask || s.Action != test.action || s.Note != test.note {
				t.Errorf("ask %t, %q: %s", ask, s.Action, s.Note)
			}
		})
	}
}

// TestReplace checks which objects that cannot be changed in place are deleted and created again.
func TestReplace(t *testing.T) {
	const (
		job         = "{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: shop}, spec: {template: 1}}"
		deployment  = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: shop}}"
		set         = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: shop}, spec: {serviceName: b, selector: {matchLabels: {app: a}}}}"
		otherSelect = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: shop}, spec: {selector: {matchLabels: {app: b}}}}"
		liveSet     = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: shop}, spec: {template: {metadata: {labels: {app: a}}}}}"
		deletesAll  = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: shop}, spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}, template: {metadata: {labels: {app: a}}}}}"
		binding     = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: shop}, roleRef: {name: x}}"
		secret      = "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: shop}, data: {ours: b3Vycw==}}"
		shared      = "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: shop}, data: {ours: b3VycwA=, theirs: eA==}}"
		done        = `, status: {conditions: [{type: Complete, status: "True"}]}}`
	)
	for name, test := range map[string]struct {
		desired, live string
		replace       string
		code          report.Code
		message, hint string
		propagation   metav1.DeletionPropagation
		note          string
	}{
		"a binding to another role, unasked":     {desired: binding, live: binding, propagation: metav1.DeletePropagationBackground, note: "it cannot be changed in place"},
		"a Job that has ended, unasked":          {desired: job, live: strings.TrimSuffix(job, "}") + done, propagation: metav1.DeletePropagationBackground, note: "it cannot be changed in place; it is run again"},
		"a Job at work, unasked":                 {desired: job, live: job, code: report.Refused, message: "replacing it ends it, though it is still running", hint: "wait until it has ended, or: to replace it, add --replace Job/a"},
		"a Job at work":                          {desired: job, live: job, replace: "job/a", propagation: metav1.DeletePropagationForeground, note: "it cannot be changed in place; replacing it ends it, though it is still running, and begins again"},
		"a Deployment, unasked":                  {desired: deployment, live: deployment, code: report.Refused, message: "replacing it ends its pods", hint: "--replace Deployment/a"},
		"a Deployment":                           {desired: deployment, live: deployment, replace: "Deployment/a", propagation: metav1.DeletePropagationForeground, note: "it cannot be changed in place; replacing it ends its pods before the new ones start"},
		"another Deployment was named":           {desired: deployment, live: deployment, replace: "Deployment/b", code: report.Refused, hint: "--replace Deployment/a"},
		"a StatefulSet whose pods stay":          {desired: set, live: liveSet, code: report.Refused, message: "keeps its volume claims and, where the selector allows it, its pods"},
		"a StatefulSet that selects other pods":  {desired: otherSelect, live: liveSet, code: report.Refused, message: "keeps its volume claims, and ends its pods"},
		"a StatefulSet whose data would go":      {desired: otherSelect, live: deletesAll, replace: "StatefulSet/a", code: report.Refused, message: "the data in the volumes that its persistentVolumeClaimRetentionPolicy deletes", hint: "nothing was changed"},
		"a Secret":                               {desired: secret, live: secret, replace: "secret/a", propagation: metav1.DeletePropagationBackground, note: "it cannot be changed in place; replacing it leaves what runs with the old values until it starts again"},
		"a Secret into which others put a value": {desired: secret, live: shared, replace: "secret/a", code: report.Refused, message: "the data of others in it (theirs) would be lost"},
	} {
		t.Run(name, func(t *testing.T) {
			s := stepOf(t, test.desired, test.live)
			d := &decider{release: Release{Key: shop}, options: PlanOptions{Replace: []string{test.replace}}}
			err := d.replace(t.Context(), s, nil, refusal())
			if report.CodeOf(err) != test.code && (err != nil || test.code != "") {
				t.Fatalf("%s: %v", report.CodeOf(err), err)
			}
			if err != nil {
				if hints := strings.Join(report.Hints(err), "\n"); !strings.Contains(err.Error(), test.message) || !strings.Contains(hints, test.hint) {
					t.Errorf("%v\nhints: %s", err, hints)
				}
				return
			}
			if s.Action != schema.ActionReplace || s.propagation != test.propagation || s.Note != test.note || s.replacing != (test.replace != "") {
				t.Errorf("%s %s %t: %s", s.Action, s.propagation, s.replacing, s.Note)
			}
		})
	}
}

// TestNeverReplaced checks that objects with data of others are never replaced, and that no message offers it.
func TestNeverReplaced(t *testing.T) {
	for kind, lost := range map[string]string{
		"v1 PersistentVolumeClaim": "the data in its volume",
		"v1 Namespace":             "everything in it",
		"apiextensions.k8s.io/v1 CustomResourceDefinition": "every custom resource of it",
		"example.com/v1 Database":                          "what its controller keeps for it",
	} {
		version, name, _ := strings.Cut(kind, " ")
		s := stepOf(t, "{apiVersion: "+version+", kind: "+name+", metadata: {name: a}}", "{apiVersion: "+version+", kind: "+name+", metadata: {name: a}}")
		d := &decider{options: PlanOptions{Replace: []string{name + "/a"}}}
		_, err := d.decideImmutable(t.Context(), s, refusal())
		if report.CodeOf(err) != report.Refused || !strings.Contains(err.Error(), "as "+lost+" would be lost") || strings.Contains(strings.Join(report.Hints(err), ""), "--replace") {
			t.Errorf("%s: %v, hints %q", kind, err, report.Hints(err))
		}
		if Replaceable(name) {
			t.Errorf("%s is called replaceable", name)
		}
	}
	if !Replaceable("deployment") || Replaceable("") {
		t.Error("what may be replaced is not known")
	}
	wrong := errors.New("spec.size: must be a number")
	if _, err := (&decider{}).decideImmutable(t.Context(), stepOf(t, "{apiVersion: example.com/v1, kind: Database, metadata: {name: a}}", "{apiVersion: example.com/v1, kind: Database, metadata: {name: a}}"), wrong); !errors.Is(err, wrong) {
		t.Errorf("what is wrong in itself: %v", err)
	}
}

// TestAdoption checks which existing objects are adopted.
func TestAdoption(t *testing.T) {
	for name, test := range map[string]struct {
		metadata         string
		identical, adopt bool
		note             string
		code             report.Code
	}{
		"made by kubectl":     {metadata: ", managedFields: [{manager: kubectl}, {manager: kubectl}, {manager: other, subresource: status}]", code: report.Conflict, note: "it exists: field manager kubectl"},
		"of a chart":          {metadata: ", labels: {heritage: Helm, app.kubernetes.io/managed-by: Helm}", code: report.Conflict, note: "it exists: label app.kubernetes.io/managed-by=Helm, label heritage=Helm"},
		"unowned":             {code: report.Conflict, note: "it exists: it has no label and no field manager that names its owner"},
		"identical":           {identical: true, note: "it exists: it has no label and no field manager that names its owner"},
		"adoption is allowed": {adopt: true, note: "it exists: it has no label and no field manager that names its owner"},
	} {
		t.Run(name, func(t *testing.T) {
			s := stepOf(t, "", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop"+test.metadata+"}}")
			err := (&decider{release: Release{Key: shop}, options: PlanOptions{Adopt: test.adopt}}).adopt(s, test.identical)
			if test.code == "" && err != nil || test.code != "" && report.CodeOf(err) != test.code || s.Note != test.note {
				t.Errorf("%v; %s", err, s.Note)
			}
		})
	}
	before := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}")
	labelled := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {"+schema.LabelRelease+": x}}, data: {a: b}}")
	if !isIdentical(before, labelled) || isIdentical(before, object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {other: x}}, data: {a: b}}")) {
		t.Error("the label of the release alone must make no difference, and any other label one")
	}
}

// TestHeldByOther checks that a record decides on the owner of an object, and not the label, which may be a copy.
func TestHeldByOther(t *testing.T) {
	web := schema.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "web"}
	other := record.Key{Namespace: "shop", Name: "other"}
	holds := func(kept bool) *record.State {
		return &record.State{Key: other, Current: &schema.DeploymentRevision{Objects: []schema.DeployedObject{{ObjectRef: web, UID: "u", Kept: kept}}}}
	}
	for name, test := range map[string]struct {
		label string
		state *record.State
		want  string // part of the error
	}{
		"another Solution has it":                {other.ID(), holds(false), "belongs to shop/other"},
		"another Solution has left it behind":    {other.ID(), holds(true), ""},
		"the label was copied":                   {other.ID(), &record.State{Key: other}, ""},
		"the label is of a release that is gone": {"gone.aaaaaaaa", holds(false), ""},
		"the record cannot be read":              {other.ID(), &record.State{Key: other, Damage: errors.New("it is cut off")}, "belongs to shop/other: it is cut off"},
	} {
		err := heldByOther(record.Key{Namespace: "shop", Name: "web", Component: "ui"}, web, test.label, []*record.State{test.state})
		if test.want == "" && err != nil || test.want != "" && (report.CodeOf(err) != report.Conflict || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for key, want := range map[record.Key]string{
		{Namespace: "shop", Name: "web"}:                        "two Solutions",
		{Namespace: "shop", Name: "other", Component: "server"}: "from its Solution to a component",
	} {
		if hint := strings.Join(report.Hints(heldByOther(key, web, other.ID(), []*record.State{holds(false)})), ""); !strings.Contains(hint, want) {
			t.Errorf("hint %q, want %q", hint, want)
		}
	}
	part := holds(false)
	part.Component = "api"
	if hint := strings.Join(report.Hints(heldByOther(other, web, part.ID(), []*record.State{part})), ""); !strings.Contains(hint, "first deselect component api") {
		t.Errorf("hint %q", hint)
	}
}

// TestConflicts checks which refusals are conflicts with other managers, and which with earlier writes of solutionctl.
func TestConflicts(t *testing.T) {
	with := func(messages ...string) error {
		status := metav1.Status{Status: metav1.StatusFailure, Code: 409, Reason: metav1.StatusReasonConflict, Details: &metav1.StatusDetails{}}
		for _, m := range messages {
			status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Message: m})
		}
		return &apierrors.StatusError{ErrStatus: status}
	}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"with an earlier edit of ours":  {with(`conflict with "solutionctl" using v1`), true},
		"with Helm, and one of ours":    {with(`conflict with "helm" using apps/v1`, `conflict with "solutionctl"`), true},
		"with an autoscaler":            {with(`conflict with "hpa"`), false},
		"with both":                     {with(`conflict with "solutionctl"`, `conflict with "hpa"`), false},
		"with one whose name is longer": {with(`conflict with "solutionctl-other"`), false},
		"no answer at all":              {errors.New("connection reset"), false},
	} {
		if got := onlyWith(test.err, []string{"solutionctl", "helm"}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !bindsMissingRole(&apierrors.StatusError{ErrStatus: metav1.Status{Details: &metav1.StatusDetails{Group: "rbac.authorization.k8s.io"}}}) || bindsMissingRole(errors.New("no")) {
		t.Error("a role that is missing is not known")
	}
}

// TestScaledByOthers checks that replicas that others have set are left alone.
func TestScaledByOthers(t *testing.T) {
	managed := func(manager, replicas string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, managedFields: [{manager: " + manager +
			`, operation: Apply, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}}}}]}, spec: {replicas: ` + replicas + "}}"
	}
	for name, test := range map[string]struct {
		live string
		want bool
	}{
		"ours":                        {managed("solutionctl", "2"), false},
		"ours, and none":              {managed("solutionctl", "0"), false},
		"an autoscaler's":             {managed("hpa", "2"), true},
		"an administrator's, to none": {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 0}}", true},
		"the default of the server":   {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 1}}", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := stepOf(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 3}}", test.live)
			s.live.SetResourceVersion("7")
			sent := update(s)
			_, given := sent.Object["spec"].(map[string]any)["replicas"]
			if diff.IsScaled(s.live) != test.want || given == test.want || sent.GetResourceVersion() != "7" {
				t.Errorf("sent %v", sent.Object)
			}
			if s.busy = true; update(s).GetResourceVersion() != "" {
				t.Error("the resource version of an object that changes all the time is sent")
			}
		})
	}
}

func TestChangesRole(t *testing.T) {
	binding := func(role string) string {
		return "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a}, roleRef: {kind: ClusterRole, name: " + role + "}}"
	}
	if !changesRole(object(t, binding("x")), object(t, binding("y"))) || changesRole(object(t, binding("x")), object(t, binding("x"))) {
		t.Error("a binding to another role is not known")
	}
	other := "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, roleRef: {name: %}}"
	if changesRole(object(t, strings.Replace(other, "%", "x", 1)), object(t, strings.Replace(other, "%", "y", 1))) {
		t.Error("a ConfigMap binds a role")
	}
}

// TestDefinitions checks which kinds a CustomResourceDefinition defines, and for which stored versions an update waits.
func TestDefinitions(t *testing.T) {
	const wanted = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a},
spec: {group: example.com, names: {kind: Db}, versions: [{name: v2, served: true}, {name: v1, served: false}, {name: v3, served: true}]}}`
	var kinds []string
	for _, kind := range definedKinds(object(t, wanted)) {
		kinds = append(kinds, kind.String())
	}
	if diff := cmp.Diff(kinds, []string{"example.com/v2, Kind=Db", "example.com/v3, Kind=Db"}); diff != "" {
		t.Error(diff)
	}
	live := object(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, status: {storedVersions: [v1beta1, v1, v2]}}")
	if got := storedBefore(live, object(t, wanted)); !slices.Equal(got, []string{"v1beta1"}) {
		t.Errorf("still stored in %v", got)
	}
	if got := storedBefore(object(t, "{apiVersion: v1, kind: A, status: {storedVersions: [v1]}}"), object(t, wanted)); got != nil {
		t.Errorf("no definition is stored in %v", got)
	}
}

// TestShownChanges checks which changes of a replaced object a plan shows.
func TestShownChanges(t *testing.T) {
	const (
		plain     = "{apiVersion: v1, kind: Service, metadata: {name: a}}"
		addressed = "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.1}}"
		job       = "{apiVersion: batch/v1, kind: Job, metadata: {name: a}}"
		other     = "{apiVersion: example.com/v1, kind: Db, metadata: {name: a}}"
	)
	for _, test := range []struct {
		object, path string
		assigned     bool
	}{
		{plain, "spec.clusterIP", true},
		{plain, "spec.clusterIPs", true},
		{plain, "spec.ports[name=web].nodePort", true},
		{plain, "spec.healthCheckNodePort", true},
		{plain, "spec.ports[name=web].port", false},
		{addressed, "spec.clusterIP", false},
		{job, "spec.selector.matchLabels", true},
		{job, "spec.template.metadata.labels", true},
		{job, "spec.template.spec", false},
		{plain, "spec.selector.app", false},
		{other, "spec.clusterIP", false},
		{other, "metadata.annotations[deployment.kubernetes.io/revision]", true},
	} {
		if got := isAssigned(object(t, test.object))(schema.FieldChange{Path: test.path}); got != test.assigned {
			t.Errorf("%s of %s: %t", test.path, test.object, got)
		}
	}
	changes := []schema.FieldChange{{Path: "spec.replicas"}, {Path: "spec.serviceName"}, {Path: "spec.template.spec"}, {Path: "metadata.labels.a"}, {Path: "spec.volumeClaimTemplates"}}
	if got := fixedFields(changes); !slices.Equal(got, []string{"spec.serviceName", "spec.volumeClaimTemplates"}) {
		t.Errorf("fields of a StatefulSet that cannot change: %v", got)
	}
}

// TestAppliedByOthers checks that fields that another manager applies are not taken without approval.
func TestAppliedByOthers(t *testing.T) {
	s := stepOf(t, "", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, managedFields: [
{manager: argocd, operation: Apply}, {manager: kubectl, operation: Update}, {manager: solutionctl, operation: Apply}]}}`)
	s.Fields = []schema.FieldChange{{Path: "data.a", Manager: "argocd, kubectl"}, {Path: "data.b", Manager: "kubectl"}, {Path: "data.c", Manager: "solutionctl"}}
	if got := appliedByOthers(s); !slices.Equal(got, []string{`data.a ("argocd")`}) {
		t.Errorf("got %q", got)
	}
}
