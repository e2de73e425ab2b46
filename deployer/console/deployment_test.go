package console_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/console"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/schema/report"
)

func inCluster() console.ServeOptions {
	return console.ServeOptions{Options: console.Options{Tokens: true, Origin: "https://console.example"}}
}

// TestDeployment: the objects have the same shape for any arguments, and grant no user a permission.
func TestDeployment(t *testing.T) {
	const image = "registry.example/it's:1\n---\n{}"
	arguments := []string{"--origin=https://console.example", `--oidc-issuer="}]` + "\n---\n", "{{.Image}}", "yes"}
	d, err := inCluster().Deployment(arguments, console.ProviderFiles{Secret: "$(secret)"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := d.YAML(image)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for document := range strings.SplitSeq(text, "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		kinds = append(kinds, kind.Kind)
		if kind.Kind != "Deployment" {
			continue
		}
		var got appsv1.Deployment
		if err := yaml.UnmarshalStrict([]byte(document), &got); err != nil {
			t.Fatal(err)
		}
		container := got.Spec.Template.Spec.Containers[0]
		last := container.Command[len(container.Command)-len(arguments):]
		if diff := cmp.Diff(arguments, last); diff != "" || container.Image != image {
			t.Errorf("image %q, arguments %s", container.Image, diff)
		}
	}
	if diff := cmp.Diff([]string{"Namespace", "ServiceAccount", "ConfigMap", "Deployment", "PodDisruptionBudget", "Service"}, kinds); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(text, `--from-file 'client-secret=$(secret)'`) {
		t.Errorf("a shell would run what is in the name of a file:\n%s", text)
	}
}

func TestDeploymentRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*console.ServeOptions, *console.ProviderFiles)
		words  string
	}{
		"a link":         {func(o *console.ServeOptions, _ *console.ProviderFiles) { o.Links, o.Tokens = true, false }, "a service has none"},
		"no origin":      {func(o *console.ServeOptions, _ *console.ProviderFiles) { o.Origin = "" }, "the address that browsers use"},
		"half of a pair": {func(o *console.ServeOptions, _ *console.ProviderFiles) { o.Certificate = "tls.crt" }, "go together"},
		"two lines":      {func(_ *console.ServeOptions, p *console.ProviderFiles) { p.CA = "ca\nkind: Role" }, "control character"},
	} {
		t.Run(name, func(t *testing.T) {
			o, p := inCluster(), console.ProviderFiles{}
			test.change(&o, &p)
			_, err := o.Deployment(nil, p)
			deployertest.Refused(t, err, report.Usage, test.words)
		})
	}
}
