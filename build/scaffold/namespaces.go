package scaffold

import (
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func isNamespace(object map[string]any) bool {
	gvk := kindOf(object)
	return gvk.Kind == "Namespace" && gvk.Group == ""
}

// withoutNamespaces takes Namespace objects out: they are made where a component is deployed.
func withoutNamespaces(documents []document) (rest, namespaces []document) {
	return separate(documents, func(d document) bool { return !isNamespace(d.value) })
}

// keptNamespaces returns the Namespaces that a cluster component keeps for their Pod Security labels, and remarks what is lost of the others.
func (b *builder) keptNamespaces(c *schema.Component, namespaces []document) []document {
	return slices.DeleteFunc(slices.Clone(namespaces), func(d document) bool {
		security, others := namespaceLabels(d)
		if !c.CreatesNamespace(d.name(), c.Namespace) {
			others = slices.Concat(security, others)
			security = nil
		}
		if len(security) > 0 {
			b.remark("kept the labels %s of Namespace %s: activation sets them", strings.Join(security, " "), d.name())
		} else {
			b.remark("left out Namespace %s: %s", d.name(), whyLeftOut(c, d.name()))
		}
		if len(others) > 0 {
			b.remark("left out more labels of Namespace %s; if something needs them: kubectl label namespace %s %s", d.name(), d.name(), words(others))
		}
		b.remarkAnnotations(d)
		return len(security) == 0
	})
}

func whyLeftOut(c *schema.Component, namespace string) string {
	switch {
	case c.CreatesNamespace(namespace, c.Namespace):
		return "it is made when the component is deployed"
	case schema.IsSystemNamespace(namespace):
		return "every cluster has it"
	default:
		return "no object is in it"
	}
}

// dropNamespaces remarks what is lost of Namespaces whose objects move to environments.
func (b *builder) dropNamespaces(namespaces []document) {
	for _, d := range namespaces {
		b.remark("left out Namespace %s: an environment has its own", d.name())
		security, others := namespaceLabels(d)
		if labels := slices.Concat(security, others); len(labels) > 0 {
			b.remark("an administrator sets the labels of Namespace %s before 'deploy add': kubectl label namespace ENVIRONMENT %s", d.name(), words(labels))
		}
		b.remarkAnnotations(d)
	}
}

func (b *builder) remarkAnnotations(d document) {
	if annotations := pairs(d, "annotations"); len(annotations) > 0 {
		b.remark("left out the annotations of Namespace %s: %s", d.name(), strings.Join(annotations, " "))
	}
}

// namespaceLabels returns the labels of a Namespace, as NAME=VALUE.
func namespaceLabels(d document) (security, others []string) {
	return separate(pairs(d, "labels"), func(label string) bool { return strings.HasPrefix(label, schema.PodSecurityLabels) })
}

// descriptive begin labels and annotations that describe an object to people and tools, and that nothing selects namespaces by.
var descriptive = []string{"app.kubernetes.io/", "helm.sh/", "kubernetes.io/metadata.name", "kubectl.kubernetes.io/", "meta.helm.sh/"}

// pairs returns the labels or annotations of an object that change something, sorted.
func pairs(d document, field string) []string {
	metadata, _ := d.value["metadata"].(map[string]any)
	values, _ := metadata[field].(map[string]any)
	var list []string
	for key, value := range values {
		text, _ := value.(string)
		if !slices.ContainsFunc(descriptive, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			list = append(list, key+"="+text)
		}
	}
	slices.Sort(list)
	return list
}

// words are arguments of a command.
func words(arguments []string) string {
	quoted := make([]string, len(arguments))
	for i, argument := range arguments {
		quoted[i] = report.ShellFile(argument)
	}
	return strings.Join(quoted, " ")
}
