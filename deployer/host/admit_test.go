package host

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// limit makes the trust store one with a policy that lets acme sign demo, and demo have some powers.
func (w *world) limit(maximum string) {
	w.t.Helper()
	for _, dir := range []string{"trust", "trust/keys"} {
		if err := os.Mkdir(w.path(dir), 0o700); err != nil {
			w.t.Fatal(err)
		}
	}
	w.write(w.path("trust/keys/acme.pub"), w.acme.Public().PEM())
	w.write(w.path("trust/policy.yaml"), []byte("apiVersion: solutionctl.io/v1alpha1\nkind: VerificationPolicy\ndefault: reject\nallowOverride: true\n"+
		"rules:\n- solutions: [demo]\n  signers: [{key: acme}]\n  maximum: "+maximum+"\n"))
	w.options.Trusted = func() (*trust.Store, error) { return trust.Load([]string{w.path("trust")}, &trust.State{}) }
}

// widgetIn returns the file of an archive with a CRD of a group, and its content.
func widgetIn(group string) []string {
	return []string{"operator/deploy/crds/widget_crd.yaml", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets." + group +
		"}, spec: {group: " + group + ", scope: Namespaced, names: {kind: Widget, plural: widgets}, " +
		"versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}\n"}
}

// TestImportJudgesPowers: an archive with a CRD of the API server's own groups, which no build produces, is refused
// even when signed. So is one with more powers than the policy grants its Solution. Nothing of either is stored or
// recorded.
func TestImportJudgesPowers(t *testing.T) {
	const never, exceeding = "the archive has powers that no approval allows", "the archive can do more than rules[0].maximum of the policy lets Solution demo do"
	for _, test := range []struct {
		name, group, maximum string
		unsigned             bool
		want                 []string // in the refusal; nil: it is imported
	}{
		{"a group of the API server", "rbac.authorization.k8s.io", "", false, []string{never, "rbac.authorization.k8s.io"}},
		{"without verification", "apps", "", true, []string{never, "apps"}},
		{"whatever the maximum is", "apps", "[defines-foreign-apis]", false, []string{never}},
		{"a group of others", "gateway.networking.k8s.io", "[]", false, []string{exceeding, "gateway.networking.k8s.io"}},
		{"more than another power", "gateway.networking.k8s.io", "[takes-traffic]", false, []string{exceeding}},
		{"more, without verification", "gateway.networking.k8s.io", "[]", true, []string{exceeding}},
		{"as much as the maximum", "gateway.networking.k8s.io", "[defines-foreign-apis]", false, nil},
		{"no maximum", "gateway.networking.k8s.io", "", false, nil},
		{"its own group", "demo.example.com", "[]", false, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			if test.maximum != "" {
				w.limit(test.maximum)
			}
			w.options.SkipVerify = test.unsigned
			_, err := w.do(w.archive("1.0.0", widgetIn(test.group)...))
			if test.want == nil {
				if err != nil || len(w.stored()) != 1 {
					t.Fatalf("stored %v, %v", w.stored(), err)
				}
				return
			}
			checkCode(t, err, report.Refused)
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not say %q", err, want)
				}
			}
			if len(w.stored())+len(w.cluster.imports) > 0 {
				t.Errorf("stored %v, recorded %v", w.stored(), w.cluster.imports)
			}
		})
	}
}

// TestMaximumNeedsJudgedCharts: the powers of a chart that fails without a cluster are unknown, so no maximum can limit them. Where
// there is no maximum the archive is imported.
func TestMaximumNeedsJudgedCharts(t *testing.T) {
	var chart bytes.Buffer
	z := gzip.NewWriter(&chart)
	files := tar.NewWriter(z)
	for _, file := range [][2]string{
		{"web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"},
		{"web/templates/web.yaml", `{{ if not (lookup "v1" "Namespace" "" "kube-system") }}{{ fail "no cluster" }}{{ end }}`},
	} {
		if err := files.WriteHeader(&tar.Header{Name: file[0], Size: int64(len(file[1])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write([]byte(file[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(files.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	const manifest = "apiVersion: solutions.metalk8s.scality.com/v1alpha1\nkind: Solution\nmetadata: {name: demo}\n" +
		"spec: {version: 1.0.0, components: [{name: web, chart: charts/web.tgz}]}\n"
	for _, maximum := range []string{"", "[]", "[cluster]"} {
		w := newWorld(t)
		if maximum != "" {
			w.limit(maximum)
		}
		_, err := w.do(w.archive("1.0.0", "manifest.yaml", manifest, "charts/web.tgz", chart.String()))
		if maximum == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		checkCode(t, err, report.Refused)
		if !strings.Contains(err.Error(), "component web: ") || !strings.Contains(err.Error(), "no cluster") || len(w.stored()) > 0 {
			t.Errorf("maximum %s: %v, stored %v", maximum, err, w.stored())
		}
	}
}
