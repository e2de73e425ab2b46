package schema_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func solution(name, version, displayName string) *schema.Solution {
	s := &schema.Solution{Metadata: schema.Metadata{Name: name}, Spec: schema.SolutionSpec{Version: version}}
	if displayName != "" {
		s.SetAnnotation(schema.AnnotationDisplayName, displayName)
	}
	return s
}

func TestVolumeID(t *testing.T) {
	for _, test := range []struct{ name, version, display, want string }{
		{"example-solution", "1.0.0", "Example Solution", "Example Solution 1.0.0"},
		{"example-solution", "1.0.0", "", "example-solution 1.0.0"},
		{"storage", "1.0.0", "A Very Long Name of a Storage", "storage 1.0.0"},
		{"storage", "1.0.0", "Äußerst lange Bezeichnungen", "storage 1.0.0"},
		{"storage", "1.0.0", "Twenty-six bytes are here.", "Twenty-six bytes are here. 1.0.0"},
		{"a-name-that-is-nearly-as-long-as-it-may-be", "1.0.0", "A Very Long Name of a Storage", ""},
	} {
		got, err := solution(test.name, test.version, test.display).VolumeID()
		if got != test.want || (err != nil) != (test.want == "") {
			t.Errorf("VolumeID of %s %q = %q, %v, want %q", test.name, test.display, got, err, test.want)
		}
		if err != nil && len(report.Hints(err)) == 0 {
			t.Errorf("no hint: %v", err)
		}
	}
}

func TestMerged(t *testing.T) {
	s := solution("storage", "1.0.0", "Storage")
	s.Spec.Operator = &schema.Operator{Image: &schema.ImageName{Name: "op"}, ClusterWide: true}
	merged := s.Merged([]schema.ImageRef{{Name: "b", Tag: "1"}, {Name: "a", Tag: "2"}, {Name: "a", Tag: "1"}, {Name: "a", Tag: "2"}})
	want := solution("storage", "1.0.0", "Storage")
	want.Spec.Operator = &schema.Operator{Image: &schema.ImageName{Name: "op", Tag: "1.0.0"}, ClusterWide: true}
	want.Spec.UI = &schema.UI{Image: &schema.ImageName{Name: "storage-ui", Tag: "1.0.0"}}
	want.Spec.Images = []schema.ImageRef{{Name: "a", Tag: "1"}, {Name: "a", Tag: "2"}, {Name: "b", Tag: "1"}}
	want.Spec.CustomAPIGroups = []string{}
	if got := merged.UIImage(); got != s.UIImage() || got.String() != "storage-ui:1.0.0" {
		t.Errorf("the image of the user interface is %s", got)
	}
	if diff := cmp.Diff(merged, want); diff != "" {
		t.Errorf("merged (-got +want):\n%s", diff)
	}
	if s.Spec.Operator.Image.Tag != "" || s.Spec.UI != nil || s.Spec.Images != nil {
		t.Errorf("the original changed: %+v", s.Spec)
	}
	if s.Merged(nil).Spec.Images == nil {
		t.Error("an archive without images has no list of images")
	}
	s.Spec.Images = []schema.ImageRef{{Name: "only", Tag: "1"}}
	if got := s.Merged(nil).Spec.Images; len(got) != 1 {
		t.Errorf("the list of images was replaced by %v", got)
	}
}

func TestAnnotationsAreNotShared(t *testing.T) {
	first := solution("storage", "1.0.0", "Storage")
	second := *first
	second.SetAnnotation(schema.AnnotationDisplayName, "Other")
	if first.DisplayName() != "Storage" || second.DisplayName() != "Other" || second.Annotations[schema.AnnotationDisplayName] != "Other" {
		t.Errorf("got %q and %q", first.DisplayName(), second.DisplayName())
	}
	top := &schema.Solution{Annotations: map[string]string{schema.AnnotationDisplayName: "Top"}}
	if top.DisplayName() != "Top" {
		t.Errorf("the top-level annotation is not read: %q", top.DisplayName())
	}
}

const older = `
apiVersion: metalk8s.scality.com/v1alpha1
kind: SolutionsConfiguration
solutions:
  - {name: my-storage, archives: [/s1.iso, /s2.iso], activeVersion: 1.0.0}
  - {name: my-computing, archives: [/c1.iso, /c2.iso]}
`

func identify(archives map[string]string) func(string) (*schema.Solution, error) {
	return func(path string) (*schema.Solution, error) {
		name, version, ok := strings.Cut(archives[path], " ")
		if !ok {
			return nil, fmt.Errorf("open %s: %w", path, fs.ErrNotExist)
		}
		return solution(name, version, ""), nil
	}
}

