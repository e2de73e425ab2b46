package schemas

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// semantics checks rules of the API server that no description of a field has: relations of fields, and forms of text.
func (v *checker) semantics(object map[string]any, kind schema.GroupKind, at *path) {
	v.name(object, kind, at)
	switch kind {
	case schema.GroupKind{Kind: "ConfigMap"}, schema.GroupKind{Kind: "Secret"}:
		v.keys(object, at)
	case schema.GroupKind{Kind: "Service"}:
		v.servicePorts(object, at)
	case schema.GroupKind{Kind: "Pod"}:
		v.podSpec(object["spec"], at.field("spec"))
	case schema.GroupKind{Kind: "ReplicationController"}:
		v.replicationController(object, at)
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		v.jobSpec(object["spec"], at.field("spec"))
	case schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		v.cronJob(object, at)
	}
	if kind.Group == "apps" && slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}, kind.Kind) {
		v.workload(object, at)
	}
}

// mapAt follows the keys; nil when there is no map.
func mapAt(value any, keys ...string) map[string]any {
	m, _ := value.(map[string]any)
	for _, key := range keys {
		m, _ = m[key].(map[string]any)
	}
	return m
}

// eachEntry calls visit with the maps of a list.
func eachEntry(value any, at *path, visit func(entry map[string]any, at *path)) {
	list, _ := value.([]any)
	for i, item := range list {
		if entry, ok := item.(map[string]any); ok {
			visit(entry, at.entry(i))
		}
	}
}

// maxCronJobName leaves room for the suffix that the controller appends to the names of the Jobs.
const maxCronJobName = 52

// name checks the name of those kinds whose rule is known.
func (v *checker) name(object map[string]any, kind schema.GroupKind, at *path) {
	name, _ := mapAt(object, "metadata")["name"].(string)
	judge := nameRules()[kind]
	if name == "" || judge == nil {
		return
	}
	at = at.field("metadata").field("name")
	if problems := judge(name); len(problems) > 0 {
		v.add(at, WrongValue, "%q is not a name of a %s: %s", name, kind.Kind, problems[0])
	} else if kind.Kind == "CronJob" && len(name) > maxCronJobName {
		v.add(at, WrongValue, "%q has %d characters, a CronJob has at most %d", name, len(name), maxCronJobName)
	}
}

var nameRules = sync.OnceValue(func() map[schema.GroupKind]func(string) []string {
	subdomain := func(name string) []string { return validation.IsDNS1123Subdomain(name) }
	rules := map[schema.GroupKind]func(string) []string{
		{Kind: "Namespace"}: validation.IsDNS1123Label,
		{Kind: "Service"}:   validation.IsDNS1035Label,
	}
	for group, kinds := range map[string][]string{
		"":                  {"ConfigMap", "Secret", "Pod", "PersistentVolume", "PersistentVolumeClaim", "ReplicationController", "ServiceAccount"},
		"apps":              {"Deployment", "DaemonSet", "ReplicaSet", "StatefulSet"},
		"batch":             {"Job", "CronJob"},
		"networking.k8s.io": {"Ingress", "NetworkPolicy"},
		"policy":            {"PodDisruptionBudget"},
	} {
		for _, kind := range kinds {
			rules[schema.GroupKind{Group: group, Kind: kind}] = subdomain
		}
	}
	return rules
})

// keys checks those of a ConfigMap or a Secret.
func (v *checker) keys(object map[string]any, at *path) {
	for _, field := range []string{"data", "binaryData", "stringData"} {
		for key := range mapAt(object, field) {
			if problems := validation.IsConfigMapKey(key); len(problems) > 0 {
				v.add(at.field(field).field(key), WrongValue, "%q is not a key: %s", key, problems[0])
			}
		}
	}
}

func (v *checker) servicePorts(object map[string]any, at *path) {
	ports, _ := mapAt(object, "spec")["ports"].([]any)
	eachEntry(ports, at.field("spec").field("ports"), func(port map[string]any, at *path) {
		v.port(port["port"], at.field("port"))
		v.portOrName(port["targetPort"], at.field("targetPort"))
		v.port(port["nodePort"], at.field("nodePort"))
		name, _ := port["name"].(string)
		if problems := validation.IsDNS1123Label(name); name != "" && len(problems) > 0 {
			v.add(at.field("name"), WrongValue, "%q is not a name of a port: %s", name, problems[0])
		}
		if name == "" && len(ports) > 1 {
			v.add(at, MissingField, "name is missing: of several ports each has one")
		}
	})
}

// port checks a number; 0 is absent.
func (v *checker) port(value any, at *path) {
	if n, ok := integerOf(value); ok && n != 0 && (n < 0 || n > 65535) {
		v.add(at, WrongValue, "%d is not a port: expected 1 to 65535", n)
	}
}

func (v *checker) portOrName(value any, at *path) {
	if name, ok := value.(string); ok && name != "" {
		if problems := validation.IsValidPortName(name); len(problems) > 0 {
			v.add(at, WrongValue, "%q is not a name of a port: %s", name, problems[0])
		}
		return
	}
	v.port(value, at)
}

// integerOf returns an integer however it was decoded; false for any other value.
func integerOf(value any) (int64, bool) {
	if f, ok := value.(float64); ok {
		return int64(f), f == math.Trunc(f)
	}
	n, err := strconv.ParseInt(fmt.Sprint(value), 10, 64)
	return n, err == nil && isNumber(value)
}

