// Package definitions protects stored custom resources when their CustomResourceDefinitions (CRDs) change.
//
// A [Guard] checks before anything changes. [Guard.Judge] reports the effect of new CRDs on the stored instances.
// [Guard.KeepServed] makes new CRDs serve the versions that other operators still use. [Guard.JudgeInstances] reports
// whether another version accepts the instances of a namespace. [Guard.Compatibility] combines this for every imported
// version. [Guard.ExportAll] exports objects that lose data with the user's consent, and [Guard.Migrate] stores objects
// in another version.
//
// It never applies or deletes a CRD: the engine does.
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
