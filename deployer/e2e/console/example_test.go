package console_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema"
)

// example is the name of the example, whose versions 1.0.0, 1.1.0 and 2.0.0 are in the repository.
const example = "example-solution"

// testExample takes the example through its versions: an administrator activates each, and the owner of an environment, who has the printed
// role, brings it there. The second one has a conversion webhook, whose certificate each plan makes again: the activation does what its plan showed.
func (w *world) testExample(b *browser) {
	n := names{example, "showroom"}
	for version, dir := range map[string]string{"1.0.0": "", "1.1.0": "releases/1.1.0", "2.0.0": "releases/2.0.0"} {
		w.importedWith(b.T, exampleContent(b.T, filepath.Join("../../../example-solution", dir), version), example, version)
	}
	if _, err := w.CreateEnvironment(b.Context(), metalk8s.CreateOptions{Name: n.environment}); err != nil {
		b.Fatal(err)
	}
	w.grant(b.T, n)
	b.forgets()
	b.logsIn(w, jane)
	owner := open(b.T)
	owner.logsIn(w, joe)
	for _, version := range []string{"1.0.0", "1.1.0", "2.0.0"} {
		b.goes(w.origin + "/solutions/" + example)
		b.press("link", "Activate "+version)
		b.applies("Activate "+example+" "+version, "Activate")
		if authority, want := w.conversionAuthority(b.T), version == "1.1.0"; want != (authority != "") {
			b.Errorf("%s: the certificate authority of the conversion webhook is %q", version, authority)
		}
		owner.goes(w.origin + "/solutions/" + example)
		owner.until("their view has the active version", `document.body.innerText.includes("Version `+version+` is active.")`)
		owner.goes(w.origin + n.site())
		if version == "1.0.0" {
			owner.press("link", "Add a Solution")
			owner.applies("Add "+example+" "+version+" to environment "+n.environment, "Add")
			continue
		}
		owner.press("link", "Upgrade")
		owner.applies("Upgrade to "+example+" "+version+" in environment "+n.environment, "Upgrade")
	}
}

// conversionAuthority returns the certificate authority of the webhook that converts Websites, "" without a webhook.
func (w *world) conversionAuthority(t *testing.T) string {
	t.Helper()
	definitions := kube.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	live, err := w.Deployer.Cluster.Get(t.Context(), definitions, "", "websites.example.solutionctl.io")
	if err != nil || live == nil {
		t.Fatalf("%v, %v", live, err)
	}
	authority, _, err := unstructured.NestedString(live.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// exampleContent returns the archive's content for a version of the example. Its images are made up.
func exampleContent(t *testing.T, dir, version string) deployertest.Content {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "solution.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	set, err := schema.ParseSetting("test", "spec.version="+version)
	if err != nil {
		t.Fatal(err)
	}
	build, err := schema.ParseSolutionBuild("solution.yaml", data, set)
	if err != nil {
		t.Fatal(err)
	}
	content := deployertest.Content{Bare: true, Files: map[string]string{}}
	var images []schema.ImageRef
	for _, image := range build.Spec.Images {
		reference := build.Spec.ImageRef(image)
		images = append(images, reference)
		content.Images = append(content.Images, reference.Name)
	}
	manifest, err := build.Solution(images, time.Now()).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	content.Files["manifest.yaml"] = string(manifest)
	root := os.DirFS(filepath.Join(dir, "archive"))
	for _, part := range []string{"operator", "ui", "monitoring"} {
		err := fs.WalkDir(root, part, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := fs.ReadFile(root, name)
			content.Files[name] = strings.ReplaceAll(string(data), "{{ version }}", version)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return content
}
