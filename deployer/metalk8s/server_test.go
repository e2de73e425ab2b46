package metalk8s

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// documents returns the Documents of a cluster in memory.
func documents(t *testing.T, objects ...string) (*clustertest.Server, *Documents) {
	t.Helper()
	s := clustertest.Start(t, objects...)
	c, err := cluster.Connect(cluster.Options{Kubeconfig: s.Kubeconfig(t), Now: time.Now, Retry: -1})
	if err != nil {
		t.Fatal(err)
	}
	return s, &Documents{Cluster: c, Sink: &report.Recorder{}}
}

// writes are the requests since the last call that may have changed something.
func writes(s *clustertest.Server) []string {
	return slices.DeleteFunc(s.Requests(), func(r string) bool { return strings.HasPrefix(r, "GET ") })
}

// dataIn is the data of a ConfigMap, as "key=value" sorted.
func dataIn(s *clustertest.Server, namespace, name string) []string {
	object := s.Object("ConfigMap", namespace, name)
	if object == nil {
		return []string{"there is none"}
	}
	data := dataOf(object)
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(data)) {
		lines = append(lines, key+"="+data[key])
	}
	return lines
}

// patch changes an object as another client.
func patch(t *testing.T, s *clustertest.Server, kind, namespace, name, value string, path ...string) {
	t.Helper()
	object := s.Object(kind, namespace, name)
	if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
		t.Fatal(err)
	}
	data, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	s.Put(t, string(data))
}

func namespaceOf(environment, name string, more ...string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {%s: %s}%s}}", name, EnvironmentLabel, environment, strings.Join(more, ""))
}

func asks(namespace, data string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: metalk8s-environment, namespace: %s, labels: {theirs: 'yes'}}, data: {%s}}", namespace, data)
}

const solutionsNamespace = "{apiVersion: v1, kind: Namespace, metadata: {name: metalk8s-solutions, labels: {theirs: 'yes'}}}"

func imported(version string) schema.ImportedSolution {
	return schema.ImportedSolution{Name: "DB", Version: version, ID: "db-" + version, Archive: "/db.iso", Mountpoint: "/srv/db"}
}

