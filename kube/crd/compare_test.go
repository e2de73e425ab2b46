package crd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/solutionctl/solutionctl/kube/crd"
)

func TestCompare(t *testing.T) {
	for _, test := range []struct {
		name     string
		replace  []string
		up, down []string // changes, and changes back
	}{
		{"nothing", nil, nil, nil},
		{
			"a field",
			[]string{"note: {type: string, nullable: true}", ""},
			[]string{"lossy field-removed v1: spec.note: is removed: its values are dropped"},
			[]string{"safe field-added v1: spec.note: is new"},
		},
		{
			"what every object has",
			[]string{"          apiVersion: {type: string}\n          kind: {type: string}\n          metadata: {type: object}\n", ""},
			nil, nil,
		},
		{
			"what every object has is required",
			[]string{"required: [spec]", "required: [apiVersion, kind, metadata, spec]"},
			nil, nil,
		},
		{
			"what every object has, of a schema that takes anything",
			[]string{
				"        required: [spec]\n        properties:\n          apiVersion: {type: string}\n          kind: {type: string}\n          metadata: {type: object}\n",
				"        required: [spec]\n        x-kubernetes-preserve-unknown-fields: true\n        properties:\n",
			},
			[]string{"safe x-kubernetes-preserve-unknown-fields v1: more is accepted"},
			[]string{"lossy x-kubernetes-preserve-unknown-fields v1: fields that the schema does not have are no longer kept"},
		},
		{
			"the name of an object",
			[]string{"metadata: {type: object}", "metadata: {type: object, properties: {name: {type: string, maxLength: 20}}}"},
			[]string{"breaking maxLength v1: metadata.name: maximum constraint added when there was none previously : 20"},
			[]string{"safe maxLength v1: metadata.name: maxLength is loosened"},
		},
		{
			"a required field",
			[]string{"            x-kubernetes-validations", "            required: [mode]\n            x-kubernetes-validations"},
			[]string{"breaking required v1: spec: now required: mode"},
			[]string{"safe required v1: spec: what is required changed, and every object still has it"},
		},
		{
			"a required field with a default",
			[]string{"            x-kubernetes-validations", "            required: [size]\n            x-kubernetes-validations"},
			[]string{"safe required v1: spec: what is required changed, and every object still has it"},
			[]string{"safe required v1: spec: what is required changed, and every object still has it"},
		},
		{
			"type",
			[]string{"phase: {type: string}", "phase: {type: boolean}"},
			[]string{`breaking type v1: status.phase: type changed : "string" -> "boolean"`},
			[]string{`breaking type v1: status.phase: type changed : "boolean" -> "string"`},
		},
		{
			"wider type",
			[]string{"port: {type: integer}", "port: {x-kubernetes-int-or-string: true}"},
			[]string{"safe type v1: spec.ports[*].port: numbers and strings are accepted", "safe x-kubernetes-int-or-string v1: spec.ports[*].port: more is accepted"},
			[]string{`breaking type v1: spec.ports[*].port: type changed : "" -> "integer"`, "breaking x-kubernetes-int-or-string v1: spec.ports[*].port: it must no longer be either a number or a string"},
		},
		{
			"enumeration",
			[]string{"[fast, slow]", "[fast]"},
			[]string{`breaking enum v1: spec.mode: allowed enum values removed : ["slow"]`},
			[]string{"safe enum v1: spec.mode: enum is loosened"},
		},
		{
			"enumeration gone",
			[]string{", enum: [fast, slow]", ""},
			[]string{"safe enum v1: spec.mode: any value is accepted"},
			[]string{`breaking enum v1: spec.mode: enum constraint added when there was none previously : ["fast" "slow"]`},
		},
		{
			"minimum",
			[]string{"minimum: 0", "minimum: 1"},
			[]string{"breaking minimum v1: spec.size: minimum increased : 0 -> 1"},
			[]string{"safe minimum v1: spec.size: minimum is loosened"},
		},
		{
			"exclusive minimum",
			[]string{"minimum: 0", "minimum: 0, exclusiveMinimum: true"},
			[]string{"breaking exclusiveMinimum v1: spec.size: the minimum itself is no longer allowed"},
			[]string{"safe exclusiveMinimum v1: spec.size: a constraint is gone"},
		},
		{
			"max items",
			[]string{"maxItems: 8", "maxItems: 7"},
			[]string{"breaking maxItems v1: spec.tags: maximum decreased : 8 -> 7"},
			[]string{"safe maxItems v1: spec.tags: maxItems is loosened"},
		},
		{
			"pattern",
			[]string{"pattern: '^[a-z]+$', ", ""},
			[]string{"safe pattern v1: spec.color: a constraint is gone"},
			[]string{"breaking pattern v1: spec.color: the pattern changed; values that matched the old one might not match the new one"},
		},
		{
			"format",
			[]string{"format: int32", "format: int64"},
			[]string{"safe format v1: spec.size: larger numbers are accepted"},
			[]string{`breaking format v1: spec.size: format changed from "int64" to "int32"`},
		},
		{
			"nullable",
			[]string{", nullable: true", ""},
			[]string{"breaking nullable v1: spec.note: null is no longer allowed"},
			[]string{"safe nullable v1: spec.note: more is accepted"},
		},
		{
			"preserve unknown fields",
			[]string{", x-kubernetes-preserve-unknown-fields: true", ""},
			[]string{"lossy x-kubernetes-preserve-unknown-fields v1: spec.extra: fields that the schema does not have are no longer kept"},
			[]string{"safe x-kubernetes-preserve-unknown-fields v1: spec.extra: more is accepted"},
		},
		{
			"default",
			[]string{"default: 10", "default: 20"},
			[]string{"breaking default v1: spec.limit: the default changed from 10 to 20: objects that do not set the field change their meaning"},
			[]string{"breaking default v1: spec.limit: the default changed from 20 to 10: objects that do not set the field change their meaning"},
		},
		{
			"default gone",
			[]string{", default: 10", ""},
			[]string{"breaking default v1: spec.limit: no longer has the default 10"},
			[]string{"safe default v1: spec.limit: gets the default 10"},
		},
		{
			"rule",
			[]string{"self.size <= self.limit", "self.size < self.limit"},
			[]string{"breaking x-kubernetes-validations v1: spec: a rule is new: self.size < self.limit"},
			[]string{"breaking x-kubernetes-validations v1: spec: a rule is new: self.size <= self.limit"},
		},
		{
			"message of a rule",
			[]string{"too many", "too large"},
			[]string{"safe x-kubernetes-validations v1: spec: rules are gone or worded differently"},
			[]string{"safe x-kubernetes-validations v1: spec: rules are gone or worded differently"},
		},
		{
			"list type",
			[]string{"x-kubernetes-list-type: set", "x-kubernetes-list-type: atomic"},
			[]string{"breaking x-kubernetes-list-type v1: spec.tags: the list type changed: entries may be refused as duplicates, and who owns them changes"},
			[]string{"breaking x-kubernetes-list-type v1: spec.tags: the list type changed: entries may be refused as duplicates, and who owns them changes"},
		},
		{
			"map values",
			[]string{", additionalProperties: {type: string}", ""},
			[]string{"lossy additionalProperties v1: spec.labels.*: keys that the schema does not name are dropped"},
			[]string{"safe additionalProperties v1: spec.labels.*: further keys are accepted"},
		},
		{
			"type of map values",
			[]string{"additionalProperties: {type: string}", "additionalProperties: {type: integer}"},
			[]string{`breaking type v1: spec.labels.*: type changed : "string" -> "integer"`},
			[]string{`breaking type v1: spec.labels.*: type changed : "integer" -> "string"`},
		},
		{
			"alternatives",
			[]string{"            x-kubernetes-validations", "            anyOf: [{required: [mode]}, {required: [color]}]\n            x-kubernetes-validations"},
			[]string{"breaking anyOf v1: spec: alternatives in anyOf changed"},
			[]string{"safe anyOf v1: spec: a constraint is gone"},
		},
		{
			"description",
			[]string{"phase: {type: string}", "phase: {type: string, description: x}"},
			[]string{"safe description v1: status.phase: the description changed"},
			[]string{"safe description v1: status.phase: the description changed"},
		},
		{
			"scope",
			[]string{"scope: Namespaced", "scope: Cluster"},
			[]string{"breaking scope scope changed from Namespaced to Cluster"},
			[]string{"breaking scope scope changed from Cluster to Namespaced"},
		},
		{
			"short names",
			[]string{", shortNames: [wi]", ""},
			[]string{"safe names short names changed from [wi] to []"},
			[]string{"safe names short names changed from [] to [wi]"},
		},
		{
			"status subresource",
			[]string{"subresources: {status: {}}", ""},
			[]string{"breaking status-subresource v1: status is no longer a subresource"},
			[]string{"breaking status-subresource v1: status becomes a subresource: clients that write it with the object no longer do"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, b := parse(t, widget), parse(t, edit(t, widget, test.replace...))
			checkChanges(t, "up", crd.Compare(a, b), test.up)
			checkChanges(t, "down", crd.Compare(b, a), test.down)
		})
	}
}

