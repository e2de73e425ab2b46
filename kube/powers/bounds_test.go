package powers_test

import (
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/kube/powers"
	"github.com/solutionctl/solutionctl/schema"
)

// repeat makes a list of n values.
func repeat(n int, value func(i int) any) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = value(i)
	}
	return list
}

func names(prefix string) func(int) any {
	return func(i int) any { return fmt.Sprintf("%s-%d", prefix, i) }
}

func object(apiVersion, kind string, fields map[string]any) map[string]any {
	o := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "a", "namespace": "acme"}}
	maps.Copy(o, fields)
	return o
}

const rbacVersion = "rbac.authorization.k8s.io/v1"

func clusterRole(rules ...any) map[string]any {
	return object(rbacVersion, "ClusterRole", map[string]any{"rules": rules})
}

func binding(subjects int) map[string]any {
	return object(rbacVersion, "ClusterRoleBinding", map[string]any{
		"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "a"},
		"subjects": repeat(subjects, func(i int) any {
			return map[string]any{"kind": "ServiceAccount", "namespace": "acme", "name": fmt.Sprint("account-", i)}
		}),
	})
}

func rule(groups, resources, verbs []any) map[string]any {
	return map[string]any{"apiGroups": groups, "resources": resources, "verbs": verbs}
}

func nest(depth int, inner any, around func(any) any) any {
	for range depth {
		inner = around(inner)
	}
	return inner
}

func many(n int, object map[string]any) []map[string]any {
	return slices.Repeat([]map[string]any{object}, n)
}

func webhook(rule map[string]any, selector map[string]any) any {
	return map[string]any{"name": "a", "rules": []any{rule}, "namespaceSelector": selector}
}

// hostileMemory bounds the memory, in bytes, that judging may allocate in total. Little of it is in use at once.
const hostileMemory = 1 << 30

// Objects that are large, or that refer to each other many times, are judged in bounded work: what is too large is refused. Without
// bounds each of these takes long, or more memory than there is.
func TestHostile(t *testing.T) {
	pod := map[string]any{"containers": []any{map[string]any{"name": "a", "image": "b", "securityContext": map[string]any{"privileged": true}}}}
	list := func(inner any) any {
		return map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{inner, inner}}
	}
	tests := []struct {
		name    string
		objects []map[string]any
		refused bool
	}{
		{"rules times subjects", []map[string]any{
			clusterRole(repeat(10_000, func(i int) any {
				return rule([]any{""}, []any{"secrets", fmt.Sprint("r", i)}, []any{"get", "list"})
			})...), binding(10_000),
		}, true},
		{"a large role for many accounts", []map[string]any{
			clusterRole(rule([]any{""}, repeat(19_000, names("resource")), []any{"get"})), binding(10_000),
		}, true},
		{"a large role", []map[string]any{
			clusterRole(rule([]any{""}, repeat(19_000, names("resource")), []any{"get"})), binding(1),
		}, false},
		{"one rule of many permissions", []map[string]any{
			clusterRole(rule(repeat(5000, names("group")), repeat(5000, names("resource")), repeat(5000, names("verb")))), binding(1),
		}, true},
		{"many URLs", []map[string]any{
			clusterRole(map[string]any{"nonResourceURLs": append(repeat(20_000, names("/a")), "*"), "verbs": repeat(20_000, names("verb"))}), binding(1),
		}, true},
		{"an aggregated role for many accounts", []map[string]any{
			object(rbacVersion, "ClusterRole", map[string]any{"aggregationRule": map[string]any{"clusterRoleSelectors": repeat(10_000, func(int) any {
				return map[string]any{"matchLabels": map[string]any{"a": "b"}}
			})}}), binding(10_000),
		}, true},
		{"an aggregated role of its own for many accounts", []map[string]any{
			object(rbacVersion, "ClusterRole", map[string]any{"aggregationRule": map[string]any{"clusterRoleSelectors": repeat(10_000, func(int) any {
				return map[string]any{"matchLabels": map[string]any{"acme.example.com/b": "b"}}
			})}}), binding(10_000),
		}, false},
		{"a long selector of roles", []map[string]any{
			object(rbacVersion, "ClusterRole", map[string]any{"aggregationRule": map[string]any{"clusterRoleSelectors": repeat(1000, func(i int) any {
				return map[string]any{"matchLabels": map[string]any{fmt.Sprint("a", i): "b"}}
			})}}), binding(1000),
		}, false},
		{"a selector beside many pods", append([]map[string]any{
			object("networking.k8s.io/v1", "NetworkPolicy", map[string]any{"spec": map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"a": "b"}}}}),
		}, many(2000, object("v1", "Pod", map[string]any{"metadata": map[string]any{"name": "a", "namespace": "acme", "labels": map[string]any{"c": "d"}}, "spec": map[string]any{
			"containers": []any{map[string]any{"name": "a", "image": "b"}},
		}}))...), false},
		{"lists in lists", []map[string]any{nest(16, object("v1", "Pod", map[string]any{"spec": pod}), list).(map[string]any)}, true},
		{"lists too deep", []map[string]any{nest(40, object("v1", "Pod", nil), func(inner any) any {
			return map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{inner}}
		}).(map[string]any)}, true},
		{"pods in pods", []map[string]any{object("acme.example.com/v1", "App", map[string]any{"spec": nest(9000, pod, func(inner any) any {
			return map[string]any{"containers": []any{map[string]any{"name": "a"}}, "inner": inner}
		})})}, false},
		{"long paths", []map[string]any{object("acme.example.com/v1", "App", map[string]any{
			"spec": nest(20, map[string]any{"list": repeat(30_000, func(int) any { return map[string]any{} })}, func(inner any) any {
				return map[string]any{strings.Repeat("a", 30_000): inner}
			}),
		})}, false},
		{"requests of webhooks", []map[string]any{object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", map[string]any{
			"webhooks": repeat(2000, func(int) any {
				return webhook(map[string]any{"apiGroups": repeat(10, names("g")), "resources": repeat(20, names("r")), "operations": repeat(9, names("o"))}, nil)
			}),
		})}, true},
		{"resources of a webhook without operations", []map[string]any{object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", map[string]any{
			"webhooks": []any{webhook(map[string]any{"apiGroups": repeat(20_000, names("g")), "resources": repeat(20_000, names("r"))}, nil)},
		})}, true},
		{"a long selector", []map[string]any{object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", map[string]any{
			"webhooks": []any{webhook(map[string]any{"apiGroups": []any{"*"}, "resources": repeat(1000, names("r")), "operations": []any{"*"}},
				map[string]any{"matchLabels": map[string]any{"a": strings.Repeat("b", 1<<20)}})},
		})}, false},
		{"many powers", []map[string]any{object("gateway.networking.k8s.io/v1", "ReferenceGrant", map[string]any{"spec": map[string]any{
			"from": repeat(50_000, func(i int) any { return map[string]any{"namespace": fmt.Sprint("n", i)} }),
		}})}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var objects []powers.Object
			for _, o := range test.objects {
				objects = append(objects, powers.Object{File: "a.yaml", Unstructured: &unstructured.Unstructured{Object: o}})
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := powers.Judge(acme(), objects)
			runtime.ReadMemStats(&after)
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > hostileMemory {
				t.Errorf("it allocated %d MiB", allocated>>20)
			}
			if refused := len(got) > 0 && got[0].Need == schema.NeedRefused; refused != test.refused {
				t.Errorf("refused: %v, want %v: %d powers", refused, test.refused, len(got))
			}
			size := 0
			for _, p := range got {
				size += len(p.Field) + len(p.Why)
				for _, effect := range p.Effects {
					size += len(effect)
				}
			}
			if size > 4<<20 {
				t.Errorf("the powers have %d bytes", size)
			}
			if again := powers.Judge(acme(), objects); !reflect.DeepEqual(got, again) {
				t.Error("judged twice, the powers differ")
			}
			if lines := powers.Summarize(got); len(lines) > 12 {
				t.Errorf("%d lines", len(lines))
			}
			if test.refused != (len(powers.Uncovered(got, got)) > 0) {
				t.Error("a power does not cover itself, or what is refused is covered")
			}
		})
	}
}

