package web

import (
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/solutionctl/solutionctl/deployer/plan"
)

// Bounds of the drafts that are kept for a browser.
const (
	maxDrafts = 8
	draftAge  = time.Hour
)

// drafts are the values that a user has typed and not deployed yet. They can be secret, so they stay in memory: a page and its address only
// have their random name.
type drafts struct {
	mu   sync.Mutex
	kept []draft // the oldest first
}

type draft struct {
	id    string
	edits []plan.ValueEdit
	since time.Time
}

// Keep adds edits, and returns their name.
func (d *drafts) Keep(edits []plan.ValueEdit, now time.Time) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.kept) == maxDrafts {
		d.kept = slices.Delete(d.kept, 0, 1)
	}
	d.kept = append(d.kept, draft{rand.Text(), edits, now})
	return d.kept[len(d.kept)-1].id
}

// Replace puts edits in the place of older ones, and returns their name: a new one if the older are gone.
func (d *drafts) Replace(id string, edits []plan.ValueEdit, now time.Time) string {
	d.mu.Lock()
	at := slices.IndexFunc(d.kept, func(one draft) bool { return one.id == id })
	if at >= 0 {
		d.kept = append(slices.Delete(d.kept, at, at+1), draft{id, edits, now})
	}
	d.mu.Unlock()
	if at < 0 {
		return d.Keep(edits, now)
	}
	return id
}

// Find returns edits by their name, and whether they are still there.
func (d *drafts) Find(id string, now time.Time) (edits []plan.ValueEdit, found bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept = slices.DeleteFunc(d.kept, func(one draft) bool { return now.Sub(one.since) > draftAge })
	for _, one := range d.kept {
		if one.id == id {
			return one.edits, true
		}
	}
	return nil, false
}

// Forget drops edits that are deployed.
func (d *drafts) Forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept = slices.DeleteFunc(d.kept, func(one draft) bool { return one.id == id })
}
