package apps_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	site = deployertest.Environment
	shop = "shop"
)

var coloured = deployertest.Content{Fields: "colour: {type: string}", Scale: true}

func shopBed(t *testing.T) *deployertest.Bed {
	t.Helper()
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", coloured)
	return b
}

func wall() apps.Options { return apps.Options{Environment: site, Name: "wall"} }

// TestLife: a user makes an instance, changes and scales it, and deletes it, without a word of Kubernetes.
func TestLife(t *testing.T) {
	b := shopBed(t)
	made, err := b.Apps.Create(t.Context(), apps.CreateOptions{Options: wall(), Values: []byte("hands: 2\n"), Set: []string{"colour=red"}})
	if err != nil || made.Health != schema.AppReady {
		t.Fatalf("%+v, %v", made, err)
	}
	if diff := cmp.Diff(map[string]any{"hands": int64(2), "colour": "red"}, made.Values); diff != "" {
		t.Errorf("made (-want +got):\n%s", diff)
	}
	changed, err := b.Apps.Set(t.Context(), apps.SetOptions{Options: wall(), Set: []string{"hands=3", "colour-"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"hands": int64(3)}, changed.Values); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	list, err := b.Apps.List(t.Context(), apps.Options{Environment: site})
	if err != nil || len(list.Apps) != 1 || list.Apps[0].Name != "wall" || list.Apps[0].Solution != shop {
		t.Errorf("%+v, %v", list, err)
	}
	deployertest.Valid(t, "apps", list)
	if err = b.Apps.Delete(t.Context(), wall()); err != nil {
		t.Fatal(err)
	}
	if list, err = b.Apps.List(t.Context(), apps.Options{Environment: site, Kind: "clocks"}); err != nil || len(list.Apps) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestDeleteChanged checks that a deletion does not fail when the operator writes a status meanwhile, and that an instance that was created
// since the question stays.
func TestDeleteChanged(t *testing.T) {
	b := shopBed(t)
	b.Clock(shop, site, "wall", "hands: 2")
	one, err := b.Apps.Get(t.Context(), wall())
	if err != nil {
		t.Fatal(err)
	}
	b.Deleted("Clock", site, "wall")
	b.Clock(shop, site, "wall", "hands: 3")
	o := wall()
	o.UID = one.UID
	deployertest.Refused(t, b.Apps.Delete(t.Context(), o), report.Conflict, "Clock site/wall was deleted and created again")
	o.UID = string(b.Server.Object("Clock", site, "wall").GetUID())
	b.Server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/clocks/wall") {
			clock := b.Server.Object("Clock", site, "wall")
			clock.Object["status"] = map[string]any{"hands": int64(3)}
			b.Server.Update(t, clock)
		}
		return false
	}
	if err := b.Apps.Delete(t.Context(), o); err != nil {
		t.Error(err)
	}
	if b.Server.Object("Clock", site, "wall") != nil {
		t.Error("it is still there")
	}
}