// workload checks an object of the group apps.
func (v *checker) workload(object map[string]any, at *path) {
	spec := mapAt(object, "spec")
	at = at.field("spec")
	if n, ok := integerOf(spec["replicas"]); ok && n < 0 {
		v.add(at.field("replicas"), WrongValue, "%d is negative", n)
	}
	v.template(spec["template"], at.field("template"), "Always")
	selector := mapAt(spec, "selector")
	if selector == nil {
		return // reported as missing
	}
	data, err := json.Marshal(selector)
	var decoded metav1.LabelSelector
	if err != nil || json.Unmarshal(data, &decoded) != nil {
		return // reported by type
	}
	parsed, err := metav1.LabelSelectorAsSelector(&decoded)
	switch {
	case err != nil:
		v.add(at.field("selector"), WrongValue, "is not a selector: %v", err)
	case parsed.Empty():
		v.add(at.field("selector"), WrongValue, "is empty: it selects every pod")
	case !parsed.Matches(labelsOf(spec["template"])):
		v.add(at.field("selector"), WrongValue, "does not match the labels of the template")
	}
}

// labelsOf returns the labels of a template.
func labelsOf(template any) labels.Set {
	set := labels.Set{}
	for name, value := range mapAt(template, "metadata", "labels") {
		set[name] = fmt.Sprint(value)
	}
	return set
}

func (v *checker) replicationController(object map[string]any, at *path) {
	spec := mapAt(object, "spec")
	at = at.field("spec")
	v.template(spec["template"], at.field("template"), "Always")
	have := labelsOf(spec["template"])
	for name, value := range mapAt(spec, "selector") {
		if have[name] != fmt.Sprint(value) {
			v.add(at.field("selector"), WrongValue, "does not match the labels of the template")
			return
		}
	}
}

func (v *checker) jobSpec(spec any, at *path) {
	template := mapAt(spec, "template")
	v.template(template, at.field("template"), "OnFailure", "Never")
	if pod := mapAt(template, "spec"); pod != nil && isZero(pod["restartPolicy"]) {
		v.add(at.field("template").field("spec"), MissingField, "restartPolicy is missing: OnFailure or Never")
	}
}

func (v *checker) cronJob(object map[string]any, at *path) {
	spec := mapAt(object, "spec")
	at = at.field("spec")
	if schedule, ok := spec["schedule"].(string); ok && schedule != "" {
		if problem := scheduleProblem(schedule); problem != "" {
			v.add(at.field("schedule"), WrongValue, "%q is not a schedule: %s", schedule, problem)
		}
	}
	v.jobSpec(mapAt(spec, "jobTemplate")["spec"], at.field("jobTemplate").field("spec"))
}

// template checks that of a workload, whose pods may restart as the policies say.
func (v *checker) template(template any, at *path, policies ...string) {
	spec := mapAt(template, "spec")
	if policy, ok := spec["restartPolicy"].(string); ok && policy != "" && !slices.Contains(policies, policy) {
		v.add(at.field("spec").field("restartPolicy"), WrongValue, "%q is not possible here: expected %s", policy, strings.Join(policies, " or "))
	}
	v.podSpec(spec, at.field("spec"))
}

func (v *checker) podSpec(spec any, at *path) {
	pod := mapAt(spec)
	eachEntry(pod["volumes"], at.field("volumes"), v.modes)
	for _, list := range []string{"initContainers", "containers"} {
		eachEntry(pod[list], at.field(list), v.container)
	}
}

func (v *checker) container(container map[string]any, at *path) {
	if name, _ := container["name"].(string); name != "" {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			v.add(at.field("name"), WrongValue, "%q is not a name of a container: %s", name, problems[0])
		}
	}
	eachEntry(container["ports"], at.field("ports"), func(port map[string]any, at *path) {
		v.port(port["containerPort"], at.field("containerPort"))
		v.port(port["hostPort"], at.field("hostPort"))
		v.portOrName(port["name"], at.field("name"))
	})
	for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		for _, kind := range []string{"httpGet", "tcpSocket", "grpc"} {
			v.portOrName(mapAt(container, probe, kind)["port"], at.field(probe).field(kind).field("port"))
		}
	}
}

// maxMode is 0777: the modes of files have no more than permission bits.
const maxMode = 0o777

// modes checks those of the files of a volume.
func (v *checker) modes(volume map[string]any, at *path) {
	files := func(source map[string]any, at *path) {
		for _, kind := range []string{"configMap", "secret", "downwardAPI"} {
			v.mode(mapAt(source, kind)["defaultMode"], at.field(kind).field("defaultMode"))
			eachEntry(mapAt(source, kind)["items"], at.field(kind).field("items"), func(item map[string]any, at *path) {
				v.mode(item["mode"], at.field("mode"))
			})
		}
	}
	files(volume, at)
	projected := at.field("projected")
	v.mode(mapAt(volume, "projected")["defaultMode"], projected.field("defaultMode"))
	eachEntry(mapAt(volume, "projected")["sources"], projected.field("sources"), files)
}

func (v *checker) mode(value any, at *path) {
	if n, ok := integerOf(value); ok && (n < 0 || n > maxMode) {
		v.add(at, WrongValue, "%d is not the mode of a file: expected 0 to 0777, in YAML as an octal number", n)
	}
}
