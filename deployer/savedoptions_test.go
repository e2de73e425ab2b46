package deployer_test

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestResumeKnows: a run that ends at any of its writes is finished by a resume alone, with the saved options.
func TestResumeKnows(t *testing.T) {
	choice := components.Choice{Profiles: []string{"large"}, Components: map[string]bool{"api": false}}
	values := map[string]plan.SiteValues{"db": {Values: map[string]any{"size": 7, "hosts": map[string]any{"standby": "z"}}, Reset: true}}
	deployed := func(t *testing.T) *deployertest.Bed {
		t.Helper()
		b := deployertest.New(t)
		b.Activated(shop, "1.0.0", parts(t, nil))
		must(b, add("1.0.0"))
		b.Imported(shop, "1.1.0", parts(t, map[string]string{"components/api.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: api}\ndata: {of: two}\n"}))
		return b
	}
	for _, test := range []struct {
		name  string
		begin func(t *testing.T) *deployertest.Bed
		run   verb
		least int // writes
		check func(b *deployertest.Bed, before map[string]string) map[string]string
		want  map[string]string
	}{
		{
			"an addition", func(t *testing.T) *deployertest.Bed {
				t.Helper()
				b := deployertest.New(t)
				b.Activated(shop, "1.0.0", withForeignImage(t))
				b.Created("kubectl", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extra"}}`)
				return b
			},
			func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
				o.Adopt = true
				return d.Add(ctx, deployer.AddOptions{Options: o, Environment: site, Solution: shop, Version: "1.0.0", Rendering: plan.Rendering{
					AcceptHazards: []string{plan.HazardForeignImages}, Parts: plan.Parts{Choice: choice, Values: values},
				}})
			}, 10, nil,
			map[string]string{"db": "map[primary:a size:7 standby:z]", "extra": "map[]"},
		},
		{
			"an upgrade", deployed, func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
				return d.Change(ctx, deployer.ChangeOptions{
					Options: o, Environment: site, Solution: shop, Version: "1.1.0", Direction: records.Up,
					Rendering: plan.Rendering{Parts: plan.Parts{Values: values, Rotate: []string{"db"}}},
				})
			}, 10,
			func(b *deployertest.Bed, before map[string]string) map[string]string {
				got := state(b)
				if got["db-password"] == before["db-password"] {
					b.Error("the password was not generated again")
				}
				return got
			},
			map[string]string{"db": "map[primary:a size:7 standby:z]", "api": "map[of:two]"},
		},
		{
			"Solutions together", func(t *testing.T) *deployertest.Bed {
				t.Helper()
				b := environmentWithTwo(t)
				b.Namespace(site, "second")
				return b
			},
			func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
				w := wanted(shop+"=1.0.0", "base=1.0.0")
				w.Options, w.Solutions[0].Parts = o, plan.Parts{Choice: choice, Values: values}
				return d.Ensure(ctx, w)
			}, 20,
			func(b *deployertest.Bed, _ map[string]string) map[string]string {
				got := state(b)
				if text := dataOf(b, "ConfigMap", "second", "db"); text["size"] != "7" {
					b.Errorf("the second namespace has %v", text)
				}
				return got
			},
			map[string]string{"db": "map[primary:a size:7 standby:z]", "extra": "map[]"},
		},
		{
			"an activation", func(t *testing.T) *deployertest.Bed {
				t.Helper()
				b := deployertest.New(t)
				content := parts(t, nil)
				content.Manifest = "components: [{name: db, chart: charts/db.tgz, scope: cluster, select: optional}]\n"
				b.Imported(shop, "1.0.0", content)
				return b
			},
			func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
				return d.Activate(ctx, deployer.ActivateOptions{Options: o, Solution: shop, Version: "1.0.0", Parts: plan.Parts{
					Choice: components.Choice{Components: map[string]bool{"db": true}}, Values: values,
				}})
			}, 8,
			func(b *deployertest.Bed, _ map[string]string) map[string]string {
				return dataOf(b, "ConfigMap", shop+"-system", "db")
			},
			map[string]string{"primary": "a", "size": "7", "standby": "z"},
		},
		{
			"a repair of one component", func(t *testing.T) *deployertest.Bed {
				t.Helper()
				b := deployed(t)
				edit(b, "ConfigMap", "api", "two", "data", "of") // the user wants to keep this edit
				edit(b, "ConfigMap", "db", "9", "data", "size")
				b.Deleted("Secret", site, "db-password")
				return b
			},
			func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
				return d.Repair(ctx, deployer.RepairOptions{Options: o, Selection: survey.Selection{Environment: site, Solution: shop, Components: []string{"db"}}})
			}, 4, nil,
			map[string]string{"db": "map[primary:a size:1 standby:b]", "api": "map[of:two]"},
		},
		{
			"a repair that takes over", func(t *testing.T) *deployertest.Bed {
				t.Helper()
				b := deployed(t)
				b.Deleted("ConfigMap", site, "api")
				b.Created("kubectl", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "api"}, "data": {"of": "theirs"}}`)
				edit(b, "ConfigMap", "db", "9", "data", "size")
				return b
			},
			func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
				o.Adopt = true
				return d.Repair(ctx, deployer.RepairOptions{Options: o, Selection: survey.Selection{Environment: site}})
			}, 4, nil,
			map[string]string{"db": "map[primary:a size:1 standby:b]", "api": "map[of:one]"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			for number := 1; ; number += stride(5) {
				b := test.begin(t)
				before := state(b)
				mend := endingAt(b, number)
				_, err := test.run(t.Context(), b.Deployer, plan.Options{})
				mend()
				if number > manyWrites {
					t.Fatalf("it has no end: %v", err)
				}
				if err == nil && number <= test.least {
					t.Errorf("there are only %d writes", number-1)
				}
				if err != nil && !anyBegun(b) {
					continue // the option is not on record
				}
				at := state(b)["db-password"]
				if _, failed := b.Connect().Resume(t.Context(), deployer.ResumeOptions{}); failed != nil {
					t.Fatalf("after write %d: %v", number, failed)
				}
				if at != "" && at != before["db-password"] && at != state(b)["db-password"] {
					t.Errorf("after write %d: the password was drawn twice", number)
				}
				got := state(b)
				if test.check != nil {
					got = test.check(b, before)
				}
				maps.DeleteFunc(got, func(name, _ string) bool {
					return name == "db-password" || strings.HasPrefix(name, "base-") || name == "mon"
				})
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Fatalf("after write %d (-want +got):\n%s", number, diff)
				}
				if anyBegun(b) {
					t.Errorf("after write %d: something is left to finish", number)
				}
				for _, name := range b.Server.Names("Secret") {
					if short, stored := strings.CutPrefix(name, cluster.SystemNamespace+"/"); stored && dataOf(b, "Secret", cluster.SystemNamespace, short)["given.gz"] != "" {
						t.Errorf("after write %d: %s still has what was given", number, name)
					}
				}
				if err == nil {
					return
				}
			}
		})
	}
}

// withForeignImage has a chart with an image that is in no archive.
func withForeignImage(t *testing.T) deployertest.Content {
	t.Helper()
	content := parts(t, map[string]string{"charts/mon.tgz": deployertest.Chart(t, "mon", map[string]string{"templates/mon.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: mon}
spec:
  replicas: 0
  selector: {matchLabels: {app: mon}}
  template: {metadata: {labels: {app: mon}}, spec: {containers: [{name: mon, image: "quay.io/acme/mon:1"}]}}
`})})
	content.Manifest += "  - {name: mon, chart: charts/mon.tgz}\n"
	return content
}

