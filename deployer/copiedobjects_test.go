package deployer_test

import (
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/rebuild"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// copied makes an object as an administrator does who saves one of a Solution, gives it another name and creates it: with its labels.
func copied(b *deployertest.Bed, kind, name, as string) {
	b.Helper()
	object := b.Server.Object(kind, site, name)
	if object == nil {
		b.Fatalf("there is no %s %s", kind, name)
	}
	object.SetManagedFields(nil)
	object.SetUID("")
	object.SetResourceVersion("")
	object.SetName(as)
	b.Put(object)
}

// TestCopies: what has the labels of a Solution and this program did not write stays and is named, whatever happens to the Solution.
func TestCopies(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", deployertest.Content{})
	copied(b, "ConfigMap", "shop-operator-config", "my-pages")
	copied(b, "Deployment", "shop-operator", "my-canary")
	mine := []string{"ConfigMap site/my-pages", "Deployment site/my-canary"}

	status, err := b.Survey.Status(t.Context(), survey.StatusOptions{})
	if err != nil || !status.Ready {
		t.Errorf("%+v, %v", status, err)
	}
	o := environments.DeleteOptions{Environment: site, Data: plan.DeleteData}
	_, err = b.DeleteEnvironment(t.Context(), o)
	deployertest.Refused(t, err, report.InUse, append(mine, "--delete-others")...)

	done, err := b.Remove(t.Context(), deployer.RemoveOptions{Environment: site, Solution: shop})
	if err != nil {
		t.Fatalf("%v\n%q", err, report.Hints(err))
	}
	said := strings.Join(done.Notices, "\n")
	for _, word := range append(mine, "kubectl label -n site configmap/my-pages deployment.apps/my-canary solutionctl.io/release-") {
		if !strings.Contains(said, word) {
			t.Errorf("nothing about %q in %q", word, said)
		}
	}
	if b.Server.Object("Deployment", site, "my-canary") == nil || b.Server.Object("Deployment", site, "shop-operator") != nil {
		t.Error("the copy went, or the Solution stayed")
	}

	again, err := b.Connect().RebuildRecords(t.Context(), rebuild.Options{Selection: survey.Selection{Environment: site, Solution: shop}})
	if err != nil || !again.Empty() {
		t.Errorf("a copy is taken for a Solution without a record: %+v, %v", again, err)
	}
	_, err = b.DeleteEnvironment(t.Context(), environments.DeleteOptions{Environment: site})
	deployertest.Refused(t, err, report.InUse, mine...)
	others, err := b.Survey.Others(t.Context(), survey.OthersOptions{Environment: site})
	if err != nil || len(others) != 2 {
		t.Fatalf("%v, %v", others, err)
	}
	if _, err = b.DeleteEnvironment(t.Context(), environments.DeleteOptions{Environment: site, Others: others}); err != nil {
		t.Error(err)
	}
}

// TestUnrecorded: what this program wrote and is on no record although its Solution is, is refused with hints that end it.
func TestUnrecorded(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", deployertest.Content{})
	left := b.Server.Object("Deployment", site, "shop-operator")
	left.SetName("left")
	left.SetUID("")
	left.SetResourceVersion("")
	left, err := b.Cluster.Create(t.Context(), left, cluster.WriteOptions{}) // as a run does whose record was lost to an older one
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Remove(t.Context(), deployer.RemoveOptions{Environment: site, Solution: shop})
	deployertest.Refused(t, err, report.Conflict, "Deployment site/left", "deploy remove site shop --adopt", "kubectl label -n site deployment.apps/left solutionctl.io/release-")
	if hints := strings.Join(report.Hints(err), "\n"); strings.Contains(hints, "--records") {
		t.Errorf("what does nothing here is recommended: %s", hints)
	}
	status, err := b.Survey.Status(t.Context(), survey.StatusOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if reasons := strings.Join(schema.Sentences(status.Environments[0].Namespaces[0].Deployments[0].Reasons), "\n"); strings.Contains(reasons, "--records") || !strings.Contains(reasons, "kubectl label") {
		t.Errorf("the reasons are %s", reasons)
	}
	labels := left.GetLabels()
	delete(labels, "solutionctl.io/release")
	left.SetLabels(labels)
	b.Put(left)
	if _, err = b.Remove(t.Context(), deployer.RemoveOptions{Environment: site, Solution: shop}); err != nil {
		t.Error(err)
	}
}
