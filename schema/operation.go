package schema

import (
	"slices"
	"strings"
)

// Operation is one run of a verb with its changes, whether carried out or only planned. `solutionctl deploy activate`,
// `deactivate`, `add`, `remove`, `repair`, `plan` and `diff` print one.
type Operation struct {
	Operation   string `json:"operation"` // the verb: activate, add, …
	Solution    string `json:"solution,omitempty"`
	Version     string `json:"version,omitempty"`
	Environment string `json:"environment,omitempty"`
	// Namespace is given where one namespace of the environment is deleted, and not all of them.
	Namespace string `json:"namespace,omitempty"`
	// Planned operations were not carried out.
	Planned bool `json:"planned"`
	// Digest identifies the whole plan, including values that are not shown here: the same plan always has the same digest. A
	// verb with --expect carries out exactly this plan or nothing.
	Digest string `json:"digest,omitempty"`
	// Consequences are the effects of the changes. They are absent where nothing was computed, and do not count for the digest.
	Consequences *Consequences   `json:"consequences,omitempty"`
	Parts        []OperationPart `json:"parts"`
	// Signers lists by whom the versions are signed that are deployed now. They do not count for the digest.
	Signers []VersionSigners `json:"signers,omitempty"`
	// Preflight lists checks of whether the deployed programs can run in the cluster. They do not count for the digest.
	Preflight []PreflightCheck `json:"preflight,omitempty"`
	// Powers lists what the objects can do to the cluster beyond what a Solution may do without approval.
	Powers []PlannedPower `json:"powers,omitempty"`
	// Notices are remarks for the user, one sentence each.
	Notices []string `json:"notices"`
}

// VersionSigners has the signers of an imported version, as its import has recorded them.
type VersionSigners struct {
	Solution string `json:"solution"`
	Version  string `json:"version"`
	// Signers are the names of the keys whose signatures counted; none of an import without a trusted signature.
	Signers []string `json:"signers"`
}

// IsTrusted reports whether a trusted signature counted.
func (v VersionSigners) IsTrusted() bool { return len(v.Signers) > 0 }

func (v VersionSigners) String() string {
	if !v.IsTrusted() {
		return v.Solution + " " + v.Version + " was imported without a trusted signature"
	}
	return v.Solution + " " + v.Version + " is signed by " + strings.Join(v.Signers, " and ") + ", trusted at its import"
}

// PlannedPower is one thing that the objects of an operation can do to the cluster.
type PlannedPower struct {
	Power
	// Solution is whose object it is.
	Solution string `json:"solution"`
	// Approved is true when a user approved the power, now or for an earlier version, or no approval is needed.
	Approved bool `json:"approved"`
}

// Unapproved returns the powers that still need approval.
func (o *Operation) Unapproved() []Power {
	var list []Power
	for _, p := range o.Powers {
		if !p.Approved {
			list = append(list, p.Power)
		}
	}
	return list
}

// OperationPart holds the changes of an operation in one namespace, or to the whole cluster.
type OperationPart struct {
	// Namespace is empty for what belongs to the whole cluster.
	Namespace string `json:"namespace,omitempty"`
	// Solution is given, with its version, where the operation changes several Solutions.
	Solution string `json:"solution,omitempty"`
	Version  string `json:"version,omitempty"`
	// Component is the component that the changes belong to; absent for the Solution itself.
	Component string `json:"component,omitempty"`
	// Resumes is true when an earlier run was interrupted and this one finishes its work.
	Resumes bool     `json:"resumes,omitempty"`
	Changes []Change `json:"changes"`
}

// Empty reports whether there is nothing to do.
func (o *Operation) Empty() bool {
	return !slices.ContainsFunc(o.Parts, func(p OperationPart) bool { return !p.Empty() })
}

// Empty reports whether there is nothing to do in this part.
func (p *OperationPart) Empty() bool {
	return !p.Resumes && p.Count(ActionNone, ActionKeep, ActionSkip) == len(p.Changes)
}

// Count returns how many of the changes are one of the actions.
func (p *OperationPart) Count(actions ...Action) int {
	n := 0
	for _, change := range p.Changes {
		if slices.Contains(actions, change.Action) {
			n++
		}
	}
	return n
}
