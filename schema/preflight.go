package schema

// PreflightResult is the verdict of a preflight check.
type PreflightResult string

// The verdicts.
const (
	PreflightPass    PreflightResult = "pass"
	PreflightWarning PreflightResult = "warning"
	PreflightFail    PreflightResult = "fail"    // what is deployed cannot run as the cluster is now
	PreflightUnknown PreflightResult = "unknown" // the user has no permission to look, or it could not be read
)

// PreflightName is the subject of a preflight check.
type PreflightName string

// The subjects, in the order in which they are reported.
const (
	PreflightKubernetes PreflightName = "kubernetes" // the version of the cluster
	PreflightImages     PreflightName = "images"     // nodes can fetch them
	PreflightStorage    PreflightName = "storage"    // volume claims get volumes
	PreflightRoom       PreflightName = "room"       // nodes have room for the pods
	PreflightQuota      PreflightName = "quota"      // namespaces allow the pods and claims
)

// PreflightCheck is one check of whether what a plan deploys can run in the cluster.
type PreflightCheck struct {
	Name   PreflightName   `json:"name"`
	Result PreflightResult `json:"result"`
	// Message is one sentence, without a full stop.
	Message string `json:"message"`
	// Hint is one action that helps.
	Hint string `json:"hint,omitempty"`
}

// String is the check in one line, without the verdict.
func (c PreflightCheck) String() string {
	if c.Result == PreflightUnknown {
		return string(c.Name) + " " + c.Message
	}
	return c.Message
}
