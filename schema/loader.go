package schema

import (
	"cmp"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

// LoaderConfiguration is /etc/solutionctl/loader.yaml: what a platform has when it has started, and how the Job that brings it is run.
type LoaderConfiguration struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Spec       LoaderSpec `json:"spec"`
}

// LoaderSpec is what a [LoaderConfiguration] says.
type LoaderSpec struct {
	// Image is the imported Solution that brings the image of the loader, or a full reference with a digest.
	Image        string                `json:"image,omitempty"`
	Environments []EnvironmentContents `json:"environments"`
	// Timeout is for how long a run waits until everything is ready, such as 30m.
	Timeout string       `json:"timeout,omitempty"`
	Job     LoaderJob    `json:"job,omitzero"`
	Repair  LoaderRepair `json:"repair,omitzero"`
}

// LoaderJob is how the pod of the loader is run.
type LoaderJob struct {
	HostNetwork       bool              `json:"hostNetwork,omitempty"` // before there is a network of pods
	NodeSelector      map[string]string `json:"nodeSelector,omitempty"`
	Tolerations       []Toleration      `json:"tolerations,omitempty"`
	PriorityClassName string            `json:"priorityClassName,omitempty"`
	// TTL is for how long a run that has ended can be looked at.
	TTL string `json:"ttl,omitempty"`
	// BackoffLimit is how often a pod that has crashed is followed by another one.
	BackoffLimit *int `json:"backoffLimit,omitempty"`
}

// Toleration is that of a pod, as Kubernetes has it.
type Toleration struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator,omitempty"`
	Value    string `json:"value,omitempty"`
	Effect   string `json:"effect,omitempty"`
}

// LoaderRepair is what happens to what has changed since it was loaded.
type LoaderRepair struct {
	Mode     RepairMode `json:"mode,omitempty"`
	Schedule string     `json:"schedule,omitempty"` // of a CronJob
	TimeZone string     `json:"timeZone,omitempty"`
}

// RepairMode is what happens to what has changed since it was loaded.
type RepairMode string

// The modes.
const (
	RepairOff     RepairMode = "off"     // nobody looks
	RepairObserve RepairMode = "observe" // it is told
	RepairOn      RepairMode = "repair"  // it is brought back
)

// What holds where a LoaderConfiguration says nothing.
const (
	DefaultLoaderTimeout  = 30 * time.Minute
	DefaultLoaderTTL      = time.Hour
	DefaultLoaderBackoff  = 3
	DefaultLoaderSchedule = "*/30 * * * *"
	DefaultLoaderTimeZone = "Etc/UTC"
)

// MaxLoaderRepairs is how often the same is brought back in a row; then it is left to whoever changes it, and told.
const MaxLoaderRepairs = 3

// Filled is the configuration with what holds where it says nothing.
func (s LoaderSpec) Filled() LoaderSpec {
	s.Image = cmp.Or(s.Image, ProgramImage)
	s.Timeout = cmp.Or(s.Timeout, DefaultLoaderTimeout.String())
	s.Job.TTL = cmp.Or(s.Job.TTL, DefaultLoaderTTL.String())
	if s.Job.BackoffLimit == nil {
		limit := DefaultLoaderBackoff
		s.Job.BackoffLimit = &limit
	}
	s.Repair.Mode = cmp.Or(s.Repair.Mode, RepairOff)
	s.Repair.Schedule = cmp.Or(s.Repair.Schedule, DefaultLoaderSchedule)
	s.Repair.TimeZone = cmp.Or(s.Repair.TimeZone, DefaultLoaderTimeZone)
	return s
}

// LoadParameters are what a run of the loader is to do. They lie in a ConfigMap of its own, key parameters.json; what is secret in
// them does not.
type LoadParameters struct {
	Stamp
	// Run names the run: a digest of what it is to do and of what does it.
	Run          string                `json:"run" schema:"minLength=1 maxLength=63"`
	Environments []EnvironmentContents `json:"environments"`
	// Timeout is in seconds.
	Timeout int `json:"timeout" schema:"minimum=1"`
	// Repair makes the run bring back what has changed, or with observe tell it, and nothing else. Empty for one that loads.
	Repair RepairMode `json:"repair,omitempty"`
}

// LoadProgress is how far the loader is. It lies in ConfigMap solutionctl-system/loader, key progress.json.
type LoadProgress struct {
	Stamp
	Run   string    `json:"run" schema:"minLength=1 maxLength=63"`
	Phase LoadPhase `json:"phase"`
	// Digest is that of the configuration.
	Digest    string          `json:"digest" schema:"digest"`
	StartedAt time.Time       `json:"startedAt"`
	UpdatedAt time.Time       `json:"updatedAt"`
	Ready     int             `json:"ready" schema:"minimum=0"` // of Parts
	Parts     []LoadPart      `json:"parts"`
	Error     *LoadError      `json:"error,omitempty"` // why the run failed
	Notices   []string        `json:"notices"`
	Loaded    []LoadedContent `json:"loaded"` // all that was loaded and was not removed since
	// Repair is what the last repair found; absent where that was nothing.
	Repair *LoadRepair `json:"repair,omitempty"`
}

