package preflight

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	requests "k8s.io/component-helpers/resource"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema"
)

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	into := new(T)
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
	return into
}

// object is one of a plan; a changed one gets another template.
func object(t *testing.T, action schema.Action, text string) engine.Object {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	o := &unstructured.Unstructured{}
	if err == nil {
		err = o.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	change := schema.Change{Action: action, Object: schema.ObjectRef{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: "prod", Name: o.GetName()}}
	if action == schema.ActionUpdate {
		change.Fields = []schema.FieldChange{{Path: "spec.template.spec.containers[name=a].image", From: "1", To: "2"}}
	}
	if action == schema.ActionDelete {
		return engine.Object{Change: change, Existing: o}
	}
	return engine.Object{Change: change, Desired: o}
}

func workload(kind, spec, pod string) string {
	return fmt.Sprintf("{apiVersion: apps/v1, kind: %s, metadata: {name: web}, spec: {%s template: {spec: {%s}}}}", kind, spec, pod)
}

const (
	small  = "containers: [{name: a, resources: {requests: {cpu: 500m, memory: 1Gi}}}]"
	large  = "containers: [{name: a, resources: {limits: {cpu: '64', memory: 1Gi}}}]"
	none   = "containers: [{name: a}]"
	claims = "volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: 10Gi}}}}],"
)

// TestLoad: pods and claims of new workloads count, and one pod more of a Deployment that starts a new one first.
func TestLoad(t *testing.T) {
	for name, test := range map[string]struct {
		action schema.Action
		object string
		want   string
	}{
		"a new Deployment":           {schema.ActionCreate, workload("Deployment", "replicas: 3,", small), "3 pods 500m 1Gi; 0 claims"},
		"without replicas":           {schema.ActionCreate, workload("Deployment", "", small), "1 pods 500m 1Gi; 0 claims"},
		"none of them":               {schema.ActionCreate, workload("Deployment", "replicas: 0,", small), "0 claims"},
		"limits are requests":        {schema.ActionCreate, workload("Deployment", "", large), "1 pods 64 1Gi; 0 claims"},
		"a StatefulSet with volumes": {schema.ActionCreate, workload("StatefulSet", "replicas: 2, "+claims, small), "2 pods 500m 1Gi; 2 claims"},
		"one on each node":           {schema.ActionCreate, workload("DaemonSet", "", small), "on each 500m 1Gi; 0 claims"},
		"a Job":                      {schema.ActionCreate, "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {parallelism: 4, template: {spec: {" + small + "}}}}", "4 pods 500m 1Gi; 0 claims"},
		"a CronJob":                  {schema.ActionCreate, "{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {jobTemplate: {spec: {template: {spec: {" + small + "}}}}}}", "0 claims"},
		"a changed Deployment":       {schema.ActionUpdate, workload("Deployment", "replicas: 3,", small), "1 pods 500m 1Gi; 0 claims"},
		"one that ends pods first":   {schema.ActionUpdate, workload("Deployment", "replicas: 8,", small), "0 claims"},
		"at most one unavailable":    {schema.ActionUpdate, workload("Deployment", "strategy: {rollingUpdate: {maxUnavailable: 1}},", small), "0 claims"},
		"all at once":                {schema.ActionUpdate, workload("Deployment", "strategy: {type: Recreate},", small), "0 claims"},
		"a changed StatefulSet":      {schema.ActionUpdate, workload("StatefulSet", claims, small), "0 claims"},
		"a claim":                    {schema.ActionCreate, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {resources: {requests: {storage: 1Gi}}}}", "1 claims"},
		"a claim of a known volume":  {schema.ActionCreate, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {volumeName: x}}", "0 claims"},
		"an ephemeral volume":        {schema.ActionCreate, workload("Deployment", "", none+", volumes: [{name: a, ephemeral: {volumeClaimTemplate: {spec: {}}}}]"), "1 pods 0 0; 1 claims"},
		"one that stays":             {schema.ActionNone, workload("Deployment", "", small), "0 claims"},
		"one that goes":              {schema.ActionDelete, workload("Deployment", "", small), "0 claims; frees"},
		"something else":             {schema.ActionCreate, "{apiVersion: v1, kind: Service, metadata: {name: a}}", "0 claims"},
	} {
		t.Run(name, func(t *testing.T) {
			l := LoadOf([]engine.Object{object(t, test.action, test.object)})
			var got []string
			for _, p := range l.Pods {
				count := fmt.Sprintf("%d pods", p.Count)
				if p.OnEach {
					count = "on each"
				}
				got = append(got, fmt.Sprintf("%s %s %s", count, p.requests.Cpu(), p.requests.Memory()))
			}
			got = append(got, fmt.Sprintf("%d claims", l.claims()))
			if l.Frees {
				got = append(got, "frees")
			}
			if diff := cmp.Diff(test.want, strings.Join(got, "; ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// nodeOf is a node that is ready.
func nodeOf(t *testing.T, name, cpu, more string) *corev1.Node {
	t.Helper()
	return read[corev1.Node](t, fmt.Sprintf(`{metadata: {name: %s, labels: {zone: %s}}, spec: {%s}, status: {
  allocatable: {cpu: %s, memory: 8Gi, pods: "10"}, conditions: [{type: Ready, status: "True"}]}}`, name, name, more, cpu))
}

// TestRoom places pods as the scheduler would, roughly.
func TestRoom(t *testing.T) {
	tainted := "taints: [{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}]"
	for name, test := range map[string]struct {
		nodes []*corev1.Node
		run   int // pods of 500m on the first node
		add   []string
		want  string
	}{
		"room":                 {[]*corev1.Node{nodeOf(t, "a", "2", "")}, 1, []string{workload("Deployment", "replicas: 3,", small)}, "pass room for 3 more pods"},
		"too little":           {[]*corev1.Node{nodeOf(t, "a", "2", "")}, 2, []string{workload("Deployment", "replicas: 3,", small)}, "warning Deployment prod/web: no node has 500m cpu left: there is room for 2 of 3 more pods"},
		"on two nodes":         {[]*corev1.Node{nodeOf(t, "a", "1", ""), nodeOf(t, "b", "1", "")}, 1, []string{workload("Deployment", "replicas: 3,", small)}, "pass room for 3 more pods"},
		"a pod that fits none": {[]*corev1.Node{nodeOf(t, "a", "2", "")}, 0, []string{workload("Deployment", "", large)}, "fail Deployment prod/web: no node is large enough: a pod requests 64 cpu"},
		"too many pods":        {[]*corev1.Node{nodeOf(t, "a", "64", "")}, 9, []string{workload("Deployment", "replicas: 2,", none)}, "warning Deployment prod/web: no node has 1 pods left: there is room for 1 of 2 more pods"},
		"a taint":              {[]*corev1.Node{nodeOf(t, "a", "2", tainted)}, 0, []string{workload("Deployment", "", small)}, "fail Deployment prod/web: no node takes its pods: none is ready, schedulable, and without taints that they do not tolerate"},
		"a tolerated taint":    {[]*corev1.Node{nodeOf(t, "a", "2", tainted)}, 0, []string{workload("Deployment", "", small+", tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]")}, "pass room for 1 more pod"},
		"another toleration":   {[]*corev1.Node{nodeOf(t, "a", "2", tainted)}, 0, []string{workload("Deployment", "", small+", tolerations: [{key: other, operator: Exists}]")}, "fail Deployment prod/web: no node takes its pods: none is ready, schedulable, and without taints that they do not tolerate"},
		"a cordoned node":      {[]*corev1.Node{nodeOf(t, "a", "2", "unschedulable: true")}, 0, []string{workload("Deployment", "", small)}, "fail Deployment prod/web: no node takes its pods: none is ready, schedulable, and without taints that they do not tolerate"},
		"no node":              {nil, 0, []string{workload("Deployment", "", small)}, "fail Deployment prod/web: no node takes its pods: none is ready, schedulable, and without taints that they do not tolerate"},
		"a selector":           {[]*corev1.Node{nodeOf(t, "a", "2", "")}, 0, []string{workload("Deployment", "", small+", nodeSelector: {zone: b}")}, "fail Deployment prod/web: no node takes its pods: none is ready, schedulable, and without taints that they do not tolerate"},
		"on each node":         {[]*corev1.Node{nodeOf(t, "a", "2", ""), nodeOf(t, "b", "2", "unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]")}, 0, []string{workload("DaemonSet", "", small)}, "pass room for 2 more pods"},
		"not on each node":     {[]*corev1.Node{nodeOf(t, "a", "1", ""), nodeOf(t, "b", "1", "")}, 2, []string{workload("DaemonSet", "", small)}, "warning DaemonSet prod/web: node a has no 500m cpu left"},
		"the largest first": {
			[]*corev1.Node{nodeOf(t, "a", "2", ""), nodeOf(t, "b", "1", "")},
			0,
			[]string{workload("Deployment", "replicas: 2,", small), workload("StatefulSet", "", "containers: [{name: a, resources: {requests: {cpu: '2', memory: 2Gi}}}]")},
			"pass room for 3 more pods",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRooms(test.nodes)
			for range test.run {
				r.occupy(requesting(*read[map[string]any](t, "{nodeName: a, "+small+"}")))
			}
			objects := []engine.Object{}
			for _, text := range test.add {
				objects = append(objects, object(t, schema.ActionCreate, text))
			}
			check := r.judge(LoadOf(objects))
			if got := string(check.Result) + " " + check.Message; got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if (check.Result == schema.PreflightPass) != (check.Hint == "") {
				t.Errorf("the hint is %q", check.Hint)
			}
		})
	}
}

// TestRoomOfCluster counts the lists of pods: those of few nodes are enough if they have room, and else they change nothing.
func TestRoomOfCluster(t *testing.T) {
	nodes := func(n, cpu int) (text string) {
		for i := range n {
			text += fmt.Sprintf(`
--- {apiVersion: v1, kind: Node, metadata: {name: node-%03d}, status: {allocatable: {cpu: %d, memory: 8Gi, pods: "10"}, conditions: [{type: Ready, status: "True"}]}}
--- {apiVersion: v1, kind: Pod, metadata: {namespace: default, name: on-%03[1]d}, spec: {nodeName: node-%03[1]d, %[3]s}, status: {phase: Running}}
--- {apiVersion: v1, kind: Pod, metadata: {namespace: default, name: done-%03[1]d}, spec: {nodeName: node-%03[1]d, %[3]s}, status: {phase: Succeeded}}`, i, cpu, small)
		}
		return strings.ReplaceAll(text, "--- ", "---\n")
	}
	master := `{apiVersion: v1, kind: Node, metadata: {name: control}, spec: {taints: [{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}]}, status: {allocatable: {cpu: 64, memory: 8Gi, pods: "10"}}}`
	for name, test := range map[string]struct {
		cluster, add string
		action       schema.Action
		want         string
		lists        int // of pods
	}{
		"one node":          {nodes(1, 2), workload("Deployment", "replicas: 3,", small), schema.ActionCreate, "pass room for 3 more pods", 1},
		"the first of many": {nodes(30, 2), workload("Deployment", "replicas: 3,", small), schema.ActionCreate, "pass room for 3 more pods", 1},
		"three of many":     {nodes(30, 2), workload("Deployment", "replicas: 7,", small), schema.ActionCreate, "pass room for 7 more pods", 3},
		"a tainted one":     {master + nodes(30, 2), workload("Deployment", "", small), schema.ActionCreate, "pass room for 1 more pod", 1},
		"more than few":     {nodes(30, 1), workload("Deployment", "replicas: 20,", small), schema.ActionCreate, "pass room for 20 more pods", 9},
		"too little":        {nodes(30, 1), workload("Deployment", "replicas: 31,", small), schema.ActionCreate, "warning Deployment prod/web: no node has 500m cpu left: there is room for 30 of 31 more pods", 9},
		"on each node":      {nodes(30, 1), workload("DaemonSet", "", small), schema.ActionCreate, "pass room for 30 more pods", 1},
		"a change":          {nodes(30, 2), workload("Deployment", "", small), schema.ActionUpdate, "pass nodes are large enough for the new pods", 0},
		"large for all":     {nodes(30, 2), workload("Deployment", "", large), schema.ActionUpdate, "fail Deployment prod/web: no node is large enough: a pod requests 64 cpu", 0},
		"very many":         {nodes(maxNodes+1, 2), workload("Deployment", "", small), schema.ActionCreate, "pass room for 1 more pod", 1},
		"very many, full":   {nodes(maxNodes+1, 1), workload("Deployment", "replicas: 9,", small), schema.ActionCreate, "unknown not checked: the cluster has more than 1000 nodes", 8},
	} {
		t.Run(name, func(t *testing.T) {
			server := clustertest.Start(t, strings.TrimPrefix(test.cluster, "\n---\n"))
			c, err := cluster.Connect(cluster.Options{Kubeconfig: server.Kubeconfig(t), Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			check, err := room(t.Context(), c, LoadOf([]engine.Object{object(t, test.action, test.add)}))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(check.Result) + " " + check.Message; got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			lists := 0
			for _, request := range server.Requests() {
				if strings.HasPrefix(request, "GET /api/v1/pods") {
					lists++
				}
			}
			if lists != test.lists {
				t.Errorf("%d lists of pods, want %d", lists, test.lists)
			}
		})
	}
}

// TestSurge: a Deployment that is changed needs a node that takes its pods, whatever runs there now.
func TestSurge(t *testing.T) {
	for name, test := range map[string]struct{ node, pod, want string }{
		"a node":          {"", small, "pass nodes are large enough for the new pods"},
		"a cordoned node": {"unschedulable: true", small, "fail Deployment prod/web: no node takes its pods: none is ready, schedulable, and without taints that they do not tolerate"},
		"a large pod":     {"", large, "fail Deployment prod/web: no node is large enough: a pod requests 64 cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			load := LoadOf([]engine.Object{object(t, schema.ActionUpdate, workload("Deployment", "", test.pod))})
			check := newRooms([]*corev1.Node{nodeOf(t, "a", "2", test.node)}).judge(load)
			if got := string(check.Result) + " " + check.Message; got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestRequesting: what is read of running pods is enough for their requests.
func TestRequesting(t *testing.T) {
	for name, test := range map[string]struct{ spec, want string }{
		"containers":         {"containers: [{resources: {requests: {cpu: 100m, memory: 1Gi}}}, {resources: {requests: {cpu: '1'}}}]", "1100m 1Gi"},
		"an init container":  {"containers: [{resources: {requests: {cpu: 100m}}}], initContainers: [{resources: {requests: {cpu: '2', memory: 1Gi}}}]", "2 1Gi"},
		"a sidecar":          {"containers: [{resources: {requests: {cpu: 100m}}}], initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 100m}}}]", "200m 0"},
		"an overhead":        {"containers: [{resources: {requests: {cpu: 100m}}}], overhead: {cpu: 50m, memory: 1Mi}", "150m 1Mi"},
		"of the pod":         {"containers: [{resources: {requests: {cpu: 100m}}}], resources: {requests: {cpu: '3', memory: 2Gi}}", "3 2Gi"},
		"nothing":            {"containers: [{name: a}]", "0 0"},
		"something else":     {"containers: 5, initContainers: [5], overhead: 1", "0 0"},
		"unknown quantities": {"containers: [{resources: {requests: {cpu: much}}}]", "0 0"},
	} {
		t.Run(name, func(t *testing.T) {
			list := requests.PodRequests(requesting(*read[map[string]any](t, "{"+test.spec+"}")), requests.PodResourcesOptions{})
			if got := list.Cpu().String() + " " + list.Memory().String(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestStorage: a claim gets its volume from its class, from the default one, or from a volume that is free.
func TestStorage(t *testing.T) {
	class := func(name, annotations string) *unstructured.Unstructured {
		return object(t, schema.ActionCreate, fmt.Sprintf("{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %s, annotations: {%s}}}", name, annotations)).Desired
	}
	standard := class("standard", "storageclass.kubernetes.io/is-default-class: 'true'")
	volume := func(class, size string) string {
		return fmt.Sprintf("{spec: {storageClassName: %q, capacity: {storage: %s}}, status: {phase: Available}}", class, size)
	}
	for name, test := range map[string]struct {
		class   string // of the claims
		classes []*unstructured.Unstructured
		volumes []string
		want    string
	}{
		"the default class": {"", []*unstructured.Unstructured{standard}, nil, "pass storage for 2 volume claims"},
		"a named class":     {"storageClassName: fast,", []*unstructured.Unstructured{class("fast", "")}, nil, "pass storage for 2 volume claims"},
		"no default class":  {"", []*unstructured.Unstructured{class("fast", "")}, nil, "fail StatefulSet prod/web waits for a volume: no StorageClass is the default one, and no free volume fits"},
		"a missing class":   {"storageClassName: fast,", []*unstructured.Unstructured{standard}, nil, "fail StatefulSet prod/web waits for a volume: there is no StorageClass fast, and no free volume fits"},
		"free volumes":      {"storageClassName: fast,", nil, []string{volume("fast", "10Gi"), volume("fast", "20Gi")}, "pass storage for 2 volume claims"},
		"one volume":        {"storageClassName: fast,", nil, []string{volume("fast", "10Gi")}, "fail StatefulSet prod/web waits for a volume: there is no StorageClass fast, and no free volume fits"},
		"small volumes":     {"storageClassName: fast,", nil, []string{volume("fast", "1Gi"), volume("fast", "9Gi")}, "fail StatefulSet prod/web waits for a volume: there is no StorageClass fast, and no free volume fits"},
		"no class":          {"storageClassName: '',", []*unstructured.Unstructured{standard}, nil, "fail StatefulSet prod/web waits for a volume: it asks for a volume without a class, and no free volume fits"},
	} {
		t.Run(name, func(t *testing.T) {
			set := workload("StatefulSet", "replicas: 2, volumeClaimTemplates: [{spec: {"+test.class+" resources: {requests: {storage: 10Gi}}}}],", small)
			load := LoadOf([]engine.Object{object(t, schema.ActionCreate, set)})
			var volumes []*corev1.PersistentVolume
			for _, text := range test.volumes {
				volumes = append(volumes, read[corev1.PersistentVolume](t, text))
			}
			check := judgeStorage(load, load.without(test.classes), volumes)
			if got := string(check.Result) + " " + check.Message; got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestQuota compares the pods and claims that are added with the rest of quotas.
func TestQuota(t *testing.T) {
	quota := func(spec, name, hard, used string) *corev1.ResourceQuota {
		return read[corev1.ResourceQuota](t, fmt.Sprintf("{metadata: {name: q, namespace: prod}, spec: {hard: {%s: %q}, %s}, status: {used: {%s: %q}}}", name, hard, spec, name, used))
	}
	for name, test := range map[string]struct {
		quota *corev1.ResourceQuota
		frees bool
		want  string
	}{
		"none":                   {nil, false, "pass no quota limits the namespace"},
		"enough":                 {quota("", "requests.cpu", "2", "1"), false, "pass 1 quota has room for what is added"},
		"of another name":        {quota("", "cpu", "2", "1500m"), false, "fail ResourceQuota prod/q allows 2 cpu, of which 1500m are used, and 1 more are needed"},
		"memory":                 {quota("", "requests.memory", "2Gi", "1Gi"), false, "fail ResourceQuota prod/q allows 2Gi requests.memory, of which 1Gi are used, and 2Gi more are needed"},
		"pods":                   {quota("", "pods", "10", "9"), false, "fail ResourceQuota prod/q allows 10 pods, of which 9 are used, and 2 more are needed"},
		"claims":                 {quota("", "persistentvolumeclaims", "1", "0"), false, "fail ResourceQuota prod/q allows 1 persistentvolumeclaims, of which 0 are used, and 2 more are needed"},
		"storage":                {quota("", "requests.storage", "100Gi", "0"), false, "pass 1 quota has room for what is added"},
		"something else":         {quota("", "services", "1", "1"), false, "pass 1 quota has room for what is added"},
		"with a scope":           {quota("scopes: [BestEffort]", "pods", "0", "0"), false, "pass no quota limits the namespace"},
		"and something is freed": {quota("", "pods", "10", "9"), true, "warning ResourceQuota prod/q allows 10 pods, of which 9 are used, and 2 more are needed"},
	} {
		t.Run(name, func(t *testing.T) {
			load := LoadOf([]engine.Object{object(t, schema.ActionCreate, workload("StatefulSet", "replicas: 2, "+claims, small))})
			load.Frees = test.frees
			var quotas []*corev1.ResourceQuota
			if test.quota != nil {
				quotas = append(quotas, test.quota)
			}
			check := judgeQuota(load, quotas)
			if got := string(check.Result) + " " + check.Message; got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestKubernetes(t *testing.T) {
	for version, want := range map[string]schema.PreflightResult{"v1.29.0": schema.PreflightFail, "v1.30.1": schema.PreflightPass, "v1.36.3": schema.PreflightPass, "v1.37.0": schema.PreflightWarning} {
		if got := Kubernetes(version); got.Result != want {
			t.Errorf("%s: %+v, want %s", version, got, want)
		}
	}
}
