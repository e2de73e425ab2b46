package diff

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
)

// line is a change as the tables of these tests have it.
func line(c schema.FieldChange) string {
	text := c.Path + ": " + c.From + " → " + c.To
	if c.Manager != "" {
		text += " (" + c.Manager + ")"
	}
	return text
}

func lines(changes []schema.FieldChange) (texts []string) {
	for _, c := range changes {
		texts = append(texts, line(c))
	}
	return texts
}

// TestUntouched: an object of any kind that was only applied has not drifted, is solutionctl's as a whole, and has no field that others own.
func TestUntouched(t *testing.T) {
	for name, text := range kinds {
		t.Run(name, func(t *testing.T) {
			s := serve(t, text)
			if got := lines(Drift(object(t, text), s.live)); got != nil {
				t.Errorf("drift: %v", got)
			}
			if got := cmp.Diff(AppliedPart(s.live), withProtocols(object(t, text))); got != "" {
				t.Errorf("the applied part: %s", got)
			}
			if got := lines(Fields(s.live, withProtocols(object(t, text)))); got != nil {
				t.Errorf("fields: %v", got)
			}
			if IsScaled(s.live) || IsOwnedByOthers(s.live, "spec") {
				t.Error("others own a part of it")
			}
		})
	}
}

// TestDefaults: what the server adds to an object is neither drift nor applied.
func TestDefaults(t *testing.T) {
	for name, test := range map[string]struct {
		applied string
		added   func(*unstructured.Unstructured)
	}{
		"fields of a container": {deployment, inElement("web", func(c map[string]any) {
			c["imagePullPolicy"], c["terminationMessagePath"] = "IfNotPresent", "/dev/termination-log"
		}, "spec", "template", "spec", "containers")},
		"fields of a probe": {deployment, inElement("web", func(c map[string]any) {
			c["readinessProbe"].(map[string]any)["failureThreshold"] = int64(3)
		}, "spec", "template", "spec", "containers")},
		"a volume's mode":    {deployment, inElement("config", func(v map[string]any) { v["configMap"].(map[string]any)["defaultMode"] = int64(420) }, "spec", "template", "spec", "volumes")},
		"a cluster address":  {service, setting("10.96.0.7", "spec", "clusterIP")},
		"IP families":        {service, setting([]any{"IPv4"}, "spec", "ipFamilies")},
		"a volume":           {claim, setting("pvc-1", "spec", "volumeName")},
		"a policy of a Job":  {cronJob, setting("Allow", "spec", "concurrencyPolicy")},
		"a finalizer":        {claim, setting([]any{"example.com/backup", "kubernetes.io/pvc-protection"}, "metadata", "finalizers")},
		"an annotation":      {deployment, setting("1", "metadata", "annotations", "deployment.kubernetes.io/revision")},
		"the status":         {autoscaler, setting(int64(3), "status", "currentReplicas")},
		"a Secret's data":    {secret, setting("bmV3", "data", "added")},
		"a behaviour":        {autoscaler, setting(int64(300), "spec", "behavior", "scaleDown", "stabilizationWindowSeconds")},
		"an owner reference": {configMap, setting([]any{map[string]any{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u"}}, "metadata", "ownerReferences")},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, test.applied)
			s.update("kube-controller-manager", test.added)
			if got := lines(Drift(object(t, test.applied), s.live)); got != nil {
				t.Errorf("drift: %v", got)
			}
			if got := cmp.Diff(AppliedPart(s.live), withProtocols(object(t, test.applied))); got != "" {
				t.Errorf("the applied part: %s", got)
			}
		})
	}
}

// TestNormalized: the server may write a value differently than it was applied. As long as it is solutionctl's, it has not changed.
func TestNormalized(t *testing.T) {
	for name, test := range map[string]struct {
		applied string
		written func(*unstructured.Unstructured)
	}{
		"a quantity of memory": {deployment, inElement("web", func(c map[string]any) {
			c["resources"].(map[string]any)["requests"].(map[string]any)["memory"] = "512Mi"
		}, "spec", "template", "spec", "containers")},
		"a quantity of storage": {claim, setting("1Gi", "spec", "resources", "requests", "storage")},
		"a duration":            {cronJob, setting("0 3 * * *", "spec", "schedule")},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, test.applied)
			test.written(s.live) // without a change of an owner, as conversions and admission do
			if got := lines(Drift(object(t, test.applied), s.live)); got != nil {
				t.Errorf("drift: %v", got)
			}
		})
	}
}

