package powers

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/solutionctl/solutionctl/schema"
)

// reference is an object of its namespace that a pod, or a controller for an object, reads.
type reference struct{ kind, name string }

// data judges what the pod reads in its namespace that another Solution has.
func (p pod) data() { p.foreignData(p.references()) }

// refers judges what a custom resource of others, or an Ingress, has their controllers read in its namespace that another Solution has.
func (j *judgement) refers(o Object) {
	if isKind(o, "networking.k8s.io", "Ingress") || !isBuiltIn(groupOf(o)) && !j.ownsKind(groupOf(o), o.GetKind()) {
		j.place(o, "spec").foreignData(referencesIn(o.Object["spec"], "spec"))
	}
}

// foreignData adds the power to read what another Solution has in the namespace of the object.
func (p place) foreignData(references []reference) {
	if p.owner.ForeignData == nil || !p.spend(refOf(p.o), len(references)) {
		return
	}
	namespace := p.o.GetNamespace()
	var effects, whose []string
	for _, r := range references {
		if len(validation.IsDNS1123Subdomain(r.name)) > 0 || p.bringsData(p.o, "", r.kind, namespace, r.name) {
			continue
		}
		if solution := p.owner.ForeignData(r.kind, namespace, r.name); solution != "" {
			effects = append(effects, r.kind+" "+r.name)
			whose = append(whose, r.kind+"/"+r.name+" of Solution "+solution)
		}
	}
	if p.owner.ForeignClaims != nil && isKind(p.o, "apps", "StatefulSet") {
		for _, prefix := range ClaimPrefixes(p.o.Unstructured) {
			if solution := p.owner.ForeignClaims(namespace, prefix); solution != "" {
				effects = append(effects, "PersistentVolumeClaim "+prefix+"*")
				whose = append(whose, "PersistentVolumeClaim/"+prefix+"* of Solution "+solution)
			}
		}
	}
	if len(effects) > 0 {
		p.add(schema.PowerUsesForeignData, schema.ReachNamespaces, "read what other Solutions have ("+enumerate(set(whose))+")", set(effects)...)
	}
}

// referencesIn returns the Secrets and ConfigMaps of its own namespace to which a custom resource refers, by the usual shapes: a name with a
// key, secretName, fields that end in SecretRef, and certificates.
func referencesIn(value any, field string) (all []reference) {
	switch value := value.(type) {
	case map[string]any:
		kind, name := cmp.Or(stringIn(value, "kind"), "Secret"), stringIn(value, "name")
		lower := strings.ToLower(field)
		if strings.HasPrefix(lower, "configmap") {
			kind = "ConfigMap"
		}
		if name != "" && (value["key"] != nil || slices.ContainsFunc(referring, func(end string) bool { return strings.HasSuffix(lower, end) })) {
			all = append(all, reference{kind, name})
		}
		all = append(all, reference{"Secret", stringIn(value, "secretName")})
		for key, inner := range value {
			all = append(all, referencesIn(inner, key)...)
		}
	case []any:
		for _, inner := range value {
			all = append(all, referencesIn(inner, field)...)
		}
	}
	return all
}

// referring are the ends of fields that refer to a Secret, or to what has certificates, without a key.
var referring = []string{"secretref", "certificaterefs", "externalcertificate"}

// claimName judges whether pods of another Solution would use a claim, because their StatefulSet makes claims with such names.
func (j *judgement) claimName(o Object) {
	if j.owner.ForeignData == nil {
		return
	}
	if solution := j.owner.ForeignData(o.GetKind(), o.GetNamespace(), o.GetName()); solution != "" {
		j.place(o, "metadata.name").add(schema.PowerUsesForeignData, schema.ReachNamespaces, "share a volume with a StatefulSet of Solution "+solution, o.GetName())
	}
}

// references returns the Secrets, ConfigMaps and claims that the pod reads.
func (p pod) references() (all []reference) {
	add := func(kind, name string) { all = append(all, reference{kind, name}) }
	const secret, configMap = "Secret", "ConfigMap"
	for _, s := range p.spec.ImagePullSecrets {
		add(secret, s.Name)
	}
	for _, v := range p.spec.Volumes {
		switch {
		case v.Secret != nil:
			add(secret, v.Secret.SecretName)
		case v.ConfigMap != nil:
			add(configMap, v.ConfigMap.Name)
		case v.PersistentVolumeClaim != nil:
			add("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName)
		case v.Projected != nil:
			for _, source := range v.Projected.Sources {
				if source.Secret != nil {
					add(secret, source.Secret.Name)
				}
				if source.ConfigMap != nil {
					add(configMap, source.ConfigMap.Name)
				}
			}
		}
	}
	p.containers(func(c corev1.Container) {
		for _, from := range c.EnvFrom {
			if from.SecretRef != nil {
				add(secret, from.SecretRef.Name)
			}
			if from.ConfigMapRef != nil {
				add(configMap, from.ConfigMapRef.Name)
			}
		}
		for _, variable := range c.Env {
			switch from := variable.ValueFrom; {
			case from == nil:
			case from.SecretKeyRef != nil:
				add(secret, from.SecretKeyRef.Name)
			case from.ConfigMapKeyRef != nil:
				add(configMap, from.ConfigMapKeyRef.Name)
			}
		}
	})
	return all
}
