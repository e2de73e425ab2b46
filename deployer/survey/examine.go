package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// finding is the state of the objects of a release.
type finding struct {
	objects, ready int
	completed      int // Jobs that have ended and are gone
	health         schema.DeploymentHealth
	reasons        []schema.Reason
	changed        bool // some objects may no longer be as they were applied
	drift          []schema.Change
	explained      int
	crashes        map[workload][]schema.Reason
	reasonsOf      func(ctx context.Context, object *unstructured.Unstructured) []schema.Reason // why an object is not ready
	reporting      map[kube.GroupVersionKind]bool                                               // of which kinds operators report how an object is; shared by all findings
	webhooks       *health.Webhooks                                                             // likewise
	silent         []schema.Reason                                                              // objects whose webhooks do not answer
	waiting        []schema.ObjectRef                                                           // for their kinds
	hidden         []string                                                                     // objects that the user is not allowed to read
}

// maxExplained bounds the objects of a Solution that are followed down to their containers: they are rarely ill of
// different things.
const maxExplained = 3

func (f *finding) worsen(health schema.DeploymentHealth, reasons ...schema.Reason) {
	if severity(health) > severity(f.health) {
		f.health = health
	}
	f.reasons = append(f.reasons, reasons...)
}

// examine looks at every object on the records: is it there, is it ready, is it as it was applied? With closely, the last is
// asked of every object, and not only of those whose metadata raise a suspicion.
// Known are objects that were just listed.
func (v *Survey) examine(ctx context.Context, states []*record.State, known observations, closely bool) (map[record.Key]*finding, error) {
	var live observations
	var crashes map[workload][]schema.Reason
	group, inGroup := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		live, err = v.liveObjects(inGroup, states, known)
		return err
	})
	group.Go(func() (err error) {
		crashes, err = v.crashes(inGroup, states)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	findings, err := v.judgeAll(ctx, states, live, crashes)
	if err != nil {
		return nil, err
	}
	return findings, v.explainChanges(ctx, states, findings, closely)
}

// judgeAll judges releases by their objects and the pods of these.
func (v *Survey) judgeAll(ctx context.Context, states []*record.State, live observations, crashes map[workload][]schema.Reason) (map[record.Key]*finding, error) {
	findings := map[record.Key]*finding{}
	reporting := map[kube.GroupVersionKind]bool{}
	webhooks := &health.Webhooks{Reader: v.Cluster}
	reasonsOf := v.reasonsOf(ctx, live)
	for _, s := range states {
		f := &finding{health: schema.HealthReady, crashes: crashes, reasonsOf: reasonsOf, reporting: reporting, webhooks: webhooks}
		findings[s.Key] = f
		for _, known := range inventory(s) {
			f.objects++
			v.judge(ctx, f, known, live[known.ObjectRef])
		}
		f.judgeWebhooks()
		f.reportHidden()
		if err := v.await(ctx, f, s); err != nil {
			return nil, err
		}
	}
	return findings, v.remark(ctx, states, live, findings)
}

// await checks the objects that a release skipped, because the cluster did not have their kinds.
func (v *Survey) await(ctx context.Context, f *finding, s *record.State) error {
	if s.Pending != nil || s.Current == nil {
		return nil
	}
	for _, object := range s.Current.Waiting {
		switch _, err := v.Cluster.Mapping(ctx, kube.FromAPIVersionAndKind(object.APIVersion, object.Kind)); {
		case errors.Is(err, cluster.ErrNoKind):
			f.waiting = append(f.waiting, object)
		case err != nil:
			return err
		default:
			f.worsen(schema.HealthDrifted, schema.Reason{
				Object: object, Text: object.String() + " was not created, because the cluster did not have its kind; it has now: deploy the same version again",
			})
		}
	}
	return nil
}

// judgeWebhooks reports webhooks that do not answer: as a failure, or as progress while another part of the release is still starting.
func (f *finding) judgeWebhooks() {
	word := schema.HealthFailed
	if f.health == schema.HealthProgressing {
		word = schema.HealthProgressing
	}
	if len(f.silent) > 0 {
		f.worsen(word, f.silent...)
	}
}

// reportHidden adds the objects that the user is not allowed to read. They count neither as ready nor as missing.
func (f *finding) reportHidden() {
	if len(f.hidden) == 0 {
		return
	}
	names := strings.Join(f.hidden[:min(len(f.hidden), maxExplained)], ", ")
	if more := len(f.hidden) - maxExplained; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	f.reasons = append(f.reasons, schema.Reason{Text: "you do not have permission to read " + names + ": nothing is known of them"})
}

// observations are the objects that are there.
type observations map[schema.ObjectRef]*observation

// observation is how an object was when it was read.
type observation struct {
	uid, version string
	generation   int64
	status       health.Status
	object       *unstructured.Unstructured // nil when there is nothing else to ask: there may be thousands
	hidden       bool                       // the user is not allowed to read it
}

func observe(object *unstructured.Unstructured) *observation {
	s := &observation{uid: string(object.GetUID()), version: object.GetResourceVersion(), generation: object.GetGeneration(), status: health.Status{Ready: true}}
	if !isStateless(object.GroupVersionKind()) || object.GetDeletionTimestamp() != nil {
		s.status = health.Of(object)
	}
	// Custom resources are asked who looks after them, definitions and configurations for their webhooks.
	if kind := object.GroupVersionKind(); !s.status.Ready || strings.Contains(kind.Group, ".") && !isStateless(kind) {
		object.SetManagedFields(nil) // half of it
		s.object = object
	}
	return s
}

// inventory are the objects that a release should have now.
func inventory(s *record.State) []schema.DeployedObject {
	revision := cmp.Or(s.Pending, s.Current)
	if revision == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(revision.Objects), func(o schema.DeployedObject) bool { return o.Leaving || o.Kept })
}

