package survey_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	site = deployertest.Environment
	shop = "shop"
)

// edit changes a field of an object, as another client does; "" removes it.
func edit(b *deployertest.Bed, kind, namespace, name, value string, field ...string) {
	b.Helper()
	object := b.Server.Object(kind, namespace, name)
	if value == "" {
		unstructured.RemoveNestedField(object.Object, field...)
	} else if err := unstructured.SetNestedField(object.Object, value, field...); err != nil {
		b.Fatal(err)
	}
	b.Put(object)
}

func ask(version string) func(*deployertest.Bed) {
	return func(b *deployertest.Bed) {
		b.Server.Put(b.TB, "{apiVersion: v1, kind: ConfigMap, metadata: {name: metalk8s-environment, namespace: site}, data: {shop: "+version+"}}")
	}
}

// TestHealth: the health of a Solution in an environment, from the request for it to changes by other clients. words
// are objects, versions and commands that the reasons have to contain.
func TestHealth(t *testing.T) {
	added := func(more func(*deployertest.Bed)) func(*deployertest.Bed) {
		return func(b *deployertest.Bed) {
			b.Added(shop, "1.0.0", deployertest.Content{})
			more(b)
		}
	}
	for _, test := range []struct {
		name  string
		bed   func(*deployertest.Bed)
		want  schema.DeploymentHealth
		words []string
	}{
		{"asked for, and not imported", ask("1.0.0"), schema.HealthMissing, []string{"1.0.0"}},
		{"asked for, and not deployed", func(b *deployertest.Bed) {
			b.Activated(shop, "1.0.0", deployertest.Content{})
			ask("1.0.0")(b)
		}, schema.HealthMissing, []string{"1.0.0"}},
		{"deployed", added(func(*deployertest.Bed) {}), schema.HealthReady, nil},
		{"another version is asked for", added(ask("1.1.0")), schema.HealthDrifted, []string{"1.1.0", "1.0.0"}},
		{"none is asked for any more", added(func(b *deployertest.Bed) { b.Deleted("ConfigMap", site, metalk8s.EnvironmentConfigMap) }), schema.HealthDrifted, []string{"metalk8s-environment"}},
		{"a field was changed", added(func(b *deployertest.Bed) {
			edit(b, "ConfigMap", site, "shop-operator-config", "changed", "data", "operator.yaml")
		}), schema.HealthDrifted, []string{"ConfigMap site/shop-operator-config", "operator.yaml"}},
		{"a field was added", added(func(b *deployertest.Bed) {
			edit(b, "ConfigMap", site, "shop-operator-config", "x", "metadata", "annotations", "note")
		}), schema.HealthReady, nil},
		{"an object is gone", added(func(b *deployertest.Bed) { b.Deleted("Role", site, "shop-operator") }), schema.HealthFailed, []string{"Role site/shop-operator"}},
		{"an object is another one", added(func(b *deployertest.Bed) {
			role := b.Server.Object("Role", site, "shop-operator")
			b.Deleted("Role", site, "shop-operator")
			b.Put(role)
		}), schema.HealthDrifted, []string{"Role site/shop-operator"}},
		{"the record is lost", added(func(b *deployertest.Bed) {
			b.Deleted("Secret", cluster.SystemNamespace, record.Key{Namespace: site, Name: shop}.SecretName())
		}), schema.HealthFailed, []string{"Deployment site/shop-operator", "deploy repair site shop --records"}},
		{"it is not ready", func(b *deployertest.Bed) {
			b.Activated(shop, "1.0.0", deployertest.Content{})
			b.Server.Stall("Deployment")
			_, err := b.Add(b.Context(), deployer.AddOptions{Environment: site, Solution: shop, Options: plan.Options{NoWait: true}})
			if err != nil {
				b.Fatal(err)
			}
		}, schema.HealthProgressing, []string{"Deployment site/shop-operator"}},
		{"it was begun, and not finished", func(b *deployertest.Bed) {
			b.Activated(shop, "1.0.0", deployertest.Content{})
			b.Server.Stall("Deployment")
			_, err := b.Add(b.Context(), deployer.AddOptions{Environment: site, Solution: shop, Options: plan.Options{Timeout: 1}})
			if report.CodeOf(err) != report.Timeout {
				b.Fatal(err)
			}
		}, schema.HealthPending, []string{"add", "no process works on it since", "deploy resume"}},
		{"Salt has deployed it", func(b *deployertest.Bed) {
			ask("1.0.0")(b)
			b.Server.Put(b.TB, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop-operator, namespace: site, labels: {heritage: salt, app.kubernetes.io/managed-by: salt}}}")
		}, schema.HealthForeign, []string{"--adopt"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := deployertest.New(t)
			test.bed(b)
			b.Writes()
			for _, closely := range []bool{false, true} {
				status, err := b.Survey.Status(t.Context(), survey.StatusOptions{Drift: closely})
				if err != nil {
					t.Fatal(err)
				}
				deployertest.Valid(t, "status", status)
				if len(status.Environments) != 1 || len(status.Environments[0].Namespaces[0].Deployments) != 1 {
					t.Fatalf("%+v", status.Environments)
				}
				d := status.Environments[0].Namespaces[0].Deployments[0]
				if d.Health != test.want || status.Ready != (test.want == schema.HealthReady) {
					t.Errorf("closely %t: it is %s, want %s; ready %t: %q", closely, d.Health, test.want, status.Ready, d.Reasons)
				}
				for _, word := range test.words {
					if !strings.Contains(strings.Join(schema.Sentences(d.Reasons), "\n"), word) {
						t.Errorf("closely %t: nothing about %q in %q", closely, word, d.Reasons)
					}
				}
			}
			one, err := b.Survey.EnvironmentStatus(t.Context(), survey.EnvironmentOptions{Environment: site})
			if err != nil || one.Namespaces[0].Deployments[0].Health != test.want {
				t.Errorf("%+v, %v", one, err)
			}
			deployertest.Valid(t, "environment", one)
			if writes := b.Writes(); len(writes) > 0 {
				t.Errorf("looking wrote %q", writes)
			}
		})
	}
	_, err := deployertest.New(t).Survey.EnvironmentStatus(t.Context(), survey.EnvironmentOptions{Environment: "nowhere"})
	deployertest.Refused(t, err, report.NotFound, "nowhere")
}

