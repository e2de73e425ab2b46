package powers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/schema"
)

// Lookup is an object, or with an empty name all of a kind, that a chart looks up while it is rendered. An empty namespace stands
// for all.
type Lookup struct {
	APIVersion, Kind, Namespace, Name string
	FindsOthers                       bool // among what is found are objects of other Solutions
}

// isSecret reports whether a lookup is about Secrets.
func (l Lookup) isSecret() bool {
	version, err := kube.ParseGroupVersion(l.APIVersion) // "/v1" is "v1"
	return err == nil && version.Group == "" && strings.TrimSuffix(l.Kind, "List") == "Secret"
}

// IsForeignSecret reports whether a lookup is about Secrets outside the Solution's namespaces, or finds those of other Solutions in
// them. It is not to be answered before it is approved: the administrator's rights read more than the Solution may.
func (o Owner) IsForeignSecret(l Lookup) bool {
	return l.isSecret() && (l.FindsOthers || !slices.Contains(o.Namespaces, l.Namespace))
}

// JudgeLookups returns the powers of what a chart has looked up.
func JudgeLookups(owner Owner, chart schema.ObjectRef, file string, lookups []Lookup) []schema.Power {
	j := judgement{owner: owner}
	for _, l := range lookups {
		if !owner.IsForeignSecret(l) {
			continue
		}
		reach, place := schema.ReachNamespaces, l.Namespace
		if place == "" || schema.IsSystemNamespace(place) {
			reach = schema.ReachCluster
		}
		place = cmp.Or(place, "*")
		what, effect := "every Secret of "+placeText([]string{place}), place+"/*"
		if l.Name != "" {
			what, effect = fmt.Sprintf("the Secret %s of %s", l.Name, placeText([]string{place})), place+"/"+l.Name
		}
		j.record(schema.Power{
			Name: schema.PowerReadSecrets, Reach: reach, Need: schema.NeedApproval, Object: chart, File: file,
			Why: "read " + what + " while it is rendered, with the administrator's rights", Effects: []string{effect},
		})
	}
	return sorted(j.powers)
}
