package images_test

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/kube/images"
)

const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func object(tb testing.TB, text string) map[string]any {
	tb.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		tb.Fatal(err)
	}
	return m
}

func TestFind(t *testing.T) {
	for _, test := range []struct {
		name, object string
		want         []string
	}{
		{"pod", `{spec: {containers: [{name: a, image: nginx}], initContainers: [{name: b, image: "x.io/b:1"}], ephemeralContainers: [{image: c}]}}`, []string{
			"container! nginx spec.containers[0].image", "container! c spec.ephemeralContainers[0].image", "container! x.io/b:1 spec.initContainers[0].image",
		}},
		{"template", `{spec: {template: {spec: {containers: [{name: a, image: "{{ repository }}/ui:1.0.0"}]}}}}`, []string{
			"container! {{ repository }}/ui:1.0.0 spec.template.spec.containers[0].image",
		}},
		{"CronJob", `{spec: {jobTemplate: {spec: {template: {spec: {containers: [{image: "a:1"}]}}}}}}`, []string{
			"container! a:1 spec.jobTemplate.spec.template.spec.containers[0].image",
		}},
		{"container in a custom resource", `{spec: {sidecar: {image: proxy, resources: {}}}}`, []string{"container! proxy spec.sidecar.image"}},
		{"image volume", `{spec: {volumes: [{name: a, image: {reference: "x.io/p:1"}}]}}`, []string{"volume! x.io/p:1 spec.volumes[0].image.reference"}},
		{"beside related images", `{spec: {containers: [{env: [{name: RELATED_IMAGE_UI_NAME, value: ui}, {name: RELATED_IMAGE_UI_TAG, value: "1.0"},
			{name: RELATED_IMAGE_UI_DIGEST, value: "sha256:0123"}, {name: RELATED_IMAGE_REGISTRY, value: "x.io/registry:1"}, {name: RELATED_IMAGE_DB, value: db}]}]}}`, []string{
			"env! x.io/registry:1 spec.containers[0].env[3].value", "env! db spec.containers[0].env[4].value",
		}},
		{"related images", `{spec: {containers: [{env: [{name: RELATED_IMAGE_UI, value: "x.io/ui:1"}, {name: OTHER, value: text}, {name: UI_IMAGE, value: "ui:2"}, {name: X, value: "x.io/y:3"}]}]}}`, []string{
			"env! x.io/ui:1 spec.containers[0].env[0].value", "env ui:2 spec.containers[0].env[2].value", "env x.io/y:3 spec.containers[0].env[3].value",
		}},
		{"arguments", `{spec: {containers: [{args: [--helper-image=helper:1, --image, "b:2", --listen=0.0.0.0:8080, --x=x.io/c:3, run, "--image-pull-policy=Always:1", "--proxy-image="], command: [sh, -c, "run x.io/d:4; run e:5"]}]}}`, []string{
			"argument helper:1 spec.containers[0].args[0]", "argument b:2 spec.containers[0].args[2]", "argument x.io/c:3 spec.containers[0].args[4]",
			"argument x.io/d:4 spec.containers[0].command[2]",
		}},
		{"fields of a custom resource", `{spec: {image: nginx, logo: {image: logo.png}, sidecarImage: "a/b:1", imageRegistry: "x.io", imagePullPolicy: Always, images: ["c:1", "d"]}}`, []string{
			"container! nginx spec.image", "field c:1 spec.images[0]", "field a/b:1 spec.sidecarImage",
		}},
		{"a bare name", `{spec: {image: nginx, icon: {image: logo.png}}}`, []string{"field nginx spec.image"}},
		{"parts", `{spec: {image: {registry: x.io, repository: a/b, tag: 1.5}, proxy: {repository: y.io/p, digest: "` + digest + `"}, git: {repository: acme/web, tag: v1}}}`, []string{
			"field x.io/a/b:1.5 spec.image", "field y.io/p@" + digest + " spec.proxy",
		}},
		{"document in a ConfigMap", `{data: {config.yaml: "sidecar:\n  image: x.io/s:1\n", pods.yaml: "a: 1\n---\nspec:\n  containers:\n  - image: z\n", script: "docker run x.io/t:2 --rm\nexit"}}`, []string{
			"field x.io/s:1 data[config.yaml]: sidecar.image", "container! z data[pods.yaml], document 2: spec.containers[0].image", "text x.io/t:2 data.script",
		}},
		{"JSON in an annotation", `{metadata: {annotations: {a: '{"image": "x.io/a:1"}', kubectl.kubernetes.io/last-applied-configuration: '{"image": "x.io/b:1"}'}}}`, []string{
			"field x.io/a:1 metadata.annotations.a: image",
		}},
		{"default of a CRD", `{spec: {versions: [{schema: {openAPIV3Schema: {properties: {image: {type: string, default: "x.io/a:1", description: "such as x.io/b:1"}}}}}]}}`, []string{
			"text x.io/a:1 spec.versions[0].schema.openAPIV3Schema.properties.image.default",
		}},
		{"digest anywhere", `{data: {a: "see x/y@` + digest + `."}}`, []string{"text x/y@" + digest + " data.a"}},
		{"no images", `{data: {url: "https://x.io/a:1", host: "db.example.com:5432", hostPath: "example.com:8080/a/b", label: "app.kubernetes.io/name:web", time: "12:30",
			path: /usr/share/a:b, mail: a@example.com, module: "github.com/a/b@v1.2.3", service: "default/web:8080", empty: ""}}`, []string{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := []string{}
			for _, use := range images.Find(object(t, test.object)) {
				mark := ""
				if use.Certain {
					mark = "!"
				}
				got = append(got, fmt.Sprintf("%s%s %s %s", use.Place, mark, use.Image, use.Path))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestPulled(t *testing.T) {
	for text, want := range map[string]string{
		"{kind: Pod, spec: {containers: [{image: a, args: [--x=x.io/b:1, --image=c], env: [{name: D_IMAGE, value: 'd:1'}]}]}}": "a d:1 x.io/b:1",
		"{kind: Store, spec: {image: nginx, proxyImage: 'e:2', text: 'see x.io/f:1'}}":                                         "e:2",
		"{kind: Store, spec: {image: {registry: x.io, repository: g, tag: 3}}}":                                                "x.io/g:3",
		"{kind: ConfigMap, data: {a.yaml: 'image: x.io/h:1', pod.yaml: 'containers: [{image: i}]'}}":                           "i",
		`{kind: Store, metadata: {annotations: {a: '{"image": "x.io/j:1"}'}}}`:                                                 "",
	} {
		var got []string
		for _, use := range images.Find(object(t, text)) {
			if use.Pulled() {
				got = append(got, use.Image)
			}
		}
		if slices.Sort(got); strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %s", text, got, want)
		}
	}
}

func TestEntry(t *testing.T) {
	for text, want := range map[string]string{
		"nginx":                     `{name: nginx, tag: "latest", source: "docker://docker.io/library/nginx:latest"}`,
		"quay.io/acme/web:1.0":      `{name: web, tag: "1.0", source: "docker://quay.io/acme/web:1.0"}`,
		"x.io/a:1@" + digest:        `{name: a, tag: "1", source: "docker://x.io/a:1@` + digest + `"}`,
		"registry:5000/a@" + digest: `{name: a, tag: "` + digest[len("sha256:"):][:12] + `", source: "docker://registry:5000/a@` + digest + `"}`,
	} {
		if r, ok := images.ParseReference(text); !ok || r.Entry() != want {
			t.Errorf("%s: %s, want %s", text, r.Entry(), want)
		}
	}
}

func TestFindNamesTheObject(t *testing.T) {
	uses := images.Find(object(t, `{kind: Pod, metadata: {name: web}, spec: {containers: [{image: a}]}}`))
	want := []images.Use{{Image: "a", Object: "Pod/web", Path: "spec.containers[0].image", Place: images.Container, Certain: true}}
	if !reflect.DeepEqual(uses, want) {
		t.Errorf("got %+v", uses)
	}
}

func TestParseReference(t *testing.T) {
	for text, want := range map[string]string{
		"nginx":                      "docker.io/library/nginx:latest",
		"nginx:1.25":                 "docker.io/library/nginx:1.25",
		"acme/web":                   "docker.io/acme/web:latest",
		"quay.io/acme/web:1.0":       "quay.io/acme/web:1.0",
		"index.docker.io/nginx":      "docker.io/library/nginx:latest",
		"localhost/a":                "localhost/a:latest",
		"registry:5000/a/b/c:x":      "registry:5000/a/b/c:x",
		"[fd00::1]:5000/a:1":         "[fd00::1]:5000/a:1",
		"a@" + digest:                "docker.io/library/a@" + digest,
		"x.io/a:1@" + digest:         "x.io/a:1@" + digest,
		"x.io/a--b__c.d:1":           "x.io/a--b__c.d:1",
		"":                           "",
		"A":                          "",
		"a:":                         "",
		"a:-1":                       "",
		"a@sha256:123":               "",
		"a//b":                       "",
		"/a":                         "",
		"a/":                         "",
		"a b":                        "",
		"https://x.io/a":             "",
		"x.io/A:1":                   "",
		"a___b":                      "",
		strings.Repeat("a", 600):     "",
		"{{ repository }}/a:1":       "",
		"x.io/a:" + digest[7:] + "1": "x.io/a:" + digest[7:] + "1",
	} {
		r, ok := images.ParseReference(text)
		if got := r.String(); ok != (want != "") || ok && got != want {
			t.Errorf("ParseReference(%q) = %q, %v, want %q", text, got, ok, want)
		}
	}
}

func TestFindIsBounded(t *testing.T) {
	deep, list := any("x.io/a:1"), make([]any, 20_000)
	for range 10_000 {
		deep = []any{deep}
	}
	for i := range list {
		list[i] = fmt.Sprintf("x.io/a:%d", i)
	}
	if uses := images.Find(map[string]any{"a": deep}); len(uses) != 0 {
		t.Errorf("deep: %v", uses)
	}
	if uses := images.Find(map[string]any{"a": list}); len(uses) != 10_000 {
		t.Errorf("many: %d", len(uses))
	}
}

func ExampleFind() {
	for _, use := range images.Find(map[string]any{
		"kind": "Deployment", "metadata": map[string]any{"name": "operator"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
			"name": "operator", "image": "ghcr.io/acme/operator:1.0.0",
			"env": []any{map[string]any{"name": "RELATED_IMAGE_BACKEND", "value": "ghcr.io/acme/backend:1.0.0"}},
		}}}}},
	}) {
		fmt.Println(use.Place, use.Image)
	}
	// Output:
	// container ghcr.io/acme/operator:1.0.0
	// env ghcr.io/acme/backend:1.0.0
}