func TestFlat(t *testing.T) {
	for _, test := range []struct {
		name     string
		archives map[string]string
		active   map[string]string
		notes    []string
		err      string
	}{
		{
			name:     "active versions given and highest",
			archives: map[string]string{"/s1.iso": "my-storage 1.0.0", "/s2.iso": "my-storage 1.0.1", "/c1.iso": "my-computing 1.10.0", "/c2.iso": "my-computing 1.9.0"},
			active:   map[string]string{"my-storage": "1.0.0", "my-computing": "1.10.0"},
			notes:    []string{"Solution my-computing: no activeVersion: 1.10.0 is active"},
		},
		{
			name:     "the name differs",
			archives: map[string]string{"/s1.iso": "other 1.0.0", "/s2.iso": "my-storage 1.0.1", "/c1.iso": "my-computing 1.10.0", "/c2.iso": "my-computing 1.9.0"},
			err:      "convert SolutionsConfiguration: Solution my-storage: archive /s1.iso holds Solution other",
		},
		{
			name:     "the active version is not there, and an archive neither",
			archives: map[string]string{"/s1.iso": "my-storage 1.0.1", "/s2.iso": "my-storage 1.0.2", "/c1.iso": "my-computing 1.10.0"},
			err: "convert SolutionsConfiguration: Solution my-storage: no archive holds activeVersion 1.0.0\n" +
				"convert SolutionsConfiguration: Solution my-computing: open /c2.iso: file does not exist",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, findings, err := schema.ParseSolutionsConfiguration("solutions.yaml", []byte(older))
			if err != nil || !c.IsOlder() || len(findings) != 2 {
				t.Fatalf("got %+v, %v, %v", c, findings, err)
			}
			flat, notes, err := c.Flat(identify(test.archives))
			if test.err != "" {
				if err == nil || err.Error() != test.err {
					t.Errorf("got  %v\nwant %s", err, test.err)
				}
				return
			}
			want := schema.NewSolutionsConfiguration()
			want.Archives = []string{"/s1.iso", "/s2.iso", "/c1.iso", "/c2.iso"}
			want.Active = test.active
			if diff := cmp.Diff(flat, want); diff != "" || err != nil {
				t.Errorf("flat: %v (-got +want):\n%s", err, diff)
			}
			if diff := cmp.Diff(notes, test.notes); diff != "" {
				t.Errorf("notes (-got +want):\n%s", diff)
			}
			checkRoundTrip(t, parsers["configuration"], flat)
		})
	}
}

// TestFlatOfOlderGroup converts a file that is flat already and only carries the older group.
func TestFlatOfOlderGroup(t *testing.T) {
	c, _, err := schema.ParseSolutionsConfiguration("solutions.yaml", read(t, manifests+"valid/configuration-older-group.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	never := func(string) (*schema.Solution, error) { return nil, errors.New("no archive needs to be read") }
	flat, notes, err := c.Flat(never)
	if err != nil || len(notes) > 0 || flat.APIVersion != schema.APIVersion {
		t.Fatalf("got %+v, %v, %v", flat, notes, err)
	}
	if diff := cmp.Diff([]any{flat.Archives, flat.Active}, []any{c.Archives, c.Active}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func ExampleSolutionBuild_Solution() {
	b, err := schema.ParseSolutionBuild("solution.yaml", []byte(build), schema.Setting{Path: []string{"spec", "version"}, Value: "1.0.0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	b.Spec.DisplayName = "Example"
	manifest, err := b.Solution([]schema.ImageRef{{Name: "example-operator", Tag: "1.0.0"}}, time.Unix(0, 0)).Marshal()
	fmt.Print(string(manifest), err)
	// Output:
	// apiVersion: solutions.metalk8s.scality.com/v1alpha1
	// kind: Solution
	// metadata:
	//   name: example
	//   annotations:
	//     solutions.metalk8s.scality.com/build-timestamp: "1970-01-01T00:00:00Z"
	//     solutions.metalk8s.scality.com/display-name: Example
	// annotations:
	//   solutions.metalk8s.scality.com/build-timestamp: "1970-01-01T00:00:00Z"
	//   solutions.metalk8s.scality.com/display-name: Example
	// spec:
	//   version: 1.0.0
	//   images:
	//     - example-operator:1.0.0
	// <nil>
}

func ExampleSolutionsConfiguration_Marshal() {
	c := schema.NewSolutionsConfiguration()
	c.Archives = append(c.Archives, "/srv/storage-1.0.0.iso")
	c.Active["storage"] = schema.ActiveLatest
	data, err := c.Marshal()
	fmt.Print(string(data), err)
	// Output:
	// apiVersion: solutions.metalk8s.scality.com/v1alpha1
	// kind: SolutionsConfiguration
	// archives:
	//   - /srv/storage-1.0.0.iso
	// active:
	//   storage: latest
	// <nil>
}

func TestOperatorMetrics(t *testing.T) {
	for _, test := range []struct{ given, want schema.OperatorMetrics }{
		{schema.OperatorMetrics{Enabled: true}, schema.OperatorMetrics{Enabled: true, Scheme: "https", Port: 8443, Path: "/metrics"}},
		{schema.OperatorMetrics{Enabled: true, Scheme: "http"}, schema.OperatorMetrics{Enabled: true, Scheme: "http", Port: 8080, Path: "/metrics"}},
		{schema.OperatorMetrics{Port: 9, Path: "/m"}, schema.OperatorMetrics{Scheme: "https", Port: 9, Path: "/m"}},
	} {
		s := solution("storage", "1.0.0", "Storage")
		s.Spec.Operator = &schema.Operator{Metrics: &test.given}
		before := test.given
		if got := *s.Merged(nil).Spec.Operator.Metrics; got != test.want {
			t.Errorf("%+v became %+v in the merged manifest, want %+v", test.given, got, test.want)
		}
		if test.given != before {
			t.Errorf("the original changed: %+v", test.given)
		}
		switch got := s.OperatorMetrics(); {
		case test.want.Enabled != (got != nil):
			t.Errorf("metrics of %+v: %+v", test.given, got)
		case got != nil && *got != test.want:
			t.Errorf("metrics of %+v: %+v, want %+v", test.given, *got, test.want)
		}
	}
	if (&schema.Solution{}).OperatorMetrics() != nil {
		t.Error("a Solution without an operator has metrics")
	}
}
