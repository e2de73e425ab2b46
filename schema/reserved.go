package schema

import (
	"slices"
	"strings"
)

// apiServerGroups are the API groups that the API server of every cluster has itself, beside the core group.
var apiServerGroups = []string{
	"apps", "autoscaling", "batch", "extensions", "policy",
	"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
	"certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io",
	"internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io",
	"scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
}

// IsAPIServerGroup reports whether the API server of every cluster has the group itself. A CRD in it would end with every
// request to the group, and nothing but the API server may answer for it.
func IsAPIServerGroup(group string) bool {
	return group == "" || slices.Contains(apiServerGroups, group)
}

const metalK8sGroup = "metalk8s.scality.com"

// IsProtectedGroup reports whether an API group belongs to Kubernetes or MetalK8s, so that a Solution cannot call it its own.
// Below MetalK8s' group a Solution has the one with its own name, as MetalK8s' example has.
func IsProtectedGroup(solution, group string) bool {
	if prefix, ok := strings.CutSuffix(group, "."+metalK8sGroup); ok {
		return prefix != solution || slices.Contains([]string{"solutions", "storage", "system"}, prefix)
	}
	return !strings.Contains(group, ".") || group == metalK8sGroup || isBelow(group, "k8s.io") || isBelow(group, "kubernetes.io")
}

// isBelow reports whether a group is a domain or below it.
func isBelow(group, domain string) bool {
	return group == domain || strings.HasSuffix(group, "."+domain)
}

// PodSecurityLabels begin the labels of a namespace that decide which pods the API server admits. Activation takes them from the Namespaces
// among the manifests of cluster components.
const PodSecurityLabels = "pod-security.kubernetes.io/"

// IsSystemNamespace reports whether a namespace belongs to the cluster, to its distribution or to solutionctl: a user who
// runs pods in such a namespace can become administrator of the cluster.
func IsSystemNamespace(name string) bool {
	for _, prefix := range []string{"kube-", "openshift-", "metalk8s-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"default", "kube", "openshift", "metalk8s", "solutionctl", "solutionctl-system"}, name)
}

// reservedNames are the names of Solutions whose namespace <name>-system exists in a cluster before any Solution is
// imported, or that people take for a part of the cluster.
var reservedNames = map[string]string{
	"default":    "Kubernetes",
	"kube":       "Kubernetes",
	"kubernetes": "Kubernetes",
	"metalk8s":   "MetalK8s",
	"openshift":  "OpenShift",
}

// checkReserved refuses names and groups that belong to others. What a Solution calls its own is not asked about later.
func (c *checker) checkReserved() {
	solution := c.text("metadata.name")
	c.eachString("metadata.name", func(path []string, name string) {
		switch owner := reservedNames[name]; {
		case belongsToMetalK8s(name):
			c.fail(path, "choose another name", "names that start with metalk8s- belong to MetalK8s, which skips such Solutions")
		case owner != "":
			c.fail(path, "choose another name", "the name %s is reserved for %s: namespace %s-system must not belong to a Solution", name, owner, name)
		case name == ProgramImage && c.hasParts():
			c.fail(path, "choose another name", "the name %s is reserved: namespace %s-system holds what is recorded of Solutions", name, name)
		}
	})
	c.eachString("spec.customApiGroups.*", func(path []string, group string) {
		if strings.Contains(group, ".") && IsProtectedGroup(solution, group) {
			c.fail(path, "list the groups of the Solution's own CustomResourceDefinitions only",
				"API group %s belongs to Kubernetes or MetalK8s: a Solution cannot claim it", group)
		}
	})
}

// hasParts reports whether the document describes more than images.
func (c *checker) hasParts() bool {
	spec, _ := lookup(c.pruned, "spec").(map[string]any)
	return slices.ContainsFunc([]string{"operator", "ui", "customApiGroups", "components"}, func(key string) bool {
		list, isList := spec[key].([]any)
		return spec[key] != nil && (!isList || len(list) > 0)
	})
}
