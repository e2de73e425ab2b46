package deployer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/loader"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
)

// loads is a launcher that brings the bed's Solution into its environment.
func (b *bed) loads() *loader.Launcher {
	b.Helper()
	c, err := schema.ParseLoaderConfiguration("loader.yaml", fmt.Appendf(nil, `apiVersion: solutionctl.io/v1alpha1
kind: LoaderConfiguration
spec:
  image: registry.example/solutionctl@sha256:%064d
  environments: [{name: %s, solutions: [{name: %s}]}]
`, 1, b.Env, b.Solution))
	if err != nil {
		b.Fatal(err)
	}
	return &loader.Launcher{Deployer: b.Deployer, Configuration: c}
}

// placed are the rules of a plan by their namespaces, "" for all of them.
func placed(t *testing.T, text string) map[string][]rbacv1.PolicyRule {
	t.Helper()
	places, namespace := map[string]string{}, ""
	for line := range strings.Lines(text) {
		if place, ok := strings.CutPrefix(line, "in "); ok {
			_, namespace, _ = strings.Cut(strings.TrimSuffix(place, ":\n"), "namespace")
			namespace = strings.TrimSpace(namespace)
			continue
		}
		places[namespace] += line
	}
	rules := map[string][]rbacv1.PolicyRule{}
	for namespace, text := range places {
		var list []rbacv1.PolicyRule
		if err := yaml.UnmarshalStrict([]byte(text), &list); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		rules[namespace] = single(list)
	}
	return rules
}

// grants reports whether rules give a right.
func grants(rules []rbacv1.PolicyRule, a authorization.ResourceAttributes) bool {
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		has := func(list []string, word string) bool {
			return slices.Contains(list, word) || slices.Contains(list, "*")
		}
		return has(r.Verbs, a.Verb) && has(r.APIGroups, a.Group) && has(r.Resources, resource) &&
			(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.Name))
	})
}

// TestLoaderMatrix: of all that the API server knows, the account of a run may do what the plan has shown, and nothing else, in
// namespaces that are its business and in those that are not, with objects that it has to do with and with others.
func TestLoaderMatrix(t *testing.T) {
	t.Parallel()
	testcluster.Long(t, "TestLeastRights in deployer, and the script loader in TestScript")
	b := newBedOn(t, testcluster.StartFor(t, testcluster.Options{}))
	b.activated("1.0.0", content{})
	l := b.loads()
	plan, err := l.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = l.Start(t.Context(), loader.StartOptions{NoWait: true}); err != nil {
		t.Fatal(err)
	}
	may := func(account string, a authorization.ResourceAttributes) bool {
		t.Helper()
		of := "system:serviceaccount:" + cluster.SystemNamespace
		answer, failure := b.in.Client().AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorization.SubjectAccessReview{
			Spec: authorization.SubjectAccessReviewSpec{
				User: of + ":" + account, ResourceAttributes: &a,
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + cluster.SystemNamespace, "system:authenticated"},
			},
		}, metav1.CreateOptions{})
		if failure != nil {
			t.Fatal(failure)
		}
		return answer.Status.Allowed
	}
	_, lists, err := b.in.Client().Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	rules, asked, allowed := placed(t, plan.Rights), 0, 0
	names := map[string][]string{} // of its own, by their resources
	for _, list := range rules {
		for _, rule := range list {
			names[rule.Resources[0]] = append(names[rule.Resources[0]], rule.ResourceNames...)
		}
	}
	await(t, func() (bool, bool) {
		return true, may("solutionctl-loader", authorization.ResourceAttributes{Verb: "update", Resource: "configmaps", Namespace: cluster.SystemNamespace, Name: loader.ProgressName})
	})
	for _, list := range lists {
		group, _, _ := strings.Cut(list.GroupVersion, "/")
		if group == list.GroupVersion {
			group = "" // the core has a version only
		}
		for _, resource := range list.APIResources {
			name, sub, _ := strings.Cut(resource.Name, "/")
			for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind", "escalate", "impersonate"} {
				for _, namespace := range []string{"", b.Env, cluster.SystemNamespace, "default", "kube-system"} {
					for _, object := range append([]string{"", "of-another"}, names[resource.Name]...) {
						a := authorization.ResourceAttributes{Group: group, Resource: name, Subresource: sub, Verb: verb, Namespace: namespace, Name: object}
						want := grants(rules[""], a) || namespace != "" && grants(rules[namespace], a)
						if object != "" && !want && verb != "get" && verb != "update" && verb != "patch" && verb != "delete" {
							continue // these have no name
						}
						asked++
						got := may("solutionctl-loader", a)
						if got {
							allowed++
						}
						if got != want && (!got || !may("unbound", a)) {
							t.Errorf("the account may %s %s %q in %q: %t, and the plan says %t", verb, resource.Name, object, namespace, got, want)
						}
					}
				}
			}
		}
	}
	t.Logf("%d questions, %d of them allowed", asked, allowed)
	if allowed == 0 {
		t.Error("the account may do nothing")
	}
}

// TestLoaderRights checks that without any one of the rights in the plan, a run is refused before it changes anything, and that the
// missing rule is named. Rights that only serve explanations are not required.
func TestLoaderRights(t *testing.T) {
	t.Parallel()
	testcluster.Long(t, "TestLeastRights in deployer")
	b := newBedOn(t, testcluster.StartFor(t, testcluster.Options{}))
	b.activated("1.0.0", content{})
	loaded, err := b.loads().Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var roles []role
	for namespace, rules := range placed(t, loaded.Rights) {
		kind := "Role"
		if namespace == "" {
			kind = "ClusterRole"
		}
		one := role{TypeMeta: metav1.TypeMeta{APIVersion: roleGroup + "/v1", Kind: kind}, Rules: rules}
		one.Name, one.Namespace = "loader", namespace
		roles = append(roles, one)
		b.grant(one)
	}
	trials := b.trials(roles, func(role) bool { return true })
	ensure := command{"ensure", nil, func(d *deployer.Deployer, o plan.Options) error {
		o.KeepEdits, o.NoWait = true, true
		_, err := d.Ensure(t.Context(), deployer.EnsureOptions{Options: o, Environment: b.Env, Solutions: []plan.Wanted{{Solution: b.Solution}}})
		return err
	}, true}
	await(t, func() (bool, bool) {
		return true, ensure.run(b.user("loader", roles), plan.Options{DryRun: true}) == nil
	})
	for _, one := range trials {
		resource := one.rule.Resources[0]
		ensure.dry = resource != "leases" // a plan takes no lock
		b.try(ensure, one)
		onlyLooks := slices.Contains([]string{"get", "list", "watch"}, one.verb) && ensure.dry // or asks in another way
		tells := resource == "events" || slices.Contains(one.rule.ResourceNames, loader.ProgressName)
		last := slices.Contains(one.rule.ResourceNames, metalk8s.EnvironmentConfigMap) // which is there, or is made, when all else is done
		if one.caught == "" && !onlyLooks && !tells && !last {
			t.Errorf("nothing needs %s", one)
		}
	}
}