// TestDriftOfKinds: what others change in an object is found, with its manager; what they add is not.
func TestDriftOfKinds(t *testing.T) {
	containers := []string{"spec", "template", "spec", "containers"}
	const web = "spec.template.spec.containers[name=web]"
	for name, test := range map[string]struct {
		applied string
		change  func(*unstructured.Unstructured)
		want    []string
	}{
		"an image": {
			deployment, inElement("web", func(c map[string]any) { c["image"] = "registry/shop:hotfix" }, containers...),
			[]string{web + `.image: "registry/shop:hotfix" → "registry/shop:1.0.0" (them)`},
		},
		"an argument": {
			deployment, inElement("web", func(c map[string]any) { c["args"] = []any{"--listen", ":8080", "--debug"} }, containers...),
			[]string{web + `.args: ["--listen",":8080","--debug"] → ["--listen",":8080"] (them)`},
		},
		"an environment variable": {
			deployment, inElement("web", func(c map[string]any) { c["env"].([]any)[0].(map[string]any)["value"] = "debug" }, containers...),
			[]string{web + `.env[name=LOG_LEVEL].value: "debug" → "info" (them)`},
		},
		"an environment variable more": {
			deployment, inElement("web", func(c map[string]any) {
				c["env"] = append(c["env"].([]any), map[string]any{"name": "TZ", "value": "UTC"})
			}, containers...), nil,
		},
		"environment variables in another order": {
			deployment, inElement("web", func(c map[string]any) { c["env"] = []any{c["env"].([]any)[1], c["env"].([]any)[0]} }, containers...), nil,
		},
		"a container more": {
			deployment, func(live *unstructured.Unstructured) {
				list, _, _ := unstructured.NestedSlice(live.Object, containers...)
				setting(append(list, map[string]any{"name": "istio-proxy", "image": "istio"}), containers...)(live)
			}, nil,
		},
		"a memory limit": {
			deployment, inElement("web", func(c map[string]any) { c["resources"].(map[string]any)["limits"].(map[string]any)["memory"] = "2Gi" }, containers...),
			[]string{web + `.resources.limits.memory: "2Gi" → "1024Mi" (them)`},
		},
		"a cpu limit more": {
			deployment, inElement("web", func(c map[string]any) { c["resources"].(map[string]any)["limits"].(map[string]any)["cpu"] = "1" }, containers...), nil,
		},
		"a probe removed": {
			deployment, inElement("web", func(c map[string]any) { delete(c, "readinessProbe") }, containers...),
			[]string{web + `.readinessProbe:  → {"httpGet":{"path":"/ready","port":"http"},"periodSeconds":5}`},
		},
		"a label removed": {
			deployment, removing("metadata", "labels", "app.kubernetes.io/name"),
			[]string{`metadata.labels[app.kubernetes.io/name]:  → "web"`},
		},
		"an annotation changed": {
			deployment, setting("0000", "metadata", "annotations", "checksum/config"),
			[]string{`metadata.annotations[checksum/config]: "0000" → "3f2a" (them)`},
		},
		"replicas": {deployment, setting(int64(7), "spec", "replicas"), nil},
		"a strategy": {
			deployment, setting(map[string]any{"type": "Recreate"}, "spec", "strategy"),
			[]string{
				`spec.strategy.rollingUpdate:  → {"maxSurge":"25%","maxUnavailable":0}`,
				`spec.strategy.type: "Recreate" → "RollingUpdate" (them)`,
			},
		},
		"a toleration more": { // the list is one value
			deployment, setting([]any{map[string]any{"operator": "Exists"}}, "spec", "template", "spec", "tolerations"),
			[]string{`spec.template.spec.tolerations: [{"operator":"Exists"}] → [{"effect":"NoSchedule","key":"node-role.kubernetes.io/infra","operator":"Exists"}] (them)`},
		},
		"a selector, which is one value": {
			service, setting("other", "spec", "selector", "app.kubernetes.io/name"),
			[]string{`spec.selector[app.kubernetes.io/name]: "other" → "web" (them)`},
		},
		"one of two ports with one number": {
			service, inElement("dns-udp", func(p map[string]any) { p["targetPort"] = int64(5353) }, "spec", "ports"),
			[]string{`spec.ports[port=53][protocol=UDP].targetPort: 5353 → 1053 (them)`},
		},
		"a port removed": {
			service, func(live *unstructured.Unstructured) {
				list, _, _ := unstructured.NestedSlice(live.Object, "spec", "ports")
				setting(list[:2], "spec", "ports")(live)
			},
			[]string{`spec.ports[name=dns-udp]:  → {"name":"dns-udp","port":53,"protocol":"UDP","targetPort":1053}`},
		},
		"a file of a configuration": {
			configMap, setting("currency = USD\n", "data", "shop.conf"),
			[]string{`data[shop.conf]: "currency = USD\n" → "currency = EUR\n" (them)`},
		},
		"a file more":      {configMap, setting("x", "data", "more"), nil},
		"all files":        {configMap, removing("data"), []string{`data:  → {"empty":"","shop.conf":"currency = EUR\n"}`}},
		"a password":       {secret, setting("c3RvbGVu", "data", "password"), []string{"data.password: (hidden) → (hidden) (them)"}},
		"a user removed":   {secret, removing("data", "user"), []string{"data.user:  → (hidden)"}},
		"a type":           {secret, setting("example.com/other", "type"), []string{`type: "example.com/other" → "Opaque" (them)`}},
		"a larger volume":  {claim, setting("2Gi", "spec", "resources", "requests", "storage"), []string{`spec.resources.requests.storage: "2Gi" → "1024Mi" (them)`}},
		"a finalizer gone": {claim, setting([]any{"other"}, "metadata", "finalizers"), []string{`metadata.finalizers: ["other"] → ["example.com/backup"] (them)`}},
		"a rule": { // the rules are one value
			role, func(live *unstructured.Unstructured) {
				rules, _, _ := unstructured.NestedSlice(live.Object, "rules")
				setting(rules[:1], "rules")(live)
			},
			[]string{`rules: [{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch"]}] → [{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch"]},{"apiGroups":["apps"],"resourceNames":["web"],"resources":["deployments"],"verbs":["get"]}] (them)`},
		},
		"a policy":                          {networkPolicy, setting([]any{}, "spec", "ingress"), []string{`spec.ingress: [] → [{"ports":[{"port":8080,"protocol":"TCP"}]}] (them)`}},
		"a suspended job":                   {cronJob, setting(true, "spec", "suspend"), []string{"spec.suspend: true → false (them)"}},
		"a pull secret more":                {serviceAccount, setting([]any{map[string]any{"name": "registry"}, map[string]any{"name": "token"}}, "imagePullSecrets"), nil},
		"a field of a custom resource":      {customResource, setting("USD", "spec", "currency"), []string{`spec.currency: "USD" → "EUR" (them)`}},
		"a number with a fraction":          {customResource, setting(0.25, "spec", "limits", "ratio"), []string{"spec.limits.ratio: 0.25 → 0.5 (them)"}},
		"a field more in a custom resource": {customResource, setting(int64(9), "spec", "limits", "returns"), nil},
		"an element of a custom resource, whose list is one value": {
			customResource, inElement("front", func(till map[string]any) { till["cashiers"] = []any{"ada"} }, "spec", "tills"),
			[]string{`spec.tills[name=front].cashiers: ["ada"] → ["ada","grace"] (them)`},
		},
		"a field that is false": {customResource, removing("spec", "open"), []string{"spec.open:  → false"}},
		"limits of scaling":     {autoscaler, setting(int64(50), "spec", "maxReplicas"), []string{"spec.maxReplicas: 50 → 5 (them)"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, test.applied)
			s.update("them", test.change)
			if got := cmp.Diff(lines(Drift(object(t, test.applied), s.live)), test.want); got != "" {
				t.Error(got)
			}
			s.apply(cluster.FieldManager, test.applied) // a repair
			if got := lines(Drift(object(t, test.applied), s.live)); got != nil {
				t.Errorf("drift after a repair: %v", got)
			}
		})
	}
}

