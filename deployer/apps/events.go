package apps

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/schema"
)

// Bounds of events: their number, age and size, and the number of events of a namespace that are read.
const (
	maxEvents   = 50
	eventAge    = 24 * time.Hour
	maxMessage  = 1000
	maxSearched = 5000
)

// Events returns the recent Kubernetes events of an instance that [Apps.Get] returned and of the objects that it owns,
// the newest first. Their text comes from the reporting controllers and is not trusted.
func (a *Apps) Events(ctx context.Context, app *schema.App, now time.Time) ([]schema.AppEvent, error) {
	type place struct {
		kube.GroupKind
		name string
	}
	placeOf := func(ref schema.ObjectRef) place {
		return place{kube.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), ref.Name}
	}
	belongs := map[place]bool{placeOf(schema.ObjectRef{APIVersion: app.APIVersion, Kind: app.Kind, Name: app.Name}): true}
	for _, o := range app.Objects {
		belongs[placeOf(o.ObjectRef)] = true
	}
	events := []schema.AppEvent{}
	searched := 0
	for object, err := range a.Cluster.List(ctx, corev1.SchemeGroupVersion.WithKind("Event"), app.Namespace, metav1.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		if searched++; searched > maxSearched {
			break
		}
		var e corev1.Event
		if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &e) != nil {
			continue
		}
		told := eventOf(&e)
		if belongs[placeOf(told.ObjectRef)] && now.Sub(told.Last) < eventAge && !told.Last.Before(app.Created) {
			events = append(events, told)
		}
	}
	slices.SortFunc(events, func(a, b schema.AppEvent) int {
		return cmp.Or(b.Last.Compare(a.Last), strings.Compare(a.String(), b.String()), strings.Compare(a.Reason, b.Reason))
	})
	return events[:min(len(events), maxEvents)], nil
}

// eventOf reads an event, which older and newer reporters write in different fields.
func eventOf(e *corev1.Event) schema.AppEvent {
	told := schema.AppEvent{
		ObjectRef: schema.ObjectRef{APIVersion: e.InvolvedObject.APIVersion, Kind: e.InvolvedObject.Kind, Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name},
		Type:      e.Type, Reason: e.Reason, Message: strings.ToValidUTF8(e.Message[:min(len(e.Message), maxMessage)], ""),
		Count: max(int64(e.Count), 1), Last: e.LastTimestamp.Time,
	}
	if e.Series != nil {
		told.Count, told.Last = max(int64(e.Series.Count), told.Count), e.Series.LastObservedTime.Time
	}
	for _, at := range []time.Time{e.EventTime.Time, e.FirstTimestamp.Time, e.CreationTimestamp.Time} {
		if told.Last.IsZero() {
			told.Last = at
		}
	}
	told.Last = told.Last.UTC()
	return told
}
