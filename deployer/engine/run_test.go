package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
)

// runOf returns a run of a release at two o'clock.
func runOf(release Release, state record.State, steps ...*step) *run {
	now := func() time.Time { return time.Date(2026, 1, 2, 2, 0, 0, 123, time.UTC) }
	e := &Engine{Store: &record.Store{Tool: "1.2.3"}, Now: now}
	return &run{
		Engine: e, state: state, results: map[*step]*unstructured.Unstructured{},
		plan: &Plan{Release: release, steps: steps, state: &state, decider: &decider{Engine: e, release: release}},
	}
}

// TestPropose checks the number and the history of a new revision.
func TestPropose(t *testing.T) {
	upgrade := Release{Key: shop, Operation: "upgrade", Version: "2.0.0"}
	revision := func(number int64, operation, version string) *schema.DeploymentRevision {
		return &schema.DeploymentRevision{Number: number, Operation: operation, Version: version, Content: "sha256:c", User: "eve"}
	}
	for name, test := range map[string]struct {
		state   record.State
		want    string
		history []string
	}{
		"the first":                         {record.State{}, "1 upgrade 2.0.0 by bob", nil},
		"after another":                     {record.State{Current: revision(4, "add", "1.0.0")}, "5 upgrade 2.0.0 by bob", nil},
		"the same that was not completed":   {record.State{Current: revision(4, "add", "1.0.0"), Pending: revision(5, "upgrade", "2.0.0")}, "5 upgrade 2.0.0 by eve", nil},
		"instead of what was not completed": {record.State{Current: revision(4, "add", "1.0.0"), Pending: revision(5, "upgrade", "1.5.0")}, "6 upgrade 2.0.0 by bob", []string{"5 replaced"}},
		"after a history":                   {record.State{History: []schema.DeploymentRevision{*revision(9, "remove", "")}}, "10 upgrade 2.0.0 by bob", []string{"9 "}},
	} {
		t.Run(name, func(t *testing.T) {
			r := runOf(upgrade, test.state)
			r.propose("bob", "sha256:c")
			p := r.state.Pending
			if got := fmt.Sprintf("%d %s %s by %s", p.Number, p.Operation, p.Version, p.User); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			var history []string
			for _, old := range r.state.History {
				history = append(history, fmt.Sprintf("%d %s", old.Number, old.Outcome))
			}
			if diff := cmp.Diff(history, test.history); diff != "" || p.Outcome != schema.DeploymentPending || r.state.Current != test.state.Current {
				t.Errorf("%+v: %s", p, diff)
			}
		})
	}
}

