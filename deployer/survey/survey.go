// Package survey tells how a cluster is: what is deployed where, whether it is ready and as it was applied, and what else is
// there.
//
// [Survey.Status] is the whole picture, [Survey.Drift] what was changed since it was deployed, and [Survey.Others] what is not part
// of a Solution. A survey changes nothing and needs no right to write.
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
	Now         func() time.Time // the wall clock, to tell how long something lasts
}
