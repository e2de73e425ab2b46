package scaffold_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/build/scaffold"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// manifests is a source with one file.
func manifests(name, text string) scaffold.Source {
	return scaffold.Source{Name: name, Path: name, Files: fstest.MapFS{name: {Data: []byte(text)}}}
}

// made makes a project of sources and reads its solution.yaml.
func made(t *testing.T, sources ...scaffold.Source) (*scaffold.Project, *schema.SolutionBuild) {
	t.Helper()
	project, err := scaffold.New(t.Context(), scaffold.Options{Solution: "shop"}, sources)
	if err != nil {
		t.Fatal(err)
	}
	build, err := schema.ParseSolutionBuild("solution.yaml", project.Files[0].Data)
	if err != nil {
		t.Fatalf("%v\n%s", err, project.Files[0].Data)
	}
	return project, build
}

const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME, namespace: SPACE}\nspec: {containers: [{name: a, image: \"IMAGE\"}]}\n---\n"

func podOf(name, space, image string) string {
	return strings.NewReplacer("NAME", name, "SPACE", space, "IMAGE", image).Replace(pod)
}

// TestImageNames checks that images with the same name from several places do not meet in the archive.
func TestImageNames(t *testing.T) {
	const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	_, build := made(t, manifests("a.yaml", podOf("a", "", "quay.io/acme/agent:1")+
		podOf("b", "", "ghcr.io/other/agent:1")+podOf("c", "", "quay.io/acme/agent:1"+digest)+podOf("d", "", "quay.io/acme/agent"+digest)+
		podOf("e", "", "quay.io/acme/agent:1")+podOf("f", "", "nginx")))
	var got []string
	for _, image := range build.Spec.Images {
		got = append(got, image.Name+":"+image.Tag+" "+strings.TrimSuffix(image.Source, digest))
	}
	want := []string{
		"agent:1 docker://quay.io/acme/agent:1",
		"other-agent:1 docker://ghcr.io/other/agent:1",
		"acme-agent:1 docker://quay.io/acme/agent:1",
		"agent:0123456789ab docker://quay.io/acme/agent",
		"nginx:latest docker://docker.io/library/nginx:latest",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHomes checks in which namespaces components live.
func TestHomes(t *testing.T) {
	const binding = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: x}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\n" +
		"subjects: [{kind: ServiceAccount, name: x, namespace: here}]\n---\n"
	for name, test := range map[string]struct {
		text string
		want schema.Component
	}{
		"in one namespace":                 {podOf("a", "here", "a:1") + podOf("b", "here", "a:1"), schema.Component{}},
		"in two":                           {podOf("a", "here", "a:1") + podOf("a", "there", "a:1"), schema.Component{Scope: schema.ScopeCluster, Namespace: "here", Namespaces: []string{"there"}}},
		"in default":                       {podOf("a", "default", "a:1") + binding, schema.Component{Scope: schema.ScopeCluster}},
		"in a system's":                    {podOf("a", "kube-system", "a:1") + binding, schema.Component{Scope: schema.ScopeCluster, Namespaces: []string{"kube-system"}}},
		"referred to":                      {podOf("a", "here", "a:1") + binding, schema.Component{Scope: schema.ScopeCluster, Namespace: "here"}},
		"with a part in kube-system, less": {podOf("a", "here", "a:1") + podOf("b", "kube-system", "a:1") + podOf("c", "kube-system", "a:1"), schema.Component{Scope: schema.ScopeCluster, Namespace: "here", Namespaces: []string{"kube-system"}}},
	} {
		t.Run(name, func(t *testing.T) {
			project, build := made(t, manifests("web.yaml", test.text))
			test.want.Name, test.want.Manifests = "web", "components/web"
			if diff := cmp.Diff([]schema.Component{test.want}, build.Spec.Components); diff != "" {
				t.Errorf("component (-want +got):\n%s", diff)
			}
			if text := string(project.Files[1].Data); strings.Contains(text, "default") || build.Spec.Components[0].Scope == "" && strings.Contains(text, "here") {
				t.Errorf("a namespace is left:\n%s", text)
			}
		})
	}
}

// TestNamespaceLabels checks that a cluster component keeps the Pod Security labels of its namespaces, and that the loss of everything else in a
// Namespace is reported.
func TestNamespaceLabels(t *testing.T) {
	const namespace = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: here\n  labels: {pod-security.kubernetes.io/enforce: privileged, team: a, app.kubernetes.io/name: x}\n" +
		"  annotations: {openshift.io/node-selector: \"\"}\n---\n"
	const class = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: x}\nvalue: 1\n---\n"
	const system = "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system, labels: {pod-security.kubernetes.io/enforce: privileged}}\n---\n"
	const annotations = "left out the annotations of Namespace here: openshift.io/node-selector="
	byHand := []string{
		"left out Namespace here: an environment has its own",
		"an administrator sets the labels of Namespace here before 'deploy add': kubectl label namespace ENVIRONMENT pod-security.kubernetes.io/enforce=privileged team=a",
		annotations,
	}
	for name, test := range map[string]struct {
		text string
		kept bool
		want []string
	}{
		"of the cluster": {podOf("a", "here", "a:1") + podOf("a", "there", "a:1"), true, []string{
			"kept the labels pod-security.kubernetes.io/enforce=privileged of Namespace here: activation sets them",
			"left out more labels of Namespace here; if something needs them: kubectl label namespace here team=a", annotations,
		}},
		"of an environment":             {podOf("a", "here", "a:1"), false, byHand},
		"of an environment and cluster": {class + podOf("a", "here", "a:1"), false, byHand},
		"without objects": {podOf("a", "one", "a:1") + podOf("a", "two", "a:1"), false, []string{
			"left out Namespace here: no object is in it",
		}},
		"of the system": {system + podOf("a", "kube-system", "a:1") + podOf("b", "here", "a:1"), true, []string{
			"left out more labels of Namespace kube-system; if something needs them: kubectl label namespace kube-system pod-security.kubernetes.io/enforce=privileged",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			project, _ := made(t, manifests("web.yaml", namespace+test.text))
			kept := false
			for _, file := range project.Files {
				kept = kept || strings.Contains(string(file.Data), "name: here\n")
			}
			if kept != test.kept {
				t.Errorf("the Namespace is kept: %v", kept)
			}
			for _, want := range test.want {
				if !slices.Contains(project.Remarks, want) {
					t.Errorf("no remark %q among:\n%s", want, strings.Join(project.Remarks, "\n"))
				}
			}
		})
	}
}

// TestLongName checks that a Solution with a long name and version can be built: the volume is called after its name alone.
func TestLongName(t *testing.T) {
	const name = "a-blackbox-exporter-of-prometheus-with-a-long-name"
	project, err := scaffold.New(t.Context(), scaffold.Options{Solution: name}, []scaffold.Source{manifests("web.yaml", podOf("a", "", "a:1"))})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(project.Files[0].Data), "\n  volumeID: a-blackbox-exporter-of-prometheu\n") {
		t.Errorf("there is no volume identifier of at most 32 bytes:\n%s", project.Files[0].Data)
	}
}

// TestLists checks that a List is split into its items, and that identical objects are kept once.
func TestLists(t *testing.T) {
	const item = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}`
	project, _ := made(t, manifests("list.json", `{"apiVersion": "v1", "kind": "List", "items": [`+item+", "+item+"]}"))
	if project.Components[0].Objects != 1 || project.Files[1].Path != "components/list/list.yaml" {
		t.Errorf("got %+v in %s", project.Components, project.Files[1].Path)
	}
}

// TestRefused: sources from which no project can be made.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want string
	}{
		"taken out of two names":   {podOf("a", "here", "a:1") + "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: b, image: \"b:1\"}]}\n", "two Pod a, and they differ"},
		"a version twice":          {strings.Replace(definition("a"), "names:", "versions: [{name: v1}, {name: v1}], names:", 1), "CustomResourceDefinition a.example.com of x.yaml has version v1 twice"},
		"an item that is a number": {`{"apiVersion": "v1", "kind": "List", "items": [1]}`, "an item of a List is not an object"},
		"definitions that differ":  {definition("a") + definition("b"), "two CustomResourceDefinition a.example.com, and they differ"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := scaffold.New(t.Context(), scaffold.Options{Solution: "shop"}, []scaffold.Source{manifests("x.yaml", test.text)})
			if report.CodeOf(err) != report.Invalid || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error that says %q", err, test.want)
			}
		})
	}
}

func definition(kind string) string {
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.example.com}\nspec: {group: example.com, names: {kind: " + kind + "}}\n---\n"
}

// TestVariablesOfComposeAreBounded refuses variables that multiply.
func TestVariablesOfComposeAreBounded(t *testing.T) {
	const service = "services: {web: {image: \"a:1\", environment: {A: \"$A\"}, env_file: web.env}}\n"
	doubling := func(format string) string {
		text := "A0=0123456789\n"
		for i := range 40 {
			text += fmt.Sprintf(format, i+1, i)
		}
		return text
	}
	long := "A=" + strings.Repeat("x", 1000) + "\n"
	for name, test := range map[string]struct{ compose, dotenv, webenv, want string }{
		".env":                 {service, doubling("A%d=${A%[2]d}${A%[2]d}\n"), "", "the values of variables have more than 1 MiB in all"},
		"env_file":             {service, "", doubling("export A%d : \"$A%[2]d\n${A%[2]d}\" "), "the values of variables have more than 1 MiB in all"},
		"one variable":         {service, "", strings.Repeat("A=\"x$A$A\"\n", 50), "the values of variables have more than 1 MiB in all"},
		"compose file":         {"services: {web: {image: \"a:1\", command: " + strings.Repeat("$A ", 2000) + "}}\n", long, "", "the values of variables have more than 1 MiB in all"},
		"references in a text": {service, "", "A=" + strings.Repeat("${A:-x}", 100_000), "or a text refers to more than 500"},
		"references in each":   {"services: {web: {image: \"a:1\", command: &a [" + strings.Repeat("\""+strings.Repeat("${A:-x}", 400)+"\", ", 40) + "], entrypoint: *a}}\n", "", "", "or a text refers to more than 500"},
		"large file":           {service, "", strings.Repeat("# comment\n", 200_000), "the values of variables have more than 1 MiB in all"},
		"wrong line":           {service, "A='\n\n'\n\nB='x", "", ".env: line 5: unterminated quoted value 'x"},
		"quotes":               {service, "A='it\n''s'\n", "", ".env: line 2: unexpected character"},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{"compose.yaml": {Data: []byte(test.compose)}, ".env": {Data: []byte(test.dotenv)}, "web.env": {Data: []byte(test.webenv)}}
			_, err := scaffold.New(t.Context(), scaffold.Options{Solution: "shop"}, []scaffold.Source{{Name: "compose.yaml", Path: "compose.yaml", Files: files}})
			if report.CodeOf(err) != report.Invalid || !strings.Contains(err.Error(), test.want) {
				t.Errorf("err = %v, want %q", err, test.want)
			}
		})
	}
}
