package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema"
)

// objectOf reads an object; nil for "".
func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	o := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = o.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// plannedObject is an object of a plan; fields are "path from to".
func plannedObject(t *testing.T, action schema.Action, existing, desired string, fields ...string) engine.Object {
	t.Helper()
	o := engine.Object{Existing: objectOf(t, existing), Desired: objectOf(t, desired), Change: schema.Change{Action: action}}
	of := o.Desired
	if of == nil {
		of = o.Existing
	}
	o.Object = schema.ObjectRef{APIVersion: of.GetAPIVersion(), Kind: of.GetKind(), Name: of.GetName()}
	for _, field := range fields {
		words := strings.Split(field, " ")
		o.Fields = append(o.Fields, schema.FieldChange{Path: words[0], From: words[1], To: words[2]})
	}
	return o
}

// TestPrograms: pods restart for changes of their template, and for nothing else.
func TestPrograms(t *testing.T) {
	const (
		pod        = "template: {metadata: {annotations: {checksum/config: '1'}}, spec: {containers: [{name: web, image: a}]}}"
		deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2, " + pod + "}}"
		recreate   = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {strategy: {type: Recreate}, " + pod + "}}"
		paused     = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {paused: true, " + pod + "}}"
		none       = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 0, " + pod + "}}"
		one        = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {" + pod + "}}"
		three      = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 3, " + pod + "}}"
		daemons    = "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {" + pod + "}}"
		onDelete   = "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {updateStrategy: {type: OnDelete}, " + pod + "}}"
		cron       = "{apiVersion: batch/v1, kind: CronJob, metadata: {name: nightly}, spec: {jobTemplate: {spec: {" + pod + "}}}}"
		job        = "{apiVersion: batch/v1, kind: Job, metadata: {name: migrate}, spec: {" + pod + "}}"
		config     = "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {a: b}}"
		single     = "{apiVersion: v1, kind: Pod, metadata: {name: one}, spec: {containers: [{name: a, image: b}]}}"
		image      = `spec.template.spec.containers[name=web].image "a" "b"`
	)
	for name, test := range map[string]struct {
		action            schema.Action
		existing, desired string
		fields            []string
		want              string // effect, image, interrupted
	}{
		"a new image":                        {schema.ActionUpdate, deployment, deployment, []string{image}, "restarts image"},
		"a checksum of a ConfigMap":          {schema.ActionUpdate, deployment, deployment, []string{`spec.template.metadata.annotations[checksum/config] "1" "2"`}, "restarts"},
		"a label of the pods":                {schema.ActionUpdate, deployment, deployment, []string{`spec.template.metadata.labels[app.kubernetes.io/version] "1" "2"`}, "restarts"},
		"a new container":                    {schema.ActionUpdate, deployment, deployment, []string{`spec.template.spec.containers[name=new]  {}`}, "restarts"},
		"a label of the workload":            {schema.ActionUpdate, deployment, deployment, []string{`metadata.labels[app.kubernetes.io/version] "1" "2"`}, ""},
		"a field beside the template":        {schema.ActionUpdate, deployment, deployment, []string{"spec.templates 1 2", "spec.minReadySeconds 1 2"}, ""},
		"a ConfigMap that no template names": {schema.ActionUpdate, config, config, []string{`data.a "b" "c"`}, ""},
		"all at once":                        {schema.ActionUpdate, recreate, recreate, []string{image}, "restarts image interrupted"},
		"a paused Deployment":                {schema.ActionUpdate, paused, paused, []string{image}, "later image"},
		"no pods":                            {schema.ActionUpdate, none, none, []string{image}, ""},
		"scaled to nothing by others":        {schema.ActionUpdate, none, deployment, []string{image}, ""},
		"the first pod":                      {schema.ActionUpdate, none, deployment, []string{image, "spec.replicas 0 2"}, "starts"},
		"the last pod":                       {schema.ActionUpdate, deployment, none, []string{"spec.replicas 2 0"}, "stops"},
		"more pods":                          {schema.ActionUpdate, deployment, deployment, []string{"spec.replicas 2 3"}, ""},
		"the only pod of a StatefulSet":      {schema.ActionUpdate, one, one, []string{image}, "restarts image interrupted"},
		"one after another":                  {schema.ActionUpdate, three, three, []string{image}, "restarts image"},
		"on each node":                       {schema.ActionUpdate, daemons, daemons, []string{image}, "restarts image"},
		"when pods are deleted":              {schema.ActionUpdate, onDelete, onDelete, []string{image}, "later image"},
		"the next run":                       {schema.ActionUpdate, cron, cron, []string{`spec.jobTemplate.spec.template.spec.containers[name=web].image "a" "b"`}, "later image"},
		"an adopted one":                     {schema.ActionAdopt, deployment, deployment, []string{`metadata.labels[solutionctl.io/release]  "x"`}, ""},
		"a new Deployment":                   {schema.ActionCreate, "", deployment, nil, "starts"},
		"a new Deployment without pods":      {schema.ActionCreate, "", none, nil, ""},
		"a new CronJob":                      {schema.ActionCreate, "", cron, nil, ""},
		"a Job":                              {schema.ActionCreate, "", job, nil, "runs"},
		"a Job again":                        {schema.ActionReplace, job, job, nil, "runs"},
		"a Job that is done":                 {schema.ActionDelete, job, "", nil, ""},
		"a Deployment made again":            {schema.ActionReplace, deployment, deployment, nil, "restarts interrupted"},
		"a CronJob made again":               {schema.ActionReplace, cron, cron, nil, "later"},
		"a Deployment that goes":             {schema.ActionDelete, deployment, "", nil, "stops"},
		"a CronJob that goes":                {schema.ActionDelete, cron, "", nil, ""},
		"a Deployment that stays":            {schema.ActionNone, deployment, deployment, nil, ""},
		"a Pod":                              {schema.ActionCreate, "", single, nil, "starts"},
		"a label of a Pod":                   {schema.ActionUpdate, single, single, []string{`metadata.labels.a "1" "2"`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := plannedObject(t, test.action, test.existing, test.desired, test.fields...)
			p, affected := programOf(&o)
			got := string(p.Effect)
			if p.Image {
				got += " image"
			}
			if p.Interrupted {
				got += " interrupted"
			}
			if got != test.want || affected != (test.want != "") {
				t.Errorf("got %q, %v, want %q", got, affected, test.want)
			}
		})
	}
}

