package schema

import (
	"iter"
	"time"
)

// Status is the state of a cluster: the Solutions that were imported, and the environments with what is deployed in them.
// `solutionctl deploy status` prints it.
type Status struct {
	// Cluster is the recorded name of the cluster; absent without one, or for a user who is not allowed to read it.
	Cluster *ClusterName `json:"cluster,omitempty"`
	// Ready is true when every recorded object exists and works, and there are no problems.
	Ready        bool                `json:"ready"`
	Solutions    []SolutionStatus    `json:"solutions"`
	Environments []EnvironmentStatus `json:"environments"`
	// Problems lists the problems of the cluster as a whole, one sentence each.
	Problems []string `json:"problems"`
}

// SolutionStatus is one imported Solution.
type SolutionStatus struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	// Active is the active version, empty when there is none.
	Active   string            `json:"active,omitempty"`
	Versions []ImportedVersion `json:"versions"`
	// Deployment is the part of the Solution that belongs to the whole cluster; absent while it is not active.
	Deployment *DeploymentStatus `json:"deployment,omitempty"`
}

// ImportedVersion is one imported version of a Solution.
type ImportedVersion struct {
	Version string `json:"version"`
	ID      string `json:"id"`
	Active  bool   `json:"active"`
	// Archive is the path of the archive on the host that imported it.
	Archive    string     `json:"archive,omitempty"`
	ImportedAt *time.Time `json:"importedAt,omitempty"`
	ImportedBy string     `json:"importedBy,omitempty"`
	// Signers are the names of the keys whose signatures counted at the import: none of an import without a trusted signature. They are absent
	// where the record of the import does not have them.
	Signers []string `json:"signers,omitzero"`
	// SupportedUntil is the last day on which the vendor supports the version, such as 2028-12-31; empty if the vendor names none.
	SupportedUntil string `json:"supportedUntil,omitempty"`
}

// SupportEnd returns the end of the last day on which the vendor supports the version; the zero time if the vendor names none.
func (v *ImportedVersion) SupportEnd() time.Time {
	day, err := time.Parse(time.DateOnly, v.SupportedUntil)
	if err != nil {
		return time.Time{}
	}
	return day.AddDate(0, 0, 1)
}

// EnvironmentStatus is an environment and what is deployed in it. `solutionctl deploy env show` prints one.
type EnvironmentStatus struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Namespaces  []NamespaceStatus `json:"namespaces"`
	// Unseen lists what the caller does not have permission to see; absent when that is nothing.
	Unseen []Unseen `json:"unseen,omitempty"`
	// Members lists the subjects of the RoleBindings in its namespaces, with their roles; absent unless requested.
	Members []Member `json:"members,omitzero"`
}

// Unseen is something that a user does not have permission to see.
type Unseen struct {
	What string `json:"what"`
	// Rules are the rights that are missing, as rules of roles in YAML.
	Rules string `json:"rules,omitempty"`
}

// Member is a subject with a role in a namespace.
type Member struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"` // User, Group or ServiceAccount
	Name      string `json:"name"` // that of a ServiceAccount with its namespace before it
	Role      string `json:"role"`
	// Solution is the one to which the role belongs: the member is one of its programs.
	Solution string `json:"solution,omitempty"`
}

// NamespaceStatus is a namespace of an environment.
type NamespaceStatus struct {
	Name string `json:"name"`
	// Terminating is true while the namespace is being deleted.
	Terminating bool               `json:"terminating"`
	Deployments []DeploymentStatus `json:"deployments"`
	Problems    []string           `json:"problems"`
}

// DeploymentHealth is the condition of a deployed Solution.
type DeploymentHealth string

