// Package metalk8s reads and writes the documents that this tool shares with MetalK8s: the ConfigMap metalk8s-solutions,
// which says what was imported and what is active, and the environments, which are namespaces with a label and a ConfigMap
// metalk8s-environment in each.
//
// [Documents] is where to start. MetalK8s' own tools write these documents, too, at any time and without a lock of ours.
// So nothing here is applied or owned: one key is changed in what was just read, and again when somebody was faster. What
// somebody else wrote and nobody understands is reported and kept as it is. No key, label or field of ours is added: every
// key of these documents means a Solution to MetalK8s.
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
	// SolutionsNamespace is the namespace of the ConfigMap with what was imported.
	SolutionsNamespace = "metalk8s-solutions"
	// SolutionsConfigMap has one key for each Solution: the list of its imported versions as JSON.
	SolutionsConfigMap = "metalk8s-solutions"
	// EnvironmentConfigMap has one key for each Solution in a namespace: its version.
	EnvironmentConfigMap = "metalk8s-environment"
	// EnvironmentLabel on a namespace names the environment that it is part of.
	EnvironmentLabel = schema.AnnotationPrefix + "environment"
	// DescriptionAnnotation on a namespace tells what its environment is for.
	DescriptionAnnotation = schema.AnnotationPrefix + "environment-description"
)

// Documents are the shared documents of a cluster.
type Documents struct {
	Cluster *cluster.Cluster
	Sink    report.Sink // told what is waited for; nil discards it
}

func (d *Documents) emit(e report.Event) {
	if d.Sink != nil {
		d.Sink.Emit(e)
	}
}

// Problem is a part of a document that somebody wrote and nobody can read.
type Problem struct {
	// Where names it, such as "ConfigMap metalk8s-solutions/metalk8s-solutions, key db".
	Where string
	Err   error
}

func (p Problem) String() string { return p.Where + ": " + p.Err.Error() }
