package cluster

import (
	"context"
	"sync"
)

type onceUser struct {
	mu   sync.Mutex
	name string
}

// User returns the name by which the server knows the user, for records of who did what, and "" when it does not tell.
func (c *Cluster) User(ctx context.Context) string {
	panic("TODO")
}

// Permission is one thing that a user may or may not do.
type Permission struct {
	Verb        string // get, list, watch, create, patch, update, delete, …
	Group       string // API group; "" is the core group
	Resource    string // plural: "deployments"
	Subresource string
	Namespace   string // "" asks for every namespace, or is that of a resource without namespaces
	Name        string // "" asks for every object
}

// Missing returns those of the permissions that the user does not have.
func (c *Cluster) Missing(ctx context.Context, wanted ...Permission) ([]Permission, error) {
	panic("TODO")
}

// Rules writes permissions as the rules of a Role or ClusterRole, as YAML: what an administrator adds to grant them.
func Rules(permissions ...Permission) string {
	panic("TODO")
}
