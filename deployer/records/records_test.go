package records_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	site = deployertest.Environment
	shop = "shop"
)

var (
	plain    deployertest.Content
	coloured = deployertest.Content{Fields: "colour: {type: string}"}
)

// TestImport: the catalogue, the payload and MetalK8s' document know a version after its import, and forget it together.
func TestImport(t *testing.T) {
	b := deployertest.New(t)
	known := func() []string {
		t.Helper()
		list, err := b.Records.Imports(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ids := []string{}
		for _, i := range list {
			ids = append(ids, i.ID())
		}
		shared, err := b.Records.Documents.Solutions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range list {
			if _, ok := shared.Find(i.Name, i.Version); !ok {
				t.Errorf("MetalK8s does not know of %s", i.ID())
			}
			p, err := b.Records.Payload(t.Context(), i)
			if err != nil || p.Solution.ID() != i.ID() {
				t.Errorf("payload of %s: %v", i.ID(), err)
			}
			if again, err := b.Records.Payload(t.Context(), i); err != nil || again != p {
				t.Errorf("payload of %s is decoded again, and its charts are rendered again: %v", i.ID(), err)
			}
		}
		return ids
	}
	for _, version := range []string{"1.10.0", "1.9.0", "2.0.0-rc.1"} {
		b.Imported(shop, version, plain)
	}
	if diff := cmp.Diff([]string{"shop-1.9.0", "shop-1.10.0", "shop-2.0.0-rc.1"}, known()); diff != "" {
		t.Errorf("imported (-want +got):\n%s", diff)
	}
	before := b.Server.Object("Secret", cluster.SystemNamespace, records.ImportsName).GetResourceVersion()
	b.Imported(shop, "1.9.0", plain)
	if after := b.Server.Object("Secret", cluster.SystemNamespace, records.ImportsName).GetResourceVersion(); after != before {
		t.Error("importing the same again changed the catalogue")
	}
	for _, id := range []string{"shop-1.9.0", "shop-2.0.0-rc.1"} {
		if err := b.RecordUnimport(t.Context(), deployer.UnimportOptions{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"shop-1.10.0"}, known()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// TestCatalogues checks that a catalogue belongs to its reader, and that the next one is as the cluster has it.
func TestCatalogues(t *testing.T) {
	b := deployertest.New(t)
	known := func() *records.Catalog {
		t.Helper()
		catalog, err := b.Records.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return catalog
	}
	b.Imported(shop, "1.0.0", plain)
	first := known()
	first.Put(schema.Import{Name: shop, Version: "2.0.0"})
	if list := known().Imports(); len(list) != 1 || len(first.Imports()) != 2 {
		t.Errorf("the next reader has %v", list)
	}
	b.Imported(shop, "3.0.0", plain)
	if list := known().Imports(); len(list) != 2 || list[1].Version != "3.0.0" {
		t.Errorf("after another import: %v", list)
	}
}

// TestReplaced: a deployed release is never replaced; a pre-release is, and the notices name its deployments.
func TestReplaced(t *testing.T) {
	for _, test := range []struct {
		version string
		used    bool
		code    report.Code
		words   []string
	}{
		{"1.0.0", false, "", nil},
		{"1.0.0", true, report.Replaced, nil},
		{"1.0.0-rc.1", true, "", []string{"deploy activate shop 1.0.0-rc.1", "deploy add site shop 1.0.0-rc.1"}},
	} {
		t.Run(fmt.Sprintf("%s, used %t", test.version, test.used), func(t *testing.T) {
			b := deployertest.New(t)
			b.Imported(shop, test.version, plain)
			if test.used {
				b.Added(shop, test.version, plain)
			}
			other := b.Record(shop, test.version, coloured)
			other.SHA256 = strings.Repeat("0", 64)
			notices, err := b.RecordImport(t.Context(), other)
			if report.CodeOf(err) != test.code {
				t.Fatalf("%q, want %s: %v", report.CodeOf(err), test.code, err)
			}
			for _, word := range test.words {
				if !strings.Contains(strings.Join(notices, "\n"), word) {
					t.Errorf("nothing about %q in %q", word, notices)
				}
			}
			list, err := b.Records.Imports(t.Context())
			if replaced := list[0].Archive.SHA256 == other.SHA256; err != nil || replaced != (test.code == "") {
				t.Errorf("replaced %t, %v", replaced, err)
			}
		})
	}
}

// TestUnreadable: a damaged record is reported as damaged, and not as empty.
func TestUnreadable(t *testing.T) {
	for _, test := range []struct{ name, data string }{
		{"no base64", "%%%"},
		{"no JSON", "bm90aGluZw=="},
		{"of a later version", "eyJmb3JtYXRWZXJzaW9uIjogOTksICJ3cml0dGVuQnkiOiAiOTkuMCJ9"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := deployertest.New(t)
			b.Imported(shop, "1.0.0", plain)
			secret := b.Server.Object("Secret", cluster.SystemNamespace, records.ImportsName)
			secret.Object["data"] = map[string]any{"imports.json": test.data}
			b.Put(secret)
			_, err := b.Records.Catalog(t.Context())
			if code := report.CodeOf(err); code != report.Corrupt && code != report.Refused && code != report.Invalid {
				t.Errorf("%s: %v", code, err)
			}
		})
	}
	t.Run("a payload of other content", func(t *testing.T) {
		b := deployertest.New(t)
		b.Imported(shop, "1.0.0", plain)
		list, err := b.Records.Imports(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range b.Server.Names("Secret") {
			namespace, secret, _ := strings.Cut(name, "/")
			if object := b.Server.Object("Secret", namespace, secret); strings.HasPrefix(secret, "content.") {
				for key := range object.Object["data"].(map[string]any) {
					object.Object["data"] = map[string]any{key: "bm90aGluZw=="}
				}
				b.Put(object)
			}
		}
		_, err = b.Connect().Records.Payload(t.Context(), list[0])
		deployertest.Refused(t, err, report.Corrupt, "shop-1.0.0")
	})
}

// TestDeployments: a Solution is where our records say, and where its operator is on none of them.
func TestDeployments(t *testing.T) {
	b := deployertest.New(t)
	b.Namespace("other", "annex")
	b.Added(shop, "1.0.0", plain)
	places := func() (list []string) {
		t.Helper()
		found, err := b.Records.Deployments(t.Context(), shop)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range found {
			list = append(list, d.Environment+" "+d.Namespace+" "+d.Version)
		}
		slices.Sort(list)
		return list
	}
	if diff := cmp.Diff([]string{"site site 1.0.0"}, places()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// A version that a namespace requests blocks nothing.
	b.Server.Put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: metalk8s-environment, namespace: annex}, data: {shop: 1.0.0}}")
	if got := places(); len(got) != 1 {
		t.Errorf("a wish is no deployment: %q", got)
	}
	operator := b.Server.Object("Deployment", site, records.OperatorName(shop))
	operator.SetNamespace("annex")
	b.Put(operator)
	if diff := cmp.Diff([]string{"other annex 1.0.0", "site site 1.0.0"}, places()); diff != "" {
		t.Errorf("with an operator on no record (-want +got):\n%s", diff)
	}
	err := b.Records.CheckUnused(t.Context(), shop, "1.0.0")
	deployertest.Refused(t, err, report.InUse, "environment site", "environment other")
	if err := b.Records.CheckUnused(t.Context(), shop, "9.0.0"); err != nil {
		t.Errorf("nobody has it: %v", err)
	}
}

// TestImagesInUse: a version is in use while any workload runs its images.
func TestImagesInUse(t *testing.T) {
	b := deployertest.New(t)
	b.Imported(shop, "1.0.0", plain)
	b.Server.Put(t, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: data, namespace: default},
spec: {replicas: 0, template: {spec: {containers: [{name: c, image: "registry.solutionctl.invalid/shop-1.0.0/server:1.0.0"}]}}}}`)
	err := b.RecordUnimport(t.Context(), deployer.UnimportOptions{ID: "shop-1.0.0"})
	deployertest.Refused(t, err, report.InUse, "StatefulSet", "default/data")
	b.Imported(shop, "1.0.0-rc.1", plain) // not the running one, though it begins alike
	if err := b.RecordUnimport(t.Context(), deployer.UnimportOptions{ID: "shop-1.0.0-rc.1"}); err != nil {
		t.Error(err)
	}
}

// TestLost: unrecorded objects with our label are found, with their field manager and kind.
func TestLost(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", plain)
	lost := func() map[record.Key]*records.Unrecorded {
		t.Helper()
		objects, err := b.Records.Engine.Labelled(t.Context(), engine.Kinds)
		if err != nil {
			t.Fatal(err)
		}
		states, err := b.Records.Engine.States(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found, err := b.Records.Lost(t.Context(), objects, states)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := lost(); len(found) > 0 {
		t.Errorf("all of it is on record: %v", slices.Collect(maps.Keys(found)))
	}
	key := record.Key{Namespace: site, Name: shop}
	b.Deleted("Secret", cluster.SystemNamespace, key.SecretName())
	found := lost()
	if len(found) != 1 || found[key] == nil {
		t.Fatalf("%v", found)
	}
	for _, name := range []string{"Deployment site/shop-operator", "ServiceAccount site/shop-operator"} {
		if !strings.Contains(found[key].Text(), name) {
			t.Errorf("%s is not among %s", name, found[key].Text())
		}
	}
	strays, err := b.Records.ListUnrecorded(t.Context(), shop, []metalk8s.Namespace{{Name: site, Environment: site}})
	if err != nil || strays[site] == nil || len(strays[site].Deployed()) < len(found[key].Ours) {
		t.Errorf("%v, %v", strays, err)
	}
	deployertest.Refused(t, strays[site].Refuse(site, ""), report.Conflict, "deploy remove site shop --adopt")
}

// TestVersionDrift: the shared documents are restored from the records.
func TestVersionDrift(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", plain)
	for _, asked := range []string{"9.9.9", `"no version"`, "null"} {
		b.Server.Put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: metalk8s-environment, namespace: site}, data: {shop: "+asked+"}}")
		if asked == "null" {
			if err := b.Records.Documents.SetActive(t.Context(), shop, ""); err != nil {
				t.Fatal(err)
			}
		}
		states, err := b.Records.Engine.States(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		inside, err := b.Records.Namespaces(t.Context(), site, "")
		if err != nil {
			t.Fatal(err)
		}
		changes, restore, err := b.Records.VersionDrift(t.Context(), states, map[string]metalk8s.Namespace{site: inside[0]})
		if err != nil || len(changes) == 0 {
			t.Fatalf("%s: %+v, %v", asked, changes, err)
		}
		if err = restore(t.Context()); err != nil {
			t.Fatal(err)
		}
		if inside, err = b.Records.Namespaces(t.Context(), site, ""); err != nil || inside[0].Versions[shop] != "1.0.0" {
			t.Errorf("%s: %+v, %v", asked, inside, err)
		}
	}
	if active, err := b.Records.Active(t.Context(), shop); err != nil || active != "1.0.0" {
		t.Errorf("active is %q, %v", active, err)
	}
}

// TestHistory: operations are listed newest first, filtered by Solution and environment.
func TestHistory(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", plain)
	if _, err := b.Remove(t.Context(), deployer.RemoveOptions{Environment: site, Solution: shop}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		o    records.HistoryOptions
		want []string
	}{
		{records.HistoryOptions{Environment: site}, []string{"site remove  done", "site add 1.0.0 done"}},
		{records.HistoryOptions{Solution: shop}, []string{"site remove  done", "site add 1.0.0 done", " activate 1.0.0 done"}},
	} {
		h, err := b.Records.History(t.Context(), test.o)
		if err != nil {
			t.Fatal(err)
		}
		deployertest.Valid(t, "history", h)
		var lines []string
		for _, o := range h.Operations {
			lines = append(lines, fmt.Sprintf("%s %s %s %s", o.Environment, o.Operation, o.Version, o.Outcome))
			if o.User == "" || o.Started.IsZero() || o.Finished == nil {
				t.Errorf("%+v", o)
			}
		}
		if diff := cmp.Diff(test.want, lines); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test.o, diff)
		}
	}
	_, err := b.Records.History(t.Context(), records.HistoryOptions{Environment: site, Solution: "other"})
	deployertest.Refused(t, err, report.NotFound, "other", shop)
	_, err = b.Records.History(t.Context(), records.HistoryOptions{Environment: "nowhere"})
	deployertest.Refused(t, err, report.NotFound, "nowhere")
}

// TestSearch finds versions imported into the cluster and into this host by any of their names.
func TestSearch(t *testing.T) {
	b := deployertest.New(t)
	b.Imported(shop, "1.9.0", plain)
	b.Added(shop, "1.10.0", plain)
	stored := deployertest.Payload(t, "clock", "2.0.0", plain).Solution
	stored.SetAnnotation(schema.AnnotationDisplayName, "Wonder Clock")
	ref, err := schema.ParseImageRef("face:3.1")
	if err != nil {
		t.Fatal(err)
	}
	stored.Spec.Images = append(stored.Spec.Images, ref)
	stored.Spec.ImageOrigins = map[schema.ImageRef]string{ref: "ghcr.io/acme/Face:3.1"}
	const old, current, later = "shop-1.9.0 imported", "shop-1.10.0 active imported [site]", "clock-2.0.0 stored"
	for _, test := range []struct {
		term string
		want []string
	}{
		{"", []string{later, old, current}},
		{"shop-1", []string{old, current}},
		{"1.10", []string{current + " shop-operator:1.10.0"}},
		{"WONDER", []string{later}},
		{"acme/face", []string{later + " face:3.1"}},
		{"nothing like this", nil},
	} {
		r, err := b.Records.Search(t.Context(), records.SearchOptions{
			Term: test.term, Stored: []records.StoredArchive{{Solution: stored, Path: "/store/x.iso"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		deployertest.Valid(t, "search", r)
		var lines []string
		for _, v := range r.Versions {
			line := v.ID
			if v.Active {
				line += " active"
			}
			if v.Imported {
				line += " imported"
			}
			if v.Stored {
				line += " stored"
			}
			if len(v.Environments) > 0 {
				line += fmt.Sprint(" ", v.Environments)
			}
			for _, i := range v.Images {
				if i.Matches {
					line += " " + i.Image
				}
			}
			lines = append(lines, line)
		}
		if diff := cmp.Diff(test.want, lines); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.term, diff)
		}
	}
}