// TestWhatIsImported follows ConfigMap metalk8s-solutions, which also has a key that cannot be parsed.
func TestWhatIsImported(t *testing.T) {
	s, d := documents(t)
	ctx := t.Context()
	if got, err := d.Solutions(ctx); err != nil || len(got.Versions) > 0 || len(got.Problems) > 0 {
		t.Errorf("nothing was ever imported: %+v, %v", got, err)
	}
	for _, step := range []struct {
		name     string
		do       func() error
		versions string // of Solution db; * is the active one
		code     report.Code
		silent   bool // writes nothing
	}{
		{name: "removed before it is there", do: func() error { return d.RemoveVersion(ctx, "db", "1.0.0") }, silent: true},
		{name: "imported", do: func() error { return d.PutVersion(ctx, "db", imported("1.0.0")) }, versions: "1.0.0"},
		{name: "imported again", do: func() error { return d.PutVersion(ctx, "db", imported("1.0.0")) }, versions: "1.0.0", silent: true},
		{name: "others write", do: func() error {
			patch(t, s, "ConfigMap", SolutionsNamespace, SolutionsConfigMap, "nonsense", "data", "web")
			patch(t, s, "ConfigMap", SolutionsNamespace, SolutionsConfigMap, "salt", "metadata", "annotations", "by")
			return nil
		}, versions: "1.0.0", silent: true},
		{name: "another version", do: func() error { return d.PutVersion(ctx, "db", imported("2.0.0")) }, versions: "1.0.0 2.0.0"},
		{name: "active", do: func() error { return d.SetActive(ctx, "db", "1.0.0") }, versions: "1.0.0* 2.0.0"},
		{name: "another one is active", do: func() error { return d.SetActive(ctx, "db", "2.0.0") }, versions: "1.0.0 2.0.0*"},
		{name: "it is active already", do: func() error { return d.SetActive(ctx, "db", "2.0.0") }, versions: "1.0.0 2.0.0*", silent: true},
		{name: "what was not imported", do: func() error { return d.SetActive(ctx, "db", "3.0.0") }, versions: "1.0.0 2.0.0*", code: report.NotImported, silent: true},
		{name: "an unreadable document", do: func() error { return d.PutVersion(ctx, "web", imported("1.0.0")) }, versions: "1.0.0 2.0.0*", code: report.Invalid, silent: true},
		{name: "none is active", do: func() error { return d.SetActive(ctx, "db", "") }, versions: "1.0.0 2.0.0"},
		{name: "forgotten", do: func() error {
			return errors.Join(d.RemoveVersion(ctx, "db", "1.0.0"), d.RemoveVersion(ctx, "db", "2.0.0"))
		}},
	} {
		s.Requests()
		if err := step.do(); (err == nil) != (step.code == "") || err != nil && report.CodeOf(err) != step.code {
			t.Fatalf("%s: %v", step.name, err)
		}
		if wrote := writes(s); step.silent && len(wrote) > 0 {
			t.Errorf("%s: it writes %q", step.name, wrote)
		}
		got, err := d.Solutions(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var versions []string
		for _, entry := range got.Versions["db"] {
			versions = append(versions, entry.Version+map[bool]string{true: "*"}[entry.Active])
		}
		if text := strings.Join(versions, " "); text != step.versions {
			t.Errorf("%s: %q, want %q", step.name, text, step.versions)
		}
	}
	if got := dataIn(s, SolutionsNamespace, SolutionsConfigMap); !slices.Equal(got, []string{"web=nonsense"}) || s.Object("ConfigMap", SolutionsNamespace, SolutionsConfigMap).GetAnnotations()["by"] != "salt" {
		t.Errorf("what others wrote has become %q", got)
	}
	if labels := s.Object("Namespace", "", SolutionsNamespace).GetLabels(); labels["heritage"] != "metalk8s" || labels["app.kubernetes.io/part-of"] != "metalk8s" {
		t.Errorf("the namespace is not made as MetalK8s makes it: %v", labels)
	}
}

// TestSecondWriter: who writes at the same time loses nothing, and one gone mad is named.
func TestSecondWriter(t *testing.T) {
	for name, test := range map[string]struct {
		object string // that both write
		do     func(*Documents) error
		other  func(*testing.T, *clustertest.Server, int)
		want   func(*clustertest.Server, int) string // the problem in the final state
		hint   string
	}{
		"what is imported": {
			"/configmaps/" + SolutionsConfigMap,
			func(d *Documents) error { return d.PutVersion(t.Context(), "db", imported("1.0.0")) },
			func(t *testing.T, s *clustertest.Server, n int) {
				t.Helper()
				patch(t, s, "ConfigMap", SolutionsNamespace, SolutionsConfigMap, fmt.Sprint(n), "data", "theirs")
			},
			func(s *clustertest.Server, n int) string {
				data := dataOf(s.Object("ConfigMap", SolutionsNamespace, SolutionsConfigMap))
				if data["theirs"] != fmt.Sprint(n) || !strings.Contains(data["db"], "1.0.0") {
					return fmt.Sprint(data)
				}
				return ""
			}, "kubectl get configmap -n metalk8s-solutions metalk8s-solutions",
		},
		"the versions of one Solution, by two of us": {
			"/configmaps/" + SolutionsConfigMap,
			func(d *Documents) error { return d.PutVersion(t.Context(), "db", imported("1.0.0")) },
			func(t *testing.T, s *clustertest.Server, n int) {
				t.Helper()
				data := map[string]string{}
				maps.Copy(data, dataOf(s.Object("ConfigMap", SolutionsNamespace, SolutionsConfigMap)))
				if err := putVersion("db", imported(fmt.Sprintf("2.%d.0", n)))(data); err != nil {
					t.Fatal(err)
				}
				patch(t, s, "ConfigMap", SolutionsNamespace, SolutionsConfigMap, data["db"], "data", "db")
			},
			func(s *clustertest.Server, n int) string {
				versions := parseSolutions(dataOf(s.Object("ConfigMap", SolutionsNamespace, SolutionsConfigMap))).Versions["db"]
				if len(versions) != n+1 {
					return fmt.Sprint(versions)
				}
				return ""
			}, "kubectl get configmap -n metalk8s-solutions metalk8s-solutions",
		},
		"what a namespace wants": {
			"/configmaps/" + EnvironmentConfigMap,
			func(d *Documents) error { return d.SetVersion(t.Context(), "prod", "db", "1.0.0") },
			func(t *testing.T, s *clustertest.Server, n int) {
				t.Helper()
				patch(t, s, "ConfigMap", "prod", EnvironmentConfigMap, fmt.Sprint(n), "data", "web")
			},
			func(s *clustertest.Server, n int) string {
				if got := strings.Join(dataIn(s, "prod", EnvironmentConfigMap), " "); got != fmt.Sprintf("db=1.0.0 web=%d", n) {
					return got
				}
				return ""
			}, "kubectl get configmap -n prod metalk8s-environment",
		},
		"what a namespace is for": {
			"/namespaces/prod",
			func(d *Documents) error {
				text := "ours"
				_, err := d.CreateEnvironment(t.Context(), CreateOptions{Name: "prod", Description: &text})
				return err
			},
			func(t *testing.T, s *clustertest.Server, n int) {
				t.Helper()
				patch(t, s, "Namespace", "", "prod", fmt.Sprint(n), "metadata", "annotations", "theirs")
			},
			func(s *clustertest.Server, n int) string {
				a := s.Object("Namespace", "", "prod").GetAnnotations()
				if a["theirs"] != fmt.Sprint(n) || a[descriptionAnnotation] != "ours" {
					return fmt.Sprint(a)
				}
				return ""
			}, "kubectl get namespace prod",
		},
		"what all namespaces of an environment are for": {
			"/namespaces/first",
			func(d *Documents) error {
				text := "ours"
				_, err := d.CreateEnvironment(t.Context(), CreateOptions{Name: "prod", Description: &text})
				return err
			},
			func(t *testing.T, s *clustertest.Server, n int) {
				t.Helper()
				patch(t, s, "Namespace", "", "first", fmt.Sprint(n), "metadata", "annotations", "theirs")
			},
			func(s *clustertest.Server, n int) string {
				a := s.Object("Namespace", "", "first").GetAnnotations()
				if a["theirs"] != fmt.Sprint(n) || a[descriptionAnnotation] != "ours" {
					return fmt.Sprint(a)
				}
				return ""
			}, "kubectl get namespace first",
		},
	} {
		for _, times := range []int{3, attempts + 1} {
			s, d := documents(t, solutionsNamespace, "{apiVersion: v1, kind: ConfigMap, metadata: {name: metalk8s-solutions, namespace: metalk8s-solutions}}",
				namespaceOf("prod", "prod"), asks("prod", "web: '0'"), namespaceOf("prod", "first"))
			n := 0
			s.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, test.object) && n < times {
					n++
					test.other(t, s, n)
				}
				return false
			}
			err := test.do(d)
			if times <= attempts {
				if wrong := test.want(s, times); err != nil || wrong != "" {
					t.Errorf("%s: %v, %s", name, err, wrong)
				}
				continue
			}
			if report.CodeOf(err) != report.Conflict || !strings.Contains(err.Error(), "another client changes it again and again") || !strings.Contains(strings.Join(report.Hints(err), ""), test.hint) {
				t.Errorf("%s, mad: %v, %q", name, err, report.Hints(err))
			}
		}
	}
}

