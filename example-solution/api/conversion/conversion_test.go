package conversion

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/example-solution/api/v1alpha1"
	"github.com/solutionctl/example-solution/api/v1beta1"
)

const (
	alpha = "example.solutionctl.io/v1alpha1"
	beta  = "example.solutionctl.io/v1beta1"
)

// TestTypes holds the conversion to the Go types: every field but the text has the same name and meaning in both.
func TestTypes(t *testing.T) {
	old := v1alpha1.Website{
		TypeMeta:   metav1.TypeMeta{APIVersion: alpha, Kind: "Website"},
		ObjectMeta: metav1.ObjectMeta{Name: "tea", UID: "1", Generation: 3, Labels: map[string]string{"a": "b"}},
		Spec: v1alpha1.WebsiteSpec{
			Title: "Tea", Message: "open", Theme: v1alpha1.Dark, Replicas: new(int32(2)), Version: "1.0.0",
		},
		Status: v1alpha1.WebsiteStatus{
			ObservedGeneration: 3, Replicas: 2, ReadyReplicas: 1, Selector: "a=b", Version: "1.0.0", URL: "http://tea",
			Conditions: []metav1.Condition{{Type: v1alpha1.Ready, Status: "True", Reason: v1alpha1.Running}},
		},
	}
	want := v1beta1.Website{
		TypeMeta:   metav1.TypeMeta{APIVersion: beta, Kind: "Website"},
		ObjectMeta: old.ObjectMeta,
		Spec:       v1beta1.WebsiteSpec{Title: "Tea", Text: "open", Theme: v1beta1.Dark, Replicas: new(int32(2)), Version: "1.0.0"},
		Status:     v1beta1.WebsiteStatus(old.Status),
	}
	var got v1beta1.Website
	recode(t, convert(t, old, beta), &got)
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("to v1beta1 (-got +want):\n%s", diff)
	}
	var back v1alpha1.Website
	recode(t, convert(t, got, alpha), &back)
	if diff := cmp.Diff(back, old); diff != "" {
		t.Errorf("there and back (-got +want):\n%s", diff)
	}
}

func convert(t *testing.T, website any, to string) map[string]any {
	t.Helper()
	var object map[string]any
	recode(t, website, &object)
	if err := Convert(object, to); err != nil {
		t.Fatal(err)
	}
	return object
}

// recode writes from as JSON and reads it into to, in which no field may be missing.
func recode(t *testing.T, from, to any) {
	t.Helper()
	data, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, to); err != nil {
		t.Fatal(err)
	}
}

func TestConvert(t *testing.T) {
	tests := map[string]struct{ object, to, want string }{ // want "" is an error
		"renamed":                {"apiVersion: " + alpha + "\nkind: Website\nspec: {message: a}", beta, "spec: {text: a}"},
		"back":                   {"apiVersion: " + beta + "\nkind: Website\nspec: {text: a}", alpha, "spec: {message: a}"},
		"empty is not absent":    {"apiVersion: " + alpha + "\nkind: Website\nspec: {message: ''}", beta, "spec: {text: ''}"},
		"absent stays absent":    {"apiVersion: " + alpha + "\nkind: Website\nspec: {title: a}", beta, "spec: {title: a}"},
		"nothing to do":          {"apiVersion: " + beta + "\nkind: Website\nspec: {text: a}", beta, "spec: {text: a}"},
		"later fields are kept":  {"apiVersion: " + alpha + "\nkind: Website\nspec: {message: a, b: [c]}", beta, "spec: {text: a, b: [c]}"},
		"no spec":                {"apiVersion: " + alpha + "\nkind: Website", beta, "{}"},
		"another kind":           {"apiVersion: " + alpha + "\nkind: Banner", beta, ""},
		"unknown version":        {"apiVersion: " + alpha + "\nkind: Website", "example.solutionctl.io/v2", ""},
		"from a later version":   {"apiVersion: example.solutionctl.io/v2\nkind: Website", beta, ""},
		"no version, and a list": {"kind: Website\nspec: []", beta, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			object, want := decode(t, tt.object), decode(t, tt.want)
			err := Convert(object, tt.to)
			if tt.want == "" {
				if err == nil {
					t.Error("got no error")
				}
				want = decode(t, tt.object)
			} else if err != nil {
				t.Fatal(err)
			} else {
				maps.Copy(want, map[string]any{"kind": "Website", "apiVersion": tt.to})
			}
			if diff := cmp.Diff(object, want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// FuzzRoundTrip: whatever a Website holds, it is the same after a conversion there and back. The API server keeps no
// field that its schema lacks, so a field of the other version's name never arrives here.
func FuzzRoundTrip(f *testing.F) {
	f.Add(`{"title": "a", "message": "b"}`, `{"readyReplicas": 1}`)
	f.Add(`{"title": "a"}`, `{}`)
	f.Add(`{"message": null, "later": [1, {"message": 2}]}`, `{"message": 3}`)
	f.Fuzz(func(t *testing.T, spec, status string) {
		object := map[string]any{"apiVersion": alpha, "kind": "Website"}
		for name, text := range map[string]string{"spec": spec, "status": status} {
			var value map[string]any
			_ = json.Unmarshal([]byte(text), &value) // a value that is not an object counts as none
			object[name] = value
		}
		delete(object["spec"].(map[string]any), "text")
		before, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range []string{beta, alpha} {
			if err = Convert(object, to); err != nil {
				t.Fatal(err)
			}
		}
		after, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(after), string(before)); diff != "" {
			t.Errorf("(-got +want):\n%s", diff)
		}
	})
}