// TestComplete checks the objects of a completed revision.
func TestComplete(t *testing.T) {
	const live = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, uid: u, resourceVersion: "7", generation: 2}}`
	wanted := "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}"
	known := schema.DeployedObject{UID: "old", ResourceVersion: "3", Hash: "h"}
	for name, test := range map[string]struct {
		desired string
		action  schema.Action
		want    string // UID, resource version and more; "" if it is dropped
	}{
		"made":                        {wanted, schema.ActionCreate, "u 7 kept false"},
		"replaced":                    {wanted, schema.ActionReplace, "u 7 kept false"},
		"as it was":                   {wanted, schema.ActionNone, "u 7 kept false"},
		"of a kind that is not there": {wanted, schema.ActionSkip, ""},
		"left to its activation":      {wanted, schema.ActionKeep, "old 3 kept false"},
		"removed":                     {"", schema.ActionDelete, ""},
		"never removed":               {"", schema.ActionKeep, "old 3 kept true"},
	} {
		t.Run(name, func(t *testing.T) {
			s := stepOf(t, test.desired, live)
			s.Action, s.known = test.action, known
			s.known.ObjectRef, s.replacing = s.Object, test.action == schema.ActionReplace
			r := runOf(Release{Key: shop, Version: "2.0.0"}, record.State{Current: &schema.DeploymentRevision{Number: 1, Outcome: schema.DeploymentDone}}, s)
			r.propose("bob", "sha256:c")
			r.complete()
			done := r.state.Current
			if done.Number != 2 || done.Outcome != schema.DeploymentDone || !done.Finished.Equal(time.Date(2026, 1, 2, 2, 0, 0, 0, time.UTC)) || r.state.Pending != nil {
				t.Errorf("%+v", done)
			}
			if len(r.state.History) != 1 || r.state.History[0].Number != 1 {
				t.Errorf("history %v", r.state.History)
			}
			got := ""
			for _, object := range done.Objects {
				got = fmt.Sprintf("%s %s kept %t", object.UID, object.ResourceVersion, object.Kept)
				if object.Replacing || object.Leaving {
					t.Errorf("%+v", object)
				}
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestRepairsLeaveHistory checks that repeated repairs do not push revisions out of the history.
func TestRepairsLeaveHistory(t *testing.T) {
	repair := &schema.DeploymentRevision{Number: 3, Operation: "repair", Version: "1.0.0", Settings: map[string]string{"a": "b"}}
	again, other := *repair, *repair
	again.Number, again.User, other.Operation = 4, "bob", "upgrade"
	r := runOf(Release{Key: shop}, record.State{})
	r.plan.decider.options.Restore = true
	if r.succeeds(&record.State{Current: repair, Pending: &again}) || !r.succeeds(&record.State{Current: &other, Pending: &again}) || r.succeeds(&record.State{Pending: &again}) {
		t.Error("only a repair after a repair stays out of the history")
	}
	r.plan.decider.options.Restore = false
	if !r.succeeds(&record.State{Current: repair, Pending: &again}) {
		t.Error("what is deployed again has a history")
	}
	if got := contents(&schema.DeploymentRevision{Content: "a"}, []schema.DeploymentRevision{{Content: "b"}}); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("content of revisions: %v", got)
	}
}

// TestJobs checks that a Job that has ended is not run again unless the user asks for that.
func TestJobs(t *testing.T) {
	const (
		job     = "{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: shop}}"
		expires = "{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: shop}, spec: {ttlSecondsAfterFinished: 60}}"
	)
	for name, test := range map[string]struct {
		desired       string
		known, before schema.DeployedObject // the hash "same" is that of the desired object
		past          bool                  // it has ended in an earlier revision
		back          bool
		live          bool
		replace       string
		ended, done   bool
		action        schema.Action
	}{
		"never seen":                           {desired: job},
		"on record, and not ended":             {desired: job, known: schema.DeployedObject{Hash: "same", UID: "u"}},
		"ended, and gone":                      {desired: job, known: schema.DeployedObject{Hash: "same", Completed: true}, ended: true, done: true, action: schema.ActionNone},
		"ended, and still there":               {desired: job, known: schema.DeployedObject{Hash: "same", Completed: true}, live: true, ended: true},
		"another one ended":                    {desired: job, known: schema.DeployedObject{Hash: "other", Completed: true}},
		"ended, gone, and run again":           {desired: job, known: schema.DeployedObject{Hash: "same", Completed: true}, replace: "job/a", ended: true, done: true, action: schema.ActionCreate},
		"ended, there, and run again":          {desired: job, known: schema.DeployedObject{Hash: "same", Completed: true}, live: true, replace: "job/a", ended: true, done: true, action: schema.ActionReplace},
		"was to be run again when that broke":  {desired: job, known: schema.DeployedObject{Hash: "same", Completed: true, Replacing: true}, ended: true, done: true, action: schema.ActionCreate},
		"the cluster deleted it after its end": {desired: expires, before: schema.DeployedObject{Hash: "same", UID: "u"}, ended: true, done: true, action: schema.ActionNone},
		"never made, and would be deleted":     {desired: expires, before: schema.DeployedObject{Hash: "same"}},
		"back to where it had ended":           {desired: job, past: true, back: true, ended: true, done: true, action: schema.ActionNone},
		"forward to where it had ended":        {desired: job, past: true},
		"back, and that of the next is there":  {desired: job, known: schema.DeployedObject{Hash: "other"}, past: true, back: true, live: true, ended: true, done: true, action: schema.ActionDelete},
		"no Job":                               {desired: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}", known: schema.DeployedObject{Hash: "same", Completed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			live := ""
			if test.live {
				live = `{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: shop, uid: u}, status: {conditions: [{type: Failed, status: "False"}, {type: Complete, status: "True"}]}}`
			}
			s := stepOf(t, test.desired, live)
			same := func(o schema.DeployedObject) schema.DeployedObject {
				if o.ObjectRef = s.Object; o.Hash == "same" {
					o.Hash = s.hash
				}
				return o
			}
			s.known = same(test.known)
			key := record.KeyOf(s.Object)
			d := &decider{
				release: Release{Key: shop, Back: test.back}, options: PlanOptions{Replace: []string{test.replace}},
				before: map[record.ObjectKey]schema.DeployedObject{key: same(test.before)}, past: map[record.ObjectKey][]string{},
			}
			if test.past {
				d.past[key] = []string{"other", s.hash}
			}
			if got := d.hasEnded(s); got != test.ended {
				t.Fatalf("ended %t", got)
			}
			if !test.ended {
				return
			}
			if done := d.decideAfterEnd(s); done != test.done || s.Action != test.action || s.replacing != (test.action == schema.ActionCreate || test.action == schema.ActionReplace) {
				t.Errorf("decided %t, %q, replacing %t: %s", done, s.Action, s.replacing, s.Note)
			}
		})
	}
}

// TestMatchReleases checks the release of labelled objects, as labels may be copies.
func TestMatchReleases(t *testing.T) {
	local, prod, global := record.Key{Namespace: "shop", Name: "db"}, record.Key{Namespace: "prod", Name: "db"}, record.Key{Name: "db"}
	config := func(name, namespace string, release record.Key, more string) *unstructured.Unstructured {
		return object(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %q, labels: {%s: %s}%s}}", name, namespace, schema.LabelRelease, release.ID(), more))
	}
	for name, test := range map[string]struct {
		objects    []*unstructured.Unstructured
		namespaces []string
		want       []string
	}{
		"of a namespace":                       {[]*unstructured.Unstructured{config("b", "shop", local, ""), config("a", "shop", local, "")}, []string{"shop"}, []string{"shop/db a", "shop/db b"}},
		"listed twice":                         {[]*unstructured.Unstructured{config("a", "shop", local, ""), config("a", "shop", local, "")}, []string{"shop"}, []string{"shop/db a"}},
		"everywhere":                           {[]*unstructured.Unstructured{config("a", "shop", local, ""), config("a", "prod", prod, ""), config("a", "", global, "")}, nil, []string{"db a", "prod/db a", "shop/db a"}},
		"copied from another namespace":        {[]*unstructured.Unstructured{config("a", "shop", prod, ""), config("b", "prod", prod, "")}, nil, []string{"prod/db b"}},
		"of the whole cluster, in a namespace": {[]*unstructured.Unstructured{config("a", "shop", global, "")}, nil, []string{"db a"}},
		"of a namespace, without one":          {[]*unstructured.Unstructured{config("a", "", local, "")}, []string{"shop"}, []string{"shop/db a"}},
		"of a namespace that is not asked for": {[]*unstructured.Unstructured{config("a", "prod", prod, "")}, []string{"shop"}, nil},
		"goes with another object":             {[]*unstructured.Unstructured{config("a", "shop", local, ", ownerReferences: [{apiVersion: v1, kind: A, name: b, uid: u}]")}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range matchReleases(test.objects, test.namespaces) {
				got = append(got, f.String()+" "+f.Object.GetName())
				if d := f.Deployed(); d.Phase != phaseConfiguration || d.Name != f.Object.GetName() {
					t.Errorf("%+v", d)
				}
			}
			if diff := cmp.Diff(got, test.want); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAge checks that ages use the clock of the cluster.
func TestAge(t *testing.T) {
	r := runOf(Release{}, record.State{})
	at := r.Now().Add(-time.Minute)
	if got := r.age(at); got != time.Minute {
		t.Errorf("without a write: %s", got)
	}
	r.begun.here, r.begun.there = r.Now().Add(-5*time.Second), r.Now().Add(time.Hour)
	if got := r.age(at); got != time.Hour+time.Minute+5*time.Second {
		t.Errorf("a cluster that is an hour ahead: %s", got)
	}
}

// TestAwaited checks which objects have to become ready.
func TestAwaited(t *testing.T) {
	for name, test := range map[string]struct {
		kind   string
		action schema.Action
		ended  bool
		want   bool
	}{
		"a Deployment":                          {"apps/v1 Deployment", schema.ActionNone, false, true},
		"a custom resource":                     {"example.com/v1 Db", schema.ActionUpdate, false, true},
		"a ConfigMap":                           {"v1 ConfigMap", schema.ActionCreate, false, false},
		"a Job":                                 {"batch/v1 Job", schema.ActionCreate, false, true},
		"a Job that has ended":                  {"batch/v1 Job", schema.ActionNone, true, false},
		"a kind that the cluster does not have": {"example.com/v1 Db", schema.ActionSkip, false, false},
		"one that is kept":                      {"example.com/v1 Db", schema.ActionKeep, false, false},
	} {
		version, kind, _ := strings.Cut(test.kind, " ")
		s := stepOf(t, "{apiVersion: "+version+", kind: "+kind+", metadata: {name: a}}", "")
		s.Action, s.ended = test.action, test.ended
		if got := s.awaited(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !Awaits(schema.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment"}) || Awaits(schema.ObjectRef{APIVersion: "v1", Kind: "Secret"}) {
		t.Error("which kinds are watched is not known")
	}
}

// TestObserveJob: a Job that has ended is ready, even while the cluster deletes it at once.
func TestObserveJob(t *testing.T) {
	const job = `{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: shop%s}, spec: {ttlSecondsAfterFinished: 0}, status: {conditions: [%s]}}`
	const deleted, complete = `, deletionTimestamp: "2026-01-01T00:00:00Z"`, `{type: Complete, status: "True"}`
	for name, test := range map[string]struct {
		live          string
		ready, failed bool
	}{
		"complete":                       {fmt.Sprintf(job, "", complete), true, false},
		"complete, and being deleted":    {fmt.Sprintf(job, deleted, complete), true, false},
		"at work, and being deleted":     {fmt.Sprintf(job, deleted, ""), false, true},
		"failed, and being deleted":      {fmt.Sprintf(job, deleted, `{type: Failed, status: "True"}`), false, true},
		"at work, and not being deleted": {fmt.Sprintf(job, "", ""), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := stepOf(t, fmt.Sprintf(job, "", ""), test.live)
			s.known = schema.DeployedObject{Hash: s.hash, Completed: true} // the end is on record
			r := runOf(Release{Key: shop}, record.State{})
			r.plan.steps = []*step{s}
			target := &target{run: r, step: s}
			target.observe(t.Context(), s.live)
			if target.ready() != test.ready || target.over() != (test.ready || test.failed) {
				t.Errorf("ready %t, over %t", target.ready(), target.over())
			}
		})
	}
}
