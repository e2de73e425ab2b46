package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestNewJudge checks the validation of a release before its objects are read.
func TestNewJudge(t *testing.T) {
	c, err := cluster.Connect(cluster.Options{Kubeconfig: clustertest.Start(t).Kubeconfig(t), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{Store: &record.Store{Cluster: c}}
	for name, test := range map[string]struct {
		release string // the name
		object  string
		place   string // namespace and phase of the step
		code    report.Code
	}{
		"in a namespace":                  {"demo", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}", "shop 5", ""},
		"without the namespace it needs":  {"demo", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "", report.Invalid},
		"with a namespace that is for no": {"demo", "{apiVersion: v1, kind: Namespace, metadata: {name: a, namespace: shop}}", " 0", ""},
		"of a kind that is not there yet": {"demo", "{apiVersion: example.com/v1, kind: Db, metadata: {name: a}}", " 9", ""},
		"without a name":                  {"demo", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop}}", "", report.Invalid},
		"a Solution without a name":       {"", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}", "", report.Invalid},
		"a Solution with a long name":     {strings.Repeat("s", 55), "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}", "", report.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			r := Release{Key: record.Key{Namespace: "shop", Name: test.release}, Objects: []*unstructured.Unstructured{object(t, test.object)}}
			d, refused := e.newDecider(t.Context(), r, &record.State{Key: r.Key}, PlanOptions{})
			if test.code != "" {
				if report.CodeOf(refused) != test.code {
					t.Errorf("%v", refused)
				}
				return
			}
			if refused != nil {
				t.Fatal(refused)
			}
			s := d.desired[0]
			if got := fmt.Sprintf("%s %d", s.Object.Namespace, s.phase); got != test.place || s.hash == "" {
				t.Errorf("got %q", got)
			}
		})
	}
	found := schema.DeployedObject{ObjectRef: schema.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a"}, UID: "found"}
	recorded := found
	recorded.UID = "recorded"
	lost := found
	lost.Name = "lost"
	definition := object(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: dbs}, spec: {group: example.com, names: {kind: Db}, versions: [{name: v1, served: true}]}}")
	r := Release{Key: shop, Found: []schema.DeployedObject{found, lost}, Objects: []*unstructured.Unstructured{definition, object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: new}}")}}
	d, err := e.newDecider(t.Context(), r, &record.State{Current: &schema.DeploymentRevision{Objects: []schema.DeployedObject{recorded}}}, PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if d.inventory[record.KeyOf(found.ObjectRef)].UID != "recorded" || d.inventory[record.KeyOf(lost.ObjectRef)].UID != "found" {
		t.Error("what was found counts only where no record knows it")
	}
	if !d.defines[kube.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Db"}] || !d.makes[record.ObjectKey{GroupKind: cluster.NamespaceKind.GroupKind(), Name: "new"}] || len(d.objects()) != 2 {
		t.Errorf("it defines %v and makes %v", d.defines, d.makes)
	}
}

// TestIdle checks when a plan needs no run, and when only the record changes.
func TestIdle(t *testing.T) {
	current := schema.DeploymentRevision{Version: "1.0.0", Settings: map[string]string{"a": "b"}}
	release := Release{Key: shop, Version: "1.0.0", Settings: map[string]string{"a": "b"}}
	known := schema.DeployedObject{ObjectRef: schema.ObjectRef{Name: "a"}}
	kept := known
	kept.Kept = true
	for name, test := range map[string]struct {
		action      schema.Action
		wanted      bool
		known       schema.DeployedObject
		change      func(*Plan)
		empty, idle bool
	}{
		"all is as it is wanted":           {action: schema.ActionNone, wanted: true, known: known, empty: true, idle: true},
		"a change":                         {action: schema.ActionUpdate, wanted: true, known: known},
		"a removal":                        {action: schema.ActionDelete, known: known},
		"an object that no record knows":   {action: schema.ActionNone, wanted: true, empty: true},
		"one that was kept is wanted now":  {action: schema.ActionNone, wanted: true, known: kept, empty: true},
		"one is kept for the first time":   {action: schema.ActionKeep, known: known, empty: true},
		"one is kept as before":            {action: schema.ActionKeep, known: kept, empty: true, idle: true},
		"a kind that is not there":         {action: schema.ActionSkip, wanted: true, empty: true, idle: true},
		"another version, the same to do":  {action: schema.ActionNone, wanted: true, known: known, change: func(p *Plan) { p.Release.Version = "1.1.0" }, empty: true},
		"other settings, the same to do":   {action: schema.ActionNone, wanted: true, known: known, change: func(p *Plan) { p.Release.Settings = nil }, empty: true},
		"an earlier run is to be finished": {action: schema.ActionNone, wanted: true, known: known, change: func(p *Plan) { p.Resumes = &schema.DeploymentRevision{} }, empty: true},
		"nothing was deployed before":      {action: schema.ActionNone, wanted: true, known: known, change: func(p *Plan) { p.state = &record.State{} }, empty: true},
		"a task that is new":               {action: schema.ActionNone, wanted: true, known: known, change: func(p *Plan) { p.decider.tasks = []*taskStep{{step: &step{}}} }, empty: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &step{known: test.known}
			if s.Action = test.action; test.wanted {
				s.desired = &unstructured.Unstructured{}
			}
			p := &Plan{Release: release, state: &record.State{Current: &current}, decider: &decider{release: release}, steps: []*step{s, {}}}
			if p.listChanges(); len(p.steps) != 1 || len(p.Changes) != 1 {
				t.Fatalf("%d steps, %d changes", len(p.steps), len(p.Changes))
			}
			if test.change != nil {
				test.change(p)
			}
			if p.Empty() != test.empty || p.Idle() != test.idle {
				t.Errorf("empty %t, idle %t", p.Empty(), p.Idle())
			}
		})
	}
	if !(&Plan{state: &record.State{}}).Idle() {
		t.Error("removing what never was needs a run")
	}
}

