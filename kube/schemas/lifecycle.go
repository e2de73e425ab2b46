package schemas

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

type lifecycle struct {
	Group       string    `json:"g"`
	Version     string    `json:"v"`
	Kind        string    `json:"k"`
	Introduced  int       `json:"i"`
	Deprecated  int       `json:"d"`
	Removed     int       `json:"x"`
	Replacement [3]string `json:"r"`
}

// goneFromSource are APIs that left the k8s.io/api module together with their lifecycle marks, so the generator cannot
// find them. Source: the Deprecated API Migration Guide and the change logs of Kubernetes.
var goneFromSource = []lifecycle{
	{"apps", "v1alpha1", "PetSet", 3, 5, 5, [3]string{"apps", "v1", "StatefulSet"}},
	{"batch", "v2alpha1", "CronJob", 5, 8, 21, [3]string{"batch", "v1", "CronJob"}},
	{"batch", "v2alpha1", "ScheduledJob", 4, 5, 8, [3]string{"batch", "v1", "CronJob"}},
	{"extensions", "v1beta1", "PodSecurityPolicy", 3, 11, 16, [3]string{}},
	{"extensions", "v1beta1", "Job", 1, 2, 6, [3]string{"batch", "v1", "Job"}},
	{"policy", "v1beta1", "PodSecurityPolicy", 10, 21, 25, [3]string{}},
	{"rbac.authorization.k8s.io", "v1alpha1", "Role", 5, 17, 23, [3]string{"rbac.authorization.k8s.io", "v1", "Role"}},
	{"rbac.authorization.k8s.io", "v1alpha1", "ClusterRole", 5, 17, 23, [3]string{"rbac.authorization.k8s.io", "v1", "ClusterRole"}},
	{"rbac.authorization.k8s.io", "v1alpha1", "RoleBinding", 5, 17, 23, [3]string{"rbac.authorization.k8s.io", "v1", "RoleBinding"}},
	{"rbac.authorization.k8s.io", "v1alpha1", "ClusterRoleBinding", 5, 17, 23, [3]string{"rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"}},
	{"settings.k8s.io", "v1alpha1", "PodPreset", 6, 20, 20, [3]string{}},
}

// Lifecycle holds the minor releases of Kubernetes 1 in which an API came and went; 0 means not known, or not
// yet. Replacement is empty when there is none.
type Lifecycle struct {
	Introduced, Deprecated, Removed int
	Replacement                     schema.GroupVersionKind
}

// lifecycle returns the known releases of a kind, also of one that no supported release serves any more.
func (c *Catalogue) lifecycle(gvk schema.GroupVersionKind) (Lifecycle, bool) {
	for _, table := range [][]lifecycle{c.index.Lifecycles, goneFromSource} {
		for _, l := range table {
			if l.Group == gvk.Group && l.Version == gvk.Version && l.Kind == gvk.Kind {
				return Lifecycle{
					Introduced: l.Introduced, Deprecated: l.Deprecated, Removed: l.Removed,
					Replacement: schema.GroupVersionKind{Group: l.Replacement[0], Version: l.Replacement[1], Kind: l.Replacement[2]},
				}, true
			}
		}
	}
	return Lifecycle{}, false
}

// Availability is the state of an API in a release.
type Availability string

// The availabilities.
const (
	Served     Availability = "served"
	Deprecated Availability = "deprecated" // served, and a later release will not
	Removed    Availability = "removed"    // no longer served
	NotYet     Availability = "not-yet"    // a later release serves it
	NotCore    Availability = "not-core"   // not an API of Kubernetes itself: a custom resource, or a mistake
)

// Availability reports whether the release serves the kind and, in one sentence, why not or until when.
func (r *Release) Availability(gvk schema.GroupVersionKind) (Availability, string) {
	life, known := r.catalogue.lifecycle(gvk)
	name := gvk.GroupVersion().String() + " " + gvk.Kind
	if _, served := r.kinds[gvk]; served {
		if !known || life.Deprecated == 0 || life.Deprecated > r.minor() || life.Replacement.Empty() {
			return Served, ""
		}
		return Deprecated, fmt.Sprintf("%s is deprecated since Kubernetes 1.%d%s%s", name, life.Deprecated, life.goes(), life.instead())
	}
	first, last := r.catalogue.served(gvk)
	switch {
	case first > r.number:
		return NotYet, fmt.Sprintf("%s is served from Kubernetes %s on, not in %s", name, minorOf(r.catalogue.index.Releases[first]), r.Version())
	case last >= 0:
		return Removed, fmt.Sprintf("%s is not served since Kubernetes %s%s", name, minorOf(r.catalogue.index.Releases[last+1]), life.instead())
	case known && life.Removed > 0 && life.Removed <= r.minor():
		return Removed, fmt.Sprintf("%s is not served since Kubernetes 1.%d%s", name, life.Removed, life.instead())
	}
	return NotCore, ""
}

func (l Lifecycle) goes() string {
	if l.Removed == 0 {
		return ""
	}
	return fmt.Sprintf(" and goes with 1.%d", l.Removed)
}

func (l Lifecycle) instead() string {
	if l.Replacement.Empty() {
		return ""
	}
	return fmt.Sprintf("; use %s %s", l.Replacement.GroupVersion(), l.Replacement.Kind)
}

func (r *Release) minor() int {
	var major, minor int
	if _, err := fmt.Sscanf(r.Version(), "%d.%d", &major, &minor); err != nil {
		return 0
	}
	return minor
}

// served returns the first and the last embedded release that serves the kind, -1 when none does.
func (c *Catalogue) served(gvk schema.GroupVersionKind) (first, last int) {
	for _, k := range c.index.Kinds {
		if k.Group == gvk.Group && k.Version == gvk.Version && k.Kind == gvk.Kind {
			return k.Releases[0], k.Releases[len(k.Releases)-1]
		}
	}
	return -1, -1
}