// The words, from good to bad.
const (
	// HealthReady: every object is there and works.
	HealthReady DeploymentHealth = "ready"
	// HealthProgressing: something is not ready yet and may still become so.
	HealthProgressing DeploymentHealth = "progressing"
	// HealthUnknown: the caller does not have permission to see enough of it.
	HealthUnknown DeploymentHealth = "unknown"
	// HealthPending: an operation was begun and has not ended.
	HealthPending DeploymentHealth = "pending"
	// HealthDrifted: the cluster is no longer as it was made, or another version is asked for than is there.
	HealthDrifted DeploymentHealth = "drifted"
	// HealthForeign: it was deployed by another tool.
	HealthForeign DeploymentHealth = "foreign"
	// HealthMissing: it is asked for, and nothing of it was deployed.
	HealthMissing DeploymentHealth = "missing"
	// HealthFailed: something does not work, and waiting will not help.
	HealthFailed DeploymentHealth = "failed"
)

// DeploymentStatus is the state of a Solution in a namespace, or of its part for the whole cluster.
type DeploymentStatus struct {
	Solution string `json:"solution"`
	// Wanted is the version that MetalK8s' document asks for, empty when it asks for none.
	Wanted string `json:"wanted,omitempty"`
	// Version is the version that was deployed last, empty when there is none.
	Version string           `json:"version,omitempty"`
	Health  DeploymentHealth `json:"health"`
	// Objects is the number of objects on its record.
	Objects int `json:"objects" schema:"minimum=0"`
	// Ready is the number of those that exist and work.
	Ready int `json:"ready" schema:"minimum=0"`
	// Completed is the number of those that are Jobs which have ended well and which the cluster has deleted since.
	Completed int `json:"completed,omitempty" schema:"minimum=0"`
	// Waiting lists objects that were not created because the cluster does not have their kinds. This is not a fault.
	Waiting []ObjectRef `json:"waiting,omitempty"`
	// Pending is the operation that was begun and has not ended.
	Pending *PendingOperation `json:"pending,omitempty"`
	// Reasons say why it is not ready, or what is amiss although it is, one sentence each.
	Reasons []Reason `json:"reasons"`
	// Drift holds the changes that would revert changes by other field managers since it was deployed; absent unless
	// requested.
	Drift []Change `json:"drift,omitzero"`
	// Components lists the deployed components, sorted by name. The figures above include their objects.
	Components []ComponentStatus `json:"components,omitempty"`
}

// ComponentStatus is a component of a Solution, and how it is.
type ComponentStatus struct {
	Name    string           `json:"name" schema:"minLength=1 maxLength=63"`
	Version string           `json:"version,omitempty"`
	Health  DeploymentHealth `json:"health"`
	Objects int              `json:"objects" schema:"minimum=0"`
	Ready   int              `json:"ready" schema:"minimum=0"`
	// Reasons say why it is not ready, one sentence each.
	Reasons []Reason `json:"reasons"`
}

// PlacedDeployment is a deployment and where it is: Environment and Namespace are empty for the one of an active version, which belongs to
// the whole cluster.
type PlacedDeployment struct {
	Environment, Namespace string
	DeploymentStatus
}

// Deployments are all of a cluster, those of active versions first.
func (s *Status) Deployments() iter.Seq[PlacedDeployment] {
	return func(yield func(PlacedDeployment) bool) {
		for _, solution := range s.Solutions {
			if solution.Deployment != nil && !yield(PlacedDeployment{DeploymentStatus: *solution.Deployment}) {
				return
			}
		}
		for i := range s.Environments {
			for d := range s.Environments[i].Deployments() {
				if !yield(d) {
					return
				}
			}
		}
	}
}

// Deployments are all of an environment, by namespace.
func (e *EnvironmentStatus) Deployments() iter.Seq[PlacedDeployment] {
	return func(yield func(PlacedDeployment) bool) {
		for _, n := range e.Namespaces {
			for _, d := range n.Deployments {
				if !yield(PlacedDeployment{e.Name, n.Name, d}) {
					return
				}
			}
		}
	}
}

// HasDrift reports whether an object was changed since it was deployed, as far as drift was requested.
func (s *Status) HasDrift() bool {
	for d := range s.Deployments() {
		if len(d.Drift) > 0 {
			return true
		}
	}
	return false
}