// TestCreateEnvironment: which namespaces become part of an environment, and which do not.
func TestCreateEnvironment(t *testing.T) {
	text := func(s string) *string { return &s }
	for name, test := range map[string]struct {
		before []string
		create CreateOptions
		result Creation
		code   report.Code
		says   string
		want   string // environment and description of namespace prod
		silent bool
	}{
		"new":                             {create: CreateOptions{Name: "prod"}, result: Created, want: "prod, "},
		"new, with a description":         {create: CreateOptions{Name: "prod", Description: text("ours")}, result: Created, want: "prod, ours"},
		"a second namespace":              {before: []string{namespaceOf("shop", "first", ", annotations: {"+descriptionAnnotation+": old}")}, create: CreateOptions{Name: "shop", Namespace: "prod"}, result: Created, want: "shop, old"},
		"there already":                   {before: []string{namespaceOf("prod", "prod"), asks("prod", "web: 1.0.0")}, create: CreateOptions{Name: "prod"}, result: Unchanged, want: "prod, ", silent: true},
		"there, with another purpose":     {before: []string{namespaceOf("prod", "prod")}, create: CreateOptions{Name: "prod", Description: text("new")}, result: Changed, want: "prod, new"},
		"an unmanaged namespace":          {before: []string{"{apiVersion: v1, kind: Namespace, metadata: {name: prod}}"}, create: CreateOptions{Name: "prod"}, code: report.Conflict, says: "is not part of an environment", want: ", ", silent: true},
		"an unmanaged namespace, adopted": {before: []string{"{apiVersion: v1, kind: Namespace, metadata: {name: prod, labels: {theirs: x}}}"}, create: CreateOptions{Name: "prod", Adopt: true}, result: Adopted, want: "prod, "},
		"a namespace of another":          {before: []string{namespaceOf("test", "prod")}, create: CreateOptions{Name: "prod"}, code: report.Conflict, says: "is part of environment test", want: "test, ", silent: true},
		"a namespace of another, taken":   {before: []string{namespaceOf("test", "prod")}, create: CreateOptions{Name: "prod", Adopt: true}, result: Adopted, want: "prod, "},
		"a namespace of the cluster":      {create: CreateOptions{Name: "x", Namespace: "kube-system"}, code: report.Refused, says: "the cluster needs it for itself", silent: true},
		"a name that cannot be":           {create: CreateOptions{Name: "Prod"}, code: report.Usage, says: "a namespace cannot have this name", silent: true},
		"our own namespace":               {create: CreateOptions{Name: cluster.SystemNamespace, Adopt: true}, code: report.Refused, says: cluster.SystemNamespace, silent: true},
		"no name":                         {create: CreateOptions{Namespace: "prod"}, code: report.Usage, says: `""`, silent: true},
		"a dot in a namespace":            {create: CreateOptions{Name: "a", Namespace: "a.b"}, code: report.Usage, says: `"a.b"`, silent: true},
		"a name that no label can be":     {create: CreateOptions{Name: "a b"}, code: report.Usage, says: "cannot be the name of an environment", silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, d := documents(t, test.before...)
			result, err := d.CreateEnvironment(t.Context(), test.create)
			if result != test.result || (err == nil) != (test.code == "") || err != nil && (report.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.says)) {
				t.Fatalf("%q, %v", result, err)
			}
			if wrote := writes(s); test.silent != (len(wrote) == 0) {
				t.Errorf("it writes %q", wrote)
			}
			if test.want == "" {
				return
			}
			live := s.Object("Namespace", "", "prod")
			if got := live.GetLabels()[EnvironmentLabel] + ", " + live.GetAnnotations()[descriptionAnnotation]; got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			if test.code == "" && s.Object("ConfigMap", "prod", EnvironmentConfigMap) == nil {
				t.Error("ConfigMap metalk8s-environment is not there")
			}
			if strings.Contains(name, "nobody, taken") && live.GetLabels()["theirs"] != "x" {
				t.Errorf("labels of others have become %v", live.GetLabels())
			}
		})
	}
	s, d := documents(t, namespaceOf("shop", "a"), namespaceOf("shop", "b"))
	if _, err := d.CreateEnvironment(t.Context(), CreateOptions{Name: "shop", Namespace: "a", Description: text("new")}); err != nil {
		t.Fatal(err)
	}
	if got := s.Object("Namespace", "", "b").GetAnnotations()[descriptionAnnotation]; got != "new" {
		t.Errorf("the other namespace of the environment is described as %q", got)
	}
}

