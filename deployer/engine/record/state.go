package record

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/schema"
)

const historyLimit = 5

// State is the record of a release.
type State struct {
	Key
	Current   *schema.DeploymentRevision  // the last completed one, nil if there is none
	Pending   *schema.DeploymentRevision  // the one that was started and is not complete, nil if there is none
	History   []schema.DeploymentRevision // earlier ones without their objects, newest first
	Approvals []schema.PowerApproval      // newest first
	// SavedOptions belong to the pending revision; nil if there is none.
	SavedOptions []byte
	// Damage is why the record cannot be read. Then only the key is known, and whether objects exist is not.
	Damage error

	secret *unstructured.Unstructured // as it was read, nil if there is none
}

// Recent returns the pending and the current revision, as far as they exist.
func (s *State) Recent() []*schema.DeploymentRevision {
	return slices.DeleteFunc([]*schema.DeploymentRevision{s.Pending, s.Current}, func(r *schema.DeploymentRevision) bool { return r == nil })
}

// Revisions returns all recorded revisions, newest first.
func (s *State) Revisions() []*schema.DeploymentRevision {
	all := s.Recent()
	for i := range s.History {
		all = append(all, &s.History[i])
	}
	return all
}

// Secret returns the name of the Secret that was read; "" if there is none.
func (s *State) Secret() string {
	if s.secret == nil {
		return ""
	}
	return s.secret.GetName()
}

// Installed reports whether a version is deployed, so that the next deployment is an upgrade.
func (s *State) Installed() bool { return s.Current != nil && s.Current.Version != "" }

// Inventory returns the objects of the last completed revision and of the pending one, each once. The newer entry counts, except that
// a known UID is kept.
func (s *State) Inventory() map[ObjectKey]schema.DeployedObject {
	all := map[ObjectKey]schema.DeployedObject{}
	for _, revision := range slices.Backward(s.Recent()) {
		for _, object := range revision.Objects {
			key := KeyOf(object.ObjectRef)
			if object.UID == "" {
				object.UID = all[key].UID
			}
			all[key] = object
		}
	}
	return all
}

// Deployed returns the objects of the last completed revision.
func (s *State) Deployed() map[ObjectKey]schema.DeployedObject {
	return (&State{Current: s.Current}).Inventory()
}

// Ended returns the hashes of the Jobs that have ended in any recorded revision.
func (s *State) Ended() map[ObjectKey][]string {
	all := map[ObjectKey][]string{}
	for _, r := range s.Revisions() {
		for _, object := range r.Objects {
			if object.Completed {
				key := KeyOf(object.ObjectRef)
				all[key] = append(all[key], object.Hash)
			}
		}
	}
	return all
}

// Last returns the number of the newest revision.
func (s *State) Last() int64 {
	var last int64
	for _, r := range s.Revisions() {
		last = max(last, r.Number)
	}
	return last
}

// AddHistory adds a revision to the history.
func (s *State) AddHistory(r *schema.DeploymentRevision, outcome schema.DeploymentOutcome) {
	old := *r
	old.Objects, old.Outcome = nil, outcome
	old.Tasks = slices.DeleteFunc(slices.Clone(r.Tasks), func(t schema.DeployedTask) bool { return t.Once == "" || t.Finished == nil })
	for _, object := range r.Objects {
		if object.Completed {
			old.Objects = append(old.Objects, object)
		}
	}
	s.History = slices.Concat([]schema.DeploymentRevision{old}, s.History)
	slices.SortStableFunc(s.History, func(a, b schema.DeploymentRevision) int { return -cmp.Compare(a.Number, b.Number) })
	s.History = s.History[:min(len(s.History), historyLimit)]
}

// WrittenAt returns the time of the last write to the record, by the clock of the API server; zero if there is none.
func (s *State) WrittenAt() (last time.Time) {
	if s.secret == nil {
		return last
	}
	for _, entry := range s.secret.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// maxApprovals limits the approvals on a record; powers of older ones have to be approved again.
const maxApprovals = 32

// Approve adds an approval, unless the same one is recorded already.
func (s *State) Approve(a *schema.PowerApproval, user string, now time.Time) {
	if a == nil || slices.ContainsFunc(s.Approvals, func(old schema.PowerApproval) bool {
		return old.Version == a.Version && old.Archive == a.Archive && reflect.DeepEqual(old.Powers, a.Powers)
	}) {
		return
	}
	done := *a
	done.ApprovedBy, done.ApprovedAt = user, now
	s.Approvals = slices.Concat([]schema.PowerApproval{done}, s.Approvals)
	s.Approvals = s.Approvals[:min(len(s.Approvals), maxApprovals)]
}

// ObjectKey identifies an object independently of its API version.
type ObjectKey struct {
	kube.GroupKind
	Namespace, Name string
}

// KeyOf returns the key of a reference.
func KeyOf(r schema.ObjectRef) ObjectKey {
	return ObjectKey{kube.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind(), r.Namespace, r.Name}
}
