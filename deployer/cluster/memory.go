package cluster

import (
	"context"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// memory holds the tool's own objects as they were last read, and what the server is.
type memory struct {
	mu      sync.Mutex
	objects map[memoryKey]*unstructured.Unstructured // nil for an object that does not exist
	whole   []memoryKey                              // kinds with the beginning of names of which everything is known

	asking   sync.Mutex // held while the server is asked what it is, so that one asks for all
	version  string     // "" until it was read
	versions []string   // nil until they were read
}

type memoryKey struct {
	kind schema.GroupVersionKind
	name string
}

type memoryContext struct{}

func newMemory() *memory { return &memory{objects: map[memoryKey]*unstructured.Unstructured{}} }

// memoryOf is the memory of a context; one that has none forgets at once.
func memoryOf(ctx context.Context) *memory {
	if m, ok := ctx.Value(memoryContext{}).(*memory); ok {
		return m
	}
	return newMemory()
}

// WithMemory makes [Cluster.Get] read each object in [SystemNamespace] once with the returned context, and [Cluster.Version] and
// [Cluster.APIVersions] ask once. It is for callers that read and plan under a lock, and see one state of what the lock protects;
// to read again before a write, use another context.
func WithMemory(ctx context.Context) context.Context {
	return context.WithValue(ctx, memoryContext{}, newMemory())
}

// Remember takes objects in [SystemNamespace] into the memory of the context that were read in another way: all of their
// kind whose names begin like this.
func Remember(ctx context.Context, kind schema.GroupVersionKind, prefix string, objects []*unstructured.Unstructured) {
	m := memoryOf(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.whole = append(m.whole, memoryKey{kind, prefix})
	for _, object := range objects {
		m.objects[memoryKey{kind, object.GetName()}] = object
	}
}

// recall returns what is known of an object.
func recall(ctx context.Context, key memoryKey) (object *unstructured.Unstructured, known bool) {
	m := memoryOf(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	if object, known = m.objects[key]; known {
		return object.DeepCopy(), true
	}
	for _, all := range m.whole {
		if all.kind == key.kind && strings.HasPrefix(key.name, all.name) {
			return nil, true
		}
	}
	return nil, false
}

// keep notes what was read.
func keep(ctx context.Context, key memoryKey, object *unstructured.Unstructured) {
	m, ok := ctx.Value(memoryContext{}).(*memory)
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[key] = object.DeepCopy()
}