// TestNextVersion: solutionctl applies another version of an object. The fields that it drops go, and those of others stay.
func TestNextVersion(t *testing.T) {
	for name, test := range map[string]struct {
		applied string
		change  func(*unstructured.Unstructured) // by another manager, before
		next    func(*unstructured.Unstructured) // of the applied object
		want    []string                         // differences of the live object before and after
	}{
		"an image": {
			deployment, nil, inElement("web", func(c map[string]any) { c["image"] = "registry/shop:1.1.0" }, "spec", "template", "spec", "containers"),
			[]string{`spec.template.spec.containers[name=web].image: "registry/shop:1.0.0" → "registry/shop:1.1.0" (solutionctl)`},
		},
		"a dropped label": {
			configMap, setting("theirs", "metadata", "labels", "team"), removing("metadata", "labels", "app"),
			[]string{`metadata.labels.app: "web" →  (solutionctl)`},
		},
		"a dropped file that another manager has changed": {
			configMap, setting("currency = USD\n", "data", "shop.conf"), removing("data", "shop.conf"), nil,
		},
		"a dropped container": {
			deployment, nil, removing("spec", "template", "spec", "initContainers"),
			[]string{`spec.template.spec.initContainers: [{"args":["migrate","--wait"],"image":"registry/shop:1.0.0","name":"migrate"}] →  (solutionctl)`},
		},
		"a dropped port of two with one number": {
			service, nil, func(o *unstructured.Unstructured) {
				list, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
				setting(list[:2], "spec", "ports")(o)
			},
			[]string{`spec.ports[name=dns-udp]: {"name":"dns-udp","port":53,"protocol":"UDP","targetPort":1053} →  (solutionctl)`},
		},
		"a new password": {secret, nil, setting("bmV3", "data", "password"), []string{"data.password: (hidden) → (hidden) (solutionctl)"}},
		"a field taken from another manager": {
			cronJob, setting(true, "spec", "suspend"), setting("0 4 * * *", "spec", "schedule"),
			[]string{`spec.schedule: "0 3 * * *" → "0 4 * * *" (solutionctl)`, "spec.suspend: true → false (them)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, test.applied)
			if test.change != nil {
				s.update("them", test.change)
			}
			before := s.live
			next := object(t, test.applied)
			test.next(next)
			s.apply(cluster.FieldManager, text(t, next))
			if got := cmp.Diff(lines(Fields(before, s.live)), test.want); got != "" {
				t.Error(got)
			}
			if got := lines(Drift(next, s.live)); got != nil {
				t.Errorf("drift right after: %v", got)
			}
		})
	}
}

