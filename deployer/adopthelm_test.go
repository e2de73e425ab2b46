package deployer_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/helm"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// charted is a Solution of one chart that draws a password its pods depend on, and has hooks.
func charted(t *testing.T, more string) deployertest.Content {
	t.Helper()
	job := func(name, events string) string {
		return "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: " + name + `, annotations: {"helm.sh/hook": "` + events + `"}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: registry.solutionctl.invalid/base-1.0.0/a:1}]}}}
`
	}
	return deployertest.Content{Manifest: "components: [{name: db, chart: charts/db.tgz}]\n", Files: map[string]string{
		"charts/db.tgz": deployertest.Chart(t, "db", map[string]string{
			"values.yaml": "size: 1\nimage: registry.solutionctl.invalid/base-1.0.0/db:1\n",
			"templates/db.yaml": `{{- $password := randAlphaNum 20 -}}
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-password}
stringData: {password: {{ $password }}, url: "db://admin:{{ $password }}@{{ .Release.Name }}"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}, labels: {app.kubernetes.io/managed-by: {{ .Release.Service }}}}
data: {size: {{ .Values.size | quote }}, upgrade: {{ .Release.IsUpgrade | quote }}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}, annotations: {checksum: {{ sha256sum $password }}}}
    spec: {containers: [{name: db, image: {{ .Values.image }}}]}
---
apiVersion: v1
kind: Secret
metadata: {name: token, annotations: {"helm.sh/hook": pre-install}}
stringData: {token: {{ randAlphaNum 24 }}}
` + job("init", "pre-install") + job("migrate", "pre-upgrade") + more,
		}),
	}}
}

const (
	password = "FromHelmFromHelm1234"
	token    = "HookOfHelmHookOfHelm5678"
)

