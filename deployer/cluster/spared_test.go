package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
)

// TestRemove checks that only the answer to a deletion that removed the object at once proves that it is gone.
func TestRemove(t *testing.T) {
	for name, test := range map[string]struct {
		object  string
		options DeleteOptions
		answer  string // instead of the server's
		gone    bool
	}{
		"removed":                           {object: config("a", "1"), gone: true},
		"a dry run":                         {object: config("a", "1"), options: DeleteOptions{DryRun: true}},
		"waits for finalizers":              {object: strings.Replace(config("a", "1"), "name: a", "name: a, finalizers: [example.com/x]", 1)},
		"a status without a UID":            {object: config("a", "1"), answer: `{"kind":"Status","status":"Success","details":{"name":"a"}}`},
		"a status about another object":     {object: config("a", "1"), answer: `{"kind":"Status","status":"Success","details":{"name":"a","uid":"other"}}`},
		"the object, as for some kinds":     {object: config("a", "1"), answer: `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}`},
		"an answer that is not an object":   {object: config("a", "1"), answer: `ok`},
		"one of a server behind the server": {object: config("a", "1"), answer: `{"kind":"Status","status":"Success"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := connected(t, test.object)
			if test.answer != "" {
				s.Answer = func(w http.ResponseWriter, r *http.Request) bool {
					if r.Method == http.MethodDelete {
						_, _ = w.Write([]byte(test.answer)) // the client finds out
					}
					return r.Method == http.MethodDelete
				}
			}
			if gone, err := c.Remove(t.Context(), s.Object("ConfigMap", "shop", "a"), test.options); gone != test.gone || err != nil {
				t.Errorf("gone %t, %v", gone, err)
			}
		})
	}
	s, c := connected(t, config("a", "1"))
	was := s.Object("ConfigMap", "shop", "a")
	if err := c.Delete(t.Context(), was, DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if gone, err := c.Remove(t.Context(), was, DeleteOptions{}); gone || err != nil {
		t.Errorf("deleted by others: gone %t, %v", gone, err)
	}
}

// TestBrief checks writes whose caller reads only the metadata of the answer.
func TestBrief(t *testing.T) {
	s, c := connected(t, config("a", "1"))
	for name, write := range map[string]func() (*unstructured.Unstructured, error){
		"create": func() (*unstructured.Unstructured, error) {
			return c.Create(t.Context(), parsed(t, config("b", "2")), WriteOptions{Brief: true})
		},
		"apply": func() (*unstructured.Unstructured, error) {
			return c.Apply(t.Context(), parsed(t, config("a", "2")), WriteOptions{Brief: true, Force: true})
		},
	} {
		answer, err := write()
		if err != nil {
			t.Fatal(err)
		}
		stored := s.Object("ConfigMap", "shop", answer.GetName())
		if answer.GroupVersionKind() != ConfigMapKind || answer.GetUID() != stored.GetUID() || answer.GetResourceVersion() != stored.GetResourceVersion() || answer.Object["data"] != nil {
			t.Errorf("%s: %v, stored %v", name, answer, stored)
		}
	}
}

// TestRulesInsteadOfQuestions checks that the rules of a namespace answer for several permissions in it, and nothing else.
func TestRulesInsteadOfQuestions(t *testing.T) {
	secrets := Permission{Resource: "secrets", Namespace: "shop"}.Each("get", "list", "create", "update")
	for name, test := range map[string]struct {
		rules     []authorization.ResourceRule
		partial   bool
		refused   bool // to list rules
		may       func(authorization.ResourceAttributes) bool
		wanted    []Permission
		missing   []Permission
		questions int // besides the one about all permissions
	}{
		"all granted": {
			rules:  []authorization.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{""}, Resources: []string{"secrets"}}},
			wanted: secrets,
		},
		"what rules do not grant is asked for": {
			rules:  []authorization.ResourceRule{{Verbs: []string{"get", "list"}, APIGroups: []string{"", "apps"}, Resources: []string{"*"}}},
			may:    func(a authorization.ResourceAttributes) bool { return a.Verb != "update" },
			wanted: secrets, missing: secrets[3:], questions: 2,
		},
		"rules of another group": {
			rules:  []authorization.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"apps"}, Resources: []string{"*"}}},
			wanted: secrets, missing: secrets, questions: 4,
		},
		"rules that are not complete": {
			rules: []authorization.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}, partial: true,
			wanted: secrets, missing: secrets, questions: 4,
		},
		"rules that cannot be listed": {refused: true, wanted: secrets, missing: secrets, questions: 4},
		"few permissions are asked for": {
			rules:  []authorization.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
			wanted: secrets[:2], missing: secrets[:2], questions: 2,
		},
		"names": {
			rules: []authorization.ResourceRule{{Verbs: []string{"get", "patch"}, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"mine"}}},
			wanted: append(Only("mine", Permission{Resource: "secrets", Namespace: "shop"}.Each("get", "patch")),
				Permission{Verb: "get", Resource: "secrets", Namespace: "shop", Name: "mine"}, secrets[1]),
			missing: secrets[1:2], questions: 1,
		},
		"subresources": {
			rules: []authorization.ResourceRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods/log", "*/scale"}}},
			wanted: []Permission{
				{Verb: "get", Resource: "pods", Subresource: "log", Namespace: "shop"},
				{Verb: "get", Resource: "pods", Subresource: "scale", Namespace: "shop"},
				{Verb: "get", Resource: "pods", Namespace: "shop"},
			},
			missing: []Permission{{Verb: "get", Resource: "pods", Namespace: "shop"}}, questions: 1,
		},
		"the cluster": {
			rules:  []authorization.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
			wanted: Permission{Resource: "nodes"}.Each("get", "list", "watch"), missing: Permission{Resource: "nodes"}.Each("get", "list", "watch"), questions: 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := connected(t)
			s.May = func(a authorization.ResourceAttributes) bool { return test.may != nil && a.Verb != "*" && test.may(a) }
			s.Answer = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/selfsubjectrulesreviews") {
					return false
				}
				if test.refused {
					w.WriteHeader(http.StatusForbidden)
					return true
				}
				_ = json.NewEncoder(w).Encode(authorization.SelfSubjectRulesReview{
					TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectRulesReview"},
					Status:   authorization.SubjectRulesReviewStatus{ResourceRules: test.rules, Incomplete: test.partial},
				})
				return true
			}
			missing, err := c.Missing(t.Context(), test.wanted...)
			if diff := cmp.Diff(test.missing, missing); diff != "" || err != nil {
				t.Errorf("%v %s", err, diff)
			}
			if got := len(s.Requests()); got != test.questions+1 {
				t.Errorf("%d questions, want %d", got-1, test.questions)
			}
		})
	}
}

// TestLockAgain checks that a process takes a lock that it gave back without reading it, unless another one has changed it since.
func TestLockAgain(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(*clustertest.Server, *Cluster) error
		requests  string
	}{
		"as it was left": {requests: "PUT"},
		"changed by others": {func(s *clustertest.Server, _ *Cluster) error {
			lease := s.Object("Lease", SystemNamespace, "env-shop")
			SetLabel(lease, "changed", "by others")
			s.Update(t, lease)
			return nil
		}, "PUT GET PUT"},
		"deleted": {func(s *clustertest.Server, c *Cluster) error {
			return c.Delete(t.Context(), s.Object("Lease", SystemNamespace, "env-shop"), DeleteOptions{})
		}, "PUT GET GET POST"},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := connected(t, system, heldBy(""))
			first, err := c.Lock(t.Context(), "env-shop", LockOptions{Identity: "jane@host"})
			if err == nil {
				err = first.Release(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			if test.meanwhile != nil {
				if err = test.meanwhile(s, c); err != nil {
					t.Fatal(err)
				}
			}
			s.Requests()
			second, err := c.Lock(t.Context(), "env-shop", LockOptions{Identity: "jane@host"})
			if err != nil {
				t.Fatal(err)
			}
			var methods []string
			for _, r := range s.Requests() {
				method, _, _ := strings.Cut(r, " ")
				methods = append(methods, method)
			}
			if got := strings.Join(methods, " "); got != test.requests {
				t.Errorf("requests %s, want %s", got, test.requests)
			}
			if second.Token() <= first.Token() && name != "deleted" {
				t.Errorf("token %d after %d", second.Token(), first.Token())
			}
			if err := second.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDefinitionsOnce checks that a context with a memory reads a definition once, and lists all of them once.
func TestDefinitionsOnce(t *testing.T) {
	s, c := connected(t)
	for _, test := range []struct {
		name string
		want int
	}{{"with a memory", 2}, {"without", 4}} {
		ctx := t.Context()
		if test.name == "with a memory" {
			ctx = WithMemory(ctx)
		}
		s.Requests()
		for range 2 {
			if _, err := c.Definition(ctx, "shops.example.com"); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Definitions(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(s.Requests()); got != test.want {
			t.Errorf("%s: %d requests, want %d", test.name, got, test.want)
		}
	}
}

// TestKindsOfAPlan checks that a plan which takes long asks for the kinds once, also after those were asked for just before it.
func TestKindsOfAPlan(t *testing.T) {
	s, c := connected(t)
	ctx := WithMemory(t.Context())
	longAgo := func() { // as if the time had passed for all of it
		memoryOf(ctx).began -= time.Hour
		c.kinds.asked -= time.Hour
	}
	for _, test := range []struct {
		name string
		ctx  context.Context
		want int
	}{{"a plan", ctx, 0}, {"another one", WithMemory(t.Context()), 2}} {
		longAgo()
		s.Requests()
		if _, err := c.Kinds(test.ctx); err != nil {
			t.Fatal(err)
		}
		if got := len(s.Requests()); got != test.want {
			t.Errorf("%s: %d requests, want %d", test.name, got, test.want)
		}
	}
}
