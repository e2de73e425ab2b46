package loader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Run deploys the parameters and writes its progress into the ConfigMap: this is the work of the Job. The ConfigMap
// must be that of the run, as a [Launcher] has created it. After an interruption, another pod can call Run again.
func Run(ctx context.Context, c deployer.Config, p *schema.LoadParameters) error {
	if c.Sink == nil {
		c.Sink = report.Discard
	}
	progress, object, err := readProgress(ctx, c.Cluster)
	if err != nil {
		return err
	}
	if progress == nil || progress.Run != p.Run {
		return report.Errorf(report.Conflict, "ConfigMap %s/%s is not that of run %s", cluster.SystemNamespace, ProgressName, p.Run).
			WithHint("start the loader again: %s", report.Run("deploy loader start"))
	}
	resetParts(progress)
	pub := newPublisher(ctx, c, progress, object)
	c.Sink = pub
	c.Ended = podEnded(c.Cluster)
	r := &run{Deployer: deployer.New(c), parameters: p, publisher: pub}
	return r.all(ctx)
}

// podEnded reports whether a lock belongs to a killed pod that will never release it. It requires a container that the
// kubelet has seen end: a pod is also called failed when its node is lost, where its containers possibly still run.
func podEnded(c *cluster.Cluster) func(ctx context.Context, identity string) bool {
	return func(ctx context.Context, identity string) bool {
		name, ofLoader := strings.CutPrefix(identity, podUser+"@") // a host that is not a pod is not found
		if !ofLoader {
			return false
		}
		pod, err := c.Get(ctx, cluster.PodKind, cluster.SystemNamespace, name)
		if err != nil || pod == nil || pod.GetLabels()[LabelRun] == "" {
			return false
		}
		containers, _, err := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
		return err == nil && len(containers) > 0 && !slices.ContainsFunc(containers, func(status any) bool {
			of, _ := status.(map[string]any)
			_, ended, _ := unstructured.NestedMap(of, "state", "terminated")
			return !ended
		})
	}
}

// resetParts removes from parts that are not ready the findings of an earlier pod.
func resetParts(p *schema.LoadProgress) {
	for i := range p.Parts {
		if part := &p.Parts[i]; part.State != schema.PartReady {
			part.State, part.StartedAt, part.WaitingFor, part.Error = schema.PartPending, time.Time{}, nil, nil
		}
	}
}

// run is one run of the loader.
type run struct {
	*deployer.Deployer
	parameters *schema.LoadParameters
	publisher  *publisher
}

func (r *run) all(ctx context.Context) error {
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	publishing, enough := context.WithCancel(ctx)
	var publisher sync.WaitGroup
	publisher.Go(func() {
		if err := r.publisher.follow(publishing); err != nil {
			stop(err)
		}
	})
	r.publisher.change(func(p *schema.LoadProgress) { p.Phase, p.Error = schema.LoadRunning, nil })
	r.record(ctx, "LoadStarted", "Normal", "run "+r.parameters.Run+" has started")
	err := r.work(work)
	enough()
	publisher.Wait()
	if cause := context.Cause(work); ctx.Err() == nil && cause != nil {
		return cause // another run has replaced this one
	}
	return r.end(ctx, err)
}

