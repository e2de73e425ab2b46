package schema_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const build = `
apiVersion: solutionctl.io/v1alpha1
kind: SolutionBuild
metadata: {name: example}
spec:
  images:
    - {name: example-operator, source: "oci:images:operator"}
`

func settings(tb testing.TB, texts ...string) []schema.Setting {
	tb.Helper()
	var list []schema.Setting
	for _, text := range texts {
		setting, err := schema.ParseSetting("--set", text)
		if err != nil {
			tb.Fatal(err)
		}
		list = append(list, setting)
	}
	return list
}

func ExampleSetting() {
	setting, _ := schema.ParseSetting("--set", "spec.images[0].tag=2.4")
	version := schema.Setting{Path: []string{"spec", "version"}, Value: "1.0", Source: "--version"}
	_, err := schema.ParseSolutionBuild("solution.yaml", []byte(build), setting, version)
	fmt.Println(err, report.Hints(err))

	version.Value = "1.0.0"
	b, err := schema.ParseSolutionBuild("solution.yaml", []byte(build), setting, version)
	fmt.Println(b.Spec.Version, b.Spec.Images[0].Tag, err)
	// Output:
	// --version: spec.version: "1.0" is not a semantic version in lower case without build metadata [write 1.0.0]
	// 1.0.0 2.4 <nil>
}

func TestSettings(t *testing.T) {
	b, err := schema.ParseSolutionBuild("solution.yaml", []byte(build), settings(t,
		"spec.version=1.0.0",
		"spec.version=1.1.0",
		"spec.platforms=[linux/amd64]",
		"spec.platforms[1]=linux/arm64",
		"spec.images.1={name: ui, source: 'oci:x'}",
		`spec.annotations.example\.com/team=true`,
		"spec.operator.clusterWide=true",
		"spec.displayName=a=b",
		"spec.paths={}",
		"spec.paths=",
	)...)
	if err != nil {
		t.Fatal(err)
	}
	want := []schema.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}
	if b.Spec.Version != "1.1.0" || !slices.Equal(b.Spec.Platforms, want) || b.Spec.Images[1].Name != "ui" ||
		b.Spec.Annotations["example.com/team"] != "true" || !b.Spec.Operator.ClusterWide || b.Spec.DisplayName != "a=b" || b.Spec.Paths != nil {
		t.Errorf("got %+v", b.Spec)
	}
}

func TestSettingsThatDoNotFit(t *testing.T) {
	for _, test := range []struct{ name, setting, want string }{
		{"index beyond the end", "spec.images[3].tag=1", "--set: there is no place spec.images[3].tag in solution.yaml"},
		{"key in a list", "spec.images.first=1", "--set: there is no place spec.images.first in solution.yaml"},
		{"value in the way", "metadata.name.first=1", "--set: there is no place metadata.name.first in solution.yaml"},
		{"unknown field", "spec.verison=1.0.0", "--set: spec.verison: unknown field\nsolution.yaml:6:3: spec.version: is missing"},
		{"not YAML", "spec.files=[", "--set: spec.files: not YAML: did not find expected node content"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := schema.ParseSolutionBuild("solution.yaml", []byte(build), settings(t, test.setting)...)
			if err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
	for _, text := range []string{"", "=1", "spec.version", "spec..version=1", ".a=1"} {
		if s, err := schema.ParseSetting("--set", text); err == nil || report.CodeOf(err) != report.Usage {
			t.Errorf("ParseSetting(%q) = %+v, %v, want a usage error", text, s, err)
		}
	}
}