// helmed are the objects that a Helm release of the chart would have made, and those in more.
func helmed(more ...string) []string {
	sum := sha256.Sum256([]byte(password))
	return append([]string{
		`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db-password"}, "data": {"password": "` + base64.StdEncoding.EncodeToString([]byte(password)) +
			`", "url": "` + base64.StdEncoding.EncodeToString([]byte("db://admin:"+password+"@db")) + `"}}`,
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "db", "labels": {"app.kubernetes.io/managed-by": "Helm"}}, "data": {"size": "3", "upgrade": "false", "old": "x"}}`,
		fmt.Sprintf(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "db"}, "spec": {"selector": {"matchLabels": {"app": "db"}}, "template": {
			"metadata": {"labels": {"app": "db"}, "annotations": {"checksum": "%x"}}, "spec": {"containers": [{"name": "db", "image": "registry.solutionctl.invalid/base-1.0.0/db:1"}]}}}}`, sum),
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "old"}}`,
	}, more...)
}

// release writes what Helm knows of a release, with these objects in its manifest.
func release(b *deployertest.Bed, number int, status string, values map[string]any, objects ...string) {
	b.Helper()
	data, err := json.Marshal(map[string]any{
		"name": "db", "namespace": site, "version": number, "info": map[string]any{"status": status}, "config": values,
		"chart":    map[string]any{"metadata": map[string]any{"name": "db", "version": "0.9.0"}},
		"manifest": "---\n" + strings.Join(objects, "\n---\n"),
		"hooks":    []any{map[string]any{"path": "db/templates/db.yaml", "manifest": `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}}`}},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.HelmRelease("db", number, status, data)
}

// installed is a cluster in which Helm has deployed the chart, and the Solution was only activated.
func installed(t *testing.T, more string) *deployertest.Bed {
	t.Helper()
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", charted(t, more))
	for _, object := range helmed() {
		b.CreatedByHelm("db", object)
	}
	b.CreatedByHelm("db", `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "data": {"token": "`+base64.StdEncoding.EncodeToString([]byte(token))+`"}}`)
	release(b, 1, "superseded", nil)
	release(b, 2, "deployed", map[string]any{"size": 3}, helmed()...)
	return b
}

// adopting adds the Solution and adopts the Helm release of its component.
func adopting(change func(*plan.Parts)) verb {
	parts := plan.Parts{Helm: map[string]plan.HelmRelease{"db": {}}}
	if change != nil {
		change(&parts)
	}
	return func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
		return d.Add(ctx, deployer.AddOptions{Options: o, Environment: site, Solution: shop, Version: "1.0.0", Rendering: plan.Rendering{Parts: parts}})
	}
}

// texts are the data of an object that is there.
func texts(b *deployertest.Bed, kind, name string) map[string]string {
	object := b.Server.Object(kind, site, name)
	if object == nil {
		return nil
	}
	data, _, _ := unstructured.NestedStringMap(object.Object, "data")
	if kind == "Secret" {
		for key, value := range data {
			plain, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				b.Error(err)
			}
			data[key] = string(plain)
		}
	}
	return data
}

// adopted returns everything that a test compares after an adoption.
func adopted(b *deployertest.Bed) map[string]any {
	b.Helper()
	secrets := slices.DeleteFunc(b.Server.Names("Secret"), func(name string) bool { return !strings.HasPrefix(name, site+"/") })
	state, err := b.Records.Engine.State(b.Context(), record.Key{Namespace: site, Name: shop, Component: "db"})
	if err != nil {
		b.Fatal(err)
	}
	var known []string
	if state.Current != nil {
		for _, object := range state.Current.Objects {
			known = append(known, object.String())
		}
	}
	slices.Sort(known)
	managers := map[string]bool{}
	for _, kind := range []string{"ConfigMap", "Secret", "Deployment"} {
		for _, name := range b.Server.Names(kind) {
			if short, here := strings.CutPrefix(name, site+"/"); here && short != "old" {
				for _, entry := range b.Server.Object(kind, site, short).GetManagedFields() {
					managers[entry.Manager] = true
				}
			}
		}
	}
	return map[string]any{
		"password": texts(b, "Secret", "db-password"), "settings": texts(b, "ConfigMap", "db"), "secrets": secrets, "jobs": b.Server.Names("Job"),
		"generation": b.Server.Object("Deployment", site, "db").GetGeneration(), "annotations": b.Server.Object("Deployment", site, "db").GetAnnotations()["meta.helm.sh/release-name"],
		"known": known, "pending": state.Pending != nil, "helm": managers[helm.FieldManager],
	}
}

var wantAdopted = map[string]any{
	"password": map[string]string{"password": password, "url": "db://admin:" + password + "@db"}, "settings": map[string]string{"size": "3", "upgrade": "true"},
	"secrets": []string{"site/db-password", "site/token"}, "jobs": []string{"site/migrate"}, "generation": int64(1), "annotations": "",
	"known":   []string{"ConfigMap site/db", "Deployment site/db", "Job site/migrate", "Secret site/db-password", "Secret site/token"},
	"pending": false, "helm": false,
}

// TestAdoptHelm: what Helm has deployed becomes a component, with its values and passwords, and without a pod that starts again.
func TestAdoptHelm(t *testing.T) {
	b := installed(t, "")
	b.Imported(shop, "1.1.0", charted(t, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: more}}\n"))
	_, err := add("1.0.0")(t.Context(), b.Deployer, plan.Options{})
	deployertest.Refused(t, err, report.Conflict, "exists", "--adopt-helm db=site/db")
	b.Writes()
	planned, err := adopting(nil)(t.Context(), b.Deployer, plan.Options{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if writes := b.Writes(); len(writes) > 0 {
		t.Errorf("a plan wrote %q", writes)
	}
	var shown []string
	for _, c := range changes(planned) {
		if strings.Contains(c, "db") || strings.Contains(c, "migrate") || strings.Contains(c, "init") || strings.Contains(c, "token") {
			shown = append(shown, c)
		}
	}
	if diff := cmp.Diff([]string{
		"adopt ConfigMap site/db", "adopt Deployment site/db", "adopt Secret site/db-password", "create Job site/migrate",
		"delete Secret site/sh.helm.release.v1.db.v1", "delete Secret site/sh.helm.release.v1.db.v2",
	}, sortedTexts(shown)); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
	notices := strings.Join(planned.Notices, "\n")
	for _, words := range []string{"adopts release site/db of Helm, revision 2, chart db-0.9.0", "is an upgrade to its hooks, which run again: Job migrate", "stays where it is: ConfigMap site/old"} {
		if !strings.Contains(notices, words) {
			t.Errorf("nothing about %q in:\n%s", words, notices)
		}
	}
	if strings.Contains(fmt.Sprintf("%+v", planned), password) {
		t.Error("the plan has the password")
	}

	if _, err = adopting(nil)(t.Context(), b.Deployer, plan.Options{Expect: planned.Digest}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantAdopted, adopted(b)); diff != "" {
		t.Errorf("taken over (-want +got):\n%s", diff)
	}
	b.Writes()
	for name, again := range map[string]verb{"the same": adopting(nil), "without a word about Helm": add("1.0.0")} {
		if done := must(b, again); !done.Empty() {
			t.Errorf("%s again changes %v", name, changes(done))
		}
	}
	for _, write := range b.Writes() {
		if !isLock(write) {
			t.Errorf("again it wrote %s", write)
		}
	}
	must(b, upgrade("1.1.0"))
	if texts(b, "Secret", "db-password")["password"] != password || texts(b, "ConfigMap", "db")["size"] != "3" || b.Server.Object("ConfigMap", site, "more") == nil {
		t.Error("an upgrade changes what was taken over")
	}
	if _, err = b.Remove(t.Context(), deployer.RemoveOptions{Environment: site, Solution: shop, Data: plan.KeepData}); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string][]string{"Deployment": nil, "Secret": nil, "Job": nil} {
		left := slices.DeleteFunc(b.Server.Names(kind), func(name string) bool { return !strings.HasPrefix(name, site+"/") })
		if diff := cmp.Diff(want, left); len(left) > 0 {
			t.Errorf("%s left (-want +got):\n%s", kind, diff)
		}
	}
	if b.Server.Object("ConfigMap", site, "old") == nil {
		t.Error("what was not taken over is gone")
	}
}

func sortedTexts(list []string) []string { return slices.Sorted(slices.Values(list)) }

// manyWrites is more than any adoption needs: an error after that many writes never goes away.
const manyWrites = 200

// TestAdoptingInterrupted checks that an adoption interrupted at any of its writes is finished by the same command, and by a resume alone.
func TestAdoptingInterrupted(t *testing.T) {
	finish := map[string]func(b *deployertest.Bed) error{
		"by the same command": func(b *deployertest.Bed) error {
			_, err := adopting(nil)(b.Context(), b.Connect(), plan.Options{})
			return err
		},
		"by another user": func(b *deployertest.Bed) error {
			_, err := b.Connect().Resume(b.Context(), deployer.ResumeOptions{})
			return err
		},
	}
	for name, finish := range finish {
		t.Run(name, func(t *testing.T) {
			for number := 1; ; number += stride(4) {
				b := installed(t, "")
				mend := endingAt(b, number)
				_, err := adopting(nil)(t.Context(), b.Deployer, plan.Options{})
				mend()
				if err == nil {
					if number < 15 {
						t.Errorf("there are only %d writes", number-1)
					}
					return
				}
				if number > manyWrites {
					t.Fatalf("it has no end: %v", err)
				}
				if name == "by another user" && !anyBegun(b) && !isBegun(b) {
					continue // the values of Helm are gone, so no other run can know them
				}
				if err = finish(b); err != nil {
					t.Fatalf("after write %d: %v\n%q", number, err, report.Hints(err))
				}
				if diff := cmp.Diff(wantAdopted, adopted(b)); diff != "" {
					t.Fatalf("after write %d (-want +got):\n%s", number, diff)
				}
			}
		})
	}
}

// TestAdoptingWithARestart checks that an accepted restart is on record, and that the next run need not accept it again.
func TestAdoptingWithARestart(t *testing.T) {
	restarting := adopting(func(p *plan.Parts) {
		p.Restart, p.Values = true, map[string]plan.SiteValues{"db": {Values: map[string]any{"image": "registry.solutionctl.invalid/base-1.0.0/db:2"}}}
	})
	for number := 1; ; number += stride(4) {
		b := installed(t, "")
		mend := endingAt(b, number)
		_, err := restarting(t.Context(), b.Deployer, plan.Options{})
		mend()
		if number > manyWrites {
			t.Fatalf("it has no end: %v", err)
		}
		if err != nil && !anyBegun(b) {
			continue
		}
		if err != nil {
			if _, err = b.Connect().Resume(t.Context(), deployer.ResumeOptions{}); err != nil {
				t.Fatalf("after write %d: %v", number, err)
			}
			continue
		}
		containers, _, _ := unstructured.NestedSlice(b.Server.Object("Deployment", site, "db").Object, "spec", "template", "spec", "containers")
		if text := fmt.Sprint(containers); number < 10 || !strings.Contains(text, "registry.solutionctl.invalid/base-1.0.0/db:2") || texts(b, "Secret", "db-password")["password"] != password {
			t.Errorf("after %d writes: %s", number, text)
		}
		return
	}
}

// TestAdoptingWhatHelmDidNotWrite: an object of the release that another program has written, as after a restore, is not adopted with it.
// The hint names the option that adopts it, not the one that was given.
func TestAdoptingWhatHelmDidNotWrite(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", charted(t, ""))
	restored := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "db", "annotations": {"meta.helm.sh/release-name": "db", "meta.helm.sh/release-namespace": "` + site + `"}},` +
		` "data": {"size": "3"}}`
	b.Created("restore", restored)
	release(b, 1, "deployed", map[string]any{"size": 3}, restored)
	_, err := add("1.0.0")(t.Context(), b.Deployer, plan.Options{})
	deployertest.Refused(t, err, report.Conflict, "exists", "--adopt-helm db=site/db")
	_, err = adopting(func(p *plan.Parts) { p.Rotate = []string{"db"} })(t.Context(), b.Deployer, plan.Options{})
	deployertest.Refused(t, err, report.Conflict, "exists", "adopt such objects with --adopt, or delete them first")
	if strings.Contains(strings.Join(report.Hints(err), ""), "--adopt-helm") {
		t.Errorf("the hint repeats the option that was given: %q", report.Hints(err))
	}
}

