package live

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
)

// Snapshot is a user's view of the cluster, or of an environment, at one moment.
type Snapshot struct {
	Status      *schema.Status
	Locks       []cluster.Held
	Loader      *schema.LoadProgress      // nil where it never ran, or the user is not allowed to read it
	Unloaded    error                     // why the user does not see it
	reads       *cluster.Reads            // its source
	Environment *schema.EnvironmentStatus // of a visitor, who sees nothing else
	AlertAnswer                           // which is asked for apart
	digest      string                    // of all that is shown
	at          time.Time
	// Stale is set when there is nothing newer, with the time and the reason.
	Stale *page.Stale
	// refused is the reason why the user is not allowed to read it any more.
	refused error
}

// outdated is a snapshot after which there was none, for that reason.
func (s *Snapshot) outdated(why error) *Snapshot {
	kept := *s
	kept.Stale = &page.Stale{Since: kept.at, Why: why.Error()}
	return &kept
}

// Mark identifies the visible state of a snapshot.
func (s *Snapshot) Mark() string {
	if s.Stale != nil {
		return s.digest + s.digestOfAlerts + "-stale"
	}
	return s.digest + s.digestOfAlerts
}

// isReady reports whether everything is ready, and no operation is at work.
func (s *Snapshot) isReady() bool {
	if s.Stale != nil || s.refused != nil || len(s.Locks) > 0 || s.Loader != nil && !s.Loader.Phase.Ended() {
		return false
	}
	if s.Environment != nil {
		return survey.IsEnvironmentReady(*s.Environment)
	}
	return s.Status != nil && s.Status.Ready && len(s.Pending()) == 0
}

// Digest returns a short digest of documents.
func Digest(parts ...any) string {
	data, err := json.Marshal(parts)
	if err != nil {
		return err.Error() // documents contain only values of JSON
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

// Active returns the active version of a Solution, "" without one.
func (s *Snapshot) Active(solution string) string {
	for _, one := range s.Status.Solutions {
		if one.Name == solution {
			return one.Active
		}
	}
	return ""
}

// Signers returns the signers of an imported version, nil where they are not known.
func (s *Snapshot) Signers(solution, version string) []string {
	for _, one := range s.Status.Solutions {
		for _, v := range one.Versions {
			if one.Name == solution && v.Version == version {
				return v.Signers
			}
		}
	}
	return nil
}

// Pending lists the recorded operations that are not complete; nil for a user who is not allowed to read them.
func (s *Snapshot) Pending() []schema.ResumedOperation {
	if s.Status == nil {
		return nil
	}
	list := []schema.ResumedOperation{}
	for d := range s.Status.Deployments() {
		if d.Pending != nil {
			list = append(list, schema.ResumedOperation{Environment: d.Environment, Namespace: d.Namespace, Solution: d.Solution, PendingOperation: *d.Pending})
		}
	}
	return list
}

// slack is how long an expired lock is still shown as held: clocks of hosts differ.
const slack = 10 * time.Second

// IsHeld reports whether the holder of a lock is still at work: a program that has died does not renew it.
func IsHeld(h cluster.Held, now time.Time) bool { return now.Before(h.Promised.Add(slack)) }

// working lists the holders of locks, and the objects of the locks.
func (s *Snapshot) working(now time.Time) (list []string) {
	for _, h := range s.Locks {
		if IsHeld(h, now) {
			list = append(list, h.Name+" "+h.Person+" "+h.Since.String())
		}
	}
	return list
}
