package powers

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/solutionctl/solutionctl/schema"
)

// reference is an object of its namespace that a pod reads.
type reference struct{ kind, name string }

// data judges what the pod reads in its namespace that another Solution has.
func (p pod) data() {
	if p.owner.ForeignData == nil {
		return
	}
	namespace := p.o.GetNamespace()
	var effects, whose []string
	for _, r := range p.references() {
		if r.name == "" || p.bringsData(p.o, "", r.kind, namespace, r.name) {
			continue
		}
		if solution := p.owner.ForeignData(r.kind, namespace, r.name); solution != "" {
			effects = append(effects, r.kind+" "+r.name)
			whose = append(whose, r.kind+"/"+r.name+" of Solution "+solution)
		}
	}
	if len(effects) > 0 {
		p.add(schema.PowerUsesForeignData, schema.ReachNamespaces, "read what other Solutions have ("+enumerate(set(whose))+")", set(effects)...)
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