// TestReadEnvironments reads documents that others may have written, with as few requests and permissions as possible.
func TestReadEnvironments(t *testing.T) {
	s, d := documents(t, namespaceOf("shop", "b"), namespaceOf("shop", "a", ", annotations: {"+descriptionAnnotation+": both}"), namespaceOf("test", "c"),
		namespaceOf("''", "nothing"), "{apiVersion: v1, kind: Namespace, metadata: {name: other}}",
		asks("a", `db: 1.0.0, Web: 1.0.0, cache: "no\e[2J"`), asks("c", "db: 2.0.0"))
	ctx := t.Context()
	shown := func(environments []Environment) []string {
		var lines []string
		for _, e := range environments {
			for _, n := range e.Namespaces {
				lines = append(lines, fmt.Sprint(e.Name, " (", e.Description, ") ", n.Name, " ", n.Versions, " ", len(n.Problems)))
			}
		}
		return lines
	}
	want := []string{"shop (both) a map[db:1.0.0] 2", "shop (both) b map[] 0", "test () c map[db:2.0.0] 0"}
	s.Requests()
	all, err := d.Environments(ctx)
	if diff := cmp.Diff(want, shown(all)); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if got := s.Requests(); len(got) > 4 { // what kinds there are, namespaces, and all ConfigMaps at once
		t.Errorf("%q", got)
	}
	if text := fmt.Sprint(all[0].Namespaces[0].Problems); strings.Contains(text, "\x1b") {
		t.Errorf("what others wrote gets to the terminal: %q", text)
	}
	s.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/configmaps" {
			return false
		}
		clustertest.Fail(w, apierrors.NewForbidden(kube.GroupResource{Resource: "configmaps"}, "", errors.New(`User "jane" cannot list resource "configmaps" in API group "" at the cluster scope`)))
		return true
	}
	all, err = d.Environments(ctx)
	if diff := cmp.Diff(want, shown(all)); err != nil || diff != "" {
		t.Errorf("as somebody who may not list ConfigMaps: %v %s", err, diff)
	}
	e, err := d.Environment(ctx, "shop")
	if err != nil || !slices.Equal(e.Names(), []string{"a", "b"}) {
		t.Errorf("%+v, %v", e, err)
	}
	if n, ok := e.Namespace("b"); !ok || n.Environment != "shop" || n.Terminating {
		t.Errorf("%+v", n)
	}
	for _, name := range []string{"prod", "a b"} {
		if _, err = d.Environment(ctx, name); report.CodeOf(err) != report.NotFound || !slices.Contains(report.Hints(err), "the environments are shop, test") {
			t.Errorf("%s: %v, %q", name, err, report.Hints(err))
		}
	}
	if n, failure := d.Namespace(ctx, "shop", "a"); failure != nil || n.Versions["db"] != "1.0.0" {
		t.Errorf("%+v, %v", n, failure)
	}
	for _, other := range [][2]string{{"shop", "c"}, {"shop", "none"}, {"", "other"}} {
		if _, err = d.Namespace(ctx, other[0], other[1]); report.CodeOf(err) != report.NotFound {
			t.Errorf("%q: %v", other, err)
		}
	}
	if names, failure := d.Outline(ctx, "shop"); failure != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("%q, %v", names, failure)
	}
	if names, failure := d.Outline(ctx, "a b"); failure != nil || names != nil {
		t.Errorf("%q, %v", names, failure)
	}
	_, none := documents(t)
	if _, err = none.Environment(ctx, "prod"); !slices.Contains(report.Hints(err), "create it: solutionctl deploy env create prod") {
		t.Errorf("%v, %q", err, report.Hints(err))
	}

	pillar, err := d.Pillar(ctx, nil, errors.New("it cannot be read"))
	if err != nil || !slices.Equal(pillar.Errors.Config, []string{"it cannot be read"}) || pillar.Environments["shop"].Namespaces["a"].Config["Web"] != "1.0.0" {
		data, _ := json.Marshal(pillar) //nolint:errchkjson // for the message
		t.Errorf("%s, %v", data, err)
	}
}

