package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/schema"
)

// State is what is known about a release.
type State struct {
	Key
	Current *schema.DeploymentRevision  // the last one that was completed, nil before
	Pending *schema.DeploymentRevision  // the one that was begun and not completed, nil otherwise
	History []schema.DeploymentRevision // earlier ones without their objects, the newest first

	secret *unstructured.Unstructured // as it was read, nil when there is none
}

// State returns what is known about a release; a State without Current and Pending when there is nothing.
func (e *Engine) State(ctx context.Context, key Key) (*State, error) { panic("TODO") }

// States returns what is known about all releases, sorted by namespace and Solution.
func (e *Engine) States(ctx context.Context) ([]*State, error) { panic("TODO") }

// Forget removes the record of a release that has no objects any more, with its history. It refuses with the code InUse
// while there are objects.
func (e *Engine) Forget(ctx context.Context, key Key) error { panic("TODO") }

// Objects returns the objects of a revision as they were rendered, for going back to it.
func (e *Engine) Objects(ctx context.Context, key Key, r *schema.DeploymentRevision) ([]*unstructured.Unstructured, error) {
	panic("TODO")
}

// StoreContent keeps data in the cluster, under its digest ("sha256:…"), for an owner: a DNS label that says who may
// throw it away, see [Engine.CollectContent]. Storing the same again changes nothing.
func (e *Engine) StoreContent(ctx context.Context, owner string, data []byte) (digest string, err error) {
	panic("TODO")
}

// LoadContent returns what was stored. The error has the code NotFound when it is not there, and Corrupt when it does not
// have the digest any more.
func (e *Engine) LoadContent(ctx context.Context, owner, digest string) ([]byte, error) {
	panic("TODO")
}

// CollectContent removes what is stored for an owner, but for the digests to keep. The caller holds the lock that
// protects the owner's references.
func (e *Engine) CollectContent(ctx context.Context, owner string, keep ...string) error {
	panic("TODO")
}

// Plan is what has to be done to get from what a cluster has to a release. It belongs to what was read: when the record
// of the release has changed since, Apply refuses it.
type Plan struct {
	Release Release
	// Changes are those of all objects, also of those that stay as they are, in the order in which they are made.
	Changes []schema.Change
	// Resumes is the revision that an earlier run began and did not complete, nil otherwise.
	Resumes *schema.DeploymentRevision
}

// Empty tells whether the cluster has what is wanted already, so that Apply would change no object.
func (p *Plan) Empty() bool { panic("TODO") }

// Plan compares a release with the cluster. Nothing is written; the server is asked to check what would be. The error
// lists everything that stands against the plan: objects of somebody else (Conflict), fields of somebody else
// (Conflict), what the user may not do (Forbidden), what cannot be changed (Refused), what the server finds invalid.
func (e *Engine) Plan(ctx context.Context, r Release, o PlanOptions) (*Plan, error) { panic("TODO") }

// PlanAll plans several releases and reads the cluster once for all of them. The plans come in the order of the releases.
func (e *Engine) PlanAll(ctx context.Context, releases []Release, o PlanOptions) ([]*Plan, error) {
	panic("TODO")
}

// Apply carries a plan out. When it returns an error, the same release, planned and applied again, finishes the work.
// The error has the code Interrupted when ctx ended after something was changed, and Timeout when not everything became
// ready in time; its text then says why, down to the container.
func (e *Engine) Apply(ctx context.Context, p *Plan, o ApplyOptions) error { panic("TODO") }

// ApplyAll carries out several plans side by side. It returns the errors of all of them.
func (e *Engine) ApplyAll(ctx context.Context, plans []*Plan, o ApplyOptions) error { panic("TODO") }