// TestSolutions: imported and active versions, and contradictions with the document shared with MetalK8s.
func TestSolutions(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", deployertest.Content{})
	b.Imported(shop, "1.1.0", deployertest.Content{})
	look := func() (schema.SolutionStatus, *schema.Status) {
		t.Helper()
		s, err := b.Survey.Status(t.Context(), survey.StatusOptions{})
		if err != nil || len(s.Solutions) != 1 {
			t.Fatalf("%+v, %v", s, err)
		}
		return s.Solutions[0], s
	}
	one, all := look()
	var versions []string
	for _, v := range one.Versions {
		if v.Active {
			v.Version += " active"
		}
		versions = append(versions, v.Version)
	}
	if diff := cmp.Diff([]string{"1.0.0 active", "1.1.0"}, versions); diff != "" || one.Deployment.Health != schema.HealthReady || len(all.Problems) > 0 {
		t.Errorf("%s%+v, %q", diff, one.Deployment, all.Problems)
	}
	for _, err := range []error{
		b.Records.Documents.SetActive(t.Context(), shop, ""),
		b.Records.Documents.RemoveVersion(t.Context(), shop, "1.1.0"),
		b.Records.Documents.PutVersion(t.Context(), shop, schema.ImportedSolution{Version: "0.9.0", Archive: "/old.iso"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	one, all = look()
	if one.Active != "1.0.0" || one.Deployment.Health != schema.HealthDrifted {
		t.Errorf("%+v", one)
	}
	for _, word := range []string{"shop-1.1.0", "metalk8s-solutions", "deploy import /old.iso"} {
		if !strings.Contains(strings.Join(all.Problems, "\n"), word) {
			t.Errorf("nothing about %q in %q", word, all.Problems)
		}
	}

	b.Deleted("CustomResourceDefinition", "", "clocks.shop.example")
	if one, _ = look(); one.Deployment.Health != schema.HealthFailed {
		t.Errorf("its definition is gone: %+v", one.Deployment)
	}
}

// TestOutsideOfEnvironments: a deployment in a namespace that left its environment is reported as a problem.
func TestOutsideOfEnvironments(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", deployertest.Content{})
	edit(b, "Namespace", "", site, "", "metadata", "labels", metalk8s.EnvironmentLabel)
	status, err := b.Survey.Status(t.Context(), survey.StatusOptions{})
	if err != nil || !slices.ContainsFunc(status.Problems, func(p string) bool { return strings.Contains(p, "namespace "+site) }) {
		t.Errorf("%+v, %v", status, err)
	}
}

// TestOthers: objects that users keep in an environment are listed, those that controllers create again are not.
func TestOthers(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", deployertest.Content{})
	for _, object := range []string{
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: wiki}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: password}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: child, labels: {app.kubernetes.io/managed-by: shop-operator}}}",
		"{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: leader}}",
		"{apiVersion: v1, kind: ResourceQuota, metadata: {name: limits}}",
	} {
		b.Server.Put(t, strings.Replace(object, "metadata: {", "metadata: {namespace: site, ", 1))
	}
	others, err := b.Survey.Others(t.Context(), survey.OthersOptions{Environment: site})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, ref := range others {
		if !survey.IsSetting(ref) {
			names = append(names, ref.String())
		}
	}
	if diff := cmp.Diff([]string{"ConfigMap site/wiki", "Secret site/password"}, names); diff != "" {
		t.Errorf("others (-want +got):\n%s", diff)
	}
}

// TestDeployed: which releases can be compared with their deployed state, and which are left out with a notice.
func TestDeployed(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", deployertest.Content{})
	b.Added("base", "1.0.0", deployertest.Content{})
	for _, test := range []struct {
		selected survey.Selection
		want     []string
	}{
		{survey.Selection{}, []string{"/base", "/shop", "site/base", "site/shop"}},
		{survey.Selection{Environment: site}, []string{"site/base", "site/shop"}},
		{survey.Selection{Solution: shop}, []string{"/shop", "site/shop"}},
	} {
		states, _, notices, err := b.Survey.Deployed(t.Context(), test.selected)
		if err != nil || len(notices) > 0 {
			t.Fatalf("%q, %v", notices, err)
		}
		var keys []string
		for _, s := range states {
			keys = append(keys, s.Namespace+"/"+s.Name)
		}
		slices.Sort(keys)
		if diff := cmp.Diff(test.want, keys); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test.selected, diff)
		}
	}
	_, _, _, err := b.Survey.Deployed(t.Context(), survey.Selection{Solution: "other"})
	deployertest.Refused(t, err, report.NotFound, "other")
	_, _, _, err = b.Survey.Deployed(t.Context(), survey.Selection{Environment: "nowhere"})
	deployertest.Refused(t, err, report.NotFound, "nowhere")
}
