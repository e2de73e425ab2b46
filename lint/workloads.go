package lint

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/kube/images"
	"github.com/solutionctl/solutionctl/kube/pods"
	"github.com/solutionctl/solutionctl/lint/target"
)

func pathOf(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// pod is the specification of the pods that an object starts.
type pod struct {
	object  *target.Object
	path    string // of the specification
	spec    map[string]any
	running bool // for as long as the object exists
}

// pods returns the pods of everything that is applied.
func (t *subject) pods() []pod {
	var all []pod
	for _, o := range t.Objects() {
		if !o.Part.Applied() {
			continue
		}
		if spec := pods.Spec(o.Value); spec != nil && o.Kind != "PodTemplate" {
			_, path := pods.Template(o.Value)
			running := o.Kind != "Pod" && o.Group() != "batch"
			all = append(all, pod{o, strings.Join(append(slices.Clone(path), "spec"), "."), spec, running})
		}
	}
	return all
}

// lookup follows the keys; nil when there is nothing.
func lookup(value any, keys ...string) any {
	for _, key := range keys {
		m, _ := value.(map[string]any)
		value = m[key]
	}
	return value
}

// container is one container of a pod.
type container struct {
	path, name string
	value      map[string]any
	init       bool
}

func (p pod) containers() []container {
	var all []container
	for _, list := range []string{"initContainers", "containers"} {
		entries, _ := p.spec[list].([]any)
		for i, entry := range entries {
			value, _ := entry.(map[string]any)
			name, _ := value["name"].(string)
			all = append(all, container{pathOf(p.path+"."+list, i), name, value, list == "initContainers"})
		}
	}
	return all
}

func checkProbes(_ context.Context, t *subject, r *reporter) {
	for _, p := range t.pods() {
		if !p.running || p.object.Part == target.PartUI { // a user interface has a rule of its own
			continue
		}
		reportProbes(r, p)
	}
}

func reportProbes(r *reporter, p pod) {
	for _, c := range p.containers() {
		if !c.init && c.value["readinessProbe"] == nil {
			r.Report(p.object.At(c.path), "add readinessProbe", "container %s has no readiness probe", c.name)
		}
	}
}

func checkRequests(_ context.Context, t *subject, r *reporter) {
	for _, p := range t.pods() {
		whole, _ := lookup(p.spec, "resources", "requests").(map[string]any)
		for _, c := range p.containers() {
			requests, _ := lookup(c.value, "resources", "requests").(map[string]any)
			limits, _ := lookup(c.value, "resources", "limits").(map[string]any) // stand in for requests that are missing
			var missing []string
			for _, resource := range []string{"cpu", "memory"} {
				if requests[resource] == nil && limits[resource] == nil && whole[resource] == nil {
					missing = append(missing, resource)
				}
			}
			if len(missing) > 0 {
				r.Report(p.object.At(c.path), "add resources.requests", "container %s requests no %s", c.name, strings.Join(missing, " and no "))
			}
		}
	}
}

func checkSecurity(_ context.Context, t *subject, r *reporter) {
	for _, p := range t.pods() {
		inPod := hostAccess(p.spec)
		if len(inPod) > 0 {
			r.Report(p.object.At(p.path), "run the pod without it, or suppress the finding with the reason", "the pod uses %s", strings.Join(inPod, ", "))
		}
		for _, c := range p.containers() {
			if missing := unrestricted(p.spec, c.value); len(missing) > 0 {
				r.Report(p.object.At(c.path), "set the fields in securityContext of the container or the pod",
					"container %s is not restricted: %s", c.name, strings.Join(missing, ", "))
			}
		}
	}
}

// hostAccess lists a pod's access to its node.
func hostAccess(spec map[string]any) []string {
	var found []string
	for _, field := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		if spec[field] == true {
			found = append(found, field)
		}
	}
	volumes, _ := spec["volumes"].([]any)
	for _, volume := range volumes {
		if lookup(volume, "hostPath") != nil {
			return append(found, "hostPath volumes")
		}
	}
	return found
}

// unrestricted lists the violations of the restricted Pod Security Standard by a container.
func unrestricted(podSpec, c map[string]any) []string {
	field := func(keys ...string) any {
		if value := lookup(c, append([]string{"securityContext"}, keys...)...); value != nil {
			return value
		}
		return lookup(podSpec, append([]string{"securityContext"}, keys...)...)
	}
	var found []string
	if lookup(c, "securityContext", "privileged") == true {
		found = append(found, "privileged is true")
	}
	if lookup(c, "securityContext", "allowPrivilegeEscalation") != false {
		found = append(found, "allowPrivilegeEscalation is not false")
	}
	if field("runAsNonRoot") != true {
		found = append(found, "runAsNonRoot is not true")
	}
	if drop, _ := lookup(c, "securityContext", "capabilities", "drop").([]any); !slices.Contains(drop, any("ALL")) {
		found = append(found, "capabilities.drop has not ALL")
	}
	if profile := field("seccompProfile", "type"); profile != "RuntimeDefault" && profile != "Localhost" {
		found = append(found, "seccompProfile is not RuntimeDefault")
	}
	return found
}

func checkLatest(_ context.Context, t *subject, r *reporter) {
	for _, p := range t.pods() {
		for _, c := range p.containers() {
			image, _ := c.value["image"].(string)
			if m := repositoryPrefix.FindStringSubmatch(image); m != nil {
				image = "registry.invalid/" + m[1]
			}
			if reference, ok := images.ParseReference(image); ok && reference.Digest == "" && (reference.Tag == "" || reference.Tag == "latest") {
				r.Report(p.object.At(c.path+".image"), "write the tag that was tested", "image %s of container %s has no fixed tag", c.value["image"], c.name)
			}
		}
	}
}