func checkChanges(t *testing.T, name string, got []crd.Change, want []string) {
	t.Helper()
	var text []string
	for _, change := range got {
		text = append(text, fmt.Sprintf("%s %s %s", change.Severity, change.Kind, change))
	}
	if !slices.Equal(text, want) {
		t.Errorf("%s:\ngot  %q\nwant %q", name, text, want)
	}
}

// An embedded object has apiVersion, kind and metadata, even without a schema for them.
func TestCompareEmbedded(t *testing.T) {
	embedded := func(properties string) *crd.Definition {
		return parse(t, edit(t, widget, "extra: {type: object, x-kubernetes-preserve-unknown-fields: true}",
			"extra: {type: object, x-kubernetes-embedded-resource: true, properties: {"+properties+"}}"))
	}
	more, less := embedded("kind: {type: string}, metadata: {type: object}, spec: {type: object}"), embedded("spec: {type: object}")
	checkChanges(t, "less", crd.Compare(more, less), nil)
	checkChanges(t, "more", crd.Compare(less, more), nil)
	checkChanges(t, "its own field", crd.Compare(more, embedded("kind: {type: string}")), []string{
		"lossy field-removed v1: spec.extra.spec: is removed: its values are dropped",
	})
}

func TestImpossible(t *testing.T) {
	established := func(text string) *crd.Definition {
		d := parse(t, text)
		d.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
		return d
	}
	wider := parse(t, edit(t, widget, "scope: Namespaced", "scope: Cluster"))
	if got := crd.Impossible(established(widget), wider); got != "its scope can never change from Namespaced to Cluster" {
		t.Errorf("scope: %q", got)
	}
	if got := crd.Impossible(parse(t, widget), wider); got != "" {
		t.Errorf("scope of a definition that was never served: %q", got)
	}
	renamed := parse(t, edit(t, widget, "kind: Widget", "kind: Gadget"))
	if got := crd.Impossible(established(widget), renamed); got != "its kind can never change from Widget to Gadget" {
		t.Errorf("kind: %q", got)
	}
	if got := crd.Impossible(established(widget), parse(t, widget)); got != "" {
		t.Errorf("nothing: %q", got)
	}
}

