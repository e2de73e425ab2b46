// Package render turns an archive into the Kubernetes objects of a deployment.
//
// A [Payload] is an archive without its images: small, self-contained, and stored in the cluster by the import, so that
// later operations need neither the archive nor a registry. [Activation] renders the objects of an activated version,
// most of them in [SystemNamespace], and [Environment] those of a Solution in the namespace of an environment. Both are
// pure: the same payload and [Settings] give the same objects in the same order. Everything that differs between
// clusters is part of the settings, even the time and existing Secrets. The one exception is the key of a new
// certificate, which is random.
//
// Objects have the names, labels and shapes by which MetalK8s' tooling recognises them. Manifests of an archive are not
// trusted: an object of a kind that is not allowed at its place is refused with its file and line.
package render

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Settings are the input of a rendering besides the payload.
type Settings struct {
	// Registry is the name under which nodes pull from the registry, HOST[:PORT] such as "registry.solutionctl.invalid".
	Registry string
	// Imported are the payloads of all imported versions of the Solution, which operators are configured with; nothing else uses them. The
	// rendered payload is always included.
	Imported []*Payload

	// Namespace is where the Solution is added, and Environment the environment that the namespace belongs to. An
	// activation needs neither.
	Namespace, Environment string
	// Creates are the namespaces among [ComponentNamespaces] that an activation brings; the others exist without it.
	Creates []string
	// Webhook mounts the Secret <solution>-cert into the operator, and creates it unless another object does.
	Webhook bool
	// IngressClass is the class of a generated Ingress; empty for the cluster's default.
	IngressClass string

	// Monitoring has the labels that the cluster's Prometheus and Grafana select.
	Monitoring schema.Monitoring

	// Secrets are the Secrets of the target namespace that [ActivationSecrets] or [EnvironmentSecrets] ask for, by name;
	// one that does not exist may be absent or nil.
	Secrets map[string]*unstructured.Unstructured
	// Now decides whether a certificate is valid; an archive without a webhook does not need it.
	Now time.Time

	// judged leaves out generated objects that have no powers and take long to make.
	judged bool
}

// SystemNamespace is the namespace of the cluster-wide part of a Solution: <solution>-system.
func SystemNamespace(solution string) string { return solution + "-system" }

// renderer renders one payload.
type renderer struct {
	p    *Payload
	s    Settings
	name string   // of the Solution
	crds []object // the archive's CustomResourceDefinitions
	// namespaces are the namespaces besides Settings.Namespace in which a cluster component has objects.
	namespaces []string

	objects []*unstructured.Unstructured
	places  map[string]string // which file an object came from, by its identity
}

func newRenderer(p *Payload, s Settings) (*renderer, error) {
	r := &renderer{p: p, s: s, name: p.Solution.Metadata.Name, places: map[string]string{}}
	if s.Registry == "" || strings.ContainsAny(s.Registry, "/ ") {
		return nil, report.Errorf(report.Usage, "registry %q is not HOST or HOST:PORT", s.Registry)
	}
	var err error
	r.crds, err = p.crds()
	return r, err
}

// renderedBy returns the objects of a renderer.
func renderedBy(r *renderer, err error) ([]*unstructured.Unstructured, error) {
	if err != nil {
		return nil, err
	}
	return r.objects, nil
}

// fileOf returns the file of the archive with a rendered object, "" for an object that this package creates.
func (r *renderer) fileOf(o *unstructured.Unstructured) string {
	if from := r.places[identity(o)]; from != generated {
		return from
	}
	return ""
}

func identity(o *unstructured.Unstructured) string {
	return strings.Join([]string{o.GroupVersionKind().Group, o.GetKind(), o.GetNamespace(), o.GetName()}, "\x00")
}

// add appends objects; two of the same kind and name would overwrite each other.
func (r *renderer) add(from string, objects ...*unstructured.Unstructured) error {
	for _, o := range objects {
		id := identity(o)
		if other, twice := r.places[id]; twice {
			return report.Errorf(report.Invalid, "%s/%s is in %s and again in %s", o.GetKind(), o.GetName(), other, from).
				WithHint("rename one of them")
		}
		r.places[id] = from
		r.objects = append(r.objects, o)
	}
	return nil
}

