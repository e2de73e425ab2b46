package console_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
)

// testStorage plans Solutions with volume claims in a cluster that gets its StorageClasses one after the other: the command line and the browser
// show the same verdict.
func (w *world) testStorage(b *browser) {
	t := b.T
	const environment = "stored"
	if _, err := w.CreateEnvironment(t.Context(), metalk8s.CreateOptions{Name: environment}); err != nil {
		t.Fatal(err)
	}
	for solution, class := range map[string]string{"unclassed": "", "classed": "storageClassName: fast,"} {
		w.importedWith(t, deployertest.Content{
			Files: map[string]string{"components/db.yaml": "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, " +
				"spec: {" + class + " accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}\n"},
			Manifest: "components: [{name: db, manifests: components/db.yaml}]\n",
		}, solution, "1.0.0")
		if _, err := w.Activate(t.Context(), deployer.ActivateOptions{Solution: solution, Version: "1.0.0"}); err != nil {
			t.Fatal(err)
		}
	}
	const class = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nprovisioner: example.com/none\nmetadata:\n  name: fast\n"
	t.Cleanup(func() {
		_ = w.Client().StorageV1().StorageClasses().Delete(context.WithoutCancel(t.Context()), "fast", metav1.DeleteOptions{}) // the cluster ends soon
	})
	const waits, fits = "PersistentVolumeClaim stored/data waits for a volume: ", ", and no free volume fits"
	for _, test := range []struct {
		name, class string // which is applied first
		solution    string
		verdict     string
		hint        string // "" where storage is there
	}{
		{"no class", "", "unclassed", waits + "no StorageClass is the default one" + fits, "make one the default: kubectl annotate storageclass NAME"},
		{"no such class", "", "classed", waits + "there is no StorageClass fast" + fits, "create the class, or give the Solution the name of another one"},
		{"a class that is not the default one", class, "unclassed", waits + "no StorageClass is the default one" + fits, "make one the default: kubectl annotate storageclass NAME"},
		{"the named class", "", "classed", "storage for 1 volume claim", ""},
		{"a default class", class + "  annotations: {storageclass.kubernetes.io/is-default-class: \"true\"}\n", "unclassed", "storage for 1 volume claim", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			here := &browser{T: t, ctx: b.ctx}
			t.Cleanup(here.keep)
			if test.class != "" {
				w.apply(t, test.class)
			}
			mark := "checks passed: "
			if test.hint != "" {
				mark = "check FAILED: "
			}
			text := w.command(t, "plan", "add", environment, test.solution)
			if at := strings.Index(text, mark); at < 0 || !strings.Contains(text[at:], test.verdict) || !strings.Contains(text, test.hint) {
				t.Errorf("on the command line:\n%s", text)
			}
			here.goes(w.origin + "/environments/" + environment + "/plan/add?solution=" + test.solution)
			here.find("heading", "Add "+test.solution+" 1.0.0 to environment "+environment)
			shown := answerOf[string](here, `[...document.querySelectorAll("[aria-labelledby=preflight] li")].map(e => e.innerText).join("\n")`)
			if !strings.Contains(strings.ToLower(shown), strings.ToLower(test.verdict)) || !strings.Contains(shown, test.hint) {
				t.Errorf("in the browser:\n%s", shown)
			}
		})
	}
}