func TestCompareVersions(t *testing.T) {
	one := parse(t, widget)
	both := parse(t, widget+secondVersion(t))
	flipped := parse(t, edit(t, widget, "storage: true", "storage: false")+edit(t, secondVersion(t), "storage: false", "storage: true"))
	onlyTwo := parse(t, edit(t, widget, "name: v1\n", "name: v2\n"))
	checkChanges(t, "added", crd.Compare(one, both), []string{"safe version-added v2: is new"})
	checkChanges(t, "removed", crd.Compare(both, one), []string{"breaking served-version-removed v2: is no longer served"})
	checkChanges(t, "storage", crd.Compare(both, flipped), []string{"safe storage-version objects are stored as v2 instead of v1"})
	checkChanges(t, "stored version removed", crd.Compare(flipped, one), []string{
		"breaking served-version-removed v2: is no longer served",
		"breaking stored-version-removed v2: objects may be stored in this version, so the API server refuses its removal",
		"safe storage-version objects are stored as v1 instead of v2",
	})
	checkChanges(t, "renamed", crd.Compare(one, onlyTwo), []string{
		"breaking served-version-removed v1: is no longer served",
		"breaking stored-version-removed v1: objects may be stored in this version, so the API server refuses its removal",
		"safe storage-version objects are stored as v2 instead of v1",
		"safe version-added v2: is new",
	})

	both.Status.StoredVersions = []string{"v1", "v2"}
	checkChanges(t, "stored in two versions", crd.Compare(both, parse(t, widget)), []string{
		"breaking served-version-removed v2: is no longer served",
		"breaking stored-version-removed v2: objects may be stored in this version, so the API server refuses its removal",
	})
}

