package rights_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/rights"
)

var update = flag.Bool("update", false, "write docs/installer-role")

// TestShippedRoles compares docs/installer-role with what the commands ask for.
func TestShippedRoles(t *testing.T) {
	const dir = "../../docs/installer-role"
	known := map[string]bool{}
	for _, f := range rights.Files() {
		known[f.Name] = true
		name := filepath.Join(dir, f.Name)
		if *update {
			if err := os.WriteFile(name, f.YAML(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(f.YAML()), string(data)); diff != "" {
			t.Errorf("docs/installer-role/%s is not what the commands ask for; look at the difference, then run this test with -update\n%s", f.Name, diff)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !known[e.Name()] {
			t.Errorf("docs/installer-role/%s is written by hand", e.Name())
		}
	}
}

// TestShippedRolesSuffice: the roles of a file grant what the commands for its users ask for.
func TestShippedRolesSuffice(t *testing.T) {
	for _, test := range []struct {
		name, file string
		asked      []cluster.Permission
	}{
		{"read", "reader.yaml", rights.Read()},
		{"plan", "reader.yaml", rights.Plan(false)},
		{"read", "installer.yaml", rights.Read()},
		{"read logs", "logs.yaml", rights.Logs("site")},
		{"carry out a plan", "installer.yaml", rights.Plan(true)},
		{"change an environment", "installer.yaml", rights.Change("site")},
		{"create an environment", "installer.yaml", rights.CreateNamespace("site", false)},
		{"delete an environment", "installer.yaml", slices.Concat(rights.Namespaces(), rights.DeleteLocks())},
		{"activate", "installer.yaml", slices.Concat(rights.Lock(), rights.WriteRecords(), rights.Definitions())},
		{"deploy an operator", "installer.yaml", rights.Objects("site")},
		{"preload", "preloader.yaml", rights.Preload()},
	} {
		t.Run(test.name+" by "+test.file, func(t *testing.T) {
			files := rights.Files()
			at := slices.IndexFunc(files, func(f rights.File) bool { return f.Name == test.file })
			for _, p := range test.asked {
				if !slices.ContainsFunc(files[at].Roles, func(r rights.Role) bool { return grants(r, p) }) {
					t.Errorf("no role grants %+v", p)
				}
			}
		})
	}
}

// grants reports whether a role has a permission, perhaps as a part of a wider one.
func grants(r rights.Role, p cluster.Permission) bool {
	return slices.ContainsFunc(r.Permissions, func(has cluster.Permission) bool {
		wide := has
		if has.Namespace == "" {
			wide.Namespace = p.Namespace
		}
		if has.Name == "" {
			wide.Name = p.Name
		}
		return wide == p
	})
}
