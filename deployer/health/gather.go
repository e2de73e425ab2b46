package health

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	document "github.com/solutionctl/solutionctl/schema"
)

// ConditionReader is a Reader that can also list objects in part: with the fields that [Reasons] reads.
type ConditionReader interface {
	Reader
	ListWithConditions(ctx context.Context, kind schema.GroupVersionKind, namespace string, o metav1.ListOptions) iter.Seq2[*unstructured.Unstructured, error]
}

const (
	// fewNamespaces are read one by one. Beyond that the whole cluster is read, unless it has more than objectsOfRequest objects for each of the
	// namespaces: to read so many takes as long as another request.
	fewNamespaces, objectsOfRequest = 20, 50
	// objectsOfNamespace limits the objects of a kind that are read of one namespace. Where there are more, each object that is not ready is read apart.
	objectsOfNamespace = 5000
	// listsAtOnce limits concurrent lists of a kind.
	listsAtOnce = 4
)

// Gathered has the objects from which the reasons of many objects are found.
type Gathered struct {
	reader     Reader
	namespaces map[string]bool

	mu       sync.Mutex
	crowded  map[string]bool                            // namespaces with more than objectsOfNamespace
	owned    map[types.UID][]*unstructured.Unstructured // by the owner that controls them
	warnings map[types.UID][]*unstructured.Unstructured // by the object that they are about
}

// Gather reads ReplicaSets, pods and warnings of namespaces with few requests, for the reasons of many objects there. It leaves out what the user is
// not allowed to read.
func Gather(ctx context.Context, r ConditionReader, namespaces []string) *Gathered {
	g := &Gathered{
		reader: r, namespaces: map[string]bool{}, crowded: map[string]bool{},
		owned: map[types.UID][]*unstructured.Unstructured{}, warnings: map[types.UID][]*unstructured.Unstructured{},
	}
	for _, namespace := range namespaces {
		g.namespaces[namespace] = true
	}
	var kinds errgroup.Group
	for _, kind := range []schema.GroupVersionKind{replicaSetKind, podKind, eventKind} {
		kinds.Go(func() error {
			g.gather(ctx, r, kind)
			return nil
		})
	}
	_ = kinds.Wait()
	return g
}

// gather reads the objects of a kind: with one list of the whole cluster, or one for each namespace.
func (g *Gathered) gather(ctx context.Context, r ConditionReader, kind schema.GroupVersionKind) {
	if len(g.namespaces) > fewNamespaces {
		if found, err := g.list(ctx, r, kind, "", objectsOfRequest*len(g.namespaces)); err == nil {
			g.add(kind, found)
			return
		}
	}
	var lists errgroup.Group
	lists.SetLimit(listsAtOnce)
	for namespace := range g.namespaces {
		lists.Go(func() error {
			found, err := g.list(ctx, r, kind, namespace, objectsOfNamespace)
			if errors.Is(err, errTooMany) {
				g.leaveOut(namespace)
			}
			g.add(kind, found) // the rest remains unknown, as in [Reasons]
			return nil
		})
	}
	_ = lists.Wait()
}

// errTooMany ends a list.
var errTooMany = errors.New("there are more objects")

// list returns the objects of a kind in the gathered namespaces, or an error if the list has more than most others.
func (g *Gathered) list(ctx context.Context, r ConditionReader, kind schema.GroupVersionKind, namespace string, most int) ([]*unstructured.Unstructured, error) {
	var o metav1.ListOptions
	if kind == eventKind {
		o.FieldSelector = "type=Warning"
	}
	var found []*unstructured.Unstructured
	read := 0
	for object, err := range r.ListWithConditions(ctx, kind, namespace, o) {
		if err != nil {
			return found, err
		}
		if read++; read > most {
			return nil, errTooMany
		}
		if g.namespaces[object.GetNamespace()] {
			found = append(found, object)
		}
	}
	return found, nil
}

// leaveOut makes the objects of a namespace be read for each reason.
func (g *Gathered) leaveOut(namespace string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.crowded[namespace] = true
}

func (g *Gathered) add(kind schema.GroupVersionKind, objects []*unstructured.Unstructured) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, object := range objects {
		if kind == eventKind {
			uid, _, _ := unstructured.NestedString(object.Object, "involvedObject", "uid")
			g.warnings[types.UID(uid)] = append(g.warnings[types.UID(uid)], object)
		} else if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
			g.owned[owner.UID] = append(g.owned[owner.UID], object)
		}
	}
}

// Reasons is [Reasons] without requests for what was gathered.
func (g *Gathered) Reasons(ctx context.Context, object *unstructured.Unstructured) []document.Reason {
	e := explainer{ctx: ctx, reader: g.reader}
	if namespace := object.GetNamespace(); g.namespaces[namespace] && !g.crowded[namespace] {
		e.gathered = g
	}
	return e.explain(object)
}

// ownedBy returns the objects of a kind that one of the owners controls, sorted by name. Controllers release those that their selector does not match.
func (g *Gathered) ownedBy(kind schema.GroupVersionKind, owners []types.UID) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, owner := range owners {
		for _, object := range g.owned[owner] {
			if object.GroupVersionKind() == kind {
				found = append(found, object)
			}
		}
	}
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return found
}
