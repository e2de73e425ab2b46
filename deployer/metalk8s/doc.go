// Package metalk8s reads and writes the documents that this tool shares with MetalK8s: the ConfigMap metalk8s-solutions
// with the imported and active versions, and the environments. An environment is a set of namespaces with a label and a
// ConfigMap metalk8s-environment in each.
//
// [Documents] is where to start. MetalK8s' own tools write these documents as well, at any time and without our locks.
// So this package neither applies nor owns them: it changes one key of the version that it has just read, and retries
// after a conflict. Content that it cannot parse is reported and kept. It adds no key, label or field of its own:
// MetalK8s reads every key of these documents as a Solution.
//
// Package metalk8s takes no lock, deploys nothing and never removes a finalizer.
package metalk8s

import (
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Names that MetalK8s gave to its documents.
const (
	// SolutionsNamespace is the namespace of the ConfigMap with the imported versions.
	SolutionsNamespace = "metalk8s-solutions"
	// SolutionsConfigMap has one key for each Solution: the list of its imported versions as JSON.
	SolutionsConfigMap = "metalk8s-solutions"
	// EnvironmentConfigMap has one key for each Solution in a namespace: its version.
	EnvironmentConfigMap = "metalk8s-environment"
	// EnvironmentLabel on a namespace names the environment that it is part of.
	EnvironmentLabel = schema.AnnotationPrefix + "environment"
	// descriptionAnnotation on a namespace describes the purpose of its environment.
	descriptionAnnotation = schema.AnnotationPrefix + "environment-description"
)

// Documents are the shared documents of a cluster.
type Documents struct {
	Cluster *cluster.Cluster
	Sink    report.Sink // receives the reason for waiting; nil discards it
}

func (d *Documents) emit(e report.Event) {
	if d.Sink != nil {
		d.Sink.Emit(e)
	}
}

// Problem is a part of a document that cannot be parsed.
type Problem struct {
	// Where names it, such as "ConfigMap metalk8s-solutions/metalk8s-solutions, key db".
	Where string
	Err   error
}

func (p Problem) String() string { return p.Where + ": " + p.Err.Error() }
