package cluster

import (
	"context"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// memory holds the tool's own objects as they were last read, and what the server is.
type memory struct {
	began   time.Duration // on the boot clock
	mu      sync.Mutex
	objects map[memoryKey]*unstructured.Unstructured // nil for an object that does not exist
	derived map[string]any
	whole   []memoryKey // kinds with the beginning of names of which everything is known

	reading     sync.Mutex // held while the definitions are listed
	listed      bool
	definitions []*unstructured.Unstructured

	asking   sync.Mutex // held while the server is asked what it is, so that one asks for all
	version  string     // "" until it was read
	versions []string   // nil until they were read
}

type memoryKey struct {
	kind schema.GroupVersionKind
	name string
}

type memoryContext struct{}

func newMemory() *memory {
	return &memory{began: bootTime(), objects: map[memoryKey]*unstructured.Unstructured{}, derived: map[string]any{}}
}

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

// Definition returns a CustomResourceDefinition, or nil when it is not there. Like an object of [SystemNamespace], a context with a memory reads it
// once: the judgements of one plan see one state of it. What waits for a change, or writes, uses [Cluster.Get].
func (c *Cluster) Definition(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	key := memoryKey{DefinitionKind, name}
	if remembered, known := recall(ctx, key); known {
		return remembered, nil
	}
	definition, err := c.Get(ctx, DefinitionKind, "", name)
	if err == nil {
		keep(ctx, key, definition)
	}
	return definition, err
}

// Definitions returns the metadata of all CustomResourceDefinitions, which a context with a memory lists once. They must not be changed.
func (c *Cluster) Definitions(ctx context.Context) ([]*unstructured.Unstructured, error) {
	m := memoryOf(ctx)
	m.reading.Lock()
	defer m.reading.Unlock()
	if m.listed {
		return m.definitions, nil
	}
	found, err := Collect(c.ListMetadata(ctx, DefinitionKind, "", metav1.ListOptions{}))
	if err == nil {
		m.listed, m.definitions = true, found
	}
	return found, err
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

// Derived returns what compute makes of objects in [SystemNamespace], such as a decoded record. A context with a memory, which has one state of
// each object, computes it once; all callers then get the same value and must not change it. An error is not remembered.
func Derived[T any](ctx context.Context, key string, compute func() (T, error)) (T, error) {
	m := memoryOf(ctx)
	m.mu.Lock()
	known, ok := m.derived[key].(T)
	m.mu.Unlock()
	if ok {
		return known, nil
	}
	value, err := compute()
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.derived[key] = value
	}
	return value, err
}