// TestWantVersion: the requested version of one Solution changes, and nothing else there.
func TestWantVersion(t *testing.T) {
	s, d := documents(t, namespaceOf("prod", "prod"), asks("prod", "web: 1.0.0"))
	for _, step := range []struct{ solution, version, want string }{
		{"db", "1.0.0", "db=1.0.0 web=1.0.0"}, {"db", "2.0.0", "db=2.0.0 web=1.0.0"}, {"none", "", "db=2.0.0 web=1.0.0"}, {"db", "", "web=1.0.0"}, {"web", "", ""},
	} {
		if err := d.SetVersion(t.Context(), "prod", step.solution, step.version); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(dataIn(s, "prod", EnvironmentConfigMap), " "); got != step.want {
			t.Errorf("%s %q: %q, want %q", step.solution, step.version, got, step.want)
		}
	}
	if s.Object("ConfigMap", "prod", EnvironmentConfigMap).GetLabels()["theirs"] != "yes" {
		t.Error("labels of others are gone")
	}
	s.Put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: empty}}")
	if err := d.SetVersion(t.Context(), "empty", "db", ""); err != nil || s.Object("ConfigMap", "empty", EnvironmentConfigMap) != nil {
		t.Errorf("nothing is wanted, and it is written down: %v", err)
	}
}