// observeAll returns the objects that were listed with as much as they are judged by: the others are known by their metadata only.
func observeAll(found []engine.Found) observations {
	seen := observations{}
	for _, f := range found {
		if kind := f.Object.GroupVersionKind(); isStateless(kind) || engine.IsListedWithStatus(kind) {
			seen[records.RefOf(kind, f.Object)] = observe(f.Object)
		}
	}
	return seen
}

// has reports whether all objects were seen. One that was created in the meantime has not.
func (s observations) has(refs []schema.ObjectRef) bool {
	return !slices.ContainsFunc(refs, func(ref schema.ObjectRef) bool { return s[ref] == nil })
}

// liveObjects reads the objects of releases that are not known: all of one kind at once, or one by one for a user who cannot list the
// whole cluster.
func (v *Survey) liveObjects(ctx context.Context, states []*record.State, known observations) (observations, error) {
	byKind := map[kube.GroupVersionKind][]schema.ObjectRef{}
	for _, s := range states {
		for _, object := range inventory(s) {
			kind := kube.FromAPIVersionAndKind(object.APIVersion, object.Kind)
			byKind[kind] = append(byKind[kind], object.ObjectRef)
		}
	}
	selector := schema.LabelRelease
	if len(states) == 1 {
		selector += "=" + states[0].ID()
	}
	live := maps.Clone(known)
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(kindsAtOnce)
	for kind, refs := range byKind {
		if known.has(refs) {
			continue
		}
		group.Go(func() error {
			found := observations{}
			err := v.listInto(ctx, found, kind, "", selector)
			if report.CodeOf(err) == report.Forbidden {
				err = v.getInto(ctx, found, kind, refs)
			}
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(live, found)
			return err
		})
	}
	return live, group.Wait()
}

// kindsAtOnce limits concurrent lists.
const kindsAtOnce = 4

func (v *Survey) listInto(ctx context.Context, live observations, kind kube.GroupVersionKind, namespace, selector string) error {
	list := v.Cluster.ListPartial
	if isStateless(kind) {
		list = v.Cluster.ListVersions
	}
	for object, err := range list(ctx, kind, namespace, metav1.ListOptions{LabelSelector: selector}) {
		if err != nil {
			return err
		}
		live[records.RefOf(kind, object)] = observe(object)
	}
	return nil
}

