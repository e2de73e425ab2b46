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

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
)

// Bounds of events: their number and age, and the number of events of a namespace that are read.
const (
	maxEvents   = 50
	eventAge    = 24 * time.Hour
	maxSearched = 5000
)

// Events returns the recent Kubernetes events of an instance that [Apps.Get] returned and of the objects that it owns,
// the newest first. Their text comes from the reporting controllers and is not trusted.
func (a *Apps) Events(ctx context.Context, app *schema.App, now time.Time) ([]schema.ObjectEvent, error) {
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
	events := []schema.ObjectEvent{}
	searched := 0
	for object, err := range a.Cluster.List(ctx, cluster.EventKind, app.Namespace, metav1.ListOptions{}) {
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
		event := cluster.EventOf(&e)
		if belongs[placeOf(event.ObjectRef)] && now.Sub(event.Last) < eventAge && !event.Last.Before(app.Created) {
			events = append(events, event)
		}
	}
	slices.SortFunc(events, func(a, b schema.ObjectEvent) int {
		return cmp.Or(b.Last.Compare(a.Last), strings.Compare(a.String(), b.String()), strings.Compare(a.Reason, b.Reason))
	})
	return events[:min(len(events), maxEvents)], nil
}