// PendingOperation is an operation that was begun and has not ended: it is running, or was interrupted.
type PendingOperation struct {
	Operation string    `json:"operation"`
	Version   string    `json:"version,omitempty"`
	User      string    `json:"user"` // who began it
	Started   time.Time `json:"started"`
}

// EnvironmentList holds all environments of a cluster. `solutionctl deploy env list` prints it.
type EnvironmentList struct {
	Environments []EnvironmentEntry `json:"environments"`
}

// EnvironmentEntry is an environment as MetalK8s' documents describe it.
type EnvironmentEntry struct {
	Name        string           `json:"name"`
	Description string           `json:"description,omitempty"`
	Namespaces  []NamespaceEntry `json:"namespaces"`
}

// NamespaceEntry is a namespace of an environment as MetalK8s' documents describe it.
type NamespaceEntry struct {
	Name        string `json:"name"`
	Terminating bool   `json:"terminating"`
	// Versions maps Solutions to the versions that are asked for.
	Versions map[string]string `json:"versions"`
	// Problems lists entries of MetalK8s' document that cannot be read.
	Problems []string `json:"problems,omitempty"`
}

// History holds the operations on a cluster, the newest first. `solutionctl deploy history` prints it.
type History struct {
	Operations []HistoryEntry `json:"operations"`
	// Problems lists records that cannot be read any more, one sentence each.
	Problems []string `json:"problems,omitempty"`
}

// HistoryEntry is an operation on a Solution in a namespace, or on its part for the whole cluster.
type HistoryEntry struct {
	// Environment is empty for the whole cluster, and for a namespace that is in none any more.
	Environment string `json:"environment,omitempty"`
	// Namespace is empty for the whole cluster.
	Namespace string `json:"namespace,omitempty"`
	Solution  string `json:"solution"`
	// Component is given where it is about a component of the Solution.
	Component string `json:"component,omitempty"`
	// Revision counts the operations on this Solution in this namespace, or on its component.
	Revision  int64             `json:"revision" schema:"minimum=0"`
	Operation string            `json:"operation"`
	Version   string            `json:"version,omitempty"`
	Outcome   DeploymentOutcome `json:"outcome"`
	User      string            `json:"user"`
	Tool      string            `json:"tool"`
	Started   time.Time         `json:"started"`
	Finished  *time.Time        `json:"finished,omitempty"`
	// Failure is why it was not completed, if the run could still record it.
	Failure *DeploymentFailure `json:"failure,omitempty"`
}

// SearchResult holds versions of Solutions, ordered by name and version. `solutionctl deploy search` prints it.
type SearchResult struct {
	Versions []FoundVersion `json:"versions"`
	// Problems lists records that cannot be read any more, one sentence each: there may be more versions.
	Problems []string `json:"problems,omitempty"`
}

// FoundVersion is a version of a Solution that can be deployed, or imported.
type FoundVersion struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	Version     string `json:"version"`
	ID          string `json:"id"`
	Active      bool   `json:"active"`
	// Imported is true when the cluster knows it.
	Imported bool `json:"imported"`
	// Stored is true when this host has its archive.
	Stored  bool   `json:"stored"`
	Archive string `json:"archive,omitempty"`
	// Signers are the names of the keys whose signatures counted at the import: none of an import without a trusted signature. They are absent
	// where they are not known.
	Signers []string `json:"signers,omitzero"`
	// Environments lists the environments where it is deployed.
	Environments []string     `json:"environments"`
	Images       []FoundImage `json:"images"`
}

// FoundImage is an image of an archive.
type FoundImage struct {
	Image  string `json:"image"`
	Digest string `json:"digest,omitempty"`
	// Origin is the name of the image outside of the archive.
	Origin string `json:"origin,omitempty"`
	// Matches is true for the image that was searched for.
	Matches bool `json:"matches"`
}