// A pod behind another one, or deep in an object, is judged like any other.
func TestHiddenPods(t *testing.T) {
	privileged := map[string]any{"hostPID": true, "containers": []any{map[string]any{"name": "a", "image": "b"}}}
	wrong := map[string]any{"priority": "high", "containers": []any{map[string]any{"name": "a", "image": "b"}}}
	tests := map[string]any{
		"beside a harmless one": map[string]any{"containers": []any{map[string]any{"name": "decoy", "image": "b"}}, "inner": privileged},
		"deep":                  nest(100, privileged, func(inner any) any { return map[string]any{"inner": inner} }),
		"unreadable":            wrong,
	}
	for name, spec := range tests {
		o := object("acme.example.com/v1", "App", map[string]any{"spec": spec})
		got := powers.Judge(acme(), []powers.Object{{File: "a.yaml", Unstructured: &unstructured.Unstructured{Object: o}}})
		if len(got) != 1 || got[0].Name != schema.PowerPodOnNode {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// However many kinds of powers there are, a person reads at most twelve lines, those of the widest reach among them.
func TestSummarizeMany(t *testing.T) {
	var all []schema.Power
	for _, name := range schema.PowerNames() {
		for i, reach := range schema.Reaches() {
			all = append(all, schema.Power{
				Name: name, Reach: reach, Need: schema.NeedApproval, Why: fmt.Sprint(name, " of reach ", reach),
				Object: schema.ObjectRef{Kind: "ClusterRole", Name: fmt.Sprint(name, i)}, Subject: "ServiceAccount acme/" + string(name),
			})
		}
	}
	last := schema.Power{Name: "other", Reach: schema.ReachOutside, Need: schema.NeedRefused, Why: "be refused", Object: schema.ObjectRef{Kind: "Job", Name: "a"}}
	lines := powers.Summarize(append(all, last))
	if len(lines) != 12 || !strings.HasPrefix(lines[0], "be refused") {
		t.Errorf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	if want := "redirect-traffic of reach cluster, starve-or-preempt of reach cluster, delete-others of reach cluster and 17 more: see solutionctl inspect --powers -o json"; lines[11] != want {
		t.Errorf("the last line is %q, want %q", lines[11], want)
	}
}

// TestDescribe checks that a question has all effects of all powers, of which a plan has twelve lines.
func TestDescribe(t *testing.T) {
	var list []schema.Power
	for i := range 20 {
		list = append(list, schema.Power{
			Name: schema.PowerPodOnNode, Reach: schema.ReachNode, Need: schema.NeedApproval, Object: schema.ObjectRef{Kind: "Pod", Name: fmt.Sprint("pod", i)},
			Why: fmt.Sprintf("run as part of the node (hostPath /%d)", i),
		})
	}
	lines := powers.Describe(append(list, list[0]))
	if len(lines) != len(list) || !slices.Contains(lines, list[19].Why+": Pod pod19") {
		t.Errorf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
}