func (v *Survey) getInto(ctx context.Context, live observations, kind kube.GroupVersionKind, refs []schema.ObjectRef) error {
	for _, ref := range refs {
		object, err := v.Cluster.Get(ctx, kind, ref.Namespace, ref.Name)
		switch {
		case report.CodeOf(err) == report.Forbidden:
			live[ref] = &observation{hidden: true}
		case err != nil:
			return err
		case object != nil:
			live[ref] = observe(object)
		}
	}
	return nil
}

// judge adds the state of one object. An object that is being created has no UID on the record yet.
func (v *Survey) judge(ctx context.Context, f *finding, known schema.DeployedObject, live *observation) {
	name := known.String()
	about := func(text string) schema.Reason { return schema.Reason{Object: known.ObjectRef, Text: name + text} }
	switch {
	case live != nil && live.hidden:
		f.objects, f.hidden = f.objects-1, append(f.hidden, name)
		return
	case live == nil && (known.Completed || known.Expires && known.UID != ""):
		f.ready, f.completed = f.ready+1, f.completed+1
		return
	case live == nil && known.UID == "":
		f.worsen(schema.HealthProgressing, about(" is not there yet"))
		return
	case live == nil:
		f.worsen(schema.HealthFailed, about(" is gone"))
		return
	case known.UID != "" && live.uid != known.UID:
		f.worsen(schema.HealthDrifted, about(" is not the deployed object: it was deleted and created again by another client"))
	}
	f.changed = f.changed || mayHaveChanged(known, live)
	status := live.status
	crashes := f.crashes[workload{known.Kind, known.Namespace, known.Name}]
	if status.Ready && len(crashes) == 0 {
		if live.object != nil && v.neglected(ctx, f, live.object) {
			f.worsen(schema.HealthProgressing, about(": its operator has not looked at it yet"))
			return
		}
		if live.object != nil {
			if dead := f.webhooks.Dead(ctx, live.object); len(dead) > 0 {
				f.silent = append(f.silent, about(" "+dead[0].Problem))
				return
			}
		}
		f.ready++
		return
	}
	if status.Ready {
		reason := about(": " + strings.Join(schema.Sentences(crashes[:min(len(crashes), maxExplained)]), "; "))
		reason.Log = crashes[0].Log
		f.worsen(schema.HealthProgressing, reason)
		return
	}
	word := schema.HealthProgressing
	if status.Failed {
		word = schema.HealthFailed
	}
	reasons := []schema.Reason{{Text: status.Message}}
	if f.explained++; f.explained <= maxExplained {
		if more := f.reasonsOf(ctx, live.object); len(more) > 0 {
			reasons = more
		}
	}
	for _, reason := range reasons {
		whole := about(": " + reason.Text)
		whole.Log = reason.Log
		f.worsen(word, whole)
	}
}

// neglected reports whether a custom resource has no status although its operator writes conditions: no operator has
// observed it. It returns false when the user lacks the permission to find out.
func (v *Survey) neglected(ctx context.Context, f *finding, live *unstructured.Unstructured) bool {
	kind := live.GroupVersionKind()
	status, _, _ := unstructured.NestedMap(live.Object, "status")
	if len(status) > 0 || !strings.Contains(kind.Group, ".") || strings.HasSuffix(kind.Group, ".k8s.io") {
		return false
	}
	if _, known := f.reporting[kind]; !known {
		f.reporting[kind] = false
		mapping, err := v.Cluster.Mapping(ctx, kind)
		if err != nil {
			return false
		}
		object, err := v.Cluster.Get(ctx, cluster.DefinitionKind, "", mapping.Resource.GroupResource().String())
		if err != nil || object == nil {
			return false
		}
		if def, err := definitions.Parse(object); err == nil {
			f.reporting[kind] = definitions.ReportsHealth(def, kind.Version)
		}
	}
	return f.reporting[kind]
}

