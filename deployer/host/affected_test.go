package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/build/sbom"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
)

// TestUses finds where a version is deployed, wanted, or active, and which versions were not searched.
func TestUses(t *testing.T) {
	deployed := func(solution, wanted, version string) schema.DeploymentStatus {
		return schema.DeploymentStatus{Solution: solution, Wanted: wanted, Version: version}
	}
	status := &schema.Status{
		Solutions: []schema.SolutionStatus{{Name: "shop", Active: "1.0.0", Versions: []schema.ImportedVersion{{Version: "1.0.0", ID: "shop-1.0.0"}, {Version: "0.9.0", ID: "shop-0.9.0"}}}},
		Environments: []schema.EnvironmentStatus{{Name: "prod", Namespaces: []schema.NamespaceStatus{
			{Name: "prod", Deployments: []schema.DeploymentStatus{deployed("shop", "1.0.0", "1.0.0")}},
			{Name: "prod-2", Deployments: []schema.DeploymentStatus{deployed("shop", "1.1.0", "1.0.0"), deployed("shop-b", "1.0.0", "1.0.0")}},
			{Name: "prod-3", Deployments: []schema.DeploymentStatus{deployed("shop", "0.9.0", "0.9.0")}},
		}}},
	}
	entry := store.Entry{StoredArchive: schema.StoredArchive{Name: "shop", Version: "1.0.0"}}
	want := []schema.VersionUse{{Environment: "prod", Namespace: "prod"}, {Environment: "prod", Namespace: "prod-2"}}
	if diff := cmp.Diff(want, usesOf(status, entry)); diff != "" || !isActive(status, entry) {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
	other := store.Entry{StoredArchive: schema.StoredArchive{Name: "shop", Version: "1.1.0"}}
	if diff := cmp.Diff(want[1:], usesOf(status, other)); diff != "" || isActive(status, other) {
		t.Errorf("uses of 1.1.0 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]schema.UnsearchedVersion{{ID: "shop-0.9.0", Reason: "its archive is not on this host"}}, notStored(status, []store.Entry{entry})); diff != "" {
		t.Errorf("not searched (-want +got):\n%s", diff)
	}
}

// TestNodes: a node has an affected image if a pod in a namespace of the version runs it, by digest or not. What cannot be read is a problem.
func TestNodes(t *testing.T) {
	affected := schema.AffectedArchive{Solution: "shop", Version: "1.0.0", Packages: []schema.AffectedPackage{{Image: "ui:1.0.0"}}}
	uses := func(namespaces ...string) (uses []schema.VersionUse) {
		for _, n := range namespaces {
			uses = append(uses, schema.VersionUse{Environment: n, Namespace: n})
		}
		return uses
	}
	versions := []schema.AffectedVersion{
		{AffectedArchive: affected, Active: true, Uses: uses("prod", "test", "hidden", "idle")},
		{AffectedArchive: schema.AffectedArchive{Solution: "shop", Version: "1.1.0"}, Uses: uses("new")},
	}
	const host = "registry.solutionctl.invalid/"
	running := map[string]map[string][]string{
		"shop-system": {"e": {host + "shop-1.0.0/ui:1.0.0"}},
		"prod":        {"b": {host + "shop-1.0.0/ui:1.0.0@sha256:0"}, "a": {host + "shop-1.0.0/db:1.0.0", "site.example/proxy/shop-1.0.0/ui:1.0.0"}, "c": {host + "shop-1.0.0/db:1.0.0"}},
		"test":        {"d": {host + "shop-1.1.0/ui:1.0.0", host + "workshop-1.0.0/ui:1.0.0", host + "shop-1.0.0/ui:1.0.0.1"}},
	}
	problems := addNodes(t.Context(), versions, func(_ context.Context, namespace string) (map[string][]string, error) {
		switch namespace {
		case "hidden":
			return nil, errors.New("may not list pods")
		case "new":
			t.Error("the namespace of a version without the package is read")
		}
		return running[namespace], nil
	})
	if diff := cmp.Diff([]string{"nodes of namespace hidden: may not list pods"}, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	want := uses("prod", "test", "hidden", "idle")
	want[0].Nodes = []string{"a", "b"}
	if diff := cmp.Diff(want, versions[0].Uses); diff != "" || !slices.Equal(versions[0].Nodes, []string{"e"}) {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
}

// BenchmarkAffected asks ten versions with five images each, and 150 packages in each of them, which 200 environments have a package.
func BenchmarkAffected(b *testing.B) {
	w := newWorld(b)
	status := &schema.Status{}
	for i := range 10 {
		version := fmt.Sprintf("1.%d.0", i)
		if _, err := w.do(w.archive(version)); err != nil {
			b.Fatal(err)
		}
		list := &schema.PackageList{Solution: "demo", Version: version}
		for j := range 5 {
			image := schema.ImagePackages{Image: fmt.Sprintf("image%d:1", j), Distribution: "debian-12"}
			for k := range 150 {
				name := fmt.Sprintf("lib%d", k)
				image.Packages = append(image.Packages, schema.Package{
					Name: name, Version: fmt.Sprintf("3.%d.%d-1", i, j), Type: "deb", PURL: "pkg:deb/debian/" + name, Paths: []string{"var/lib/dpkg/status"},
				})
			}
			list.Images = append(list.Images, image)
		}
		if err := w.keepPackages(must(w.Store.Find("demo", version))(b), list); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 200 {
		status.Environments = append(status.Environments, schema.EnvironmentStatus{Name: fmt.Sprint("env", i), Namespaces: []schema.NamespaceStatus{
			{Name: fmt.Sprint("env", i), Deployments: []schema.DeploymentStatus{{Solution: "demo", Wanted: "1.5.0", Version: "1.5.0"}}},
		}})
	}
	query, err := sbom.ParseQuery("pkg:deb/debian/lib77@<3.6")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		found, err := w.Affected(b.Context(), AffectedOptions{Search: query.Search, Status: func(context.Context) (*schema.Status, error) { return status, nil }})
		if err != nil || len(found.Versions) != 10 || len(found.NotSearched) > 0 || len(found.Versions[5].Uses) != 200 {
			b.Fatalf("%+v, %v", found, err)
		}
	}
}
