package powers

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/schema"
)

// ingress judges hosts, and annotations by which the settings of the proxy itself are written.
func (j *judgement) ingress(o Object) {
	var settings, secrets []string
	wild := nestedMap(o.Object, "spec", "defaultBackend") != nil
	for annotation, value := range o.GetAnnotations() {
		_, name, _ := strings.Cut(annotation, "/")
		namespace, _, qualified := strings.Cut(value, "/")
		switch {
		case strings.HasSuffix(name, "-snippet"), strings.HasSuffix(name, "-snippets"), strings.HasPrefix(name, "config-"):
			settings = append(settings, annotation)
		case name == "server-alias-regex":
			wild = true
		case strings.HasSuffix(name, "-secret") && qualified && !j.own[namespace]:
			secrets = append(secrets, value)
		}
	}
	if len(settings) > 0 {
		settings = set(settings)
		j.place(o, "metadata.annotations").add(schema.PowerTakesTraffic, schema.ReachCluster, "write the settings of the proxy, which has every Secret of Ingresses ("+enumerate(settings)+")", settings...)
	}
	if len(secrets) > 0 {
		secrets = set(secrets)
		j.place(o, "metadata.annotations").add(schema.PowerUsesForeignData, schema.ReachNamespaces, "have the proxy use Secrets that are not its own ("+enumerate(secrets)+")", secrets...)
	}
	rules := nested(o.Object, "spec", "rules")
	wild = wild || len(rules) == 0 || slices.ContainsFunc(rules, func(rule map[string]any) bool { return stringIn(rule, "host") == "" && hasRootPath(rule) })
	j.hosts(o, "spec.rules", wild)
}

// aliases returns the further hosts of an Ingress, which proxies read from an annotation.
func aliases(o *unstructured.Unstructured) (hosts []string) {
	if o.GetKind() != "Ingress" {
		return nil
	}
	for annotation, value := range o.GetAnnotations() {
		if strings.HasSuffix(annotation, "/server-alias") {
			hosts = append(hosts, strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })...)
		}
	}
	return hosts
}

// hasRootPath reports whether a rule is about every path. One about some path of its own, for every host, takes nothing else.
func hasRootPath(rule map[string]any) bool {
	paths := nested(rule, "http", "paths")
	return len(paths) == 0 || slices.ContainsFunc(paths, func(p map[string]any) bool {
		path := strings.TrimPrefix(strings.TrimPrefix(stringIn(p, "path"), "^"), "/")
		return path == "" || strings.ContainsRune("(.*[$\\", rune(path[0])) // a pattern
	})
}
