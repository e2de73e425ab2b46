package console

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema"
)

// snapshot is what a user saw of the cluster, or of an environment, at one moment.
type snapshot struct {
	status      *schema.Status
	locks       []cluster.Held
	loader      *schema.LoadProgress      // nil where it never ran, or the user may not see it
	unloaded    error                     // why the user does not see it
	reads       *cluster.Reads            // what it was made of
	environment *schema.EnvironmentStatus // of a visitor, who sees nothing else
	heard                                 // which is asked for apart
	digest      string                    // of all that is shown
	at          time.Time
	// stale tells since when there is nothing newer, and why.
	stale *page.Stale
	// refused tells why the user may not see it any more.
	refused error
}

// outdated is a snapshot after which there was none, for that reason.
func (s *snapshot) outdated(why error) *snapshot {
	kept := *s
	kept.stale = &page.Stale{Since: kept.at, Why: why.Error()}
	return &kept
}

// mark tells what a browser sees of a snapshot.
func (s *snapshot) mark() string {
	if s.stale != nil {
		return s.digest + s.sounds + "-stale"
	}
	return s.digest + s.sounds
}

// digest returns a short digest of documents.
func digest(parts ...any) string {
	data, err := json.Marshal(parts)
	if err != nil {
		return err.Error() // documents are made of what JSON has
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

// active is the active version of a Solution, "" without one.
func (s *snapshot) active(solution string) string {
	for _, one := range s.status.Solutions {
		if one.Name == solution {
			return one.Active
		}
	}
	return ""
}

// pending are the operations on record that have not ended; nil for who may not see them.
func (s *snapshot) pending() []schema.ResumedOperation {
	if s.status == nil {
		return nil
	}
	list := []schema.ResumedOperation{}
	for _, one := range s.status.Solutions {
		if one.Deployment != nil && one.Deployment.Pending != nil {
			list = append(list, schema.ResumedOperation{Solution: one.Name, PendingOperation: *one.Deployment.Pending})
		}
	}
	for _, e := range s.status.Environments {
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

// isHeld tells whether somebody is at work who has taken a lock: a program that has died does not renew it.
func isHeld(h cluster.Held, now time.Time) bool { return now.Before(h.Promised.Add(slack)) }

// working names who is at work, and on what.
func (s *snapshot) working(now time.Time) (list []string) {
	for _, h := range s.locks {
		if isHeld(h, now) {
			list = append(list, h.Name+" "+h.Person+" "+h.Since.String())
		}
	}
	return list
}