// TestValuesFile: values are a spec, also one with a field kind, or a whole resource of the same kind and name.
func TestValuesFile(t *testing.T) {
	head := "apiVersion: " + deployertest.Group(shop) + "/v1\nkind: Clock\n"
	for values, want := range map[string]string{
		"kind: postgres\nhands: 3\n":                                        "",
		"---\nkind: postgres\nhands: 3\n---\n":                              "",
		head + "spec: {kind: postgres, hands: 3}\n":                         "",
		head + "metadata: {name: wall}\nspec: {kind: postgres, hands: 3}\n": "",
		head + "metadata: {name: tower}\nspec: {hands: 3}\n":                "want the spec of Clock wall",
		head + "kinds: 3\n":                                                 "the resource has no spec",
		"apiVersion: v1\nkind: Clock\nspec: {hands: 3}\n":                   "they are Clock wall of v1",
		"hands: 3\n---\nhands: 2\n":                                         "more than one document",
	} {
		t.Run(values, func(t *testing.T) {
			b := deployertest.New(t)
			b.Added(shop, "1.0.0", deployertest.Content{Fields: "kind: {type: string}"})
			made, err := b.Apps.Create(t.Context(), apps.CreateOptions{Options: wall(), Values: []byte(values)})
			if want != "" {
				deployertest.Refused(t, err, report.Invalid, want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]any{"hands": int64(3), "kind": "postgres"}, made.Values); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRefused: mistakes of a user are refused before anything is written, with the correct form.
func TestRefused(t *testing.T) {
	create := func(values string, set ...string) func(*deployertest.Bed) error {
		return func(b *deployertest.Bed) error {
			_, err := b.Apps.Create(b.Context(), apps.CreateOptions{Options: wall(), Values: []byte(values), Set: set})
			return err
		}
	}
	in := func(o apps.Options) func(*deployertest.Bed) error {
		return func(b *deployertest.Bed) error {
			_, err := b.Apps.Create(b.Context(), apps.CreateOptions{Options: o})
			return err
		}
	}
	for _, test := range []struct {
		name  string
		bed   func(*deployertest.Bed)
		run   func(*deployertest.Bed) error
		code  report.Code
		words []string
	}{
		{"a field that is misspelt", nil, create("", "colours=red"), report.Usage, []string{"colour"}},
		{"a value of another type", nil, create("hands: two\n"), report.Invalid, []string{"spec.hands"}},
		{"values that are no mapping", nil, create("- a\n"), report.Invalid, nil},
		{"values that are no YAML", nil, create("a: [\n"), report.Invalid, nil},
		{"a name that is taken", func(b *deployertest.Bed) { b.Clock(shop, site, "wall", "hands: 2") }, create(""), report.Conflict, []string{"deploy app set site wall"}},
		{"no such kind", nil, in(apps.Options{Environment: site, Name: "wall", Kind: "Watch"}), report.NotFound, []string{"Watch", "Clock"}},
		{"no such environment", nil, in(apps.Options{Environment: "nowhere", Name: "wall"}), report.NotFound, []string{"nowhere"}},
		{
			"an environment without Solutions", func(b *deployertest.Bed) { b.Namespace("empty", "empty") },
			in(apps.Options{Environment: "empty", Name: "wall"}), report.NotFound,
			[]string{"deploy add empty"},
		},
		{
			"one of two kinds", func(b *deployertest.Bed) { b.Added("base", "1.0.0", deployertest.Content{}) },
			in(wall()), report.Usage,
			[]string{"--kind"},
		},
		{
			"one of two namespaces",
			func(b *deployertest.Bed) {
				b.Namespace(site, "annex")
				_, err := b.Add(b.Context(), deployer.AddOptions{Environment: site, Solution: shop})
				if err != nil {
					b.Fatal(err)
				}
			},
			in(wall()), report.Usage,
			[]string{"--namespace"},
		},
		{
			"a namespace without the Solution", func(b *deployertest.Bed) { b.Namespace(site, "annex") },
			in(apps.Options{Environment: site, Name: "wall", Namespace: "annex"}), report.NotFound, nil,
		},
		{"change what is not there", nil, func(b *deployertest.Bed) error {
			_, err := b.Apps.Set(b.Context(), apps.SetOptions{Options: wall(), Set: []string{"hands=2"}})
			return err
		}, report.NotFound, []string{"wall", "deploy app list site"}},
		{"show one of two", func(b *deployertest.Bed) {
			b.Added("base", "1.0.0", deployertest.Content{})
			b.Clock(shop, site, "wall", "hands: 2")
			b.Clock("base", site, "wall", "hands: 2")
		}, func(b *deployertest.Bed) error {
			_, err := b.Apps.Get(b.Context(), wall())
			return err
		}, report.Usage, []string{"Clock site/wall", "--kind"}},
		{
			"scale what has no replicas", func(b *deployertest.Bed) {
				b.Added("base", "1.0.0", deployertest.Content{})
				b.Clock("base", site, "tower", "hands: 2")
			}, func(b *deployertest.Bed) error {
				_, err := b.Apps.Scale(b.Context(), apps.ScaleOptions{Options: apps.Options{Environment: site, Name: "tower"}, Replicas: 3})
				return err
			}, report.Refused, []string{"deploy app fields site Clock"},
		},
		{"list a kind that is not there", nil, func(b *deployertest.Bed) error {
			_, err := b.Apps.List(b.Context(), apps.Options{Environment: site, Kind: "Watch"})
			return err
		}, report.NotFound, []string{"Clock"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := shopBed(t)
			if test.bed != nil {
				test.bed(b)
			}
			b.Writes()
			deployertest.Refused(t, test.run(b), test.code, test.words...)
			if writes := b.Writes(); len(writes) > 0 {
				t.Errorf("it wrote %q", writes)
			}
		})
	}
}

// TestSecretsInErrors checks that no error quotes the value of a secret, neither one of the API server nor one of the form.
func TestSecretsInErrors(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", deployertest.Content{Fields: "password: {type: string, minLength: 3}, pin: {type: string, format: password}, users: {type: array, items: {type: object, properties: {name: {type: string}, token: {type: string}}}}, colour: {type: string}"})
	for _, test := range []struct { // in this order: a refused create leaves nothing
		verb   string
		change func() error
	}{
		{"create", func() error {
			_, err := b.Apps.Create(t.Context(), apps.CreateOptions{Options: wall(), Values: []byte("hands: 2\nusers: [{name: jane, token: to\"ken}]\n"), Set: []string{"password=hunter2", "pin=42x", "colour=red"}})
			return err
		}},
		{"set", func() error {
			b.Server.Answer = nil
			if _, err := b.Apps.Create(t.Context(), apps.CreateOptions{Options: wall(), Values: []byte("hands: 2\nusers: [{name: jane, token: to\"ken}]\n"), Set: []string{"password=hunter2", "pin=42x"}}); err != nil {
				t.Fatal(err)
			}
			refuseSecrets(b)
			_, err := b.Apps.Set(t.Context(), apps.SetOptions{Options: wall(), Set: []string{"password=other", "colour=red"}})
			return err
		}},
	} {
		refuseSecrets(b)
		err := test.change()
		b.Server.Answer = nil
		if err == nil {
			t.Fatalf("%s is accepted", test.verb)
		}
		deployertest.Refused(t, err, report.Invalid, "spec.password: Invalid value: (hidden): should match", "spec.colour", "red")
		for _, secret := range []string{"hunter2", "42x", `to"ken`, `to\\"ken`} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %q is in %v", test.verb, secret, err)
			}
		}
	}
	_, err := b.Apps.Create(t.Context(), apps.CreateOptions{Options: apps.Options{Environment: site, Name: "other"}, Set: []string{"hands=2", "password=zz"}})
	if err == nil || strings.Contains(err.Error(), "zz") {
		t.Errorf("a short password: %v", err)
	}
}

// refuseSecrets makes the API server refuse custom resources with an error that quotes their secrets.
func refuseSecrets(b *deployertest.Bed) {
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "/clocks") {
			return false
		}
		at := field.NewPath("spec")
		clustertest.Fail(w, apierrors.NewInvalid(kube.GroupKind{Kind: "Clock"}, "wall", field.ErrorList{
			field.Invalid(at.Child("password"), "hunter2", "should match '^[a-z]+$'"), field.Invalid(at.Child("pin"), "42x", "it is not a PIN"),
			field.Invalid(at.Child("users").Index(0).Child("token"), "to\"ken", `rule failed: to"ken is too short`), field.Invalid(at.Child("colour"), "red", "not yet"),
		}))
		return true
	}
}

