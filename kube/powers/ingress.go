package powers

import (
	"regexp/syntax"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/schema"
)

// ingress judges hosts, paths, and annotations by which the settings of the proxy itself are written.
func (j *judgement) ingress(o Object) {
	var settings, secrets, objects []string
	wild := nestedMap(o.Object, "spec", "defaultBackend") != nil
	var first bool // its routes come before longer ones of others
	for annotation, value := range o.GetAnnotations() {
		_, name, _ := strings.Cut(annotation, "/")
		namespace, _, qualified := strings.Cut(value, "/")
		switch {
		case strings.HasSuffix(name, "-snippet"), strings.HasSuffix(name, "-snippets"), strings.HasPrefix(name, "config-"):
			settings = append(settings, annotation)
		case name == "server-alias-regex", isMatcher(name) && !slices.Contains(matchers, value):
			wild = true
		case name == "router.priority":
			first = true
		case strings.HasSuffix(name, "-secret") && qualified && !j.own[namespace]:
			secrets = append(secrets, value)
		case strings.HasPrefix(annotation, "traefik."):
			objects = append(objects, j.foreignOfTraefik(value)...)
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
	if len(objects) > 0 {
		objects = set(objects)
		j.place(o, "metadata.annotations").add(schema.PowerTakesTraffic, schema.ReachTraffic, "have the proxy use settings of other namespaces ("+enumerate(objects)+")", prefixed("settings ", objects)...)
	}
	rules := nested(o.Object, "spec", "rules")
	paths, every := j.paths(o, rules)
	wild = wild || every || len(rules) == 0
	if len(paths) > 0 && !wild {
		shown := j.place(o, "spec.rules").show
		if first {
			shown = j.place(o, "spec.rules").add
		}
		shown(schema.PowerTakesTraffic, schema.ReachTraffic, "answer for "+enumerate(paths)+" of every host", prefixed("path ", paths)...)
	}
	j.hosts(o, "spec.rules", wild)
}

// matchers are functions of Traefik that compare a path. Its router has whatever else an annotation asks for.
var matchers = []string{"Path", "PathPrefix", "PathPrefixStrip", "PathRegexp"}

// isMatcher reports whether an annotation names the function by which Traefik compares paths.
func isMatcher(name string) bool { return name == "router.pathmatcher" || name == "rule-type" }

// foreignOfTraefik returns objects of other namespaces, such as middlewares, which Traefik calls NAMESPACE-NAME@kubernetescrd. Where the rest
// of a name has a hyphen, as in acme-prod-login, the namespace can be acme-prod as well.
func (j *judgement) foreignOfTraefik(value string) (objects []string) {
	for name := range strings.SplitSeq(value, ",") {
		full, ok := strings.CutSuffix(strings.TrimSpace(name), "@kubernetescrd")
		if ok && !slices.ContainsFunc(j.owner.Namespaces, func(namespace string) bool {
			rest, ok := strings.CutPrefix(full, namespace+"-")
			return ok && (!strings.Contains(rest, "-") || j.bringsTraefik(namespace, rest))
		}) {
			objects = append(objects, strings.TrimSpace(name))
		}
	}
	return objects
}

// bringsTraefik reports whether an object of Traefik to which an Ingress can refer is among the objects.
func (j *judgement) bringsTraefik(namespace, name string) bool {
	return slices.ContainsFunc([]string{"Middleware", "TLSOption", "ServersTransport"}, func(kind string) bool {
		return j.brings("traefik.io", kind, namespace, name) || j.brings("traefik.containo.us", kind, namespace, name)
	})
}

// aliases returns the further hosts of an Ingress, which proxies read from an annotation.
func aliases(o *unstructured.Unstructured) (hosts []string) {
	if o.GetKind() != "Ingress" {
		return nil
	}
	for annotation, value := range o.GetAnnotations() {
		if strings.HasSuffix(annotation, "/server-alias") || strings.HasSuffix(annotation, "/host-aliases") {
			hosts = append(hosts, listed(value)...)
		}
	}
	return hosts
}

// listed returns the entries of a list in an annotation.
func listed(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
}

// paths returns the paths of rules for every host, without those of the Solution's own user interface. They take nothing else; every
// reports that rules are about all paths.
func (j *judgement) paths(o Object, rules []map[string]any) (paths []string, every bool) {
	for _, rule := range rules {
		all, host := nested(rule, "http", "paths"), stringIn(rule, "host")
		every = every || host == "" && len(all) == 0
		for _, p := range all {
			path := stringIn(p, "path")
			literal := literalStart(path)
			switch {
			case strings.Contains(path, "`"): // Traefik has paths in this quotation mark in its rules
				every = true
			case host != "":
			case literal == "":
				every = true
			case !j.isPathOfUI(o, literal):
				paths = append(paths, path)
			}
		}
	}
	return set(paths), every
}

// isPathOfUI reports whether a path is below /env, where MetalK8s has the user interfaces of Solutions: /env/ENVIRONMENT/[NAMESPACE/]SOLUTION.
func (j *judgement) isPathOfUI(o Object, path string) bool {
	own := o.GetNamespace() + "/" + j.owner.Solution
	below, ok := strings.CutPrefix(path, "env/")
	_, further, _ := strings.Cut(below, "/")
	return ok && (below == own || strings.HasPrefix(below, own+"/") || further == own || strings.HasPrefix(further, own+"/"))
}

// longestPath is how long a path is that is read as a pattern.
const longestPath = 1000

// literalStart returns what all requests have with which a path agrees, after the first slash; "" for one about every path. Proxies
// read a path as a regular expression if an annotation of this or of another Ingress asks for it.
func literalStart(path string) string {
	path = strings.TrimPrefix(strings.TrimPrefix(path, "^"), "/~") // so does Kong after this prefix
	path = strings.Replace(path, "/.well-known/", "/well-known/", 1)
	pattern, err := syntax.Parse(path, syntax.Perl)
	if err != nil || len(path) > longestPath {
		return ""
	}
	if pattern.Op == syntax.OpConcat && len(pattern.Sub) > 0 {
		pattern = pattern.Sub[0]
	}
	if pattern.Op != syntax.OpLiteral || slices.ContainsFunc(pattern.Rune, func(r rune) bool { return r == '{' || r == '}' }) { // later PCRE knows {,3}
		return ""
	}
	return strings.TrimLeft(string(pattern.Rune), "/")
}
