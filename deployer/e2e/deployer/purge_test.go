package deployer_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema/report"
)

var leases = kube.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}

// TestPurge: nothing of this tool is left in a cluster of which everything was removed, and everything of others is.
func TestPurge(t *testing.T) {
	b := newBedOn(t, testcluster.StartFor(t, testcluster.Options{}))
	b.create("apiVersion: v1\nkind: Namespace\nmetadata: {name: other-system}\n")
	role := map[string]string{"operator/cluster/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"}
	b.activated("1.0.0", content{Files: role})
	b.mustAdd("1.0.0")
	own := b.Solution + "-system"
	b.get(namespaces, "", own)
	purge := func(dryRun bool) (string, error) {
		done, err := b.Purge(t.Context(), deployer.PurgeOptions{Options: deployer.Options{DryRun: dryRun}})
		if err != nil {
			return "", err
		}
		valid(t, "operation", done)
		return fmt.Sprintf("%t %q %q", done.Empty(), b.lines(done), done.Notices), nil
	}
	refused := func(words ...string) {
		t.Helper()
		for _, dryRun := range []bool{true, false} {
			_, err := purge(dryRun)
			b.refused(err, report.InUse, words...)
		}
	}
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	refused("environment "+b.Env, b.Solution+"-1.0.0 is imported", b.Solution+" 1.0.0 is active", "is deployed in namespace "+b.Env)
	must(b.Remove(t.Context(), deployer.RemoveOptions{Environment: b.Env, Solution: b.Solution}))
	must(b.DeleteEnvironment(t.Context(), deployer.DeleteEnvironmentOptions{Environment: b.Env}))
	must(b.Deactivate(t.Context(), deployer.DeactivateOptions{Solution: b.Solution, Data: deployer.KeepData}))
	refused("is imported", b.crdName()+" was kept")
	must(b.Activate(t.Context(), deployer.ActivateOptions{Solution: b.Solution, Version: "1.0.0"}))
	must(b.Deactivate(t.Context(), deployer.DeactivateOptions{Solution: b.Solution}))
	must(nil, b.RecordUnimport(t.Context(), deployer.UnimportOptions{ID: b.Solution + "-1.0.0"}))
	lock, err := b.Cluster.Lock(t.Context(), "env-elsewhere", cluster.LockOptions{Identity: "mallory@there"})
	must(nil, err)
	if _, err = purge(true); report.CodeOf(err) != report.InUse || !strings.Contains(err.Error(), "mallory@there") {
		t.Errorf("the plan while somebody is at work: %v", err)
	}
	if _, err = purge(false); report.CodeOf(err) != report.Locked || !strings.Contains(err.Error(), "mallory@there") {
		t.Errorf("while somebody is at work: %v", err)
	}
	must(nil, lock.Release(t.Context()))
	foreign := b.create("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine, namespace: " + own + "}\n")

	text, err := purge(true)
	must(nil, err)
	for _, word := range []string{cluster.SystemNamespace, "state." + b.Solution, "imports", "registry", "stays", "mine"} {
		if !strings.Contains(text, word) {
			t.Errorf("nothing about %s in %s", word, text)
		}
	}
	b.get(secrets, cluster.SystemNamespace, "imports")
	must(nil, b.Cluster.Delete(t.Context(), foreign, cluster.DeleteOptions{}))

	// It ends at any of its deletions, and the next run goes on.
	for runs := 1; ; runs++ {
		err = b.purgeOne()
		if err == nil {
			t.Logf("%d runs", runs)
			break
		}
		if runs > 40 {
			t.Fatal(err)
		}
	}
	for _, name := range []string{own, cluster.SystemNamespace} {
		if b.find(namespaces, "", name) != nil {
			t.Errorf("namespace %s is there", name)
		}
	}
	b.get(namespaces, "", "other-system")
	b.get(namespaces, "", metalk8s.SolutionsNamespace)
	if text, err = purge(false); err != nil || !strings.HasPrefix(text, "true") {
		t.Errorf("again: %s, %v", text, err)
	}
	if b.find(namespaces, "", cluster.SystemNamespace) != nil {
		t.Error("a purge that had nothing to do made the namespace")
	}
	// Everything works as in a new cluster.
	b.environment(b.Env, b.Env)
	b.activated("1.0.0", content{Files: role})
	b.mustAdd("1.0.0")
}

// TestPurgeKeepsWhatIsOfOthers: our own namespace stays with what somebody else has put there, and nothing else of it.
func TestPurgeKeepsWhatIsOfOthers(t *testing.T) {
	b := newBedOn(t, testcluster.StartFor(t, testcluster.Options{}))
	b.imported("1.0.0", content{})
	if _, err := b.DeleteEnvironment(t.Context(), deployer.DeleteEnvironmentOptions{Environment: b.Env}); err != nil {
		t.Fatal(err)
	}
	if err := b.RecordUnimport(t.Context(), deployer.UnimportOptions{ID: b.Solution + "-1.0.0"}); err != nil {
		t.Fatal(err)
	}
	b.create("apiVersion: v1\nkind: Secret\nmetadata: {name: theirs, namespace: " + cluster.SystemNamespace + "}\n")
	b.create("apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: theirs, namespace: " + cluster.SystemNamespace + "}\n")
	done, err := b.Purge(t.Context(), deployer.PurgeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(done.Notices, func(n string) bool { return strings.Contains(n, "theirs") }) {
		t.Errorf("%q", done.Notices)
	}
	b.get(secrets, cluster.SystemNamespace, "theirs")
	b.get(leases, cluster.SystemNamespace, "theirs")
	if b.find(secrets, cluster.SystemNamespace, "imports") != nil || b.find(configMaps, cluster.SystemNamespace, "registry") != nil ||
		b.find(leases, cluster.SystemNamespace, "cluster") != nil {
		t.Error("something of ours is left")
	}
	if again, err := b.Purge(t.Context(), deployer.PurgeOptions{}); err != nil || !again.Empty() {
		t.Errorf("%+v, %v", again, err)
	}
}

// purgeOne runs a purge that is interrupted when it is about to delete a second object.
func (b *bed) purgeOne() error {
	b.Helper()
	ctx, interrupt := context.WithCancel(b.Context())
	defer interrupt()
	var deletions atomic.Int64
	d := b.through(func(r *http.Request) {
		if r.Method == http.MethodDelete && deletions.Add(1) > 1 {
			interrupt()
			<-ctx.Done()
			panic(http.ErrAbortHandler)
		}
	})
	_, err := d.Purge(ctx, deployer.PurgeOptions{})
	return err
}