// TestRights: a user without the permission for a request, or for waiting for its result, is refused before anything
// changes.
func TestRights(t *testing.T) {
	for _, test := range []struct {
		verb string
		run  func(*deployertest.Bed, *deployer.Deployer) error
	}{
		{"create", func(b *deployertest.Bed, d *deployer.Deployer) error {
			_, err := d.Apps.Create(b.Context(), apps.CreateOptions{Options: apps.Options{Environment: site, Name: "new"}})
			return err
		}},
		{"watch", func(b *deployertest.Bed, d *deployer.Deployer) error {
			_, err := d.Apps.Create(b.Context(), apps.CreateOptions{Options: apps.Options{Environment: site, Name: "new"}})
			return err
		}},
		{"update", func(b *deployertest.Bed, d *deployer.Deployer) error {
			_, err := d.Apps.Set(b.Context(), apps.SetOptions{Options: wall(), Set: []string{"hands=3"}})
			return err
		}},
		{"patch", func(b *deployertest.Bed, d *deployer.Deployer) error {
			_, err := d.Apps.Scale(b.Context(), apps.ScaleOptions{Options: wall(), Replicas: 3})
			return err
		}},
		{"delete", func(b *deployertest.Bed, d *deployer.Deployer) error { return d.Apps.Delete(b.Context(), wall()) }},
	} {
		t.Run(test.verb, func(t *testing.T) {
			b := shopBed(t)
			b.Clock(shop, site, "wall", "hands: 2")
			b.Server.May = func(a authorization.ResourceAttributes) bool {
				return a.Verb != "*" && (a.Verb != test.verb || a.Resource != "clocks")
			}
			b.Writes()
			deployertest.Refused(t, test.run(b, b.Connect()), report.Forbidden, test.verb, "clocks")
			if writes := b.Writes(); len(writes) > 0 {
				t.Errorf("it wrote %q", writes)
			}
		})
	}
}

