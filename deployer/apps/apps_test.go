package apps_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const environment = `
{apiVersion: v1, kind: Namespace, metadata: {name: test, labels: {solutions.metalk8s.scality.com/environment: test}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: metalk8s-environment, namespace: test}, data: {bank: 1.0.0, shop: 1.0.0}}
`

// definition is that of the kind of the only instances of a Solution: Shop for shop.
func definition(solution string) string {
	return fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[1]ss.example.com}, spec: {group: example.com,
scope: Namespaced, names: {kind: %[2]s, plural: %[1]ss, singular: %[1]s, listKind: %[2]sList}, versions: [{name: v1, served: true, storage: true,
schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}]}}`,
		solution, strings.ToUpper(solution[:1])+solution[1:])
}

// imported is a deployer on a server that has environment test with two Solutions.
func imported(t *testing.T, sink report.Sink) (*deployer.Deployer, *clustertest.Server) {
	t.Helper()
	s := clustertest.Start(t, environment, definition("bank"), definition("shop"))
	c, err := cluster.Connect(cluster.Options{Kubeconfig: s.Kubeconfig(t), Now: time.Now, Retry: -1})
	if err != nil {
		t.Fatal(err)
	}
	d := deployer.New(deployer.Config{Cluster: c, Sink: sink, Now: time.Now, Version: "1.0.0", Identity: "test"})
	for _, name := range []string{"bank", "shop"} {
		a, err := archive.FromFS(fstest.MapFS{
			"manifest.yaml": {Data: fmt.Appendf(nil, "apiVersion: %s\nkind: Solution\nmetadata: {name: %s}\nspec: {version: 1.0.0}\n", schema.APIVersion, name)},
			"operator/deploy/crds/" + name + "_crd.yaml": {Data: []byte(definition(name))},
		})
		if err != nil {
			t.Fatal(err)
		}
		payload, err := render.FromArchive(a)
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.RecordImport(t.Context(), records.ImportRecord{Payload: payload, Path: "/srv/" + name + ".iso", SHA256: strings.Repeat("0", 64), Size: 4096})
		if err != nil {
			t.Fatal(err)
		}
	}
	return d, s
}

// TestCorruptPayload spoils what was imported of one Solution: the instances of the other one do not suffer.
func TestCorruptPayload(t *testing.T) {
	before, s := imported(t, report.Discard)
	bank, err := before.Records.Imports(t.Context())
	if err != nil || bank[0].Name != "bank" {
		t.Fatalf("%v, %v", bank, err)
	}
	for _, name := range s.Names("Secret") {
		namespace, name, _ := strings.Cut(name, "/")
		if secret := s.Object("Secret", namespace, name); strings.Contains(name, strings.TrimPrefix(bank[0].Payload, "sha256:")[:12]) {
			secret.Object["data"] = map[string]any{}
			delete(secret.Object, "immutable")
			text, err := secret.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			s.Put(t, string(text))
		}
	}
	s.Put(t, "{apiVersion: example.com/v1, kind: Shop, metadata: {name: first, namespace: test}}")
	var said report.Recorder
	d := deployer.New(deployer.Config{Cluster: before.Cluster, Sink: &said, Now: time.Now, Version: "1.0.0", Identity: "test"}) // has read nothing before
	o := apps.Options{Environment: "test", NoWait: true}

	list, err := d.Apps.List(t.Context(), o)
	if err != nil || len(list.Apps) != 1 || list.Apps[0].Name != "first" {
		t.Fatalf("%+v, %v", list, err)
	}
	if events := said.Events(); len(events) != 1 || events[0].Name != "bank" || !strings.Contains(events[0].Note, "solutionctl deploy import /srv/bank.iso") {
		t.Errorf("said: %+v", events)
	}
	o.Name, o.Kind = "second", "Shop"
	if app, err := d.Apps.Create(t.Context(), apps.CreateOptions{Options: o, Set: []string{"size=3"}}); err != nil || app.Kind != "Shop" {
		t.Fatalf("%+v, %v", app, err)
	}
	for _, test := range []struct {
		name string
		o    apps.Options
		want report.Code
	}{
		{"its own kind", apps.Options{Environment: "test", Kind: "Bank", Name: "third"}, report.Corrupt},
		{"any kind, of which one is not known", apps.Options{Environment: "test", Name: "third"}, report.Usage},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := d.Apps.Create(t.Context(), apps.CreateOptions{Options: test.o})
			if report.CodeOf(err) != test.want || !strings.Contains(err.Error(), "payload of bank-1.0.0") {
				t.Errorf("%v", err)
			}
		})
	}
	if _, err = d.Apps.Get(t.Context(), apps.Options{Environment: "test", Name: "third"}); report.CodeOf(err) != report.Corrupt {
		t.Errorf("an instance that may be of its kind: %v", err)
	}
}
