package deployer_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/rights"
)

// TestImporters: who has the roles of importers, and nothing else, imports and unimports, from an empty cluster on, and needs every
// verb of them.
func TestImporters(t *testing.T) {
	b := deployertest.New(t)
	grants, err := b.Roles(t.Context(), rights.RolesOptions{Importers: "archivists"})
	if err != nil {
		t.Fatal(err)
	}
	used := map[authorization.ResourceAttributes]bool{} // what is granted
	var made, bound []string
	for _, item := range grants.Items {
		switch item := item.(type) {
		case map[string]any:
			object := &unstructured.Unstructured{Object: item}
			b.Put(object)
			made = append(made, object.GetName())
		case rbacv1.RoleBinding:
			bound = append(bound, item.Subjects[0].Name+" in "+item.Namespace)
		case rbacv1.ClusterRole:
			for _, rule := range item.Rules {
				names := rule.ResourceNames
				if names == nil {
					names = []string{""}
				}
				for _, name := range names {
					for _, verb := range rule.Verbs {
						used[authorization.ResourceAttributes{Group: rule.APIGroups[0], Resource: rule.Resources[0], Namespace: item.Namespace, Name: name, Verb: verb}] = false
					}
				}
			}
		}
	}
	if want := []string{cluster.SystemNamespace, metalk8s.SolutionsNamespace}; !slices.Equal(made, want) {
		t.Errorf("namespaces %q, want %q", made, want)
	}
	if want := []string{"archivists in ", "archivists in " + cluster.SystemNamespace, "archivists in " + metalk8s.SolutionsNamespace}; !slices.Equal(bound, want) {
		t.Errorf("bound %q, want %q", bound, want)
	}
	b.Only("none", func(a authorization.ResourceAttributes) bool {
		for right := range used {
			asked := a
			asked.Version = ""
			if right.Namespace == "" {
				asked.Namespace = ""
			}
			if right.Name == "" {
				asked.Name = ""
			}
			if right == asked {
				used[right] = true
				return true
			}
		}
		return false
	})
	kinds := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret"}
	only := b.Server.Answer
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch || only(w, r) {
			return r.Method != http.MethodPatch && only(w, r)
		}
		// What a patch makes takes the right to make it, too.
		parts := strings.Split(r.URL.Path, "/") // /api/v1/namespaces/NAMESPACE/RESOURCE/NAME
		a := authorization.ResourceAttributes{Verb: "create", Namespace: parts[4], Resource: parts[5], Name: parts[6]}
		if b.Server.Object(kinds[a.Resource], a.Namespace, a.Name) != nil || b.Server.May(a) {
			return false
		}
		clustertest.Fail(w, apierrors.NewForbidden(kube.GroupResource{Resource: a.Resource}, a.Name, errors.New("it may not be made")))
		return true
	}
	importer := b.Connect()
	changed := b.Record(shop, "1.0.0", coloured)
	changed.SHA256 = strings.Repeat("0", 64)
	for _, verb := range []string{rights.VerbImport, rights.VerbUnimport} {
		if err = importer.Cluster.Require(t.Context(), []cluster.Permission{rights.OnArchives(verb)}); err != nil {
			t.Error(err)
		}
	}
	if _, err = importer.RecordImport(t.Context(), b.Record(shop, "1.0.0", plain)); err == nil {
		_, err = importer.RecordImport(t.Context(), changed) // nothing uses it, and its content goes
	}
	if err != nil {
		t.Fatal(err)
	}
	endpoints := b.Record(shop, "1.1.0", plain)
	endpoints.Registry.Endpoints = []string{"http://127.0.0.2:9"}
	if _, err = importer.RecordImport(t.Context(), endpoints); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"shop-1.0.0", "shop-1.1.0"} {
		if err = importer.RecordUnimport(t.Context(), deployer.UnimportOptions{ID: id}); err != nil {
			t.Error(err)
		}
	}
	for right, needed := range used {
		if !needed {
			t.Errorf("nothing needs %+v", right)
		}
	}
	var verbs []string
	for _, a := range []authorization.ResourceAttributes{
		{Verb: "get", Resource: "secrets", Namespace: "kube-system"},
		{Verb: "create", Resource: "namespaces"},
		{Verb: "patch", Group: "apps", Resource: "deployments", Namespace: site},
		{Verb: "get", Resource: "configmaps", Namespace: site, Name: "theirs"},
	} {
		if b.Server.May(a) {
			verbs = append(verbs, a.Verb+" "+a.Resource)
		}
	}
	if len(verbs) > 0 {
		t.Errorf("they may also %q", verbs)
	}
}

// TestRolesOfBoth checks that the roles of a Solution include those of importers only if subjects are named for them.
func TestRolesOfBoth(t *testing.T) {
	b := deployertest.New(t)
	b.Imported(shop, "1.0.0", plain)
	for _, test := range []struct {
		o         rights.RolesOptions
		installer bool
		importer  bool
	}{
		{rights.RolesOptions{}, false, true},
		{rights.RolesOptions{Solution: shop}, true, false},
		{rights.RolesOptions{Solution: shop, Importers: "archivists"}, true, true},
	} {
		grants, err := b.Roles(t.Context(), test.o)
		if err != nil {
			t.Fatal(err)
		}
		text, err := grants.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(text), "name: solutionctl-installer-"+shop); got != test.installer {
			t.Errorf("%+v: installers are there: %t", test.o, got)
		}
		if got := strings.Contains(string(text), "name: solutionctl-importer"); got != test.importer {
			t.Errorf("%+v: importers are there: %t", test.o, got)
		}
		if strings.Contains(string(text), "kind: Namespace") {
			t.Errorf("%+v: namespaces that exist are made again", test.o)
		}
	}
}
