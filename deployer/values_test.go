package deployer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// valueLines returns a line for each value.
func valueLines(v *schema.SolutionValues) string {
	var b strings.Builder
	for _, c := range v.Components {
		fmt.Fprintf(&b, "%s %s\n", c.Component, c.Chart)
		for _, value := range c.Values {
			fmt.Fprintf(&b, " %s=%s set=%t %s\n", value.Path, value.Default, value.Set, value.Value)
		}
	}
	return b.String()
}

// TestValues: what a site has set is shown beside what it can set, without secrets; and given back in full as a file.
func TestValues(t *testing.T) {
	content := parts(t, map[string]string{"charts/vault.tgz": deployertest.Chart(t, "vault", map[string]string{
		"values.yaml":          "# Of the administrator.\npassword: ''\nlabels: {}\n",
		"templates/vault.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: vault}\nstringData: {password: {{ .Values.password | quote }}}\n",
	})})
	content.Manifest += "  - {name: vault, chart: charts/vault.tgz, site: {required: [password]}}\n" +
		"  - {name: spare, chart: charts/vault.tgz, release: spare, select: optional}\n"
	bed := deployertest.New(t)
	bed.Activated(shop, "1.0.0", content)
	given := map[string]any{"password": "topsecret", "labels": map[string]any{"tier": "gold"}, "typo": map[string]any{"a.b": 1.0}}
	if _, err := choose(t, values("vault", given, false))(t.Context(), bed.Deployer, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	where := deployer.ComponentsOptions{Environment: site, Solution: shop}
	found, err := bed.Values(t.Context(), deployer.ValuesOptions{ComponentsOptions: where})
	if err != nil {
		t.Fatal(err)
	}
	want := "db db-1.0.0\n hosts.primary=\"a\" set=false \n hosts.standby=\"b\" set=false \n size=1 set=false \n" +
		"vault vault-1.0.0\n labels={} set=true {\"tier\":\"gold\"}\n password=\"\" set=true \n typo.a\\.b= set=true 1\n"
	if diff := cmp.Diff(want, valueLines(found)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	password := found.Components[1].Values[1]
	if !password.Required || !password.Secret || password.Description != "Of the administrator." {
		t.Errorf("%+v", password)
	}
	found, err = bed.Values(t.Context(), deployer.ValuesOptions{ComponentsOptions: where, Components: []string{"db"}, Changed: true})
	if err != nil || valueLines(found) != "db db-1.0.0\n" {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err = bed.Values(t.Context(), deployer.ValuesOptions{ComponentsOptions: where, Components: []string{"api"}}); report.CodeOf(err) != report.NotFound {
		t.Errorf("a component without values: %v", err)
	}
	whole, err := bed.SiteValues(t.Context(), where)
	if diff := cmp.Diff(map[string]map[string]any{"vault": given}, whole); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err = bed.Values(t.Context(), deployer.ValuesOptions{ComponentsOptions: deployer.ComponentsOptions{Environment: site, Solution: "bakery"}}); err == nil {
		t.Error("values of a Solution that is not deployed")
	}
}

// TestSiteRules: what the vendor requires has to be set, and what it has locked must not be, by no command that renders the chart.
func TestSiteRules(t *testing.T) {
	content := parts(t, nil)
	content.Manifest = strings.Replace(content.Manifest, "chart: charts/db.tgz", "chart: charts/db.tgz, site: {required: [hosts.primary], locked: [size, hosts.standby]}", 1)
	bed := deployertest.New(t)
	bed.Activated(shop, "1.0.0", content)
	for name, test := range map[string]struct {
		given map[string]any
		want  string
	}{
		"nothing":      {nil, "component db needs 1 value that only this site knows: hosts.primary"},
		"empty":        {map[string]any{"hosts": map[string]any{"primary": ""}}, "needs 1 value"},
		"another":      {map[string]any{"hosts": map[string]any{"other": "c"}}, "needs 1 value"},
		"table gone":   {map[string]any{"hosts": nil}, "locked the value hosts.standby"},
		"no table":     {map[string]any{"hosts": "c"}, "locked the value hosts.standby"},
		"in a table":   {map[string]any{"hosts": map[string]any{"primary": "c", "standby": nil}}, "locked the value hosts.standby"},
		"locked":       {map[string]any{"hosts": map[string]any{"primary": "c"}, "size": 2}, "component db: the vendor has locked the value size"},
		"locked below": {map[string]any{"hosts": map[string]any{"primary": "c"}, "size": map[string]any{"of": 2}}, "locked the value size"},
		"removed":      {map[string]any{"hosts": map[string]any{"primary": "c"}, "size": nil}, "locked the value size"},
	} {
		_, err := choose(t, values("db", test.given, true))(t.Context(), bed.Deployer, plan.Options{})
		if report.CodeOf(err) != report.Refused || !strings.Contains(fmt.Sprint(err), test.want) || len(report.Hints(err)) == 0 {
			t.Errorf("%s: %v, %q", name, err, report.Hints(err))
		}
	}
	if _, err := choose(t, values("db", map[string]any{"hosts": map[string]any{"primary": "c"}}, true))(t.Context(), bed.Deployer, plan.Options{}); err != nil {
		t.Error(err)
	}
	if _, err := bed.Repair(t.Context(), deployer.RepairOptions{}); err != nil {
		t.Error(err)
	}
}

// TestEditValues: edits by a person change these values and no others, and what is wrong has the path of its value.
func TestEditValues(t *testing.T) {
	content := parts(t, map[string]string{"charts/vault.tgz": deployertest.Chart(t, "vault", map[string]string{
		"values.yaml":          "password: ''\nreplicas: 1\nhosts: []\ntls: {mode: strict}\ntoken: 1234\n",
		"values.schema.json":   `{"properties": {"replicas": {"type": "integer", "maximum": 9}, "hosts": {"type": "array", "items": {"type": "string"}}}}`,
		"templates/vault.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: vault}\nstringData: {password: {{ .Values.password | quote }}}\n",
	})})
	content.Manifest += "  - {name: vault, chart: charts/vault.tgz, site: {required: [password], locked: [tls]}}\n"
	bed := deployertest.New(t)
	bed.Activated(shop, "1.0.0", content)
	where := deployer.SelectionOptions{ComponentsOptions: deployer.ComponentsOptions{Environment: site, Solution: shop}, Version: "1.0.0"}
	described, number, err := bed.Settable(t.Context(), where)
	if err != nil || number != 0 || len(described.Components) != 2 || described.Namespace != site {
		t.Fatalf("%d, %v, %+v", number, err, described)
	}
	set := func(path, text string) plan.ValueEdit {
		return plan.ValueEdit{Component: "vault", Path: path, Text: text}
	}
	for name, test := range map[string]struct {
		edits []plan.ValueEdit
		want  map[string]any
		wrong []plan.ValueProblem
	}{
		"nothing":    {nil, nil, []plan.ValueProblem{{Component: "vault", Path: "password", Message: "is required"}}},
		"valid":      {[]plan.ValueEdit{set("password", "topsecret"), set("replicas", "3"), set("hosts", "a\nb")}, map[string]any{"password": "topsecret", "replicas": 3.0, "hosts": []any{"a", "b"}}, nil},
		"no number":  {[]plan.ValueEdit{set("password", "x"), set("replicas", "many")}, map[string]any{"password": "x"}, []plan.ValueProblem{{Component: "vault", Path: "replicas", Message: `"many" is not a whole number`}}},
		"a secret":   {[]plan.ValueEdit{set("password", "x"), set("token", "hunter2")}, map[string]any{"password": "x"}, []plan.ValueProblem{{Component: "vault", Path: "token", Message: "cannot be read as a value of type integer"}}},
		"the schema": {[]plan.ValueEdit{set("password", "x"), set("replicas", "10")}, map[string]any{"password": "x", "replicas": 10.0}, []plan.ValueProblem{{Component: "vault", Path: "replicas", Message: "is more than 9"}}},
		"locked": {
			[]plan.ValueEdit{set("password", "x"), set("tls.mode", "off")},
			map[string]any{"password": "x", "tls": map[string]any{"mode": "off"}},
			[]plan.ValueProblem{{Component: "vault", Path: "tls", Message: "is locked by the vendor"}},
		},
	} {
		edited, wrong, failure := bed.EditValues(t.Context(), where, test.edits)
		if diff := cmp.Diff(wrong, test.wrong); diff != "" || failure != nil {
			t.Errorf("%s: %v (-got +want)\n%s", name, failure, diff)
		}
		if diff := cmp.Diff(map[string]any(edited["vault"].Values), test.want); diff != "" {
			t.Errorf("%s (-got +want)\n%s", name, diff)
		}
		if _, other := edited["db"]; other {
			t.Errorf("%s: a chart changes that was not edited", name)
		}
	}
	for name, edit := range map[string]plan.ValueEdit{"no such value": set("replica", "3"), "no such chart": {Component: "vaults", Path: "replicas", Text: "3"}} {
		if _, _, failure := bed.EditValues(t.Context(), where, []plan.ValueEdit{edit}); report.CodeOf(failure) != report.Usage {
			t.Errorf("%s: %v", name, failure)
		}
	}
	given := map[string]any{"password": "topsecret", "replicas": 3.0, "hosts": []any{map[string]any{"name": "a", "token": "hidden"}}}
	if _, err = choose(t, values("vault", given, false))(t.Context(), bed.Deployer, plan.Options{}); err == nil {
		t.Error("hosts that are no texts")
	}
	delete(given, "hosts")
	if _, err = choose(t, values("vault", given, false))(t.Context(), bed.Deployer, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	edited, wrong, err := bed.EditValues(t.Context(), where, []plan.ValueEdit{{Component: "vault", Path: "replicas", Unset: true}})
	if diff := cmp.Diff(edited["vault"], plan.SiteValues{Values: map[string]any{"password": "topsecret"}, Reset: true}); diff != "" || err != nil || len(wrong) > 0 {
		t.Errorf("%v, %v (-got +want)\n%s", err, wrong, diff)
	}
}