// A second version that lacks a field of the stored one loses it on every read.
func TestCompareReadingStoredObjects(t *testing.T) {
	one := parse(t, widget)
	both := parse(t, widget+edit(t, secondVersion(t), "color: {type: string, pattern: '^[a-z]+$', maxLength: 10}", ""))
	checkChanges(t, "narrower", crd.Compare(one, both), []string{
		"lossy field-removed v1 -> v2: spec.color: is removed: its values are dropped",
		"safe version-added v2: is new",
	})
	checkChanges(t, "known before", crd.Compare(both, both), nil)
}

// Whatever a schema can say is judged: a change of any field of the type gives a change that is not empty.
func TestCompareKnowsEveryFieldOfASchema(t *testing.T) {
	schema := reflect.TypeFor[apiextensionsv1.JSONSchemaProps]()
	base := func() *crd.Definition { return parse(t, widget) }
	phase := func(d *crd.Definition) *apiextensionsv1.JSONSchemaProps {
		return d.Spec.Versions[0].Schema.OpenAPIV3Schema
	}
	for i := range schema.NumField() {
		field := schema.Field(i)
		next := base()
		value := reflect.ValueOf(phase(next)).Elem().Field(i)
		set(t, value)
		changes := crd.Compare(base(), next)
		if len(changes) == 0 || strings.TrimSpace(changes[0].Message) == "" {
			t.Errorf("a change of %s is not seen", field.Name)
		}
	}
}

// set gives a value another content, whatever its type.
func set(t *testing.T, value reflect.Value) {
	t.Helper()
	switch value.Kind() {
	case reflect.String:
		value.SetString(value.String() + "x")
	case reflect.Bool:
		value.SetBool(!value.Bool())
	case reflect.Float64:
		value.SetFloat(7)
	case reflect.Int64:
		value.SetInt(7)
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		set(t, value.Elem())
	case reflect.Slice:
		element := reflect.New(value.Type().Elem()).Elem()
		if element.Kind() == reflect.Uint8 {
			value.SetBytes([]byte("1"))
			return
		}
		set(t, element)
		value.Set(reflect.Append(value, element))
	case reflect.Map:
		element := reflect.New(value.Type().Elem()).Elem()
		set(t, element)
		m := reflect.MakeMap(value.Type())
		m.SetMapIndex(reflect.ValueOf("x").Convert(value.Type().Key()), element)
		value.Set(m)
	case reflect.Struct:
		set(t, value.Field(0))
	default:
		t.Fatalf("a field of kind %s", value.Kind())
	}
}

func ExampleCompare() {
	before, _ := crd.Parse([]byte(widget))
	after, _ := crd.Parse([]byte(strings.Replace(widget, "enum: [fast, slow]", "enum: [slow]", 1)))
	for _, change := range crd.Compare(before, after) {
		fmt.Println(change.Severity, change)
	}
	// Output: breaking v1: spec.mode: allowed enum values removed : ["fast"]
}

// TestExampleCloud: an upgrade of the example loses nothing, and clients of its first release continue to work.
func TestExampleCloud(t *testing.T) {
	const file = "operator/deploy/crds/networks_crd.yaml"
	var definitions []*crd.Definition
	for _, dir := range []string{"archive", "releases/1.1.0"} {
		data, err := os.ReadFile(filepath.Join("../../example-cloud", dir, file))
		if err != nil {
			t.Fatal(err)
		}
		d, problems := crd.Parse(data)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		definitions = append(definitions, d)
	}
	changes := crd.Compare(definitions[0], definitions[1])
	if len(changes) == 0 {
		t.Error("release 1.1.0 is no other")
	}
	for _, c := range changes {
		if c.Severity == crd.Lossy {
			t.Error(c)
		}
	}
}
