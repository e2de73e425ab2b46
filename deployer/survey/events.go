package survey

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
)

// maxEvents bounds a list of Events: the newest of them are kept.
const maxEvents = 1000

// Events lists what Kubernetes has reported about the objects of a part of an environment, the newest last. The words come from
// whatever program reports: nothing to rely on.
func (v *Survey) Events(ctx context.Context, o Scope) (*schema.EventList, error) {
	owned, err := v.Owned(ctx, o)
	if err != nil {
		return nil, err
	}
	list := &schema.EventList{Environment: o.Environment, Events: []schema.ObjectEvent{}}
	for _, namespace := range owned.Namespaces {
		for object, err := range v.Cluster.List(ctx, cluster.EventKind, namespace, metav1.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			event, err := owned.event(ctx, object)
			if err != nil {
				return nil, err
			}
			if event == nil {
				continue
			}
			if list.Events = append(list.Events, *event); len(list.Events) > 2*maxEvents {
				list.Events = newestEvents(list.Events)
			}
		}
	}
	list.Events = newestEvents(list.Events)
	return list, nil
}

func newestEvents(events []schema.ObjectEvent) []schema.ObjectEvent {
	slices.SortFunc(events, func(a, b schema.ObjectEvent) int {
		return cmp.Or(a.Last.Compare(b.Last), strings.Compare(a.String(), b.String()), strings.Compare(a.Reason, b.Reason))
	})
	return events[max(0, len(events)-maxEvents):]
}

// WatchEvents passes on the Events of [Survey.Events], and then each further one, until ctx is done, without an error. Show is called by
// one goroutine at a time, and its error ends the watch.
func (v *Survey) WatchEvents(ctx context.Context, o Scope, show func(schema.ObjectEvent) error) error {
	list, err := v.Events(ctx, o)
	if err != nil {
		return err
	}
	var from time.Time // the list has no older ones
	if len(list.Events) == maxEvents {
		from = list.Events[0].Last
	}
	shown := map[shownEvent]bool{}
	for _, event := range list.Events {
		shown[keyOfEvent(event)] = true
		if err = show(event); err != nil {
			return err
		}
	}
	owned, err := v.Owned(ctx, o)
	if err != nil {
		return err
	}
	return v.watchAll(ctx, cluster.EventKind, owned.Namespaces, func(change cluster.Change) error {
		if change.Type == watch.Deleted {
			return nil
		}
		event, err := owned.event(ctx, change.Object)
		if event == nil || err != nil {
			return err
		}
		if key := keyOfEvent(*event); shown[key] {
			delete(shown, key) // the watch begins with a list, which has it once
			return nil
		}
		if event.Last.Before(from) {
			return nil
		}
		return show(*event)
	})
}

// shownEvent identifies a report of an Event.
type shownEvent struct {
	object schema.ObjectRef
	reason string
	last   time.Time
	count  int64
}

func keyOfEvent(e schema.ObjectEvent) shownEvent {
	return shownEvent{e.ObjectRef, e.Reason, e.Last, e.Count}
}

// event reads an Event of an object that is owned; nil for others.
func (d *Owned) event(ctx context.Context, object *unstructured.Unstructured) (*schema.ObjectEvent, error) {
	var e corev1.Event
	if Convert(object, &e) != nil {
		return nil, nil // of a program that does not keep to the form
	}
	about := e.InvolvedObject
	reference := &metav1.OwnerReference{APIVersion: about.APIVersion, Kind: about.Kind, Name: about.Name, UID: about.UID}
	ours, err := d.hasNamed(ctx, reference, object.GetNamespace())
	if err != nil || !ours {
		return nil, err
	}
	event := cluster.EventOf(&e)
	return &event, nil
}

// hasNamed reports whether an object that a reference names is owned. Of one that is gone, the name of its workload is in its own name.
func (d *Owned) hasNamed(ctx context.Context, reference *metav1.OwnerReference, namespace string) (bool, error) {
	kind := kube.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind()
	if d.Names(kind, namespace, reference.Name) {
		return true, nil
	}
	if reference.UID == "" || reference.APIVersion == "" {
		return false, nil
	}
	ours, err := d.owns(ctx, reference, namespace, maxOwners)
	return ours || d.hadPod(reference.Kind, namespace, reference.Name), err
}

// hadPod reports whether a pod, or what makes pods, has the name that an owned workload gives.
func (d *Owned) hadPod(kind, namespace, name string) bool {
	if kind != "Pod" && !makePods[kind] && kind != "Job" {
		return false
	}
	for owned := range d.names {
		if rest, ok := strings.CutPrefix(name, owned.Name+"-"); ok && owned.Namespace == namespace && makesPods(owned.Kind) && strings.Count(rest, "-") <= 1 {
			return true
		}
	}
	return false
}

func makesPods(kind string) bool { return makePods[kind] || kind == "Job" || kind == "CronJob" }

// watchAll watches a kind in several namespaces until ctx is done, without an error, or until one of them fails.
func (v *Survey) watchAll(ctx context.Context, kind kube.GroupVersionKind, namespaces []string, see func(cluster.Change) error) error {
	group, inGroup := errgroup.WithContext(ctx)
	var mu sync.Mutex
	for _, namespace := range namespaces {
		group.Go(func() error {
			for change, err := range v.Cluster.Watch(inGroup, kind, namespace, metav1.ListOptions{}) {
				if err != nil {
					return err
				}
				mu.Lock()
				err = see(change)
				mu.Unlock()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}
