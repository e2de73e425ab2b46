package deployer_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/support/bundle"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// outputs collects the output of verbs, and the values in Secrets meanwhile.
type outputs struct {
	*deployertest.Bed
	text   bytes.Buffer
	values map[string]bool
}

// add keeps the result of a verb, and looks at the Secrets of the environment.
func (o *outputs) add(result any, err error) {
	o.Helper()
	o.look()
	data, failure := json.Marshal(result)
	if failure != nil {
		o.Fatal(failure)
	}
	fmt.Fprintf(&o.text, "%s\n%v\n%q\n", data, err, report.Hints(err))
}

func (o *outputs) look() {
	o.Helper()
	for _, name := range o.Server.Names("Secret") {
		namespace, short, _ := strings.Cut(name, "/")
		if namespace != site {
			continue
		}
		data, _, _ := unstructured.NestedStringMap(o.Server.Object("Secret", namespace, short).Object, "data")
		for _, packed := range data {
			plain, err := base64.StdEncoding.DecodeString(packed)
			if err != nil {
				o.Fatal(err)
			}
			o.values[string(plain)] = true
		}
	}
}

// run runs a verb, planned first.
func (o *outputs) run(v verb) error {
	o.Helper()
	o.add(v(o.Context(), o.Deployer, plan.Options{DryRun: true}))
	done, err := v(o.Context(), o.Deployer, plan.Options{})
	o.add(done, err)
	return err
}

// everything returns all output and all readable objects other than Secrets: ConfigMaps, Events, results, and a bundle for support.
func (o *outputs) everything() string {
	o.Helper()
	for _, kind := range []string{"ConfigMap", "Event", "Deployment", "Job"} {
		for _, name := range o.Server.Names(kind) {
			namespace, short, _ := strings.Cut(name, "/")
			o.add(o.Server.Object(kind, namespace, short), nil)
		}
	}
	o.add(o.Sink.Events(), nil)
	collected, err := bundle.Collect(o.Context(), bundle.Options{
		Diagnosis: &schema.Diagnosis{Checks: []schema.Check{}}, Deployer: o.Deployer, Tool: "1.0.0", Now: time.Now(), Logs: true,
	})
	if err != nil {
		o.Fatal(err)
	}
	for _, file := range collected.Files {
		o.text.Write(file.Data)
	}
	return o.text.String()
}

// TestSecretsStayInSecrets: generated values, and the values of a site, are in Secrets only, and in no plan, result, event, error, history,
// bundle for support or other object.
func TestSecretsStayInSecrets(t *testing.T) {
	content := parts(t, map[string]string{"charts/vault.tgz": deployertest.Chart(t, "vault", map[string]string{
		"values.yaml":        "token: nobody-has-said-it\ncode: '\"0_000\"'\n",
		"values.schema.json": `{"properties": {"token": {"pattern": "^[a-zA-Z0-9-]*$"}, "pin": {"maximum": 9999}}}`,
		"templates/vault.yaml": `apiVersion: v1
kind: Secret
metadata: {name: vault}
stringData: {password: {{ randAlphaNum 20 }}, token: {{ .Values.token }}, code: {{ .Values.code }}, certificate: {{ (genSelfSignedCert "vault" nil nil 365).Key | quote }}}
---
apiVersion: v1
kind: Secret
metadata: {name: seed, annotations: {helm.sh/hook: "pre-install,pre-upgrade"}}
stringData: {seed: {{ randAlphaNum 24 }}, token: "{{ .Values.token }}-seed"}
---
apiVersion: batch/v1
kind: Job
metadata: {name: fill, annotations: {helm.sh/hook: "post-install,post-upgrade"}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: registry.solutionctl.invalid/shop-1.0.0/shop-operator:1.0.0}]}}}
`,
	})})
	content.Manifest += "  - {name: vault, chart: charts/vault.tgz, dependsOn: [{component: db}]}\n"
	o := &outputs{Bed: deployertest.New(t), values: map[string]bool{}}
	o.Activated(shop, "1.0.0", content)
	o.Imported(shop, "1.1.0", content)
	saying := func(token string) verb {
		o.values[token] = true
		return choose(t, values("vault", map[string]any{"token": token}, false))
	}

	if err := o.run(saying("has a space, and is refused")); report.CodeOf(err) != report.Invalid {
		t.Fatalf("the schema of the chart has not refused it: %v", err)
	}
	o.values["428571428571"], o.values["571428571428"] = true, true
	for _, said := range []map[string]any{{"pin": 428571428571}, {"code": 571428571428}} { // too large, and no text
		if err := o.run(choose(t, values("vault", said, false))); report.CodeOf(err) != report.Invalid {
			t.Fatalf("it is not refused: %v", err)
		}
	}
	for _, number := range []int{6, 12, 20} {
		mend := endingAt(o.Bed, number)
		if err := o.run(saying("SaidBeforeTheEnd1")); err == nil {
			t.Errorf("there is no write %d", number)
		}
		mend()
	}
	resumed, err := o.Resume(t.Context(), deployer.ResumeOptions{})
	if o.add(resumed, err); err != nil {
		t.Fatal(err)
	}
	for _, v := range []verb{
		saying("SaidLater2"), choose(t, func(p *plan.Parts) { p.Rotate = []string{"vault"} }), upgrade("1.1.0"), rollback(0),
	} {
		if err = o.run(v); err != nil {
			t.Fatal(err)
		}
	}

	// A user changes one Secret, and becomes the manager of another.
	vault := o.Server.Object("Secret", site, "vault")
	if err = unstructured.SetNestedField(vault.Object, base64.StdEncoding.EncodeToString([]byte("ChangedByAnother3")), "data", "password"); err != nil {
		t.Fatal(err)
	}
	o.Put(vault)
	diff, err := o.Diff(t.Context(), survey.Selection{})
	if o.add(diff, err); err != nil || diff.Empty() {
		t.Errorf("no difference: %v", err)
	}
	o.add(o.Survey.EnvironmentStatus(t.Context(), survey.EnvironmentOptions{Environment: site, Drift: true}))
	o.add(o.Components(t.Context(), deployer.ComponentsOptions{Environment: site, Solution: shop}))
	o.add(o.Repair(t.Context(), deployer.RepairOptions{Options: plan.Options{DryRun: true}}))
	o.add(o.Repair(t.Context(), deployer.RepairOptions{}))
	o.add(o.Records.History(t.Context(), records.HistoryOptions{}))
	o.add(o.Definitions.Compatibility(t.Context(), definitions.CompatibilityOptions{Solution: shop}))

	all := o.everything()
	if err := o.run(remove(shop)); err != nil {
		t.Fatal(err)
	}
	all += o.everything()
	if len(o.values) < 12 {
		t.Errorf("only %d values", len(o.values))
	}
	for value := range o.values {
		for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value)), strings.Trim(fmt.Sprintf("%q", value), `"`)} {
			if at := strings.Index(all, form); at >= 0 {
				t.Errorf("%q is in the output: …%s", value, all[max(0, at-300):min(len(all), at+100)])
				break
			}
		}
	}
}