// TestWithoutFormer: without the fields that only Helm owns, an object is as the server leaves it when Helm applies nothing of it any more.
func TestWithoutFormer(t *testing.T) {
	containers := []string{"spec", "template", "spec", "containers"}
	for name, test := range map[string]struct {
		helm string
		ours func(*unstructured.Unstructured) // of an object that has the label of a release only
		them func(*unstructured.Unstructured)
	}{
		"all of it":         {helm: configMap},
		"a file of ours":    {helm: configMap, ours: setting("", "data", "empty")},
		"a label of others": {helm: configMap, them: setting("y", "metadata", "labels", "x")},
		"files of others": {helm: configMap, them: func(live *unstructured.Unstructured) {
			setting("y", "data", "x")(live)
			setting("z", "data", "shop.conf")(live)
		}},
		"a port of ours": {helm: service, ours: setting([]any{map[string]any{"name": "http", "port": int64(80), "targetPort": "http"}}, "spec", "ports")},
		"a port of ours with the default protocol": {
			helm: service, ours: setting([]any{map[string]any{"name": "dns-tcp", "port": int64(53), "targetPort": int64(1053)}}, "spec", "ports"),
		},
		"a port of Helm that others have changed": {helm: service, them: inElement("dns-udp", func(p map[string]any) { p["targetPort"] = int64(5353) }, "spec", "ports")},
		"a container of Helm that others have changed": {helm: deployment, them: inElement("web", func(c map[string]any) {
			c["env"] = append(c["env"].([]any), map[string]any{"name": "TZ", "value": "UTC"})
		}, containers...)},
		"a container of ours that others have changed": {
			helm: deployment, ours: setting([]any{map[string]any{"name": "web", "image": "registry/shop:2.0.0"}}, containers...),
			them: inElement("web", func(c map[string]any) {
				c["env"] = append(c["env"].([]any), map[string]any{"name": "TZ", "value": "UTC"})
			}, containers...),
		},
		"a container of others": {helm: deployment, them: func(live *unstructured.Unstructured) {
			list, _, _ := unstructured.NestedSlice(live.Object, containers...)
			setting(append(list, map[string]any{"name": "istio-proxy", "image": "istio"}), containers...)(live)
		}},
		"a finalizer of others": {helm: claim, them: setting([]any{"example.com/backup", "x/y"}, "metadata", "finalizers")},
		"replicas of others":    {helm: deployment, them: setting(int64(3), "spec", "replicas")},
		"rules of others":       {helm: role, them: setting([]any{map[string]any{"verbs": []any{"get"}}}, "rules")},
		"a pull secret of ours": {helm: serviceAccount, ours: setting([]any{map[string]any{"name": "registry"}}, "imagePullSecrets")},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{T: t}
			bare := s.begin(test.helm)
			s.apply("helm", test.helm)
			ours := bare.DeepCopy()
			setting("shop", "metadata", "labels", schema.LabelRelease)(ours)
			if test.ours != nil {
				test.ours(ours)
			}
			s.apply(cluster.FieldManager, text(t, ours))
			if test.them != nil {
				s.update("them", test.them)
			}
			former, others := map[string]any{}, map[string]any{}
			for _, owner := range Owners(s.live) {
				if owner.Manager == "helm" {
					Unite(former, owner.Fields)
				} else {
					Unite(others, owner.Fields)
				}
			}
			rest, _ := Without(former, others, s.live.Object).(map[string]any)
			s.apply("helm", text(t, bare))
			got, want := WithoutBookkeeping(withProtocols(&unstructured.Unstructured{Object: rest})), WithoutBookkeeping(s.live)
			if diff := cmp.Diff(withoutEmpty(got), withoutEmpty(want)); diff != "" {
				t.Errorf("(-without, +server)\n%s", diff)
			}
		})
	}
}