func FuzzFind(f *testing.F) {
	f.Add([]byte(`{spec: {containers: [{image: "x.io/a:1", args: ["--image=b:1"], env: [{name: RELATED_IMAGE_A, value: c}]}]}}`))
	f.Add([]byte("data:\n  a: |\n    image: {repository: x.io/a, tag: 1}\n    ---\n    b: [\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m map[string]any
		if yaml.Unmarshal(data, &m) != nil {
			return
		}
		uses := images.Find(m)
		for _, use := range uses {
			if !use.Certain && !strings.Contains(use.Image, "{{") {
				if _, ok := images.ParseReference(use.Image); !ok {
					t.Errorf("%+v is not a reference", use)
				}
			}
		}
		if again := images.Find(m); !slices.Equal(uses, again) {
			t.Error("two runs differ")
		}
	})
}

func FuzzParseReference(f *testing.F) {
	for _, text := range []string{"nginx", "quay.io/acme/web:1.0", "registry:5000/a@" + digest, "[::1]:5000/a", "a:b:c"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := images.ParseReference(text)
		if !ok {
			return
		}
		again, ok := images.ParseReference(r.String())
		if !ok || again.String() != r.String() {
			t.Errorf("%q became %q and then %q", text, r, again)
		}
	})
}

// TestHostileObjects: the memory for finding images does not grow with the paths of other values, nor with the square
// of their lengths.
func TestHostileObjects(t *testing.T) {
	key := strings.Repeat("k", 1<<20)
	containers := []any{}
	fields := map[string]any{}
	for i := range 5000 {
		containers = append(containers, map[string]any{"image": fmt.Sprintf("a:%d", i)})
		fields[fmt.Sprint(i)] = "text"
	}
	texts := slices.Repeat([]any{"text"}, 5000)
	var nested any = "b"
	for range 100 {
		nested = map[string]any{"repository": "a", "tag": nested, "text": strings.Repeat("t", 40<<10)}
	}
	for name, object := range map[string]map[string]any{
		"fields below a long key":     {"kind": "A", key: fields},
		"texts below a long key":      {"kind": "A", key: texts},
		"images below a long key":     {"kind": "A", key: map[string]any{"containers": containers}},
		"tags that are tables":        {"kind": "A", "a": nested},
		"a document below a long key": {"kind": "A", key: map[string]any{"a": "b:\n- image: a/b:1\n  args: []\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			uses := images.Find(object)
			runtime.ReadMemStats(&after)
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 64<<20 {
				t.Errorf("it allocated %d MiB", allocated>>20)
			}
			for _, use := range uses {
				if len(use.Path) > 1<<10 {
					t.Fatalf("a path has %d bytes", len(use.Path))
				}
			}
		})
	}
}
