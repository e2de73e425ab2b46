package helm_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/helm"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// pack encodes a release as Helm does.
func pack(release []byte) string {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(release); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}

// secret is a Secret as Helm writes it, with packed as its release.
func secret(name, packed string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
		"metadata": map[string]any{
			"namespace": "site", "name": name,
			"labels": map[string]any{"owner": "helm", "name": "db", "status": "deployed", "version": name[strings.LastIndex(name, "v")+1:]},
		},
		"data": map[string]any{"release": base64.StdEncoding.EncodeToString([]byte(packed))},
	}}
}

const release = `{"name": "db", "namespace": "site", "version": 3, "info": {"status": "deployed"},
"chart": {"metadata": {"name": "postgres", "version": "1.2.0"}, "templates": []}, "config": {"size": 3, "old": null},
"manifest": %q, "hooks": [{"path": "db/templates/job.yaml", "manifest": "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n"}]}`

func Example() {
	manifest := "---\n# Source: db/templates/db.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: db\n"
	found := helm.List("db", []*unstructured.Unstructured{secret("sh.helm.release.v1.db.v3", pack(fmt.Appendf(nil, release, manifest)))})
	r, err := helm.Read(found[0].Secret)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(found[0].Number, found[0].Status, r.Chart, r.Objects, r.Hooks)
	// Output: 3 deployed postgres-1.2.0 [ConfigMap site/db] [Job site/migrate]
}

func TestRead(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: "
	for _, test := range []struct {
		name, manifest string
		want           []string
		refused        string
	}{
		{name: "nothing", manifest: ""},
		{name: "comments only", manifest: "---\n# Source: a\n---\n# Source: b\n"},
		{name: "without a first line", manifest: head + "{name: a}\n--- # b\n" + head + "{name: b, namespace: kube-system}", want: []string{"ConfigMap site/a", "ConfigMap kube-system/b"}},
		{
			name: "a list", manifest: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: a}}\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}",
			want: []string{"Secret site/a", "Secret site/b"},
		},
		{name: "items of something else", manifest: "apiVersion: a/v1\nkind: Menu\nmetadata: {name: m}\nitems: [{name: soup}]", want: []string{"Menu site/m"}},
		{name: "dashes within", manifest: head + "{name: a}\ndata:\n  pem: |\n    ---\n    -----BEGIN", want: []string{"ConfigMap site/a"}},
		{name: "without a name", manifest: head + "{}", refused: "no name"},
		{name: "no YAML", manifest: "a: b: c", refused: "the manifest"},
		{name: "too much YAML", manifest: strings.Repeat("- a\n", 1_000_000), refused: "more than"},
		{name: "an alias of aliases", manifest: "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" +
			"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]", refused: "the manifest"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := helm.Read(secret("sh.helm.release.v1.db.v3", pack(fmt.Appendf(nil, release, test.manifest))))
			if test.refused != "" {
				if report.CodeOf(err) != report.Corrupt || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("got %v, want something about %s", err, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, ref := range r.Objects {
				got = append(got, ref.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]any{"size": 3.0, "old": nil}, r.Values); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRefused: data that is not a release, or has another name, is refused with bounded memory.
func TestRefused(t *testing.T) {
	good := pack(fmt.Appendf(nil, release, ""))
	other := secret("sh.helm.release.v1.db.v3", good)
	other.Object["type"] = "Opaque"
	bomb := make([]byte, 64<<20)
	elsewhere := secret("sh.helm.release.v1.db.v3", good)
	elsewhere.SetNamespace("kube-system")
	for name, test := range map[string]struct {
		secret *unstructured.Unstructured
		words  string
	}{
		"another type":      {other, `type "Opaque"`},
		"another revision":  {secret("sh.helm.release.v1.db.v4", good), "revision 3 of release site/db"},
		"another namespace": {elsewhere, "revision 3 of release site/db"},
		"no base64":         {secret("sh.helm.release.v1.db.v3", "?"), "base64"},
		"no gzip":           {secret("sh.helm.release.v1.db.v3", base64.StdEncoding.EncodeToString([]byte("plain"))), "what Helm has written"},
		"cut off":           {secret("sh.helm.release.v1.db.v3", good[:len(good)-24]), "what Helm has written"},
		"a bomb":            {secret("sh.helm.release.v1.db.v3", pack(bomb)), "larger than 32 MiB"},
		"no JSON":           {secret("sh.helm.release.v1.db.v3", pack([]byte("{"))), "JSON"},
		"nothing":           {secret("sh.helm.release.v1.db.v3", ""), "EOF"},
	} {
		if _, err := helm.Read(test.secret); report.CodeOf(err) != report.Corrupt || !strings.Contains(err.Error(), test.words) {
			t.Errorf("%s: got %v, want something about %s", name, err, test.words)
		}
	}
}

func TestList(t *testing.T) {
	secrets := []*unstructured.Unstructured{
		secret("sh.helm.release.v1.db.v9", ""), secret("sh.helm.release.v1.db.v10", ""), secret("sh.helm.release.v1.other.v11", ""), secret("passwords-v3", ""),
		secret("sh.helm.release.v1.db.vx", ""),
	}
	var got []int
	for _, r := range helm.List("db", secrets) {
		got = append(got, r.Number)
	}
	if diff := cmp.Diff([]int{10, 9}, got); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	for name, good := range map[string]bool{"db": true, "my-db.v2": true, "": false, "a,owner!=helm": false, "Db": false, strings.Repeat("a", 54): false} {
		if err := helm.CheckName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestSame(t *testing.T) {
	listed := schema.ObjectRef{APIVersion: "autoscaling/v2beta2", Kind: "HorizontalPodAutoscaler", Namespace: "site", Name: "web"}
	for _, test := range []struct {
		apiVersion, namespace string
		want                  bool
	}{
		{"autoscaling/v2", "site", true},
		{"autoscaling/v2", "", true}, // of the cluster
		{"autoscaling/v2", "kube-system", false},
		{"example.com/v2", "site", false},
	} {
		wanted := schema.ObjectRef{APIVersion: test.apiVersion, Kind: listed.Kind, Namespace: test.namespace, Name: "web"}
		if got := helm.Same(listed, wanted); got != test.want {
			t.Errorf("%+v: %t", wanted, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(fmt.Appendf(nil, release, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"))
	f.Add([]byte(`{"manifest": "kind: List\nitems: [{kind: List, items: []}]"}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := helm.Read(secret("sh.helm.release.v1.db.v3", pack(data)))
		if err != nil {
			return
		}
		for _, ref := range append(r.Objects, r.Hooks...) {
			if ref.APIVersion == "" || ref.Kind == "" || ref.Name == "" {
				t.Errorf("an object without a name: %+v", ref)
			}
		}
		if _, err := json.Marshal(r.Values); err != nil {
			t.Error(err)
		}
	})
}
