// Package render turns an archive into the Kubernetes objects that a cluster gets.
//
// A [Payload] is everything of an archive but its images: small, self-contained, and stored in the cluster by the import,
// so that later operations need neither the archive nor a registry. [Activation] renders what activating a version puts
// into the cluster, [Environment] what adding a Solution to an environment puts into its namespace; [SystemNamespace] is
// where the former goes. Both are pure: the same payload and [Settings] give the same objects in the same order, and what
// differs from cluster to cluster, down to the time and to Secrets that are there already, is part of the settings.
//
// Names, labels and shapes are those by which MetalK8s' tooling recognises its objects. Manifests of an archive are
// foreign: an object of a kind that does not belong where it stands is refused with its file and line.
package render

import (
	"io"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/schema"
)

// Settings are what a rendering depends on besides the payload.
type Settings struct {
	// Registry is the name under which nodes pull from the registry, HOST[:PORT] such as "registry.solutionctl.invalid".
	Registry string
	// Imported are the payloads of all imported versions of the Solution: operators are told of each. The payload that is
	// rendered counts as imported whether or not it is in the list.
	Imported []*Payload

	// Namespace is where the Solution is added, and Environment the environment that the namespace belongs to. An
	// activation needs neither.
	Namespace, Environment string
	// Webhook mounts the Secret <solution>-cert into the operator, and makes it when nobody else did.
	Webhook bool
	// ClusterWide is true when the administrator approves of rights on the whole cluster.
	ClusterWide bool
	// IngressClass is the class of a generated Ingress; empty for the cluster's default.
	IngressClass string

	// Secrets are the Secrets of the target namespace that [ActivationSecrets] or [EnvironmentSecrets] ask for, by name;
	// one that does not exist may be absent or nil.
	Secrets map[string]*unstructured.Unstructured
	// Now and Random are for certificates; an archive without a webhook needs neither.
	Now    time.Time
	Random io.Reader
}

// SystemNamespace is the namespace of the cluster-wide part of a Solution: <solution>-system.
func SystemNamespace(solution string) string { return solution + "-system" }

// ActivationSecrets names the Secrets in [SystemNamespace] whose present content [Activation] wants to know.
func ActivationSecrets(p *Payload, s Settings) ([]string, error) { return nil, errNotYet }

// EnvironmentSecrets names the Secrets in Settings.Namespace whose present content [Environment] wants to know.
func EnvironmentSecrets(p *Payload, s Settings) ([]string, error) { return nil, errNotYet }

// Activation returns the objects of an active version: its CustomResourceDefinitions, the cluster-level parts of
// operator/cluster, alerting rules and dashboards. What has a namespace is in [SystemNamespace], which is among the
// objects when it is needed.
func Activation(p *Payload, s Settings) ([]*unstructured.Unstructured, error) { return nil, errNotYet }

// Environment returns the objects of a Solution in the namespace of an environment: its operator with account, rights and
// configuration, its user interface, and monitors.
func Environment(p *Payload, s Settings) ([]*unstructured.Unstructured, error) { return nil, errNotYet }

// RequiredCRDs returns the CustomResourceDefinitions, and the versions of them to be served, without which the operator
// of the payload cannot work: those that the manifest names, and those that the archive brings itself.
func RequiredCRDs(p *Payload) ([]schema.CRDRequirement, error) { return nil, errNotYet }

// MissingCRDs returns the requirements that a cluster does not meet; get returns the CustomResourceDefinition of a name, nil
// when the cluster has none.
func MissingCRDs(required []schema.CRDRequirement, get func(name string) *unstructured.Unstructured) []schema.CRDRequirement {
	return nil
}
