package engine_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const job = `{apiVersion: batch/v1, kind: Job, metadata: {name: migrate}, spec: {ttlSecondsAfterFinished: 60,
template: {spec: {restartPolicy: Never, containers: [{name: migrate, image: "registry/migrate:1"}]}}}}`

var (
	jobTwo  = strings.Replace(job, "migrate:1", "migrate:2", 1)
	jobKind = kube.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
)

// TestEndedJobs checks that no verb runs a Job again that has ended, whether or not it still exists, unless its content changes or the
// user asks for it.
func TestEndedJobs(t *testing.T) {
	t.Run("that the cluster deletes", func(t *testing.T) { endedJobs(t, job) })
	t.Run("that stay", func(t *testing.T) { endedJobs(t, strings.Replace(job, "ttlSecondsAfterFinished: 60,", "", 1)) })
}

func endedJobs(t *testing.T, job string) {
	t.Helper()
	w := newFixture(t)
	jobs := func(image string) *engine.Release {
		r := w.release("1", strings.Replace(job, "migrate:1", "migrate:"+image, 1))
		return &r
	}
	for _, step := range []struct {
		name    string
		gone    bool // the cluster has deleted the Job some time after its end
		release *engine.Release
		change  func(*engine.Release)
		options engine.PlanOptions
		actions []string
	}{
		{name: "first", release: jobs("1"), actions: []string{"create Job migrate"}},
		{name: "again", release: jobs("1")},
		{name: "again when it is gone", gone: true, release: jobs("1")},
		{name: "repair", release: jobs("1"), options: engine.PlanOptions{Restore: true}},
		{name: "as another version", release: jobs("1"), change: func(r *engine.Release) { r.Version = "1.1" }},
		{name: "another one", release: jobs("2"), actions: []string{"create Job migrate"}},
		{name: "back to the first, which has ended", release: jobs("1"), change: func(r *engine.Release) { r.Back = true }, actions: []string{"delete Job migrate"}},
		{name: "back again", release: jobs("1"), change: func(r *engine.Release) { r.Back = true }},
		{name: "forward again", release: jobs("2"), actions: []string{"create Job migrate"}},
		{name: "it is asked for", gone: true, release: jobs("2"), options: engine.PlanOptions{Replace: []string{"Job/migrate"}}, actions: []string{"create Job migrate"}},
		{name: "it is asked for while the ended one is there", release: jobs("2"), options: engine.PlanOptions{Replace: []string{"Job/migrate"}}, actions: []string{"replace Job migrate"}},
		{name: "removal", release: &engine.Release{Key: demo, Operation: "remove"}, actions: []string{"delete Job migrate"}},
		{name: "another life", release: jobs("2"), actions: []string{"create Job migrate"}},
	} {
		if step.gone {
			w.remove(jobKind, "migrate")
		}
		if step.change != nil {
			step.change(step.release)
		}
		w.restart()
		w.same(step.name, actions(w.deploy(*step.release, step.options)), step.actions)
	}
}

// TestUnfinishedJobs checks that a run that resumes a release whose Job was deleted knows whether the Job has ended.
func TestUnfinishedJobs(t *testing.T) {
	finish := func(condition string) func(*fixture) {
		return func(w *fixture) {
			w.edit("Job", "migrate", map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True"}}}, "status")
		}
	}
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		stall     string                // objects of this kind do not become ready by themselves
		meanwhile func(*fixture)        // as soon as it is watched
		options   engine.ApplyOptions   // of the first run
		err       func(*fixture, error) // of the first run
		next      string                // the next deployment
		actions   []string
	}{
		"it has ended, and something else failed": {
			stall: "Deployment",
			meanwhile: func(w *fixture) {
				w.edit("Deployment", "web", map[string]any{"observedGeneration": int64(1), "replicas": int64(1), "conditions": []any{
					map[string]any{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "it takes too long"},
				}}, "status")
			},
			options: engine.ApplyOptions{Timeout: time.Minute},
			err: func(w *fixture, err error) {
				w.failed(err, report.Timeout, "Deployment shop/web")
				s, err := w.State(w.Context(), demo)
				if i := slices.IndexFunc(s.Pending.Objects, func(o schema.DeployedObject) bool { return o.Kind == "Job" }); err != nil || i < 0 || !s.Pending.Objects[i].Completed || !s.Pending.Objects[i].Expires {
					w.Errorf("that it ended is not on record: %+v, %v", s.Pending.Objects, err)
				}
			},
			next: job,
		},
		"it has failed": {
			stall: "Job", meanwhile: finish("Failed"), options: engine.ApplyOptions{Timeout: time.Minute},
			err: func(w *fixture, err error) { w.failed(err, report.Timeout, "Job shop/migrate") }, next: job, actions: []string{"create Job migrate"},
		},
		"the first run did not wait for it": {stall: "Job", options: engine.ApplyOptions{NoWait: true}, next: job},
		"the first run did not wait for it, and it changes": {
			stall: "Job", options: engine.ApplyOptions{NoWait: true}, next: jobTwo, actions: []string{"create Job migrate"},
		},
		"the run was over before it was made": {
			options: engine.ApplyOptions{Prepare: func(context.Context) error { return broken }},
			err: func(w *fixture, err error) {
				if !errors.Is(err, broken) {
					w.Error(err)
				}
			},
			next: job, actions: []string{"create Job migrate"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			if test.stall == "" { // it replaces one that has ended
				w.deploy(w.release("1.0.0", jobTwo, deployment), engine.PlanOptions{})
				w.remove(jobKind, "migrate")
			}
			w.server.Stall(test.stall)
			plan, err := w.Plan(t.Context(), w.release("2.0.0", job, deployment), engine.PlanOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if test.meanwhile != nil {
				var once sync.Once
				w.server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
					if r.URL.Query().Get("watch") != "" {
						once.Do(func() { test.meanwhile(w) })
					}
					return false
				}
			}
			err = w.Apply(t.Context(), plan, test.options)
			switch {
			case test.err != nil:
				test.err(w, err)
			case err != nil:
				t.Fatal(err)
			}
			if w.server.Object("Job", "shop", "migrate") != nil {
				w.remove(jobKind, "migrate")
			}
			w.restart()
			if plan, err = w.Plan(t.Context(), w.release("2.0.0", test.next, deployment), engine.PlanOptions{}); err != nil {
				t.Fatal(err)
			}
			w.same("plan", actions(plan), test.actions)
		})
	}
}
