package console

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/solutionctl/solutionctl/deployer/console/live"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/schema/report"
)

// userState is what the console keeps of a user, for all of the user's browsers.
type userState struct {
	feeds   live.Feeds
	rights  rights
	visitor atomic.Bool // the user is not allowed to see which environments there are
	plans   seenPlans
}

// browserState is what the console keeps of a session in one browser.
type browserState struct {
	opened  opened
	streams atomic.Int32 // that are open
}

// stateOf returns the state of a user.
func stateOf(i *session.Identity) *userState { return i.State.(*userState) }

// opened are the namespaces that somebody has named, by the environment of which each is part.
type opened struct {
	mu         sync.Mutex
	namespaces map[string]string
}

// maxOpened bounds what a session remembers.
const maxOpened = 50

func (o *opened) remember(environment, namespace string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.namespaces == nil || len(o.namespaces) >= maxOpened {
		o.namespaces = map[string]string{}
	}
	o.namespaces[environment] = namespace
}

// namespace is the one that was named for an environment, "" for none.
func (o *opened) namespace(environment string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.namespaces[environment]
}

func (o *opened) environments() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.namespaces))
}

// isVisitor tells whether an error means that somebody may not see all environments.
func isVisitor(err error) bool { return report.CodeOf(err) == report.Forbidden }

// isVisitor remembers whether the whole was refused to the user: the navigation shows what leads somewhere for them.
func (v *visit) isVisitor(err error) {
	if err == nil || isVisitor(err) {
		v.visitor.Store(err != nil)
		v.frame.Visitor = err != nil
	}
}