// TestSetVersions checks that the versions of a namespace are written at once, from what was read before unless that has changed or has them.
func TestSetVersions(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile string // the data of another client
		wanted    map[string]string
		want      string
		requests  string
	}{
		"as it was read":               {"", map[string]string{"db": "1.0.0", "web": ""}, "db=1.0.0", "PUT"},
		"changed since":                {"other: 3.0.0", map[string]string{"db": "1.0.0"}, "db=1.0.0 other=3.0.0", "PUT GET PUT"},
		"nothing to change":            {"", map[string]string{"web": "1.0.0"}, "web=1.0.0", "GET"},
		"nothing to change any more":   {"db: 1.0.0", map[string]string{"db": "1.0.0"}, "db=1.0.0", "PUT GET"},
		"what was right is not so now": {"web: 2.0.0", map[string]string{"web": "1.0.0"}, "web=1.0.0", "GET PUT"},
	} {
		t.Run(name, func(t *testing.T) {
			s, d := documents(t, namespaceOf("prod", "prod"), asks("prod", "web: 1.0.0"))
			n, err := d.Namespace(t.Context(), "prod", "prod")
			if err != nil {
				t.Fatal(err)
			}
			if test.meanwhile != "" {
				s.Put(t, asks("prod", test.meanwhile))
			}
			s.Requests()
			if err := d.SetVersions(t.Context(), n, test.wanted); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(dataIn(s, "prod", EnvironmentConfigMap), " "); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			var methods []string
			for _, r := range s.Requests() {
				method, _, _ := strings.Cut(r, " ")
				methods = append(methods, method)
			}
			if got := strings.Join(methods, " "); got != test.requests {
				t.Errorf("requests %s, want %s", got, test.requests)
			}
		})
	}
}