// TestWidenedRoles: what another role of the same plan granted before is not new.
func TestWidenedRoles(t *testing.T) {
	role := func(name, resource string) string {
		return "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: " + name + "}, rules: [{apiGroups: [''], resources: [" + resource + "], verbs: [get]}]}"
	}
	for name, test := range map[string]struct {
		roles []engine.Object
		want  int
	}{
		"nothing changes":      {[]engine.Object{plannedObject(t, schema.ActionNone, "", role("a", "pods"))}, 0},
		"a new role":           {[]engine.Object{plannedObject(t, schema.ActionCreate, "", role("a", "pods"))}, 1},
		"a role that was read": {[]engine.Object{plannedObject(t, schema.ActionUpdate, role("a", "pods"), role("a", "nodes"))}, 1},
		"another name":         {[]engine.Object{plannedObject(t, schema.ActionDelete, role("a", "pods"), ""), plannedObject(t, schema.ActionCreate, "", role("b", "pods"))}, 0},
		"one had it":           {[]engine.Object{plannedObject(t, schema.ActionNone, "", role("a", "pods")), plannedObject(t, schema.ActionCreate, "", role("b", "pods"))}, 0},
		"a role that goes":     {[]engine.Object{plannedObject(t, schema.ActionDelete, role("a", "pods"), "")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := widened(test.roles)
			if err != nil || len(got) != test.want {
				t.Errorf("got %q, %v, want %d", got, err, test.want)
			}
		})
	}
}

func TestMergeData(t *testing.T) {
	one := schema.DataChange{Definition: "a", Outcome: schema.DataChecked, Objects: 2, Losing: 1}
	other := schema.DataChange{Definition: "a", Outcome: schema.DataDeleted, Objects: 1}
	want := []schema.DataChange{{Definition: "a", Outcome: schema.DataChecked, Objects: 4, Losing: 2}, other}
	if diff := cmp.Diff(want, mergeData([]schema.DataChange{one, other, one})); diff != "" {
		t.Error(diff)
	}
}
