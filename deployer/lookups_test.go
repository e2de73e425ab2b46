package deployer_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func secretObject(namespace, name, token string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": namespace, "name": name},
		"data": map[string]any{"token": base64.StdEncoding.EncodeToString([]byte(token))},
	}}
}

// TestSecretsOfOthersAreNotLookedUp checks which Secrets the templates of a chart see, as they are rendered with the administrator's
// rights. In a namespace that is not the Solution's they see only those of the release until a user approves more.
func TestSecretsOfOthersAreNotLookedUp(t *testing.T) {
	for name, question := range map[string]string{
		"all":          `{{ range (lookup "v1" "Secret" .Release.Namespace "").items }}{{ .metadata.name }}: {{ .data.token }} {{ end }}`,
		"one":          `{{ with lookup "v1" "Secret" .Release.Namespace "bootstrap" }}bootstrap: {{ .data.token }}{{ end }}`,
		"with a slash": `{{ with lookup "/v1" "Secret" .Release.Namespace "bootstrap" }}bootstrap: {{ .data.token }}{{ end }}`,
	} {
		t.Run(name, func(t *testing.T) {
			b := deployertest.New(t)
			b.Put(neighbourNamespace())
			b.Put(secretObject(neighbour, "bootstrap", "stolen"))
			files := func(more string) map[string]string {
				return map[string]string{"charts/part.tgz": deployertest.Chart(t, "part", map[string]string{
					"templates/loot.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: loot}\ndata: {loot: '" + question + "'}\n" + more,
				})}
			}
			b.Imported(shop, "1.0.0", elsewhere("chart: charts/part.tgz", files("")))
			run := func(o plan.Options) (*schema.Operation, error) {
				return b.Activate(t.Context(), deployer.ActivateOptions{Solution: shop, Version: "1.0.0", Options: o})
			}
			loot := func() string {
				object := b.Server.Object("ConfigMap", neighbour, "loot")
				if object == nil {
					return ""
				}
				text, _, _ := unstructured.NestedString(object.Object, "data", "loot")
				return text
			}
			_, err := run(plan.Options{Allow: []string{string(schema.PowerObjectsElsewhere)}})
			deployertest.Refused(t, err, report.Refused, "Secret", neighbour, "while it is rendered", "read-secrets:Chart/team-b/part")
			planned, err := run(plan.Options{DryRun: true})
			if err != nil {
				t.Fatal(err)
			}
			if text, failure := json.Marshal(planned); failure != nil || bytes.Contains(text, []byte(base64.StdEncoding.EncodeToString([]byte("stolen")))) {
				t.Errorf("the plan has the Secret, or %v", failure)
			}
			if !slices.ContainsFunc(planned.Unapproved(), func(p schema.Power) bool { return p.Name == schema.PowerReadSecrets && p.File == "charts/part.tgz" }) {
				t.Errorf("the plan does not show it: %+v", planned.Unapproved())
			}
			if loot() != "" {
				t.Fatal("refused, and there")
			}
			if _, err = run(plan.Options{Allow: []string{string(schema.PowerObjectsElsewhere), string(schema.PowerReadSecrets)}}); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(loot(), "bootstrap") {
				t.Errorf("approved, and not read: %q", loot())
			}
			again, err := run(plan.Options{})
			if err != nil || !again.Empty() {
				t.Errorf("the approval is not on record: %v", err)
			}
		})
	}
}

// TestOwnSecretsAreLookedUp checks that a chart may look up its own Secret without approval, to keep a password that it generated. A
// missing one needs no approval either.
func TestOwnSecretsAreLookedUp(t *testing.T) {
	b := deployertest.New(t)
	b.Put(neighbourNamespace())
	b.Put(secretObject(neighbour, "bootstrap", "stolen"))
	for version, more := range map[string]string{"1.0.0": "", "1.1.0": "new"} {
		b.Imported(shop, version, elsewhere("chart: charts/part.tgz", map[string]string{"charts/part.tgz": deployertest.Chart(t, "part", map[string]string{
			"templates/own.yaml": `{{ $own := lookup "v1" "Secret" .Release.Namespace "own" }}apiVersion: v1
kind: Secret
metadata: {name: own}
stringData: {more: "` + more + `", seen: "{{ with $own }}yes{{ end }}"}
`,
		})}))
	}
	for _, version := range []string{"1.0.0", "1.1.0"} {
		if _, err := b.Activate(t.Context(), deployer.ActivateOptions{
			Solution: shop, Version: version, Options: plan.Options{Allow: []string{string(schema.PowerObjectsElsewhere)}},
		}); err != nil {
			t.Fatalf("%s: %v", version, err)
		}
	}
	if text := fmt.Sprint(b.Server.Object("Secret", neighbour, "own").Object); !strings.Contains(text, "seen:"+base64.StdEncoding.EncodeToString([]byte("yes"))) && !strings.Contains(text, "seen:yes") {
		t.Errorf("the own Secret was not found: %s", text)
	}
}

// TestSecretsOfNeighboursAreNotLookedUp: in an environment that several Solutions share, a chart finds the Secrets of its own Solution
// and those that no Solution has, such as an administrator's. Those of other Solutions need an approval.
func TestSecretsOfNeighboursAreNotLookedUp(t *testing.T) {
	b := deployertest.New(t)
	b.Namespace(site, site)
	mine, theirs := secretObject(site, "mine", "mine"), secretObject(site, "theirs", "stolen")
	theirs.SetLabels(map[string]string{schema.LabelRelease: record.Key{Namespace: site, Name: "bank", Component: "db"}.ID()})
	b.Put(mine)
	b.Put(theirs)
	b.Activated(shop, "1.0.0", deployertest.Content{
		Files: map[string]string{"charts/part.tgz": deployertest.Chart(t, "part", map[string]string{
			"templates/found.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: found}
data: {found: '{{ range (lookup "v1" "Secret" .Release.Namespace "").items }}{{ .metadata.name }} {{ end }}'}
`,
		})},
		Manifest: "components: [{name: part, chart: charts/part.tgz}]",
	})
	add := func(allow ...string) error {
		_, err := b.Add(t.Context(), deployer.AddOptions{Options: plan.Options{Allow: allow}, Environment: site, Solution: shop, Version: "1.0.0"})
		return err
	}
	deployertest.Refused(t, add(), report.Refused, "read-secrets:Chart/site/part", "while it is rendered")
	delete(theirs.Object, "metadata")
	theirs.SetNamespace(site)
	theirs.SetName("theirs")
	b.Put(theirs)
	if err := add(); err != nil {
		t.Fatalf("a Secret that no Solution has: %v", err)
	}
	if text := fmt.Sprint(b.Server.Object("ConfigMap", site, "found").Object); !strings.Contains(text, "mine theirs") {
		t.Errorf("found is %s", text)
	}
}
