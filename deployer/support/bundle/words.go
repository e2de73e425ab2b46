package bundle

import (
	"strings"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

// In place of a word of Kubernetes, a user with write access to the object could have written a sentence, or a
// password.
const unknownWord = "(other)"

var (
	camelCase     = lazyregexp.New(`^[A-Z][A-Za-z0-9]{0,62}$`)
	conditionType = lazyregexp.New(`^([a-z0-9.-]+/)?[A-Z][A-Za-z0-9-]{0,62}$`)
	// objectName is how names of objects and components look: "shop-operator", "node.example", "system:auth".
	objectName = lazyregexp.New(`^[a-z0-9]([a-z0-9.:-]*[a-z0-9])?$`)
)

// longestName is that of an object. As part of the pattern it would take a millisecond to compile.
const longestName = 253

func name(text string) string {
	if len(text) > longestName {
		return unknownWord
	}
	return word(objectName, text)
}

// word returns a text of the shape that Kubernetes writes, and a placeholder for any other text.
func word(shape *lazyregexp.Regexp, text string) string {
	if text == "" || shape.MatchString(text) {
		return text
	}
	return unknownWord
}

// reasons are the reasons of events that Kubernetes itself and the loader record.
var reasons = strings.Fields(`
	AddedOrModifiedToPriorityLevel AlreadyMountedVolume BackOff BackoffLimitExceeded CIDRAssignmentFailed CIDRNotAvailable Completed
	ContainerGCFailed Created DaemonSetMisscheduled DeadlineExceeded Deleted DeletingAllPods DeletingLoadBalancer DNSConfigForming
	Drain ErrImageNeverPull EnsuredLoadBalancer EnsuringLoadBalancer Evicted Exec ExceededGracePeriod ExternalProvisioning
	ExternalExpanding Failed FailedAttachVolume FailedBinding FailedCreate FailedCreatePodContainer FailedCreatePodSandBox
	FailedDaemonPod FailedDelete FailedDetachVolume FailedGetResourceMetric FailedGetScale FailedKillPod FailedMapVolume
	FailedMount FailedMountOnFilesystemMismatch FailedNodeAllocatableEnforcement FailedPostStartHook FailedPreStopHook
	FailedPlacement FailedRescale FailedScheduling FailedSync FailedToCreateEndpoint FailedToCreateRoute FailedToUpdateEndpoint
	FailedToUpdateEndpointSlices FailedUpdateStatus FailedValidation FileSystemResizeFailed FileSystemResizeSuccessful ForgotNode FreeDiskSpaceFailed
	HostNetworkNotSupported HostPortConflict ImageGCFailed InspectFailed InsufficientFreeCPU InsufficientFreeMemory InvalidDiskCapacity
	InvalidEnvironmentVariableNames InvalidSchedule JobAlreadyActive Killing KubeletSetupFailed LeaderElection LoadBalancerUpdateFailed
	MissSchedule MissingClusterDNS MissingJob NetworkFailed NetworkNotReady NoPods NodeAllocatableEnforced NodeControllerEviction
	NodeHasDiskPressure NodeHasInsufficientMemory NodeHasNoDiskPressure NodeHasSufficientDisk NodeHasSufficientMemory NodeHasSufficientPID
	NodeNotReady NodeNotSchedulable NodeReady NodeSchedulable NodeSelectorMismatching OOMKilling OutOfDisk PersistentVolumeDeleted
	PodCIDR Preempted Preempting ProbeWarning Provisioning ProvisioningFailed ProvisioningSucceeded ProvisioningCleanupFailed Pulled Pulling
	ReadOnlyLocalStorage Rebooted RecreatingFailedPod RecyclerPod RegisteredNode RemovingNode Resizing ResizeFailed SandboxChanged
	SawCompletedJob ScaleDown ScaleUp ScalingReplicaSet Scheduled SelectorOverlap Shutdown Started Starting SuccessfulAttachVolume
	SuccessfulCreate SuccessfulDelete SuccessfulMountVolume SuccessfulRescale Suspended SystemOOM TaintManagerEviction
	TooManyActivePods TopologyAffinityError UnAvailableLoadBalancer UnexpectedAdmissionError UnexpectedJob Unhealthy UpdatedLoadBalancer
	VolumeConditionAbnormal VolumeFailedDelete VolumeFailedRecycle VolumeRecycled VolumeResizeFailed VolumeResizeSuccessful WaitForFirstConsumer
	WaitForPodScheduled PodFailurePolicy LoadStarted LoadFailed LoadEnded`)

// version returns a version that a document requests, if it is a valid one: any user with write access to the namespace
// could have written it.
func version(text string) string {
	if _, err := schema.ParseVersion(text); err == nil || text == "" || text == schema.ActiveLatest {
		return text
	}
	return unknownWord
}