// TestQueries checks that a few objects are read by name, and many with lists.
func TestQueries(t *testing.T) {
	plan := func(namespaces, each int) *Plan {
		p := &Plan{}
		for n := range namespaces {
			for i := range each {
				s := &step{desired: &unstructured.Unstructured{}, hash: "h"}
				s.Object = schema.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: fmt.Sprintf("n%d", n), Name: fmt.Sprintf("a%d", i)}
				s.known = schema.DeployedObject{ObjectRef: s.Object, Hash: "h", UID: "u", ResourceVersion: "1"}
				p.steps = append(p.steps, s)
			}
		}
		return p
	}
	unknown := plan(1, 1)
	unknown.steps[0].known.Hash = "other"
	for name, test := range map[string]struct {
		plan *Plan
		want []string
	}{
		"one object":                    {plan(1, 1), []string{"n0 [a0]"}},
		"a few in two namespaces":       {plan(2, 2), []string{"n0 [a0 a1]", "n1 [a0 a1]"}},
		"many in one namespace":         {plan(1, fewObjects+1), []string{"n0 []"}},
		"in many namespaces":            {plan(manyNamespaces+1, 1), []string{" []"}},
		"one that has to change anyway": {unknown, nil},
	} {
		var got []string
		for _, q := range queries([]*Plan{test.plan}) {
			got = append(got, fmt.Sprint(q.namespace, " ", q.names))
		}
		slices.Sort(got)
		if diff := cmp.Diff(got, test.want); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestTerminating(t *testing.T) {
	for metadata, want := range map[string]string{
		"metadata: {name: a}": "it is being deleted",
		"metadata: {name: a, finalizers: [x]}, spec: {finalizers: [kubernetes]}": "it is being deleted; finalizers: x, kubernetes",
	} {
		if got := terminating(object(t, "{apiVersion: v1, kind: Namespace, "+metadata+"}")); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
