package archive_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const manifest = `apiVersion: solutions.metalk8s.scality.com/v1alpha1
kind: Solution
metadata: {name: demo}
spec: {version: %s}
`

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clocks.demo.example}
spec:
  group: demo.example
  scope: Namespaced
  names: {kind: Clock, plural: clocks}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

const role = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: demo}
rules:
  - {apiGroups: [""], resources: [pods], verbs: [get]}
`

// skopeoDirectory is an image as MetalK8s' tooling writes it.
func skopeoDirectory(fsys fstest.MapFS, name, tag, layer string) {
	digest := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return hex.EncodeToString(sum[:])
	}
	config := `{"os":"linux","architecture":"amd64","rootfs":{"type":"layers","diff_ids":[]}}`
	m := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json",
"config":{"mediaType":"application/vnd.docker.container.image.v1+json","digest":"sha256:%s","size":%d},
"layers":[{"mediaType":"application/vnd.docker.image.rootfs.diff.tar.gzip","digest":"sha256:%s","size":%d}]}`,
		digest(config), len(config), digest(layer), len(layer))
	dir := "images/" + name + "/" + tag + "/"
	fsys[dir+"manifest.json"] = &fstest.MapFile{Data: []byte(m)}
	fsys[dir+"version"] = &fstest.MapFile{Data: []byte("Directory Transport Version: 1.1\n")}
	fsys[dir+digest(config)] = &fstest.MapFile{Data: []byte(config)}
	fsys[dir+digest(layer)] = &fstest.MapFile{Data: []byte(layer)}
}

func demo(version string, change ...func(fstest.MapFS)) fstest.MapFS {
	fsys := fstest.MapFS{
		"manifest.yaml":                        {Data: fmt.Appendf(nil, manifest, version)},
		"operator/deploy/crds/clocks_crd.yaml": {Data: []byte(crd)},
		"operator/deploy/crds/clocks_cr.yaml":  {Data: []byte("kind: Clock\n")},
		"operator/deploy/role.yaml":            {Data: []byte(role)},
	}
	skopeoDirectory(fsys, "demo-operator", version, "layer one")
	for _, c := range change {
		c(fsys)
	}
	return fsys
}

func open(t *testing.T, fsys fstest.MapFS) *archive.Archive {
	t.Helper()
	a, err := archive.FromFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestDescribe(t *testing.T) {
	d, err := open(t, demo("1.0.0")).Describe()
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Images) != 1 || d.Images[0].Name != "demo-operator:1.0.0" || d.Images[0].Blobs != 2 {
		t.Errorf("images: %+v", d.Images)
	}
	want := []archive.RoleDescription{{Kind: "Role", Name: "demo", Rules: []archive.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
	}}}
	if diff := cmp.Diff(want, d.Roles); diff != "" {
		t.Error(diff)
	}
	if len(d.CRDs) != 1 || d.CRDs[0].Name != "clocks.demo.example" || fmt.Sprint(d.CRDs[0].Versions) != "[v1 (storage)]" {
		t.Errorf("CRDs: %+v", d.CRDs)
	}
	if len(d.Images[0].Platforms) != 1 || d.Images[0].Platforms[0] != (schema.Platform{OS: "linux", Architecture: "amd64"}) {
		t.Errorf("platforms: %v", d.Images[0].Platforms)
	}
}

func TestCompare(t *testing.T) {
	replace := func(name, old, new string) func(fstest.MapFS) {
		return func(fsys fstest.MapFS) {
			fsys[name] = &fstest.MapFile{Data: []byte(strings.Replace(string(fsys[name].Data), old, new, 1))}
		}
	}
	for _, test := range []struct {
		name   string
		from   fstest.MapFS
		to     fstest.MapFS
		expect string // one line a change
	}{
		{"nothing", demo("1.0.0"), demo("1.0.0"), ""},
		{
			"a version", demo("1.0.0"), demo("1.1.0"),
			"removed image demo-operator:1.0.0\nadded image demo-operator:1.1.0\nchanged file manifest.yaml: content\n",
		},
		{
			"another layer under the same tag", demo("1.0.0"),
			demo("1.0.0", func(fsys fstest.MapFS) { skopeoDirectory(fsys, "demo-operator", "1.0.0", "layer two") }),
			"changed image demo-operator:1.0.0: a8cf934d5956 → 886fa3d611d9\n",
		},
		{
			"a served version goes", demo("1.0.0"),
			demo("1.0.0", replace("operator/deploy/crds/clocks_crd.yaml", "served: true", "served: false")),
			"changed CRD clocks.demo.example: version v1 changed: v1 (storage) → v1 (storage, not served)\n" +
				"changed file operator/deploy/crds/clocks_crd.yaml: 293 → 294 bytes\n",
		},
		{
			"a role widens", demo("1.0.0"), demo("1.0.0", replace("operator/deploy/role.yaml", "verbs: [get]", "verbs: [get, delete]")),
			"changed role Role/demo: removed: get pods; added: get,delete pods\n" +
				"changed file operator/deploy/role.yaml: 137 → 145 bytes\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := archive.Compare(open(t, test.from), open(t, test.to))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.expect, text(d)); diff != "" {
				t.Error(diff)
			}
			if d.Empty() != (test.expect == "") {
				t.Errorf("Empty() = %v", d.Empty())
			}
		})
	}
}

func text(d *archive.Difference) string {
	var b strings.Builder
	for _, section := range []struct {
		what    string
		changes []archive.Change
	}{{"image", d.Images}, {"CRD", d.CRDs}, {"role", d.Roles}, {"file", d.Files}} {
		for _, c := range section.changes {
			fmt.Fprintf(&b, "%s %s %s", c.Kind, section.what, c.Name)
			if c.Detail != "" {
				b.WriteString(": " + c.Detail)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func TestRefusals(t *testing.T) {
	without := func(name string) fstest.MapFS {
		fsys := demo("1.0.0")
		delete(fsys, name)
		return fsys
	}
	for _, test := range []struct {
		name string
		fsys fstest.MapFS
		want string
	}{
		{"no manifest", without("manifest.yaml"), "manifest.yaml is missing"},
		{"a version that is none", demo("one"), "spec.version"},
		{"a manifest without end", fstest.MapFS{"manifest.yaml": {Data: make([]byte, 5<<20)}}, "larger than"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := archive.FromFS(test.fsys)
			if err == nil || report.CodeOf(err) != report.Invalid || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v (%s), want %s about %q", err, report.CodeOf(err), report.Invalid, test.want)
			}
		})
	}
}

func ExampleFromFS() {
	a, err := archive.FromFS(demo("1.0.0"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, image := range a.Images.Images() {
		fmt.Println(a.Solution.ID(), image.Ref, image.Platforms())
	}
	// Output: demo-1.0.0 demo-operator:1.0.0 [linux/amd64]
}

// TestDescribeBounded describes archives of which many files have the same bytes: they are small, what is read of them would not be.
func TestDescribeBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("parses 128 MiB of YAML")
	}
	file := func(text string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("# " + strings.Repeat("x", 4<<20-len(text)-3) + "\n" + text)}
	}
	large := map[string]*fstest.MapFile{"operator/deploy/crds/%d_crd.yaml": file(crd), "operators/%d/role.yaml": file(role)}
	for name, content := range large {
		a := open(t, demo("1.0.0", func(fsys fstest.MapFS) {
			for i := range 17 {
				fsys[fmt.Sprintf(name, i)] = content
			}
		}))
		if _, err := a.Describe(); report.CodeOf(err) != report.Invalid || !strings.Contains(err.Error(), "more than 64 MiB") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
