package schema

import (
	"cmp"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

// LoaderConfiguration is /etc/solutionctl/loader.yaml: the Solutions that a platform starts at boot, and how the Job that
// deploys them is run.
type LoaderConfiguration struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Spec       LoaderSpec `json:"spec"`
}

// LoaderSpec is the content of a [LoaderConfiguration].
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

// LoaderRepair specifies whether and when changes of loaded objects are repaired.
type LoaderRepair struct {
	Mode     RepairMode `json:"mode,omitempty"`
	Schedule string     `json:"schedule,omitempty"` // of a CronJob
	TimeZone string     `json:"timeZone,omitempty"`
}

// RepairMode is the reaction to a change of a loaded object.
type RepairMode string

// The modes.
const (
	RepairOff     RepairMode = "off"     // changes are not detected
	RepairObserve RepairMode = "observe" // changes are reported
	RepairOn      RepairMode = "repair"  // changes are reverted
)

// The defaults of a LoaderConfiguration.
const (
	defaultLoaderTimeout  = 30 * time.Minute
	defaultLoaderTTL      = time.Hour
	defaultLoaderBackoff  = 3
	defaultLoaderSchedule = "*/30 * * * *"
	defaultLoaderTimeZone = "Etc/UTC"
)

// MaxLoaderRepairs is how often in a row the same change is reverted; after that it is only reported.
const MaxLoaderRepairs = 3

// Filled returns the configuration with the defaults filled in.
func (s LoaderSpec) Filled() LoaderSpec {
	s.Image = cmp.Or(s.Image, ProgramImage)
	s.Timeout = cmp.Or(s.Timeout, defaultLoaderTimeout.String())
	s.Job.TTL = cmp.Or(s.Job.TTL, defaultLoaderTTL.String())
	if s.Job.BackoffLimit == nil {
		limit := defaultLoaderBackoff
		s.Job.BackoffLimit = &limit
	}
	s.Repair.Mode = cmp.Or(s.Repair.Mode, RepairOff)
	s.Repair.Schedule = cmp.Or(s.Repair.Schedule, defaultLoaderSchedule)
	s.Repair.TimeZone = cmp.Or(s.Repair.TimeZone, defaultLoaderTimeZone)
	return s
}

// LoadParameters are the input of a run of the loader. They are stored in a ConfigMap of the run, key parameters.json;
// secret values are stored elsewhere.
type LoadParameters struct {
	Stamp
	// Run names the run: a digest of what it is to do and of what does it.
	Run          string                `json:"run" schema:"minLength=1 maxLength=63"`
	Environments []EnvironmentContents `json:"environments"`
	// Timeout is in seconds.
	Timeout int `json:"timeout" schema:"minimum=1"`
	// Repair makes the run only revert changes, or with observe only report them. Empty for a run that loads.
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
	Loaded    []LoadedContent `json:"loaded"` // loaded and not removed since
	// Repair is the result of the last repair; absent when it found no change.
	Repair *LoadRepair `json:"repair,omitempty"`
}

// IsReady reports whether every required part is ready.
func (p *LoadProgress) IsReady() bool {
	return p.Phase == LoadReady && !slices.ContainsFunc(p.Parts, func(part LoadPart) bool { return part.State != PartReady && !part.Optional })
}

// Suffices reports whether a run that continues only waits for optional parts.
func (p *LoadProgress) Suffices() bool {
	return p.Phase == LoadRunning && !slices.ContainsFunc(p.Parts, func(part LoadPart) bool {
		whole := part.State == PartReady || part.Component == "" && part.State == PartWaiting && !part.ReadyAt.IsZero() // it waits for its components
		return !whole && !part.Optional
	})
}

// LoadRepair is the result of a repair.
type LoadRepair struct {
	At      time.Time `json:"at"`
	Changed []string  `json:"changed"`                  // objects that were changed since they were loaded, and by which field manager
	Times   int       `json:"times" schema:"minimum=0"` // repairs in a row that found the same change; 0 where it is only reported
}

// GivenUp reports whether the change is no longer reverted, see [MaxLoaderRepairs].
func (r *LoadRepair) GivenUp() bool { return r != nil && r.Times > MaxLoaderRepairs }

// LoaderPlan lists the changes that a start of the loader would make. `solutionctl deploy loader plan` prints it.
// `solutionctl deploy loader stop --prune` prints it with the deployments that it removes.
type LoaderPlan struct {
	Run   string `json:"run,omitempty"` // absent where no Job is needed
	Image string `json:"image,omitempty"`
	// Create are environments that do not exist.
	Create []string `json:"create"`
	// Activate lists the activations that the start of the loader carries out, before it creates the Job.
	Activate []*Operation `json:"activate"`
	// Environments lists the operations of the Job; environments whose Solutions have to be activated first are absent.
	Environments []*Operation `json:"environments"`
	// Afterwards lists what the Job adds to these environments: the objects in the archives, not compared with the cluster.
	Afterwards []*Operation `json:"afterwards,omitempty"`
	// Rights are the RBAC rules of the Job, in YAML.
	Rights string `json:"rights,omitempty"`
	// Unlisted lists loaded Solutions that are no longer in the configuration.
	Unlisted []LoadedContent `json:"unlisted"`
	// Remove lists the operations that remove them, if the user requests that.
	Remove  []*Operation `json:"remove,omitempty"`
	Notices []string     `json:"notices"`
}

// Empty reports whether the cluster already matches the configuration.
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

// Ended reports whether the run has ended.
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
