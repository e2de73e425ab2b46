// Package definitions keeps what is stored under CustomResourceDefinitions safe when definitions change.
//
// A [Guard] judges before anything is changed: [Guard.Judge] says what replacing definitions would do to the instances that are
// stored, [Guard.KeepServed] makes them serve what operators elsewhere still work with, [Guard.JudgeInstances] tells whether
// another version accepts the instances that it would find, and [Guard.Compatibility] shows all of that for every imported
// version. What was accepted to be lost is written out by [Guard.ExportAll] before, and what has to be stored in another version
// is moved there by [Guard.Migrate].
//
// It never deletes a definition and never applies one: that is the engine's.
package definitions

import (
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Guard judges the definitions of one cluster. All fields are required.
type Guard struct {
	Cluster *cluster.Cluster
	Records *records.Records
	Sink    report.Sink
}
