package form_test

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solutionctl/solutionctl/deployer/apps/form"
	"github.com/solutionctl/solutionctl/kube/crd"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func load(file string) (*form.Form, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	definition, problems := crd.Parse(data)
	if definition == nil {
		return nil, fmt.Errorf("%v", problems)
	}
	return form.New(definition, "v1")
}

func open(t *testing.T) *form.Form {
	t.Helper()
	f, err := load("testdata/databases_crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFields(t *testing.T) {
	number := func(n float64) *float64 { return &n }
	three, text := int64(3), &schema.AppField{Type: "string"}
	want := []schema.AppField{
		{
			Path: "size", Type: "string", Required: true, Limits: "like ^[0-9]+Gi$", Description: "Space on disk.", Pattern: "^[0-9]+Gi$",
			Details: "Space on disk. It can grow.",
		},
		{Path: "backup.enabled", Type: "boolean", Default: "false"},
		{Path: "backup.times", Type: "list of string", Limits: "at most 3 items", MaxLength: &three, Items: text},
		{Path: "labels", Type: "map of string", Items: text},
		{Path: "mode", Type: "string", Default: `"Single"`, Choices: []string{"Single", "Replicated"}},
		{Path: "port", Type: "integer or string"},
		{Path: "ratio", Type: "number"},
		{Path: "replicas", Type: "integer", Default: "1", Limits: "0 to 9", Min: number(0), Max: number(9)},
		{Path: "users", Type: "list of object", Items: &schema.AppField{Type: "object", Fields: []schema.AppField{
			{Path: "admin", Type: "boolean"}, {Path: "name", Type: "string"},
		}}},
	}
	if diff := cmp.Diff(open(t).Fields(), want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

func TestSet(t *testing.T) {
	f := open(t)
	for _, test := range []struct {
		assignments string // separated by spaces
		want        map[string]any
	}{
		{"size=10Gi", map[string]any{"size": "10Gi"}},
		{"spec.replicas=3", map[string]any{"replicas": int64(3)}},
		{"size=3 size-", map[string]any{}},
		{"backup.enabled=true", map[string]any{"backup": map[string]any{"enabled": true}}},
		{"backup.times=[a,b] backup.times[1]=c backup.times[2]=d", map[string]any{"backup": map[string]any{"times": []any{"a", "c", "d"}}}},
		{"labels.tier=gold", map[string]any{"labels": map[string]any{"tier": "gold"}}},
		{"users[0].name=ann users[0].admin=true", map[string]any{"users": []any{map[string]any{"name": "ann", "admin": true}}}},
		{"port=8080", map[string]any{"port": int64(8080)}},
		{"port=http", map[string]any{"port": "http"}},
		{"ratio=1.5", map[string]any{"ratio": 1.5}},
		{"backup.times-", map[string]any{}},
		{"backup.times=[a,b,c] backup.times[1]- backup.times[7]-", map[string]any{"backup": map[string]any{"times": []any{"a", "c"}}}},
		{"labels.8080=web", map[string]any{"labels": map[string]any{"8080": "web"}}},
		{"labels.8080=web labels.8080-", map[string]any{"labels": map[string]any{}}},
		{"labels.8080=old labels.8080- labels.8080=web", map[string]any{"labels": map[string]any{"8080": "web"}}},
		{"backup.times=[a,b,c,d] backup.times[0]- backup.times[2]- backup.times[0]-", map[string]any{"backup": map[string]any{"times": []any{"b", "d"}}}},
		{"backup.times=[a,b] backup.times[0]- backup.times[2]=c", map[string]any{"backup": map[string]any{"times": []any{"b", "c"}}}},
		{"users[0].name=ann users[1].name=bob users[0]- users[1]-", map[string]any{"users": []any{}}},
		{"users[0].name=ann users- users[0].name=bob", map[string]any{"users": []any{map[string]any{"name": "bob"}}}},
		{"users[0].name=ann users[0].admin=true users[0].admin-", map[string]any{"users": []any{map[string]any{"name": "ann"}}}},
	} {
		t.Run(test.assignments, func(t *testing.T) {
			spec := map[string]any{}
			if err := f.SetAll(spec, strings.Fields(test.assignments)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(spec, test.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
}

func TestSetRefuses(t *testing.T) {
	f := open(t)
	for assignment, want := range map[string]string{
		"replica=3":            "has no field replica did you mean replicas?",
		"nothing.like.it=3":    "has no field nothing.like.it it has size, backup.enabled",
		"replicas=many":        `replicas: "many" is not a whole number`,
		"backup.enabled=maybe": "neither true nor false",
		"ratio=x":              "is not a number",
		"labels=[":             "neither YAML nor JSON",
		"size":                 "is not path=value",
		"users[3].name=x":      "not an index of a list with 0 items",
		"size.unit=x":          "has no field size.unit",
	} {
		t.Run(assignment, func(t *testing.T) {
			err := f.Set(map[string]any{}, assignment)
			if text := fmt.Sprint(err, " ", strings.Join(report.Hints(err), " ")); report.CodeOf(err) != report.Usage || !strings.Contains(text, want) {
				t.Errorf("got %s, want %q", text, want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	f := open(t)
	object := func(spec map[string]any) map[string]any {
		return map[string]any{"apiVersion": "demo.example/v1", "kind": "Database", "metadata": map[string]any{"name": "a"}, "spec": spec}
	}
	if err := f.Check(t.Context(), nil, object(map[string]any{"size": "1Gi"})); err != nil {
		t.Error(err)
	}
	before := object(map[string]any{"size": "1Gi", "colour": "red"})
	if err := f.Check(t.Context(), before, object(map[string]any{"size": "2Gi", "colour": "blue"})); err != nil {
		t.Errorf("a field of a newer version keeps others from being changed: %v", err)
	}
	err := f.Check(t.Context(), before, object(map[string]any{"size": "1Gi", "colour": "red", "replicas": int64(12)}))
	if err == nil || strings.Contains(err.Error(), "colour") || !strings.Contains(err.Error(), "spec.replicas") {
		t.Errorf("got %v", err)
	}
	err = f.Check(t.Context(), nil, object(map[string]any{"size": "big", "replicas": int64(12), "colour": "red"}))
	if report.CodeOf(err) != report.Invalid {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"spec.colour: unknown field", "spec.replicas", "spec.size"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing about %q in:\n%v", want, err)
		}
	}
}

// FuzzSet: a refusal is a usage error. What is set has the types of JSON, and setting it again changes nothing.
func FuzzSet(f *testing.F) {
	database, err := load("testdata/databases_crd.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"size=1", "users[0].name=a", "backup.times[0]=x", "labels.a-", "port={a: [1, 2.5]}", "[0]=1", "=", "a\\"} {
		f.Add(seed, "size=2")
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		spec := map[string]any{}
		for _, assignment := range []string{first, second} {
			if err := database.Set(spec, assignment); err != nil {
				if report.CodeOf(err) != report.Usage {
					t.Errorf("%q: code %q of %v", assignment, report.CodeOf(err), err)
				}
				continue
			}
			once := runtime.DeepCopyJSON(spec)      // it panics for other types
			if strings.HasSuffix(assignment, "-") { // removes an element of a list each time
				continue
			}
			if err := database.Set(spec, assignment); err != nil || !reflect.DeepEqual(spec, once) {
				t.Errorf("%q sets %v, then %v: %v", assignment, once, spec, err)
			}
		}
		if err := database.Check(t.Context(), nil, map[string]any{"spec": spec}); err != nil && report.CodeOf(err) != report.Invalid {
			t.Errorf("%v: code %q of %v", spec, report.CodeOf(err), err)
		}
	})
}

// TestTry: one value is judged while others, required ones included, are missing.
func TestTry(t *testing.T) {
	f := open(t)
	for _, test := range []struct{ assignment, want string }{
		{"replicas=3", ""},
		{"replicas=10", "spec.replicas"},
		{"replicas=two", `"two" is not a whole number`},
		{"size=big", "spec.size"},
		{"mode=Single", ""},
		{"mode=Alone", "spec.mode"},
		{"backup.times=[a,b,c,d]", "spec.backup.times"},
		{"backup.times=[a]", ""},
		{"colour=red", "has no field colour"},
	} {
		err := f.Try(t.Context(), test.assignment)
		if got := fmt.Sprint(err); (err == nil) != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: got %v, want %q", test.assignment, err, test.want)
		}
	}
}

func Example() {
	database, err := load("testdata/databases_crd.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	spec := map[string]any{}
	fmt.Println(database.Set(spec, "replicas=3"), spec)
	fmt.Println(database.Set(spec, "mode=Twin"))
	fmt.Println(database.Check(context.Background(), nil, map[string]any{"kind": database.Kind, "spec": spec}))
	// Output:
	// <nil> map[replicas:3]
	// <nil>
	// Database is not accepted:
	//   spec.mode: Unsupported value: "Twin": supported values: "Single", "Replicated"
	//   spec.size: Required value
}

// TestSecretAndLimits: hidden fields, and limits that are not in the schema.
func TestSecretAndLimits(t *testing.T) {
	const text = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: as.demo.example}, spec: {
  group: demo.example, scope: Namespaced, names: {kind: A, plural: as, singular: a, listKind: AList}, versions: [{name: v1, served: true, storage: true,
  schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
    adminPassword: {type: string}, pin: {type: string, format: password}, apiKey: {type: integer}, auth: {type: object, properties: {token: {type: string}}},
    passwordSecret: {type: string}, secretName: {type: string},
    users: {type: array, items: {type: object, properties: {name: {type: string}, apiKey: {type: string}}}}, pins: {type: array, items: {type: string, format: password}},
    port: {type: integer, minimum: 0, exclusiveMinimum: true, maximum: 65536, exclusiveMaximum: true}}}}}}}]}}`
	definition, problems := crd.Parse([]byte(text))
	if definition == nil {
		t.Fatal(problems)
	}
	f, err := form.New(definition, "v1")
	if err != nil {
		t.Fatal(err)
	}
	var secret []string
	for _, field := range f.Fields() {
		if field.Secret {
			secret = append(secret, field.Path)
		}
		if field.Path == "port" && (*field.Min != 1 || *field.Max != 65535) {
			t.Errorf("port from %v to %v", *field.Min, *field.Max)
		}
	}
	if diff := cmp.Diff(secret, []string{"adminPassword", "apiKey", "auth.token", "pin", "pins", "users"}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	for _, set := range []func() error{
		func() error { return f.Set(map[string]any{}, "apiKey=hunter2") },
		func() error { return f.Put(map[string]any{}, "apiKey", "hunter2") },
	} {
		if err := set(); err == nil || err.Error() != "apiKey: cannot be read as a value of type integer" {
			t.Errorf("a secret that is not a number: %v", err)
		}
	}
}

// TestShown: a screen gets no secrets, also of fields that the schema does not list; the spec keeps them.
func TestShown(t *testing.T) {
	f := open(t)
	spec := map[string]any{
		"size": "1Gi", "password": "hunter2", "replicas": int64(3), "labels": map[string]any{"token": "hunter2"},
		"env":   []any{map[string]any{"name": "DB_PASSWORD", "value": "hunter2"}, map[string]any{"name": "DB", "value": "a"}},
		"users": []any{map[string]any{"name": "ann", "apiKey": int64(7), "admin": true}}, "other": map[string]any{"token": "", "passphrase": nil},
	}
	want := runtime.DeepCopyJSON(spec)
	if diff := cmp.Diff(map[string]any{
		"size": "1Gi", "password": "(hidden)", "replicas": int64(3), "labels": map[string]any{"token": "(hidden)"},
		"env":   []any{map[string]any{"name": "DB_PASSWORD", "value": "(hidden)"}, map[string]any{"name": "DB", "value": "a"}},
		"users": []any{map[string]any{"name": "ann", "apiKey": "(hidden)", "admin": true}}, "other": map[string]any{"token": "", "passphrase": nil},
	}, f.Shown(spec)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("the spec (-want +got)\n%s", diff)
	}
}

// TestPut: values as a program has them, and as a form sends them.
func TestPut(t *testing.T) {
	f := open(t)
	for name, test := range map[string]struct {
		path  string
		value any
		want  map[string]any // beside size
		text  string         // of the error
	}{
		"a text":                  {"mode", "Replicated", map[string]any{"mode": "Replicated"}, ""},
		"a number as a text":      {"replicas", "3", map[string]any{"replicas": int64(3)}, ""},
		"a number":                {"replicas", 3, map[string]any{"replicas": int64(3)}, ""},
		"a number of JSON":        {"replicas", 3.0, map[string]any{"replicas": int64(3)}, ""},
		"true":                    {"backup.enabled", true, map[string]any{"backup": map[string]any{"enabled": true}}, ""},
		"a list":                  {"backup.times", []string{"1", "2"}, map[string]any{"backup": map[string]any{"times": []any{"1", "2"}}}, ""},
		"objects":                 {"users", []map[string]any{{"name": "a=b"}}, map[string]any{"users": []any{map[string]any{"name": "a=b"}}}, ""},
		"a text with a sign":      {"mode", "a=b-", map[string]any{"mode": "a=b-"}, ""},
		"nothing":                 {"replicas", nil, map[string]any{}, ""},
		"what is no number":       {"replicas", "three", nil, "replicas: \"three\" is not a whole number"},
		"a field that is unknown": {"replica", "3", nil, "has no field replica"},
		"what no JSON has":        {"ratio", make(chan int), nil, "ratio: "},
	} {
		t.Run(name, func(t *testing.T) {
			spec := map[string]any{"size": "1Gi"}
			if name == "nothing" {
				spec["replicas"] = int64(1)
			}
			err := f.Put(spec, test.path, test.value)
			if test.text != "" {
				if err == nil || !strings.Contains(err.Error(), test.text) || report.CodeOf(err) != report.Usage {
					t.Errorf("%v", err)
				}
				return
			}
			test.want["size"] = "1Gi"
			if diff := cmp.Diff(spec, test.want); diff != "" || err != nil {
				t.Errorf("%v (-got +want)\n%s", err, diff)
			}
		})
	}
}
