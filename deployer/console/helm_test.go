package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
)

// byHelm makes a ConfigMap as Helm has deployed it, and the Secret in which Helm keeps that.
func byHelm(bed *deployertest.Bed, component string) {
	bed.Helper()
	site := deployertest.Environment
	object := fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": %q}, "data": {"size": "3"}}`, component)
	bed.CreatedByHelm(component, object)
	text, err := json.Marshal(map[string]any{
		"name": component, "namespace": site, "version": 1, "info": map[string]any{"status": "deployed"}, "config": map[string]any{"size": 3},
		"chart": map[string]any{"metadata": map[string]any{"name": component, "version": "0.9.0"}}, "manifest": "---\n" + object,
	})
	if err != nil {
		bed.Fatal(err)
	}
	bed.HelmRelease(component, 1, "deployed", text)
}

// TestAdoptedFromHelm: a plan that is refused because Helm owns the objects of a component offers to adopt them, and
// does.
func TestAdoptedFromHelm(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", deployertest.Content{Manifest: "components: [{name: db, chart: charts/db.tgz}]\n", Files: map[string]string{
		"charts/db.tgz": deployertest.Chart(t, "db", map[string]string{
			"values.yaml":       "size: 1\n",
			"templates/db.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {size: {{ .Values.size | quote }}}\n",
		}),
	}})
	byHelm(bed, "db")
	c := startOn(t, bed.Server, nil).in(t)
	site := deployertest.Environment
	path, release := "/environments/"+site+"/plan/add?solution=shop", "db="+site+"/db"
	if a := c.post(path, "plan", c.get(path).Header.Get("Solutionctl-Plan"), "adopt", "true"); a.StatusCode == http.StatusSeeOther {
		t.Errorf("something else was accepted: %d", a.StatusCode)
	}
	for _, wrong := range []string{"db=NAMESPACE/RELEASE", "db=" + site + "/%3Cscript%3E", "=x", "db=/"} {
		if a := c.get(path + "&adopt-helm=" + wrong); a.StatusCode >= http.StatusInternalServerError || strings.Contains(a.body, "<script>") {
			t.Errorf("%s: %d\n%s", wrong, a.StatusCode, a.body)
		}
	}
	c.accepts(bed, path, "adopt-helm", release, "Adopt a release of Helm", "there is no way back to it", "adopts release "+site+"/db of Helm, revision 1")
	object := bed.Server.Object("ConfigMap", site, "db")
	if data, _ := object.Object["data"].(map[string]any); data["size"] != "3" || object.GetAnnotations()["meta.helm.sh/release-name"] != "" {
		t.Errorf("it is %v", object.Object)
	}
	if names := bed.Server.Names("Secret"); slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "sh.helm.release") }) {
		t.Errorf("Helm still knows it: %q", names)
	}
}