// withoutEmpty returns a value without empty maps and lists: the server drops some of them, and keeps others.
func withoutEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		rest := map[string]any{}
		for name, element := range value {
			if element = withoutEmpty(element); element != nil {
				rest[name] = element
			}
		}
		if len(rest) > 0 {
			return rest
		}
	case []any:
		if len(value) > 0 {
			return value
		}
	default:
		return value
	}
	return nil
}

// TestNoSecretIsShown: no change of a Secret shows a value of it, by any manager and in any field.
func TestNoSecretIsShown(t *testing.T) {
	const canary = "Y2FuYXJ5"
	changes := map[string]func(*unstructured.Unstructured){
		"changed":          setting("bmV3", "data", "password"),
		"removed":          removing("data", "password"),
		"all removed":      removing("data"),
		"in an annotation": setting(canary, "metadata", "annotations", "last-applied"),
		"as text":          setting(canary, "stringData", "password"),
		"another type":     setting("kubernetes.io/tls", "type"),
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			s := serve(t, secret)
			before := s.live
			s.update("them", change)
			for _, c := range append(append(Drift(object(t, secret), s.live), Fields(before, s.live)...), Fields(s.live, before)...) {
				if strings.Contains(line(c), canary) {
					t.Errorf("shown: %s", line(c))
				}
			}
		})
	}
}

// TestChangesOfKinds: the changes back have the paths of the changes there, with From and To exchanged, and patches lead both ways.
func TestChangesOfKinds(t *testing.T) {
	for name, document := range kinds {
		t.Run(name, func(t *testing.T) {
			whole := object(t, document)
			for field := range whole.Object {
				if field == "apiVersion" || field == "kind" || field == "metadata" {
					continue
				}
				without := whole.DeepCopy()
				removing(field)(without)
				setting("x", "metadata", "labels", "added")(without)
				there, back := Fields(whole, without), Fields(without, whole)
				if len(there) != len(back) || len(there) < 2 {
					t.Fatalf("%d changes there, %d back", len(there), len(back))
				}
				for i := range there {
					if there[i].Path != back[i].Path || there[i].From != back[i].To || there[i].To != back[i].From {
						t.Errorf("%s there, and %s back", line(there[i]), line(back[i]))
					}
				}
				checkPatch(t, whole, without)
				checkPatch(t, without, whole)
			}
		})
	}
}