// IsReady tells whether everything that has to be there is ready.
func (p *LoadProgress) IsReady() bool {
	return p.Phase == LoadReady && !slices.ContainsFunc(p.Parts, func(part LoadPart) bool { return part.State != PartReady && !part.Optional })
}

// Suffices tells of a run that goes on whether it does so only for what nobody has to have.
func (p *LoadProgress) Suffices() bool {
	return p.Phase == LoadRunning && !slices.ContainsFunc(p.Parts, func(part LoadPart) bool {
		whole := part.State == PartReady || part.Component == "" && part.State == PartWaiting && !part.ReadyAt.IsZero() // it waits for its components
		return !whole && !part.Optional
	})
}

// LoadRepair is what a repair found.
type LoadRepair struct {
	At      time.Time `json:"at"`
	Changed []string  `json:"changed"`                  // what was not as it was loaded, and who had changed it
	Times   int       `json:"times" schema:"minimum=0"` // repairs in a row that found the same; 0 where it is only told
}

// GivenUp tells that what was found is left to whoever changes it.
func (r *LoadRepair) GivenUp() bool { return r != nil && r.Times > MaxLoaderRepairs }

// LoaderPlan is what starting the loader would do. `solutionctl deploy loader plan` prints it. Of `solutionctl deploy loader stop --prune`
// it tells what is removed.
type LoaderPlan struct {
	Run   string `json:"run,omitempty"` // absent where no Job is needed
	Image string `json:"image,omitempty"`
	// Create are environments that do not exist.
	Create []string `json:"create"`
	// Activate is done by whoever starts the loader, and before a Job is.
	Activate []*Operation `json:"activate"`
	// Environments are what the Job does; absent for those whose Solutions have to be activated first.
	Environments []*Operation `json:"environments"`
	// Afterwards are what it adds to those: the objects as the archives have them, which are not compared with the cluster.
	Afterwards []*Operation `json:"afterwards,omitempty"`
	// Rights are those of the Job, as rules of roles in YAML.
	Rights string `json:"rights,omitempty"`
	// Unlisted are what was loaded and is not in the configuration any more.
	Unlisted []LoadedContent `json:"unlisted"`
	// Remove is how it goes, where somebody asks for that.
	Remove  []*Operation `json:"remove,omitempty"`
	Notices []string     `json:"notices"`
}

// Empty tells that everything is as the configuration says.
func (p *LoaderPlan) Empty() bool { return len(p.Create)+len(p.Activate) == 0 && p.Run == "" }

// LoadedContent is a Solution in an environment.
type LoadedContent struct {
	Environment string `json:"environment" schema:"minLength=1"`
	Solution    string `json:"solution" schema:"minLength=1"`
}

// LoadPhase is the state of a run of the loader.
type LoadPhase string

// The phases; the last three end a run.
const (
	LoadPending     LoadPhase = "Pending"
	LoadRunning     LoadPhase = "Running"
	LoadReady       LoadPhase = "Ready"
	LoadFailed      LoadPhase = "Failed"
	LoadInterrupted LoadPhase = "Interrupted"
)

// Ended tells whether nothing more comes of the run.
func (p LoadPhase) Ended() bool { return p != LoadPending && p != LoadRunning }

// LoadPart is a component of a Solution in a namespace, or without a name the Solution's own part.
type LoadPart struct {
	Environment string    `json:"environment" schema:"minLength=1"`
	Namespace   string    `json:"namespace" schema:"minLength=1"`
	Solution    string    `json:"solution" schema:"minLength=1"`
	Component   string    `json:"component,omitempty"`
	Version     string    `json:"version,omitempty"`
	Optional    bool      `json:"optional,omitempty"` // the run succeeds without it
	Kept        bool      `json:"kept,omitempty"`     // the run changes nothing of it
	State       LoadState `json:"state"`
	// StartedAt is when its first object was written, ReadyAt when all of them were ready.
	StartedAt time.Time `json:"startedAt,omitzero"`
	ReadyAt   time.Time `json:"readyAt,omitzero"`
	// WaitingFor are a few objects that are not ready, and why.
	WaitingFor []string   `json:"waitingFor,omitempty" schema:"maxLength=512"`
	Error      *LoadError `json:"error,omitempty"`
}

// LoadState is the state of a part.
type LoadState string

// The states of a part.
const (
	PartPending  LoadState = "Pending"
	PartBlocked  LoadState = "Blocked" // by a part that failed
	PartApplying LoadState = "Applying"
	PartWaiting  LoadState = "Waiting"
	PartReady    LoadState = "Ready"
	PartDegraded LoadState = "Degraded" // it failed, and may
	PartFailed   LoadState = "Failed"
)

// LoadError is why a run or a part of it failed.
type LoadError struct {
	Code    report.Code `json:"code"`
	Message string      `json:"message"`
	Hint    string      `json:"hint,omitempty"`
}
