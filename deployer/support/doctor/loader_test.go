package doctor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/loader"
	"github.com/solutionctl/solutionctl/schema"
)

const loaderImage = "registry.example/solutionctl@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// loads starts a run of the loader that deploys one Solution and repairs it, in this process or by a Job that never
// runs.
func (p *patient) loads(o loader.StartOptions) {
	p.Helper()
	p.Imported("edge", "1.0.0", deployertest.Content{})
	c, err := schema.ParseLoaderConfiguration("loader.yaml", []byte("apiVersion: solutionctl.io/v1alpha1\nkind: LoaderConfiguration\nspec:\n  image: "+loaderImage+
		"\n  environments: [{name: infra, solutions: [{name: edge}]}]\n  repair: {mode: repair}\n"))
	if err != nil {
		p.Fatal(err)
	}
	if _, err = (&loader.Launcher{Deployer: p.Deployer, Configuration: c}).Start(p.Context(), o); err != nil {
		p.Fatal(err)
	}
}

// edit changes an object as another client.
func (p *patient) edit(kind, name string, change func(*unstructured.Unstructured)) {
	p.Helper()
	object := p.Server.Object(kind, cluster.SystemNamespace, name)
	if object == nil {
		p.Fatalf("there is no %s %s", kind, name)
	}
	change(object)
	p.Put(object)
}

// progress replaces a text in the document with the progress of the loader.
func (p *patient) progress(before, after string) {
	p.Helper()
	p.edit("ConfigMap", "loader", func(o *unstructured.Unstructured) {
		data, _, _ := unstructured.NestedStringMap(o.Object, "data")
		if !strings.Contains(data["progress.json"], before) {
			p.Fatalf("nothing like %s in %s", before, data["progress.json"])
		}
		o.Object["data"] = map[string]any{"run": data["run"], "progress.json": strings.Replace(data["progress.json"], before, after, 1)}
	})
}

func (p *patient) cron(path, value string) {
	p.Helper()
	p.edit("CronJob", "loader-repair", func(o *unstructured.Unstructured) {
		var v any = value
		if value == "true" {
			v = true
		}
		if err := unstructured.SetNestedField(o.Object, v, strings.Split(path, ".")...); err != nil {
			p.Fatal(err)
		}
	})
}

// job is the name of the Job of the run.
func (p *patient) job() string {
	p.Helper()
	names := p.Server.Names("Job")
	if len(names) != 1 {
		p.Fatalf("there is %q", names)
	}
	_, name, _ := strings.Cut(names[0], "/")
	return name
}