// generated is the origin, in messages, of objects that no file of the archive has.
const generated = "what solutionctl makes itself"

// crds returns the CustomResourceDefinitions that activation applies. They belong to the payload, and must not be changed.
func (p *Payload) crds() ([]object, error) {
	var objects []object
	for _, name := range p.below("operator/deploy/crds") {
		if !strings.HasSuffix(name, "_crd.yaml") {
			continue
		}
		found, err := p.parse(name, "")
		if err != nil {
			return nil, err
		}
		objects = append(objects, found...)
	}
	for _, o := range objects {
		if !o.is("apiextensions.k8s.io", "CustomResourceDefinition") {
			return nil, o.refuse(report.Invalid, []string{"kind"}, "only a CustomResourceDefinition may be in a file named *_crd.yaml")
		}
		if o.GetAPIVersion() != "apiextensions.k8s.io/v1" {
			return nil, o.refuse(report.Invalid, []string{"apiVersion"}, "Kubernetes has not served %s since 1.22", o.GetAPIVersion()).
				WithHint("use apiextensions.k8s.io/v1")
		}
	}
	charts, err := p.charts()
	charts = slices.DeleteFunc(slices.Clone(charts), func(o object) bool { return o.GetKind() != definitionKind })
	return slices.Concat(objects, charts), err
}

// Definitions returns the CustomResourceDefinitions of a payload as its files have them.
func Definitions(p *Payload) ([]*unstructured.Unstructured, error) {
	crds, err := p.crds()
	definitions := make([]*unstructured.Unstructured, len(crds))
	for i, crd := range crds {
		definitions[i] = crd.DeepCopy()
	}
	return definitions, err
}

// RequiredCRDs returns the CustomResourceDefinitions, and the versions of them to be served, without which the operator
// of the payload cannot work: those that the manifest names, and those that the archive brings itself.
func RequiredCRDs(p *Payload) ([]schema.CRDRequirement, error) {
	var required []schema.CRDRequirement
	if p.Solution.Spec.Operator != nil {
		required = slices.Clone(p.Solution.Spec.Operator.RequiresCRDs)
	}
	crds, err := p.crds()
	if err != nil {
		return nil, err
	}
	for _, crd := range crds {
		named := func(q schema.CRDRequirement) bool { return q.Name == crd.GetName() }
		if !slices.ContainsFunc(required, named) {
			required = append(required, schema.CRDRequirement{Name: crd.GetName(), Versions: ServedVersions(crd.Unstructured)})
		}
	}
	slices.SortStableFunc(required, func(a, b schema.CRDRequirement) int { return strings.Compare(a.Name, b.Name) })
	return required, nil
}

// ServedVersions are the versions in which a CustomResourceDefinition lets objects be read.
func ServedVersions(crd *unstructured.Unstructured) []string {
	var served []string
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range versions {
		if v, ok := version.(map[string]any); ok && v["served"] == true {
			name, _ := v["name"].(string)
			served = append(served, name)
		}
	}
	return served
}

// MissingCRDs returns the requirements that a cluster does not meet, each with the versions that it lacks; get returns
// the CustomResourceDefinition of a name, nil when the cluster has none.
func MissingCRDs(required []schema.CRDRequirement, get func(name string) *unstructured.Unstructured) []schema.CRDRequirement {
	var missing []schema.CRDRequirement
	for _, q := range required {
		crd := get(q.Name)
		if crd == nil {
			missing = append(missing, q)
			continue
		}
		served := ServedVersions(crd)
		lacks := slices.DeleteFunc(slices.Clone(q.Versions), func(v string) bool { return slices.Contains(served, v) })
		if len(lacks) > 0 {
			missing = append(missing, schema.CRDRequirement{Name: q.Name, Versions: lacks})
		}
	}
	return missing
}

func index(i int) string { return strconv.Itoa(i) }

// shorten cuts a name to a length; a hash of the whole keeps names apart that begin alike.
func shorten(name string, length int) string {
	if len(name) <= length {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:length-9], "-.") + "-" + hex.EncodeToString(sum[:4])
}