func dataOf(b *deployertest.Bed, kind, namespace, name string) map[string]string {
	object := b.Server.Object(kind, namespace, name)
	if object == nil {
		return nil
	}
	data, _, _ := unstructured.NestedStringMap(object.Object, "data")
	return data
}

// anyBegun reports whether a record has an incomplete operation.
func anyBegun(b *deployertest.Bed) bool {
	b.Helper()
	states, err := b.Connect().Records.Engine.States(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range states {
		if s.Pending != nil {
			return true
		}
	}
	return false
}

// TestSavedOptionsStaySecret: readable records, errors and events have no values.
func TestSavedOptionsStaySecret(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", parts(t, nil))
	hidden := choose(t, values("db", map[string]any{"hosts": map[string]any{"primary": "S3cr3tValue"}}, false))
	mend := endingAt(b, 5)
	_, failed := hidden(t.Context(), b.Deployer, plan.Options{})
	mend()
	state, err := b.Records.Engine.State(t.Context(), record.Key{Namespace: site, Name: shop})
	if failed == nil || err != nil || !strings.Contains(string(state.SavedOptions), "S3cr3tValue") {
		t.Fatalf("it is not kept: %v %v", failed, err)
	}
	record, err := schema.MarshalStored(state.Pending)
	if err != nil {
		t.Fatal(err)
	}
	output := failed.Error() + string(record)
	for _, event := range b.Sink.Events() {
		output += event.Name
	}
	if strings.Contains(output, "S3cr3tValue") {
		t.Error("the value is in the output")
	}
}

// TestAllowancesAreOfAnArchive checks that the powers which an interrupted run allowed by name count for the archive of that run: another one
// of the same version asks for what it can do in addition.
func TestAllowancesAreOfAnArchive(t *testing.T) {
	const version = "1.1.0-rc.1"
	content := func(security string) deployertest.Content {
		return shown("{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: part}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, " +
			"spec: {containers: [{name: c, image: 'shop-operator:1.0.0', securityContext: {" + security + "}}]}}}}\n")
	}
	for name, allow := range map[string]deployer.AddOptions{
		"by object": {Options: plan.Options{Allow: []string{"pod-on-node:DaemonSet/site/part", "pod-on-node:DaemonSet/second/part"}}},
		"by name":   {Rendering: plan.Rendering{Allow: []string{"pod-on-node"}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := deployertest.New(t)
			b.Namespace(site, "second") // its record is written after the first
			b.Activated(shop, version, content("capabilities: {add: [NET_ADMIN]}"))
			allow.Environment, allow.Solution, allow.Version, allow.NoWait = site, shop, version, true
			for number := 1; !anyBegun(b); number++ {
				mend := endingAt(b, number)
				_, err := b.Add(t.Context(), allow)
				mend()
				if err == nil || number > manyWrites {
					t.Fatal("no write failed", err)
				}
			}
			rebuilt := b.Record(shop, version, content("privileged: true"))
			rebuilt.SHA256 = strings.Repeat("0", 64)
			if _, err := b.RecordImport(t.Context(), rebuilt); err != nil {
				t.Fatal(err)
			}
			resume := func() error {
				_, err := b.Connect().Resume(t.Context(), deployer.ResumeOptions{Options: plan.Options{NoWait: true}})
				return err
			}
			deployertest.Refused(t, resume(), report.Refused, "privileged", "--allow pod-on-node:DaemonSet/")
			b.Imported(shop, version, content("capabilities: {add: [NET_ADMIN]}"))
			if err := resume(); err != nil {
				t.Errorf("the archive that was allowed: %v", err)
			}
		})
	}
}