// TestAdoptingInNamespaces: Helm's release is that of one namespace of the environment, and the other ones get a component of their own.
func TestAdoptingInNamespaces(t *testing.T) {
	b := installed(t, "")
	b.Namespace(site, "second")
	_, err := adopting(nil)(t.Context(), b.Deployer, plan.Options{})
	deployertest.Refused(t, err, report.NotFound, "no release db in namespace second", "--adopt-helm db=NAMESPACE/RELEASE")
	must(b, adopting(func(p *plan.Parts) { p.Helm["db"] = plan.HelmRelease{Namespace: site, Name: "db"} }))
	if diff := cmp.Diff(password, texts(b, "Secret", "db-password")["password"]); diff != "" {
		t.Error(diff)
	}
	other := b.Server.Object("Secret", "second", "db-password")
	if drawn, _, _ := unstructured.NestedString(other.Object, "data", "password"); drawn == "" || drawn == base64.StdEncoding.EncodeToString([]byte(password)) {
		t.Errorf("the password of the other namespace is %q", drawn)
	}
}

// TestHelmsClaims checks that the object of a hook stays with its new owner, and that changes of a failed revision count as unknown.
func TestHelmsClaims(t *testing.T) {
	b := installed(t, "")
	b.Deleted("Secret", site, "token")
	b.Created("kubectl", `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "data": {"token": "bWluZQ=="}}`)
	release(b, 3, "failed", map[string]any{"size": 5})
	done := must(b, adopting(nil))
	if notices := strings.Join(done.Notices, "\n"); !strings.Contains(notices, "revision 3 of release site/db of Helm is failed") || !strings.Contains(notices, "revision 2, chart") {
		t.Error(notices)
	}
	if got := adopted(b); fmt.Sprint(got["settings"]) != fmt.Sprint(wantAdopted["settings"]) || slices.Contains(got["known"].([]string), "Secret site/token") {
		t.Errorf("got %v", got)
	}
	if _, err := b.Remove(t.Context(), deployer.RemoveOptions{Environment: site, Solution: shop, Data: plan.KeepData}); err != nil {
		t.Fatal(err)
	}
	if texts(b, "Secret", "token")["token"] != "mine" || b.Server.Object("Secret", site, "db-password") != nil {
		t.Errorf("left are %q", b.Server.Names("Secret"))
	}
}

