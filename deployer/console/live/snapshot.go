package live

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema"
)

// Snapshot is what a user saw of the cluster, or of an environment, at one moment.
type Snapshot struct {
	Status      *schema.Status
	Locks       []cluster.Held
	Loader      *schema.LoadProgress      // nil where it never ran, or the user may not see it
	Unloaded    error                     // why the user does not see it
	reads       *cluster.Reads            // what it was made of
	Environment *schema.EnvironmentStatus // of a visitor, who sees nothing else
	AlertAnswer                           // which is asked for apart
	digest      string                    // of all that is shown
	at          time.Time
	// stale tells since when there is nothing newer, and why.
	Stale *page.Stale
	// refused tells why the user may not see it any more.
	refused error
}

// outdated is a snapshot after which there was none, for that reason.
func (s *Snapshot) outdated(why error) *Snapshot {
	kept := *s
	kept.Stale = &page.Stale{Since: kept.at, Why: why.Error()}
	return &kept
}

// Mark identifies what a browser sees of a snapshot.
func (s *Snapshot) Mark() string {
	if s.Stale != nil {
		return s.digest + s.sounds + "-stale"
	}
	return s.digest + s.sounds
}

// Digest returns a short digest of documents.
func Digest(parts ...any) string {
	data, err := json.Marshal(parts)
	if err != nil {
		return err.Error() // documents are made of what JSON has
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

// Pending lists the recorded operations that have not ended; nil for a user who is not allowed to see them.
func (s *Snapshot) Pending() []schema.ResumedOperation {
	if s.Status == nil {
		return nil
	}
	list := []schema.ResumedOperation{}
	for _, one := range s.Status.Solutions {
		if one.Deployment != nil && one.Deployment.Pending != nil {
			list = append(list, schema.ResumedOperation{Solution: one.Name, PendingOperation: *one.Deployment.Pending})
		}
	}
	for _, e := range s.Status.Environments {
		for _, n := range e.Namespaces {
			for _, d := range n.Deployments {
				if d.Pending != nil {
					list = append(list, schema.ResumedOperation{Environment: e.Name, Namespace: n.Name, Solution: d.Solution, PendingOperation: *d.Pending})
				}
			}
		}
	}
	return list
}

// slack is for how long a lock whose time is over is still said to be held: clocks of hosts differ.
const slack = 10 * time.Second

// IsHeld reports whether the holder of a lock is still at work: a program that has died does not renew it.
func IsHeld(h cluster.Held, now time.Time) bool { return now.Before(h.Promised.Add(slack)) }

// working names who is at work, and on what.
func (s *Snapshot) working(now time.Time) (list []string) {
	for _, h := range s.Locks {
		if IsHeld(h, now) {
			list = append(list, h.Name+" "+h.Person+" "+h.Since.String())
		}
	}
	return list
}