// TestDeleteEnvironment: only the namespaces that were read are deleted, and a waiting user sees the objects that hold
// them.
func TestDeleteEnvironment(t *testing.T) {
	ctx := t.Context()
	const held = "{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: a, finalizers: [example.com/hold]}}"
	start := func(t *testing.T, more ...string) (*clustertest.Server, *Documents, []Namespace) {
		t.Helper()
		s, d := documents(t, append([]string{namespaceOf("shop", "a"), namespaceOf("shop", "b"), namespaceOf("bad", "kube-system")}, more...)...)
		selected, err := d.Select(ctx, "shop", "")
		if err != nil || len(selected) != 2 {
			t.Fatal(selected, err)
		}
		return s, d, selected
	}
	t.Run("selection", func(t *testing.T) {
		_, d, _ := start(t)
		if one, err := d.Select(ctx, "shop", "b"); err != nil || len(one) != 1 || one[0].Name != "b" {
			t.Errorf("%v, %v", one, err)
		}
		if _, err := d.Select(ctx, "shop", "c"); report.CodeOf(err) != report.NotFound || !slices.Contains(report.Hints(err), "it has a, b") {
			t.Errorf("%v, %q", err, report.Hints(err))
		}
		if _, err := d.Select(ctx, "bad", ""); report.CodeOf(err) != report.Refused || !strings.Contains(strings.Join(report.Hints(err), ""), "kubectl label namespace kube-system") {
			t.Errorf("%v, %q", err, report.Hints(err))
		}
	})
	t.Run("nothing holds them", func(t *testing.T) {
		s, d, selected := start(t)
		if err := d.DeleteNamespaces(ctx, selected, DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := s.Names("Namespace"); !slices.Equal(got, []string{"default", "kube-system"}) {
			t.Errorf("%q", got)
		}
	})
	t.Run("one is another one by now", func(t *testing.T) {
		s, d, selected := start(t)
		for range 2 {
			if err := d.Cluster.Delete(ctx, s.Object("Namespace", "", "a"), cluster.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			s.Put(t, namespaceOf("shop", "a"))
		}
		if err := d.DeleteNamespaces(ctx, selected[:1], DeleteOptions{}); err == nil || s.Object("Namespace", "", "a") == nil {
			t.Errorf("a namespace was deleted that nobody looked at: %v", err)
		}
	})
	t.Run("something holds one", func(t *testing.T) {
		s, d, selected := start(t, held)
		err := d.DeleteNamespaces(ctx, selected, DeleteOptions{Timeout: 50 * time.Millisecond})
		if report.CodeOf(err) != report.Timeout || !strings.Contains(err.Error(), "namespace a does not go away") || s.Object("Namespace", "", "b") != nil {
			t.Errorf("%v", err)
		}
		if err := d.SetVersion(ctx, "a", "db", "1.0.0"); report.CodeOf(err) != report.Conflict || !strings.Contains(err.Error(), "namespace a is being deleted") {
			t.Errorf("it takes something new: %v", err)
		}
		if _, err := d.CreateEnvironment(ctx, CreateOptions{Name: "shop", Namespace: "a"}); report.CodeOf(err) != report.Conflict {
			t.Errorf("it becomes part of an environment: %v", err)
		}
		s.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("watch") != "" { // a client waits for it
				s.Answer = nil
				s.Put(t, strings.Replace(held, ", finalizers: [example.com/hold]", "", 1))
			}
			return false
		}
		if err := d.AwaitGone(ctx, selected[0].object, DeleteOptions{}); err != nil || s.Object("Namespace", "", "a") != nil {
			t.Errorf("it is held no longer: %v", err)
		}
	})
	t.Run("its document is held", func(t *testing.T) {
		s, d, _ := start(t, strings.Replace(held, "name: held", "name: metalk8s-environment", 1))
		if err := d.Cluster.Delete(ctx, s.Object("Namespace", "", "a"), cluster.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.CreateEnvironment(ctx, CreateOptions{Name: "shop", Namespace: "a"}); report.CodeOf(err) != report.Conflict {
			t.Errorf("what goes is said to be there: %v", err)
		}
	})
	t.Run("no other process waits", func(t *testing.T) {
		s, d, selected := start(t, held)
		if err := d.DeleteNamespaces(ctx, selected, DeleteOptions{NoWait: true}); err != nil || s.Object("Namespace", "", "a").GetDeletionTimestamp() == nil {
			t.Error(err)
		}
	})
	t.Run("the solutions' own goes", func(t *testing.T) {
		s, d := documents(t, solutionsNamespace, strings.Replace(held, "namespace: a", "namespace: metalk8s-solutions", 1))
		if err := d.Cluster.Delete(ctx, s.Object("Namespace", "", SolutionsNamespace), cluster.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := d.PutVersion(ctx, "db", imported("1.0.0")); report.CodeOf(err) != report.Conflict || !strings.Contains(err.Error(), "namespace metalk8s-solutions is being deleted") {
			t.Errorf("%v", err)
		}
	})
}

// TestUsage counts the objects that users would lose with a namespace, without those that belong to another object.
func TestUsage(t *testing.T) {
	const pizza = "{apiVersion: example.com/v1, kind: Pizza, metadata: {name: %s, namespace: a%s}}\n---\n"
	s, d := documents(t, namespaceOf("shop", "a"), asks("a", "db: 1.0.0"), `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
metadata: {name: pizzas.example.com}, spec: {group: example.com, scope: Namespaced, names: {kind: Pizza, plural: pizzas}, versions: [{name: v1, served: true, storage: true}]}}`,
		"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: a}, spec: {resources: {requests: {storage: 1Gi}}}}", "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: a}}",
		fmt.Sprintf(pizza, "p1", "")+fmt.Sprintf(pizza, "p2", "")+fmt.Sprintf(pizza, "p3", "")+fmt.Sprintf(pizza, "p4", ""))
	owner := s.Object("Pizza", "a", "p1").GetUID()
	owned := fmt.Sprintf(", ownerReferences: [{apiVersion: example.com/v1, kind: Pizza, name: p1, uid: %s}]", owner)
	s.Put(t, fmt.Sprintf(pizza, "part", owned)+"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: scratch, namespace: a"+owned+"}}")
	selected, err := d.Select(t.Context(), "shop", "")
	if err != nil {
		t.Fatal(err)
	}
	usage, claims, err := d.Usage(t.Context(), selected)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, use := range usage {
		got = append(got, use.String())
	}
	if diff := cmp.Diff([]string{"Solution db 1.0.0 in namespace a", "Pizza p1, p2, p3 and 1 more in namespace a", "PersistentVolumeClaim data in namespace a"}, got); diff != "" {
		t.Error(diff)
	}
	if len(claims) != 2 || claims[0].Object["spec"] == nil {
		t.Errorf("%v, want both claims as they are", claims)
	}
	plain, err := d.PlainKinds(t.Context())
	if err != nil || !slices.Contains(plain, cluster.SecretKind) || slices.Contains(plain, cluster.ClaimKind) || slices.ContainsFunc(plain, func(k kube.GroupVersionKind) bool { return k.Kind == "Pizza" || k.Kind == "Node" }) {
		t.Errorf("%v, %v", plain, err)
	}
}

// TestUsageOfAKindThatGoes: the definition of a kind is deleted after the kinds of the cluster were read.
func TestUsageOfAKindThatGoes(t *testing.T) {
	s, d := documents(t, namespaceOf("shop", "a"), `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
metadata: {name: pizzas.example.com}, spec: {group: example.com, scope: Namespaced, names: {kind: Pizza, plural: pizzas}, versions: [{name: v1, served: true, storage: true}]}}`,
		"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: a}}")
	selected, err := d.Select(t.Context(), "shop", "")
	if err != nil {
		t.Fatal(err)
	}
	s.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/pizzas") {
			if failure := d.Cluster.Delete(t.Context(), s.Object("CustomResourceDefinition", "", "pizzas.example.com"), cluster.DeleteOptions{}); failure != nil {
				t.Error(failure)
			}
		}
		return false
	}
	usage, claims, err := d.Usage(t.Context(), selected)
	if err != nil || len(usage) != 1 || !usage[0].IsClaim() || len(claims) != 1 {
		t.Errorf("%v, %v, %v", usage, claims, err)
	}
}