// TestHelmMeanwhile checks that a change by Helm during the adoption is noticed, and that the next run adopts it as well.
func TestHelmMeanwhile(t *testing.T) {
	b := installed(t, "")
	done := false
	b.Server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/deployments/db") && r.Method == http.MethodPatch && !r.URL.Query().Has("dryRun") && !done {
			done = true
			release(b, 2, "superseded", nil)
			release(b, 3, "deployed", nil, helmed()...)
		}
		return false
	}
	_, err := adopting(nil)(t.Context(), b.Deployer, plan.Options{})
	deployertest.Refused(t, err, report.Conflict, "Helm was used on release site/db meanwhile", "run the command again")
	must(b, adopting(nil))
	if diff := cmp.Diff(wantAdopted, adopted(b)); diff != "" {
		t.Errorf("taken over (-want +got):\n%s", diff)
	}
}

// isBegun reports whether the component is on record.
func isBegun(b *deployertest.Bed) bool {
	return b.Server.Object("Secret", cluster.SystemNamespace, record.Key{Namespace: site, Name: shop, Component: "db"}.SecretName()) != nil
}

// TestAdoptHelmRefused checks that an adoption changes nothing if the release is not Helm's, if Helm is at work on it, or if data would be
// lost.
func TestAdoptHelmRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		chart  string // more of it
		before func(b *deployertest.Bed)
		parts  func(*plan.Parts)
		code   report.Code
		words  []string
	}{
		{"there is none", "", nil, func(p *plan.Parts) { p.Helm["db"] = plan.HelmRelease{Namespace: site, Name: "other"} }, report.NotFound, []string{"no release other in namespace site"}},
		{"no name", "", nil, func(p *plan.Parts) { p.Helm["db"] = plan.HelmRelease{Namespace: site, Name: "a,b=c"} }, report.Usage, []string{"not the name"}},
		{"no chart", "", nil, func(p *plan.Parts) { p.Helm["web"] = plan.HelmRelease{} }, report.Usage, []string{"its charts are db"}},
		{"at work", "", func(b *deployertest.Bed) { release(b, 3, "pending-upgrade", nil) }, nil, report.Refused, []string{"revision 3", "pending-upgrade", "helm rollback db --namespace site"}},
		{"uninstalled", "", func(b *deployertest.Bed) { release(b, 2, "uninstalled", nil) }, nil, report.Refused, []string{"not deployed", "uninstalled"}},
		{"a bomb", "", func(b *deployertest.Bed) { b.HelmRelease("db", 2, "deployed", make([]byte, 40<<20)) }, nil, report.Corrupt, []string{"larger than"}},
		{"a lie", "", func(b *deployertest.Bed) {
			b.HelmRelease("db", 2, "deployed", []byte(`{"name": "db", "namespace": "site", "version": 2, "info": {"status": "failed"}}`))
		}, nil, report.Corrupt, []string{`"failed"`}},
		{"of another chart, which has a Secret of the system", "", func(b *deployertest.Bed) {
			b.HelmRelease("db", 2, "deployed", []byte(`{"name": "db", "namespace": "site", "version": 2, "info": {"status": "deployed"}, "chart": {"metadata": {"name": "web", "version": "3.0.0"}},
				"manifest": "{apiVersion: v1, kind: Secret, metadata: {name: db-password, namespace: kube-system}}"}`))
		}, nil, report.Refused, []string{"has nothing of", "site/db, chart web-3.0.0"}},
		{"another Solution's", "", func(b *deployertest.Bed) {
			b.Deleted("ConfigMap", site, "db")
			b.Added("base", "1.0.0", deployertest.Content{Manifest: "components: [{name: c, manifests: c.yaml}]\n", Files: map[string]string{"c.yaml": helmed()[1]}})
		}, nil, report.Conflict, []string{"ConfigMap site/db belongs to site/base.c"}},
		{"made by kubectl since", "", func(b *deployertest.Bed) {
			b.Deleted("ConfigMap", site, "db")
			b.Created("kubectl", helmed()[1])
		}, nil, report.Conflict, []string{"ConfigMap site/db exists", "field manager kubectl"}},
		{"other values", "", nil, values("db", map[string]any{"image": "registry.solutionctl.invalid/base-1.0.0/db:2"}, false), report.Refused, []string{"Deployment site/db", "containers[name=db].image", "--accept-restart"}},
		{
			"what is not recalled", "---\n{apiVersion: v1, kind: Secret, metadata: {name: users}, stringData: {users: {{ htpasswd \"a\" \"b\" | quote }}}}\n",
			func(b *deployertest.Bed) {
				users := `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "users"}, "data": {"users": "YTpiCg=="}}`
				b.CreatedByHelm("db", users)
				release(b, 2, "deployed", nil, helmed(users)...)
			}, nil, report.Refused,
			[]string{"Secret site/users (users)", "--values FILE", "--rotate db"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := installed(t, test.chart)
			if test.before != nil {
				test.before(b)
			}
			b.Writes()
			_, err := adopting(test.parts)(t.Context(), b.Deployer, plan.Options{})
			deployertest.Refused(t, err, test.code, test.words...)
			for _, write := range b.Writes() {
				if !isLock(write) {
					t.Errorf("it wrote %s", write)
				}
			}
		})
	}
	b := installed(t, "")
	_, err := b.Change(t.Context(), deployer.ChangeOptions{
		Environment: site, Solution: shop, Version: "1.0.0", Direction: records.Up, RollBack: true, Rendering: plan.Rendering{Parts: plan.Parts{Helm: map[string]plan.HelmRelease{"db": {}}}},
	})
	deployertest.Refused(t, err, report.Usage, "on-failure")
	for text, want := range map[string]string{"db": "/", "db=site/web": "site/web", "": "", "=site/web": "", "db=": "", "db=web": "", "db=site/": "", "db=site/a/b": ""} {
		component, r, err := plan.ParseHelmRelease(text)
		if got := r.String(); want != "" && (err != nil || got != want || component != "db") || want == "" && report.CodeOf(err) != report.Usage {
			t.Errorf("%q: %s %s, %v", text, component, got, err)
		}
	}
}