// stateless are kinds that only users and tools change, not controllers: a new resource version means a change.
var stateless = []kube.GroupKind{
	{Kind: "ConfigMap"},
	{Kind: "Secret"},
	{Kind: "ServiceAccount"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
	{Group: "rbac.authorization.k8s.io", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
}

func isStateless(kind kube.GroupVersionKind) bool {
	return slices.Contains(stateless, kind.GroupKind())
}

// mayHaveChanged reports whether an object possibly differs from the applied one.
func mayHaveChanged(known schema.DeployedObject, live *observation) bool {
	switch {
	case known.ResourceVersion == "" || known.ResourceVersion == live.version:
		return false
	case isStateless(kube.FromAPIVersionAndKind(known.APIVersion, known.Kind)):
		return true
	default:
		return known.Generation != live.generation
	}
}

// explainChanges adds the changed fields of releases that possibly changed, or of all releases.
func (v *Survey) explainChanges(ctx context.Context, states []*record.State, findings map[record.Key]*finding, all bool) error {
	var suspects []*record.State
	for _, s := range states {
		if (all || findings[s.Key].changed) && s.Pending == nil && s.Current != nil {
			suspects = append(suspects, s)
		}
	}
	plans, unread, err := v.Drift(ctx, suspects)
	if report.CodeOf(err) == report.Forbidden {
		plans, unread, err = v.driftOneByOne(ctx, suspects, findings)
	}
	if err != nil {
		return fmt.Errorf("compare with what was deployed: %w", err)
	}
	for key, failure := range unread {
		findings[key].worsen(schema.HealthDrifted, schema.Reason{Text: "it cannot be compared with what was deployed: " + failure.Error()})
	}
	for _, p := range plans {
		f := findings[p.Release.Key]
		f.drift = []schema.Change{}
		for _, change := range p.Changes {
			if reasons := driftReasons(change); len(reasons) > 0 {
				f.worsen(schema.HealthDrifted, reasons...)
			}
			switch change.Action {
			case schema.ActionCreate, schema.ActionUpdate, schema.ActionAdopt:
				f.drift = append(f.drift, change)
			}
		}
	}
	return nil
}

// driftOneByOne compares releases apart from each other: one that the user is not allowed to compare keeps none of the others from it.
func (v *Survey) driftOneByOne(ctx context.Context, suspects []*record.State, findings map[record.Key]*finding) (plans []*engine.Plan, unread map[record.Key]error, err error) {
	unread = map[record.Key]error{}
	for _, s := range suspects {
		some, failed, err := v.Drift(ctx, []*record.State{s})
		switch {
		case report.CodeOf(err) == report.Forbidden:
			findings[s.Key].reasons = append(findings[s.Key].reasons, schema.Reason{Text: "it cannot be compared with what was deployed: " + err.Error()})
		case err != nil:
			return nil, nil, err
		}
		plans = append(plans, some...)
		maps.Copy(unread, failed)
	}
	return plans, unread, nil
}

// driftReasons lists the changed fields of an object, derived from the change that would restore it.
func driftReasons(c schema.Change) []schema.Reason {
	switch c.Action {
	case schema.ActionUpdate, schema.ActionAdopt:
	default:
		return nil // missing objects were reported before
	}
	var reasons []schema.Reason
	for _, field := range c.Fields {
		from, to := field.Excerpt()
		text := fmt.Sprintf("%s was changed: %s is %s, was %s", c.Object, field.Path, cmp.Or(from, "missing"), cmp.Or(to, "missing"))
		if field.Manager != "" && field.Since != nil {
			text += " (by " + field.Manager + " at " + field.Since.Format(time.RFC3339) + ")"
		}
		reasons = append(reasons, schema.Reason{Object: c.Object, Changed: true, Text: text})
	}
	if len(reasons) == 0 {
		reasons = append(reasons, schema.Reason{Object: c.Object, Changed: true, Text: c.Object.String() + " was changed"})
	}
	return reasons
}

// foreignReasons describe an operator that this program did not deploy.
func foreignReasons(operator *unstructured.Unstructured) []schema.Reason {
	maker := "another program"
	if slices.Contains([]string{operator.GetLabels()["heritage"], operator.GetLabels()["app.kubernetes.io/managed-by"]}, "salt") {
		maker = "MetalK8s"
	}
	reasons := []schema.Reason{{Text: "it was deployed by " + maker + ": add it with " + report.Accept("adopt").String() + " to look after it from here"}}
	if status := health.Of(operator); !status.Ready {
		reasons = append(reasons, schema.Reason{Text: strings.TrimSpace("its operator " + status.Message)})
	}
	return reasons
}
