package web

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/solutionctl/solutionctl/deployer/console/live"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema"
)

// Bounds of the plans that are kept for a user.
const (
	maxSeenPlans = 16
	maxSeenLines = 5000 // of a plan
	maxDifferent = 50   // lines that are shown
)

// seenPlans are the lines of the last plans of a user, so that a page can show the differences. They decide nothing:
// the digest decides which plan is applied.
type seenPlans struct {
	mu    sync.Mutex
	order []string // digests, the oldest first
	lines map[string]map[string]string
}

// Remember adds a plan that the user has seen.
func (s *seenPlans) Remember(digest string, o *schema.Operation) {
	lines := linesOf(o)
	if len(lines) > maxSeenLines {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines == nil {
		s.lines = map[string]map[string]string{}
	}
	if s.lines[digest] == nil {
		s.order = append(s.order, digest)
	}
	s.lines[digest] = lines
	if len(s.order) > maxSeenPlans {
		delete(s.lines, s.order[0])
		s.order = slices.Delete(s.order, 0, 1)
	}
}

// Difference compares a plan with the one of a digest; nil where the user has not seen that lately.
func (s *seenPlans) Difference(digest string, o *schema.Operation) *page.Difference {
	s.mu.Lock()
	seen := s.lines[digest]
	s.mu.Unlock()
	if seen == nil {
		return nil
	}
	d, now := &page.Difference{}, linesOf(o)
	for line, content := range now {
		if old, known := seen[line]; !known {
			d.New = append(d.New, line)
		} else if old != content {
			d.Other = append(d.Other, line)
		}
	}
	for line := range seen {
		if _, still := now[line]; !still {
			d.Gone = append(d.Gone, line)
		}
	}
	for _, list := range []*[]string{&d.New, &d.Other, &d.Gone} {
		slices.Sort(*list)
		if more := len(*list) - maxDifferent; more > 0 {
			*list = append((*list)[:maxDifferent], page.Text("plan.differs.more", more))
		}
	}
	return d
}

// linesOf returns the lines of a plan, each with its details.
func linesOf(o *schema.Operation) map[string]string {
	lines := map[string]string{}
	for _, notice := range o.Notices {
		lines[notice] = ""
	}
	for _, part := range o.Parts {
		for _, c := range part.Changes {
			line := strings.TrimSpace(fmt.Sprintf("%s %s %s", page.Text("action."+string(c.Action)), c.Object, part.Component))
			c.Fields = slices.Clone(c.Fields)
			for i := range c.Fields {
				c.Fields[i].Since = nil // others may write their own fields again and again
			}
			lines[line] = live.Digest(c)
		}
	}
	return lines
}
