package powers

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/solutionctl/solutionctl/schema"
)

// Prefixes of the annotations of controllers that copy objects: Reflector and Replicator.
const (
	reflector  = "reflector.v1.k8s.emberstack.com/"
	replicator = "replicator.v1.mittwald.de/"
)

// copies judges annotations by which controllers copy an object, or the Secret that cert-manager makes of it, to other namespaces, or data of
// others into it.
func (j *judgement) copies(o Object) {
	j.copied(o, "metadata.annotations", nestedMap(o.Object, "metadata", "annotations"))
	j.copied(o, "spec.secretTemplate.annotations", nestedMap(o.Object, "spec", "secretTemplate", "annotations"))
}

func (j *judgement) copied(o Object, field string, annotations map[string]any) {
	var places []string
	if strings.EqualFold(stringIn(annotations, reflector+"reflection-auto-enabled"), "true") {
		places = listed(stringIn(annotations, reflector+"reflection-auto-namespaces"))
		if len(places) == 0 {
			places = listed(stringIn(annotations, reflector+"reflection-allowed-namespaces"))
		}
		if len(places) == 0 {
			places = []string{"*"}
		}
	}
	places = append(places, listed(stringIn(annotations, replicator+"replicate-to"))...)
	for _, selecting := range []string{replicator + "replicate-to-matching", "kubed.appscode.com/sync"} {
		if annotations[selecting] != nil { // labels of namespaces, which each can have
			places = append(places, "*")
		}
	}
	if places = set(slices.DeleteFunc(places, func(namespace string) bool { return j.own[namespace] })); len(places) > 0 {
		reach := schema.ReachNamespaces
		if slices.ContainsFunc(places, func(place string) bool { return isPattern(place) || schema.IsSystemNamespace(place) }) {
			reach = schema.ReachCluster
		}
		j.place(o, field).add(schema.PowerObjectsElsewhere, reach, "have copies in "+placeText(places), places...)
	}
	for _, source := range []string{reflector + "reflects", replicator + "replicate-from"} {
		name := stringIn(annotations, source)
		if namespace, _, ok := strings.Cut(name, "/"); ok && !j.own[namespace] {
			j.place(o, field).add(schema.PowerUsesForeignData, schema.ReachNamespaces, "get a copy of what is in another namespace ("+name+")", name)
		}
	}
}

// isPattern reports whether a text is not the name of one namespace.
func isPattern(place string) bool { return len(validation.IsDNS1123Label(place)) > 0 }
