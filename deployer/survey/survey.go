// Package survey reads the state of a cluster: which Solutions are deployed where, whether they are ready and
// unchanged, and which other objects there are.
//
// [Survey.Status] returns the whole state, [Survey.Drift] the changes since the deployment, and [Survey.Others] the
// objects that are not part of a Solution. A survey changes nothing and needs no permission to write.
package survey

import (
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/records"
)

// Survey looks at one cluster. All fields are required.
type Survey struct {
	Cluster     *cluster.Cluster
	Records     *records.Records
	Definitions *definitions.Guard
	Now         func() time.Time // the wall clock, for durations
}
