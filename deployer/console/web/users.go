package web

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/solutionctl/solutionctl/deployer/console/live"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// UserState is the state of a user, shared by all their browsers.
type UserState struct {
	Feeds   live.Feeds
	changes changeRights
	visitor atomic.Bool // the user is not allowed to see which environments there are
	Plans   seenPlans
	cluster atomic.Pointer[clusterName]
}

// clusterName is the name of the cluster as it was read last; nil in it where the cluster has none.
type clusterName struct{ *schema.ClusterName }

// keepName keeps the name of the cluster for the pages of the user.
func (u *UserState) keepName(name *schema.ClusterName) { u.cluster.Store(&clusterName{name}) }

// nameOfCluster returns the kept name, and whether it was read.
func (u *UserState) nameOfCluster() (name *schema.ClusterName, known bool) {
	if kept := u.cluster.Load(); kept != nil {
		return kept.ClusterName, true
	}
	return nil, false
}

// BrowserState is the state of a session in one browser.
type BrowserState struct {
	Opened  opened
	Drafts  drafts
	streams atomic.Int32 // that are open
}

// stateOf returns the state of a user.
func stateOf(i *session.Identity) *UserState { return i.State.(*UserState) }

// opened are the namespaces that a visitor has named, by environment.
type opened struct {
	mu         sync.Mutex
	namespaces map[string]string
}

// maxOpened bounds the namespaces that a session keeps.
const maxOpened = 50

// Remember adds a namespace that the user has named.
func (o *opened) Remember(environment, namespace string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.namespaces == nil || len(o.namespaces) >= maxOpened {
		o.namespaces = map[string]string{}
	}
	o.namespaces[environment] = namespace
}

// Namespace returns the one that was named for an environment, "" for none.
func (o *opened) Namespace(environment string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.namespaces[environment]
}

// Environments lists the environments of these namespaces.
func (o *opened) Environments() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.namespaces))
}

// IsVisitor reports whether an error means that the user is not allowed to list all environments.
func IsVisitor(err error) bool { return report.CodeOf(err) == report.Forbidden }

// NoteVisitor records whether the user is a visitor, from the result of listing everything: a visitor gets another navigation.
func (v *Visit) NoteVisitor(err error) {
	if err == nil || IsVisitor(err) {
		v.visitor.Store(err != nil)
		v.Frame.Visitor = err != nil
	}
}