// forbid refuses requests whose path has a part.
func forbid(b *deployertest.Bed, part string) {
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path+"/", part) {
			return false
		}
		clustertest.Fail(w, apierrors.NewForbidden(kube.GroupResource{Resource: "them"}, "", errors.New(`User "jane@example.com" cannot list resource "them" in API group ""`)))
		return true
	}
}

// TestUsersOfOneNamespace: a user with permissions in one namespace only gets the kinds from it.
func TestUsersOfOneNamespace(t *testing.T) {
	b := shopBed(t)
	forbid(b, "/namespaces/solutionctl-system/")
	kind, err := b.Connect().Apps.Kind(t.Context(), apps.Options{Environment: site})
	if err != nil || kind.Kind != "Clock" {
		t.Fatalf("%+v, %v", kind, err)
	}
	var fields []string
	for _, field := range kind.Description().Fields {
		fields = append(fields, field.Path)
	}
	slices.Sort(fields)
	if diff := cmp.Diff([]string{"colour", "hands", "replicas"}, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// TestKinds: an environment offers the kinds of the Solutions deployed in it, in their deployed versions.
func TestKinds(t *testing.T) {
	b := shopBed(t)
	b.Activated(shop, "1.1.0", deployertest.Content{Fields: "colour: {type: string}, size: {type: integer}", Scale: true})
	paths := func() (list []string) {
		t.Helper()
		kind, err := b.Apps.Kind(t.Context(), apps.Options{Environment: site, Kind: "clock"})
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range kind.Fields() {
			list = append(list, field.Path)
		}
		return list
	}
	if got := paths(); slices.Contains(got, "size") {
		t.Errorf("the operator of 1.0.0 does not know all of %q", got)
	}
	if _, err := b.Change(t.Context(), deployer.ChangeOptions{Environment: site, Solution: shop, Direction: "upgrade"}); err != nil {
		t.Fatal(err)
	}
	if got := paths(); !slices.Contains(got, "size") {
		t.Errorf("size is not among %q", got)
	}
}

// TestTree: an instance is shown with all objects that it owns, directly or indirectly, and with the reasons why some
// are not ready.
func TestTree(t *testing.T) {
	b := shopBed(t)
	b.Clock(shop, site, "wall", "hands: 2")
	owned := func(apiVersion, kind, name, by, byName string) {
		t.Helper()
		owner := b.Server.Object(by, site, byName)
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{
			"name": name, "namespace": site, "ownerReferences": []any{map[string]any{
				"apiVersion": owner.GetAPIVersion(), "kind": by, "name": byName, "uid": string(owner.GetUID()),
			}},
		}, "spec": map[string]any{"replicas": int64(1)}}}
		b.Put(object)
	}
	b.Server.Stall("Deployment", "ReplicaSet", "Pod")
	owned("v1", "Service", "wall", "Clock", "wall")
	owned("apps/v1", "Deployment", "wall", "Clock", "wall")
	owned("apps/v1", "ReplicaSet", "wall-1", "Deployment", "wall")
	one, err := b.Apps.Get(t.Context(), wall())
	if err != nil {
		t.Fatal(err)
	}
	var tree []string
	for _, object := range one.Objects {
		tree = append(tree, strings.Repeat(" ", object.Depth)+object.Kind+" "+string(object.Health))
	}
	if diff := cmp.Diff([]string{" Service ready", " Deployment progressing", "  ReplicaSet progressing"}, tree); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	forbid(b, "/deployments/")
	if one, err = b.Apps.Get(t.Context(), wall()); err != nil || len(one.Objects) != 1 {
		t.Errorf("what the user may not see is left out: %+v, %v", one, err)
	}
}