// work is the task of the run.
func (r *run) work(ctx context.Context) error {
	deadline := r.Now().Add(time.Duration(r.parameters.Timeout) * time.Second)
	var failures []error
	for _, environment := range r.parameters.Environments { // a failure in one does not affect the others
		o := plan.Options{KeepEdits: true, Timeout: max(deadline.Sub(r.Now()), time.Second)}
		if err := r.ensure(ctx, environment, o); err != nil {
			failures = append(failures, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failures...)
}

func (r *run) ensure(ctx context.Context, environment schema.EnvironmentContents, o plan.Options) error {
	list, err := r.Wanted(ctx, environment)
	if err != nil {
		return err
	}
	done, err := r.Ensure(ctx, deployer.EnsureOptions{Options: o, Environment: environment.Name, Solutions: list})
	if done != nil {
		r.notice(done.Notices...)
	}
	return configurable(err)
}

func (r *run) notice(texts ...string) {
	r.publisher.change(func(p *schema.LoadProgress) { addNotices(p, texts...) })
}

// timeToEnd bounds the last write of a run after SIGTERM.
const timeToEnd = 5 * time.Second

// end writes the result of the run and returns its error. A failure of optional parts only is not an error.
func (r *run) end(ctx context.Context, failure error) error {
	if ctx.Err() != nil {
		if failure == nil { // the work was done, but its result is not known
			failure = report.Errorf(report.Interrupted, "run %s of the loader was interrupted at its end: %w", r.parameters.Run, ctx.Err())
		}
		return errors.Join(failure, r.interrupted(ctx))
	}
	seen, err := look(ctx, r.Deployer, r.parameters.Environments)
	if err != nil && failure == nil {
		failure = err
	}
	r.publisher.change(func(p *schema.LoadProgress) { failure = conclude(p, seen, failure) })
	for _, text := range failures(r.publisher.progress) {
		r.record(ctx, "LoadFailed", "Warning", text)
	}
	r.record(ctx, "LoadEnded", "Normal", fmt.Sprintf("run %s has ended: %s, %d of %d parts are ready",
		r.parameters.Run, r.publisher.progress.Phase, readyParts(r.publisher.progress), len(r.publisher.progress.Parts)))
	// If it cannot be written, another pod has to do so.
	if err := r.publisher.write(ctx); err != nil && failure == nil {
		return err
	}
	return failure
}

// interrupted writes that the run is not over: another pod, or the next start, ends it. Nothing has failed.
func (r *run) interrupted(ctx context.Context) error {
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeToEnd)
	defer cancel()
	r.publisher.change(func(p *schema.LoadProgress) { p.Phase, p.Error = schema.LoadInterrupted, nil })
	return r.publisher.write(brief)
}

// partSeen is how a part was found.
type partSeen struct {
	version string
	ready   bool
	reasons []string
}

// look finds how the parts of environments are.
func look(ctx context.Context, d *deployer.Deployer, environments []schema.EnvironmentContents) (map[string]partSeen, error) {
	seen := map[string]partSeen{}
	for _, e := range environments {
		status, err := d.Survey.EnvironmentStatus(ctx, survey.EnvironmentOptions{Environment: e.Name})
		if err != nil {
			return nil, err
		}
		see(seen, status)
	}
	return seen, nil
}

func see(seen map[string]partSeen, e *schema.EnvironmentStatus) {
	for _, n := range e.Namespaces {
		for _, s := range n.Deployments {
			seeParts(seen, n.Name, s)
		}
	}
}

// seeParts adds the state of a deployment and of its components. Its own objects have no component.
func seeParts(seen map[string]partSeen, namespace string, s schema.DeploymentStatus) {
	own := partSeen{version: s.Version, reasons: schema.Sentences(s.Reasons)}
	objects, ready := s.Objects-s.Completed, s.Ready
	for _, c := range s.Components {
		is := partSeen{version: c.Version, ready: c.Health == schema.HealthReady || c.Health == schema.HealthDrifted && c.Ready == c.Objects, reasons: schema.Sentences(c.Reasons)}
		seen[record.Key{Namespace: namespace, Name: s.Solution, Component: c.Name}.String()] = is
		objects, ready = objects-c.Objects, ready-c.Ready
	}
	own.ready = (s.Version != "" || s.Pending != nil) && ready >= objects // all may exist, while optional parts do not
	seen[record.Key{Namespace: namespace, Name: s.Solution}.String()] = own
}

// conclude adds the results of the parts and of the run to the progress, and returns the error of the run.
func conclude(p *schema.LoadProgress, seen map[string]partSeen, failure error) error {
	required := 0
	for i := range p.Parts {
		part := &p.Parts[i]
		is, found := seen[partName(part)]
		switch {
		case found && is.ready && (failure == nil || part.State != schema.PartFailed && part.State != schema.PartBlocked):
			part.State, part.WaitingFor, part.Error = schema.PartReady, nil, nil
			continue
		case part.State == schema.PartBlocked:
		case part.Optional:
			part.State = schema.PartDegraded
		case part.State != schema.PartPending || failure != nil:
			part.State = schema.PartFailed
		}
		part.Error = &schema.LoadError{Code: codeOr(failure, report.Timeout), Message: short(strings.Join(is.reasons, "; "))}
		if part.Error.Message == "" {
			part.Error.Message = "it is not ready"
		}
		if !part.Optional {
			required++
		} else {
			addNotices(p, partName(part)+", which is optional, failed: "+part.Error.Message)
		}
	}
	p.Phase, p.Error = schema.LoadReady, nil
	if required == 0 && (failure == nil || hasOptionalFailure(p)) {
		return nil
	}
	if failure == nil {
		failure = report.Errorf(report.Timeout, "%d of %d parts are not ready", required, len(p.Parts)).WithHint("'%s' shows why", report.Run("deploy loader status"))
	}
	p.Phase, p.Error = schema.LoadFailed, &schema.LoadError{Code: report.CodeOf(failure), Message: short(failure.Error()), Hint: short(strings.Join(report.Hints(failure), "; "))}
	return failure
}

func hasOptionalFailure(p *schema.LoadProgress) bool {
	return slices.ContainsFunc(p.Parts, func(part schema.LoadPart) bool { return part.Optional && part.State == schema.PartDegraded })
}

func codeOr(err error, otherwise report.Code) report.Code {
	if err == nil {
		return otherwise
	}
	return report.CodeOf(err)
}

// failures are a few lines about parts that failed.
func failures(p *schema.LoadProgress) []string {
	const most = 15 // events of one run
	var lines []string
	for i := range p.Parts {
		part := &p.Parts[i]
		if (part.State == schema.PartFailed || part.State == schema.PartDegraded) && part.Error != nil && len(lines) < most {
			lines = append(lines, partName(part)+": "+part.Error.Message)
		}
	}
	return lines
}

func readyParts(p *schema.LoadProgress) int {
	n := 0
	for i := range p.Parts {
		if p.Parts[i].State == schema.PartReady {
			n++
		}
	}
	return n
}

// record creates an Event about the ConfigMap. Without permission for it, the work continues.
func (r *run) record(ctx context.Context, reason, kind, message string) {
	now := r.Now().UTC().Format(time.RFC3339)
	name := fmt.Sprintf("%s.%x", ProgressName, r.Now().UnixNano()) // as kubelets name theirs
	event := newObject(cluster.EventKind, name, map[string]any{
		"type": kind, "reason": reason, "message": report.Clean(message), "firstTimestamp": now, "lastTimestamp": now, "count": int64(1),
		"source":         map[string]any{"component": "solutionctl-loader"},
		"involvedObject": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": cluster.SystemNamespace, "name": ProgressName},
	})
	_, _ = r.Cluster.Create(ctx, event, cluster.WriteOptions{Whole: true})
}
