package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const head = "apiVersion: solutions.metalk8s.scality.com/v1alpha1\nkind: OperatorConfig\n"

const twoVersions = head + `
repositories:
  1.0.0:
    - endpoint: registry.example:5000/example-solution-1.0.0
      images: [example-solution-operator:1.0.0, example-solution-server:1.0.0]
  1.1.0:
    - endpoint: registry.example:5000/other
      images: [example-solution-server-extra:9]
    - endpoint: registry.example:5000/example-solution-1.1.0
      images: ["example-solution-server:1.0.7"]
`

func ExampleConfig_Image() {
	c, err := Parse([]byte(twoVersions))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Image("1.0.0", "example-solution-server"))
	fmt.Println(c.Image("2.0.0", "example-solution-server"))
	// Output:
	// registry.example:5000/example-solution-1.0.0/example-solution-server:1.0.0 <nil>
	//  image example-solution-server of version 2.0.0: not in any imported version of the solution
}

func TestImage(t *testing.T) {
	c, err := Parse([]byte(twoVersions))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ version, name, want string }{
		"own version": {"1.0.0", "example-solution-server", "registry.example:5000/example-solution-1.0.0/example-solution-server:1.0.0"},
		"second endpoint, tag is not the version": {"1.1.0", "example-solution-server", "registry.example:5000/example-solution-1.1.0/example-solution-server:1.0.7"},
		"whole name only":                         {"1.1.0", "example-solution-server-extra", "registry.example:5000/other/example-solution-server-extra:9"},
		"prefix of a name":                        {"1.0.0", "example-solution", ""},
		"version without the image":               {"1.1.0", "example-solution-operator", ""},
		"unknown version":                         {"2.0.0", "example-solution-server", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := c.Image(tt.version, tt.name)
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
			if err != nil && !errors.Is(err, ErrNotFound) {
				t.Errorf("got %v, want ErrNotFound", err)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct{ doc, want string }{
		"unknown key":            {head + "repositories: {1.0.0: []}\nregistry: x\n", `unknown field "registry"`},
		"unknown repository key": {head + "repositories: {1.0.0: [{endpoint: r/x, image: [a:1]}]}\n", `unknown field "image"`},
		"duplicate key":          {head + "kind: OperatorConfig\nrepositories: {1.0.0: []}\n", `already set`},
		"other kind":             {strings.Replace(head, "OperatorConfig", "Solution", 1) + "repositories: {1.0.0: []}\n", `have "solutions.metalk8s.scality.com/v1alpha1" "Solution"`},
		"other group":            {strings.Replace(head, "solutions.", "", 1) + "repositories: {1.0.0: []}\n", `have "metalk8s.scality.com/v1alpha1"`},
		"no repositories":        {head, "repositories is empty"},
		"no endpoint":            {head + "repositories: {1.0.0: [{images: [a:1]}]}\n", "repositories[1.0.0][0]: endpoint"},
		"endpoint with slash":    {head + "repositories: {1.0.0: [{endpoint: r/x/, images: [a:1]}]}\n", `"r/x/"`},
		"image without tag":      {head + "repositories: {1.0.0: [{endpoint: r/x, images: [a]}]}\n", `have "a", want NAME:TAG`},
		"image with host":        {head + "repositories: {1.0.0: [{endpoint: r/x, images: ['h:5/a:1']}]}\n", `have "h:5/a:1"`},
		"empty":                  {"", "want solutions.metalk8s"},
		"not YAML":               {"\t", "yaml"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := Parse([]byte(tt.doc))
			if err == nil {
				t.Fatalf("got %+v, want an error", c)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, want it to contain %q", err, tt.want)
			}
		})
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "operator.yaml")
	if _, err := Load(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: got %v", err)
	}
	if err := os.WriteFile(file, []byte(head), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil || !strings.HasPrefix(err.Error(), file+": ") {
		t.Errorf("invalid file: got %v", err)
	}
	if err := os.WriteFile(file, []byte(twoVersions), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err != nil {
		t.Errorf("after the file was corrected: %v", err)
	}
}

// FuzzParse proves that what was accepted can be written and read again, and that every listed image can be found.
func FuzzParse(f *testing.F) {
	f.Add([]byte(twoVersions))
	f.Add([]byte(head + "repositories: {1.0.0: []}\n"))
	f.Add([]byte(head + "repositories: {1.0.0: [{endpoint: r/x, images: [a]}]}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data)
		if err != nil {
			return
		}
		again, err := yaml.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		c2, err := Parse(again)
		if err != nil {
			t.Fatalf("%s\nwas written for a valid document, but: %v", again, err)
		}
		if diff := cmp.Diff(c, c2); diff != "" {
			t.Errorf("differs after writing (-first +second):\n%s", diff)
		}
		for version, repositories := range c.Repositories {
			for _, r := range repositories {
				for _, image := range r.Images {
					name, _, _ := strings.Cut(image, ":")
					if _, err := c.Image(version, name); err != nil {
						t.Errorf("listed image: %v", err)
					}
				}
			}
		}
	})
}