// TestTreeOfOwnersInCircles: objects that own each other are listed once, and those that the instance owns directly below it.
func TestTreeOfOwnersInCircles(t *testing.T) {
	b := shopBed(t)
	b.Clock(shop, site, "wall", "hands: 2")
	clock := b.Server.Object("Clock", site, "wall")
	owners := []any{map[string]any{"apiVersion": clock.GetAPIVersion(), "kind": "Clock", "name": "wall", "uid": string(clock.GetUID())}}
	var configs []*unstructured.Unstructured
	for i := range 8 {
		name := fmt.Sprint("config", i)
		config := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": site}}}
		b.Put(config)
		config = b.Server.Object("ConfigMap", site, name)
		configs = append(configs, config)
		owners = append(owners, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": string(config.GetUID())})
	}
	for _, config := range configs {
		if err := unstructured.SetNestedSlice(config.Object, owners, "metadata", "ownerReferences"); err != nil {
			t.Fatal(err)
		}
		b.Put(config)
	}
	one, err := b.Apps.Get(t.Context(), wall())
	if err != nil || len(one.Objects) != len(configs) {
		t.Fatalf("%d objects, %v", len(one.Objects), err)
	}
	for _, object := range one.Objects {
		if object.Depth != 1 {
			t.Errorf("%s has depth %d", object.Name, object.Depth)
		}
	}
}

// TestNotReady: the error about an instance that does not become ready, or that is deleted meanwhile, has the reason.
func TestNotReady(t *testing.T) {
	b := shopBed(t)
	b.Clock(shop, site, "wall", "hands: 2")
	clock := b.Server.Object("Clock", site, "wall")
	clock.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "message": "no battery"}}}
	b.Put(clock)
	late := wall()
	late.Timeout = time.Nanosecond
	_, err := b.Apps.Set(t.Context(), apps.SetOptions{Options: late, Set: []string{"hands=3"}})
	deployertest.Refused(t, err, report.Timeout, "Clock site/wall", "deploy app get site wall")
	late.NoWait = true
	one, err := b.Apps.Set(t.Context(), apps.SetOptions{Options: late, Set: []string{"hands=4"}})
	if err != nil || one.Health == schema.AppReady || !slices.Contains(one.Reasons, "no battery") {
		t.Errorf("%+v, %v", one, err)
	}
}