// TestLoader: problems of the loader, each with the next command.
func TestLoader(t *testing.T) {
	local, job := loader.StartOptions{Local: true}, loader.StartOptions{NoWait: true}
	const start = "solutionctl deploy loader start"
	for name, test := range map[string]struct {
		how  loader.StartOptions
		harm func(*patient)
		want []string
	}{
		"it is well": {local, func(*patient) {}, []string{"ok loader run"}},
		"it failed": {local, func(p *patient) {
			p.progress(`"phase":"Ready"`, `"phase":"Failed","error":{"code":"conflict","message":"CANARY"}`)
		}, []string{
			"problem loader run: … failed (conflict): 1 of 1 parts are ready → 'solutionctl deploy loader status' shows why; then " + start, "no CANARY",
		}},
		"a user stopped it": {local, func(p *patient) {
			p.progress(`"phase":"Ready"`, `"phase":"Interrupted","error":{"code":"interrupted","message":"CANARY"}`)
		}, []string{
			"warning loader run: … was stopped before it was done → " + start, "no CANARY",
		}},
		"it was interrupted": {local, func(p *patient) { p.progress(`"phase":"Ready"`, `"phase":"Interrupted"`) }, []string{"warning loader run: … was interrupted, and no process continues it → " + start}},
		"it cannot be read":  {local, func(p *patient) { p.progress(`"phase":"Ready"`, `"phase":"CANARY`) }, []string{"problem loader run: the progress of the loader … → " + start, "no CANARY"}},
		"the pod has not started": {job, func(*patient) {}, []string{
			"warning loader run: … has not begun yet … " + loaderImage + " → 'solutionctl deploy loader status' shows why it does not", "no loader account",
		}},
		"the Job vanished": {job, func(p *patient) { p.Deleted("Job", cluster.SystemNamespace, p.job()) }, []string{"problem loader run: … its Job is gone → " + start, "warning loader account: … is still there … → " + start}},
		"the launcher was killed before the Job was set free": {job, func(p *patient) {
			p.edit("Job", p.job(), func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, true, "spec", "suspend") })
		}, []string{"problem loader run: … was never begun: its launcher was killed → " + start}},
		"the pod was killed": {job, func(p *patient) {
			p.edit("Job", p.job(), func(o *unstructured.Unstructured) {
				o.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}}}
			})
		}, []string{"problem loader run: … has ended without a word … → 'solutionctl deploy loader logs' shows what it has written; then " + start, "warning loader account"}},
		"the image is in no archive": {job, func(p *patient) {
			p.edit("Job", p.job(), func(o *unstructured.Unstructured) {
				o.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"] = []any{map[string]any{ //nolint:forcetypeassert // as it was made
					"name": "loader", "image": "registry.solutionctl.invalid/solutionctl-1.0.0/" + strings.TrimPrefix(loaderImage, "registry.example/"),
				}}
			})
		}, []string{"problem loader image: no imported version brings registry.solutionctl.invalid/solutionctl-1.0.0/ … → solutionctl deploy import solutionctl-VERSION.iso, then " + start}},

		"repairs gave up": {local, func(p *patient) {
			p.progress(`"loaded":`, `"repair":{"at":"2026-01-02T03:04:05Z","times":4,"changed":["CANARY"]},"loaded":`)
		}, []string{"problem loader repairs: 1 object changed again after each of 3 repairs … → 'solutionctl deploy loader status' names who changes it", "no CANARY"}},
		"the CronJob is gone": {local, func(p *patient) { p.Deleted("CronJob", cluster.SystemNamespace, "loader-repair") }, []string{"problem loader repairs: the CronJob of repairs is gone: drift is not repaired → " + start}},
		"the account of repairs is gone": {local, func(p *patient) {
			p.Deleted("ServiceAccount", cluster.SystemNamespace, "solutionctl-loader-repair")
		}, []string{"problem loader repairs: the account of repairs is gone: drift is not repaired → " + start}},
		"the CronJob is suspended": {local, func(p *patient) { p.cron("spec.suspend", "true") }, []string{
			`warning loader repairs: CronJob loader-repair is suspended: drift is not repaired → kubectl patch cronjob --namespace solutionctl-system loader-repair --patch '{"spec":{"suspend":false}}'`,
		}},
		"the CronJob ran in the future": {local, func(p *patient) {
			p.cron("status.lastScheduleTime", time.Now().Add(48*time.Hour).UTC().Format(time.RFC3339))
		}, []string{"problem loader repairs: … when the clock was wrong, and does not run again before that → kubectl delete cronjob --namespace solutionctl-system loader-repair, then " + start}},
		"the last repair failed": {local, func(p *patient) {
			for i, end := range []string{"Complete", "Failed"} {
				p.Server.Put(p, fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: loader-repair-%d, namespace: solutionctl-system, creationTimestamp: '2026-01-02T03:04:0%[1]dZ', "+
					"ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: loader-repair, uid: u}]}, status: {conditions: [{type: %s, status: 'True', message: CANARY}]}}", i, end))
			}
		}, []string{"problem loader repairs: the last repair failed → kubectl logs --namespace solutionctl-system job/loader-repair-1", "no CANARY"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &patient{Bed: deployertest.New(t), root: t.TempDir(), now: time.Now}
			p.Server.Stall("Job")
			p.loads(test.how)
			test.harm(p)
			p.finds(test.want...)
		})
	}
	p := &patient{Bed: deployertest.New(t), root: t.TempDir(), now: time.Now}
	p.finds("skipped loader run: the loader has never run on this cluster")
}
