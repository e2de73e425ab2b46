// Package helm reads the releases of Helm in a cluster from the Secrets in which Helm stores them by default.
//
// Start with [List], which reads the revisions of a release from the metadata of Secrets, and pass the Secret of a
// revision to [Read]. Any user with permission to write Secrets in the namespace can forge them: the content is
// bounded, and not trusted.
//
// Package helm reads no cluster and changes nothing. The format is that of Helm 3 and 4:
// https://helm.sh/docs/topics/advanced/#storage-backends.
package helm

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// FieldManager is the name under which Helm writes objects.
const FieldManager = "helm"

// StatusDeployed is the status of the revision in the cluster. That of an operation in progress begins with
// StatusPending.
const (
	StatusDeployed = "deployed"
	StatusPending  = "pending-"
)

const (
	secretPrefix = "sh.helm.release.v1."
	secretType   = "helm.sh/release.v1"
	// maxRelease bounds a release in bytes of JSON; packed it has at most a megabyte. The chart is part of it.
	maxRelease = 32 << 20
)

var releaseName = lazyregexp.New(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// CheckName refuses an invalid name of a release.
func CheckName(name string) error {
	if len(name) > 53 || !releaseName.MatchString(name) {
		return report.Errorf(report.Usage, "%q is not the name of a Helm release", name)
	}
	return nil
}

// Selector finds the Secrets of a release by their labels.
func Selector(name string) string { return "owner=helm,name=" + name }

// Revision is the metadata of a Secret of a release.
type Revision struct {
	Number int
	Status string // as "deployed", "superseded", "failed", "pending-upgrade"
	Secret *unstructured.Unstructured
}

// List returns the revisions of a release, the newest first. Secrets that are not called as Helm calls them are left out.
func List(name string, secrets []*unstructured.Unstructured) []Revision {
	var revisions []Revision
	for _, secret := range secrets {
		number, err := strconv.Atoi(secret.GetLabels()["version"])
		if err == nil && secret.GetName() == SecretName(name, number) {
			revisions = append(revisions, Revision{number, secret.GetLabels()["status"], secret})
		}
	}
	slices.SortFunc(revisions, func(a, b Revision) int { return -cmp.Compare(a.Number, b.Number) })
	return revisions
}

// SecretName is the name of the Secret of a revision.
func SecretName(name string, number int) string {
	return fmt.Sprintf("%s%s.v%d", secretPrefix, name, number)
}

// Release is one revision of a release.
type Release struct {
	Name, Namespace string
	Number          int
	Status          string
	Chart           string         // name and version, as web-1.2.0
	Values          map[string]any // that were given to Helm; secret
	Objects         []schema.ObjectRef
	Hooks           []schema.ObjectRef // may be there or not
}

// Read reads the Secret of a revision. The error has the code Corrupt when it is none, or that of something else than it is called.
func Read(secret *unstructured.Unstructured) (*Release, error) {
	r, err := read(secret)
	if err != nil {
		return nil, report.Errorf(report.Corrupt, "Secret %s/%s: %w", secret.GetNamespace(), secret.GetName(), err).
			WithHint("look at it with Helm itself: helm history, helm get all")
	}
	return r, nil
}

func read(secret *unstructured.Unstructured) (*Release, error) {
	if kind, _, _ := unstructured.NestedString(secret.Object, "type"); kind != secretType {
		return nil, fmt.Errorf("it is of type %q, not %s", kind, secretType)
	}
	text, _, _ := unstructured.NestedString(secret.Object, "data", "release")
	data, err := unpack(text)
	if err != nil {
		return nil, fmt.Errorf("what Helm has written: %w", err)
	}
	if len(data) > maxRelease {
		return nil, fmt.Errorf("what Helm has written is larger than %d MiB", maxRelease>>20)
	}
	r, err := parse(data)
	if err == nil && (r.Namespace != secret.GetNamespace() || SecretName(r.Name, r.Number) != secret.GetName()) {
		err = fmt.Errorf("it has revision %d of release %s/%s", r.Number, r.Namespace, r.Name)
	}
	return r, err
}

// unpack decodes the JSON of a release up to a byte more than allowed: base64 of Kubernetes, base64 of Helm, and gzip, which Helm 2 did not use.
func unpack(text string) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		data, err = base64.StdEncoding.DecodeString(string(data))
	}
	if err != nil {
		return nil, err
	}
	packed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(packed, maxRelease+1))
}

func parse(data []byte) (*Release, error) {
	var stored struct {
		Name, Namespace, Manifest string
		Version                   int
		Info                      struct{ Status string }
		Chart                     struct {
			Metadata struct{ Name, Version string }
		}
		Config map[string]any
		Hooks  []struct{ Path, Manifest string }
	}
	if err := json.Unmarshal(data, &stored); err != nil {
		return nil, err
	}
	r := &Release{
		Name: stored.Name, Namespace: stored.Namespace, Number: stored.Version, Status: stored.Info.Status, Values: stored.Config,
		Chart: stored.Chart.Metadata.Name + "-" + stored.Chart.Metadata.Version,
	}
	var err error
	if r.Objects, err = r.objects("the manifest", stored.Manifest); err != nil {
		return nil, err
	}
	for _, hook := range stored.Hooks {
		objects, err := r.objects("hook "+hook.Path, hook.Manifest)
		if err != nil {
			return nil, err
		}
		r.Hooks = append(r.Hooks, objects...)
	}
	return r, nil
}

// head has the fields that identify an object, or the objects of a list.
type head struct {
	APIVersion, Kind string
	Metadata         struct{ Name, Namespace string }
	Items            []head
}

// objects lists the objects of a manifest. An object without a namespace is in that of the release, or is
// cluster-scoped.
func (r *Release) objects(what, manifest string) (refs []schema.ObjectRef, err error) {
	if err := schema.CheckYAML(what, []byte(manifest)); err != nil {
		return nil, err
	}
	for document := range strings.SplitSeq("\n"+manifest, "\n---") {
		var h head
		if err := yaml.Unmarshal([]byte(document), &h); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		list := h.Items
		if !strings.HasSuffix(h.Kind, "List") || list == nil {
			list = []head{h}
		}
		for _, h := range list {
			switch {
			case h.APIVersion == "" && h.Kind == "" && h.Metadata.Name == "": // comments
				continue
			case h.APIVersion == "" || h.Kind == "" || h.Metadata.Name == "":
				return nil, fmt.Errorf("%s: an object has no apiVersion, no kind or no name", what)
			}
			refs = append(refs, schema.ObjectRef{
				APIVersion: h.APIVersion, Kind: h.Kind, Namespace: cmp.Or(h.Metadata.Namespace, r.Namespace), Name: h.Metadata.Name,
			})
		}
	}
	return refs, nil
}

// Same reports whether an object of a release is the wanted one, in any version of its API. The manifest does not show
// whether an object without a namespace is cluster-scoped.
func Same(listed, wanted schema.ObjectRef) bool {
	return group(listed) == group(wanted) && listed.Kind == wanted.Kind && listed.Name == wanted.Name &&
		(wanted.Namespace == "" || listed.Namespace == wanted.Namespace)
}

func group(r schema.ObjectRef) string { return kube.FromAPIVersionAndKind(r.APIVersion, r.Kind).Group }
