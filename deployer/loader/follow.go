package loader

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Status returns the progress of the last run. For a successful run it has the present state of each part, which is
// possibly not ready any more, as after a boot; the phase is that of the run. The error has the code NotFound where the
// loader never ran.
func (l *Launcher) Status(ctx context.Context) (*schema.LoadProgress, error) {
	progress, _, err := readProgress(ctx, l.Deployer.Cluster)
	if err == nil && progress == nil {
		err = NeverRan()
	}
	if err != nil {
		return progress, err
	}
	if !progress.Phase.Ended() {
		return progress, l.explain(ctx, progress)
	}
	if progress.Phase != schema.LoadReady {
		return progress, nil
	}
	seen, err := look(ctx, l.Deployer, environmentsOf(progress))
	if err != nil {
		return nil, err
	}
	markUnready(progress, seen)
	return progress, nil
}

// Read returns the last run as it was recorded, and for a successful run not the present state, which [Compare] adds.
// It is nil where the loader never ran.
func Read(ctx context.Context, c *cluster.Cluster) (*schema.LoadProgress, error) {
	progress, _, err := readProgress(ctx, c)
	return progress, err
}

// Compare adds the present state to a run, as [Launcher.Status] does, for a caller that has read all environments
// already.
func Compare(progress *schema.LoadProgress, environments []schema.EnvironmentStatus) {
	if progress.Phase != schema.LoadReady {
		return
	}
	seen := map[string]partSeen{}
	for i := range environments {
		see(seen, &environments[i])
	}
	markUnready(progress, seen)
}

// markUnready marks each part that is not ready any more, with the reason.
func markUnready(progress *schema.LoadProgress, seen map[string]partSeen) {
	for i := range progress.Parts {
		part := &progress.Parts[i]
		if is := seen[partName(part)]; !is.ready {
			part.State, part.WaitingFor = schema.PartWaiting, nil
			for _, reason := range is.reasons[:min(len(is.reasons), maxWaiting)] {
				part.WaitingFor = append(part.WaitingFor, short(reason))
			}
		}
	}
	progress.Ready = readyParts(progress)
}

// NeverRan is the error for a cluster that the loader has never touched.
func NeverRan() error {
	return report.Errorf(report.NotFound, "the loader has never run on this cluster").WithHint("%s", report.Run("deploy loader start"))
}

// explain adds to a run in progress why its pod is not working, and whether any process works on it.
func (l *Launcher) explain(ctx context.Context, p *schema.LoadProgress) error {
	job, err := l.Deployer.Cluster.Get(ctx, jobKind, cluster.SystemNamespace, jobName(p.Run))
	if err != nil {
		return err
	}
	if job != nil {
		if p.Phase == schema.LoadPending {
			for _, reason := range l.obstacles(ctx, job) {
				p.Notices = append(p.Notices, short(reason))
			}
		}
		return nil
	}
	atWork, err := launcherAtWork(ctx, l.Deployer.Cluster, l.Deployer.Now())
	if err == nil && !atWork {
		p.Notices = append(p.Notices, fmt.Sprintf("no process works on this run any more: its Job is gone; to finish it: %s", report.Run("deploy loader start")))
	}
	return err
}

// obstacles are why the pod of a Job does not start.
func (l *Launcher) obstacles(ctx context.Context, job *unstructured.Unstructured) []string {
	if isSuspended(job) {
		return []string{fmt.Sprintf(`the Job is suspended; to continue it: kubectl patch job --namespace %s %s --patch '{"spec":{"suspend":false}}'`, job.GetNamespace(), job.GetName())}
	}
	return health.Explain(ctx, l.Deployer.Cluster, job)
}

// isSuspended reports whether a Job or a CronJob is suspended.
func isSuspended(object *unstructured.Unstructured) bool {
	suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend")
	return suspended
}

// environmentsOf returns the environments of the parts of a run.
func environmentsOf(p *schema.LoadProgress) []schema.EnvironmentContents {
	var list []schema.EnvironmentContents
	for i := range p.Parts {
		name := p.Parts[i].Environment
		if !slices.ContainsFunc(list, func(e schema.EnvironmentContents) bool { return e.Name == name }) {
			list = append(list, schema.EnvironmentContents{Name: name})
		}
	}
	return list
}

// compareKept marks unchanged parts as ready: a run reports only parts that it changes.
func (l *Launcher) compareKept(ctx context.Context, progress *schema.LoadProgress) error {
	seen, err := look(ctx, l.Deployer, environmentsOf(progress))
	if err != nil {
		return err
	}
	for i := range progress.Parts {
		if part := &progress.Parts[i]; part.Kept && seen[partName(part)].ready {
			part.State = schema.PartReady
		}
	}
	progress.Ready = readyParts(progress)
	return nil
}

// Wait waits until a run is complete and its parts are ready, or only optional parts remain, and returns its state. An
// interrupted run is not complete, since another pod or the next start finishes it, unless a user has stopped it. The
// error is that of the run; it has the code Timeout when the time is up before, or when the loader never ran.
func (l *Launcher) Wait(ctx context.Context, timeout time.Duration) (*schema.LoadProgress, error) {
	brief, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var progress *schema.LoadProgress
	for {
		now, err := l.Status(brief)
		if err == nil && now.Phase == schema.LoadRunning {
			err = l.compareKept(brief, now)
		}
		switch {
		case err == nil && (now.IsReady() || now.Suffices()):
			return now, nil
		case err == nil && (now.Phase == schema.LoadFailed || stopped(now)):
			return now, failureOf(now)
		case err == nil:
			progress = now
		case brief.Err() == nil && report.CodeOf(err) != report.NotFound && report.CodeOf(err) != report.Unavailable:
			return nil, err
		}
		if cluster.Sleep(brief, pollPods) != nil {
			if ctx.Err() != nil {
				return progress, ctx.Err()
			}
			return progress, report.Errorf(report.Timeout, "not everything is ready after %s", timeout).WithHint("'%s' shows why", report.Run("deploy loader status"))
		}
	}
}

// failureOf is the error with which a run ended.
func failureOf(p *schema.LoadProgress) error {
	if p == nil || !p.Phase.Ended() || p.Phase == schema.LoadReady {
		return nil
	}
	if p.Error == nil {
		return report.Errorf(report.Interrupted, "run %s of the loader was interrupted", p.Run).WithHint("%s", report.Run("deploy loader start"))
	}
	err := report.Errorf(p.Error.Code, "run %s of the loader: %s", p.Run, p.Error.Message)
	if p.Error.Hint != "" {
		err = err.WithHint("%s", p.Error.Hint)
	}
	return err
}

// follow follows a run to its end, and cleans up behind it.
func (l *Launcher) follow(ctx context.Context, run string) (*schema.LoadProgress, error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	f := &follower{Launcher: l, run: run, news: make(chan struct{}, 1), shown: map[string]schema.LoadState{}}
	var watches sync.WaitGroup
	defer watches.Wait()
	defer stop()
	watches.Go(func() { f.watchProgress(watching) })
	watches.Go(func() { f.watchJob(watching) })
	ticker := time.NewTicker(pollPods)
	defer ticker.Stop()
	for {
		progress, ended, err := f.now()
		switch {
		case err != nil:
			return progress, err
		case ended:
			stop()
			watches.Wait()
			return f.end(ctx, progress)
		}
		select {
		case <-ctx.Done():
			return progress, report.Errorf(report.Interrupted, "stopped waiting for run %s of the loader, which continues: %w", run, ctx.Err()).
				WithHint("%s", report.Run("deploy loader status").With("wait", ""))
		case <-f.news:
		case <-ticker.C:
			f.explain(ctx)
		}
	}
}

// pollPods is the interval of checks why the pod of a run has not started.
const pollPods = 2 * time.Second

// follower follows a run by its ConfigMap and its Job.
type follower struct {
	*Launcher
	run  string
	news chan struct{}

	mu       sync.Mutex
	progress *schema.LoadProgress
	job      *unstructured.Unstructured
	gone     bool
	err      error // the first one: the watch that had it has ended
	shown    map[string]schema.LoadState
	why      []string // the pod has not started
}

func (f *follower) learn(change func()) {
	f.mu.Lock()
	change()
	f.mu.Unlock()
	select {
	case f.news <- struct{}{}:
	default:
	}
}

func (f *follower) watchProgress(ctx context.Context) {
	one := metav1.ListOptions{FieldSelector: "metadata.name=" + ProgressName}
	for change, err := range f.Deployer.Cluster.Watch(ctx, cluster.ConfigMapKind, cluster.SystemNamespace, one) {
		var progress *schema.LoadProgress
		if err == nil && change.Type != watch.Deleted {
			progress, err = parseProgress(change.Object)
		}
		f.learn(func() {
			if f.err = cmp.Or(f.err, err); progress != nil {
				f.progress = progress
				f.show(progress)
			}
		})
	}
}

func (f *follower) watchJob(ctx context.Context) {
	one := metav1.ListOptions{FieldSelector: "metadata.name=" + jobName(f.run)}
	job, err := f.Deployer.Cluster.Get(ctx, jobKind, cluster.SystemNamespace, jobName(f.run))
	f.learn(func() { f.job, f.gone, f.err = job, job == nil && err == nil, cmp.Or(f.err, err) })
	if job == nil {
		return
	}
	one.ResourceVersion = job.GetResourceVersion()
	for change, err := range f.Deployer.Cluster.Watch(ctx, jobKind, cluster.SystemNamespace, one, job) {
		f.learn(func() {
			if f.err = cmp.Or(f.err, err); err == nil {
				f.job, f.gone = change.Object, change.Type == watch.Deleted
			}
		})
	}
}

// show passes on changes of the parts. The caller holds the lock.
func (f *follower) show(p *schema.LoadProgress) {
	if p.Run != f.run {
		return
	}
	for i := range p.Parts {
		part := &p.Parts[i]
		name := partName(part)
		if f.shown[name] == part.State || part.State == schema.PartPending {
			continue
		}
		f.shown[name] = part.State
		event := report.Event{Step: "load", Name: name, State: report.Running, Note: strings.ToLower(string(part.State))}
		switch part.State {
		case schema.PartReady:
			event.State, event.Note = report.Done, ""
		case schema.PartFailed, schema.PartBlocked, schema.PartDegraded:
			event.State = report.Failed
		}
		f.Deployer.Sink.Emit(event)
	}
}

// now returns the present progress of the run, and whether its Job has ended.
func (f *follower) now() (progress *schema.LoadProgress, ended bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.err != nil:
		return f.progress, false, f.err
	case f.progress != nil && f.progress.Run != f.run:
		return f.progress, false, report.Errorf(report.Conflict, "run %s of the loader has taken the place of %s", f.progress.Run, f.run)
	case f.progress == nil:
		return nil, f.gone, nil
	}
	return f.progress, f.gone || f.job != nil && health.JobEnded(f.job) != "", nil
}

// end reads how a run ended, and takes its account away. Of a run that ended without a word the pod knows why.
func (f *follower) end(ctx context.Context, progress *schema.LoadProgress) (*schema.LoadProgress, error) {
	last, object, err := readProgress(ctx, f.Deployer.Cluster)
	if err != nil {
		return progress, err
	}
	if last == nil || last.Run != f.run {
		return progress, report.Errorf(report.Conflict, "run %s of the loader is no longer the last one", f.run)
	}
	if !last.Phase.Ended() {
		last.Error = f.lastWords(ctx, last.Phase)
		last.Phase, last.UpdatedAt = schema.LoadFailed, f.Deployer.Now().UTC().Truncate(time.Second)
		if _, err = writeProgress(ctx, f.Deployer.Cluster, object, last); err != nil {
			return last, err
		}
	}
	if f.job != nil {
		if err = f.dropOf(ctx, f.job); err != nil {
			return last, err
		}
	}
	return last, cmp.Or(failureOf(last), f.scheduleRepairs(ctx))
}

// scheduleRepairs creates the CronJob of repairs, unless a user has stopped the loader in the meantime or schedules
// repairs in another way.
func (f *follower) scheduleRepairs(ctx context.Context) error {
	err := f.Deployer.Locked(ctx, func(ctx context.Context) error {
		last, _, err := readProgress(ctx, f.Deployer.Cluster)
		if err == nil && last != nil && stopped(last) {
			cluster.DiscardLocks(ctx)
			return nil
		}
		if err != nil || last == nil || last.Run != f.run {
			return err
		}
		parameters, err := f.resolve(ctx, f.spec())
		if err != nil {
			return err
		}
		return f.keepRepairs(ctx, parameters)
	}, lockName)
	if report.CodeOf(err) == report.Locked {
		return nil
	}
	return err
}

// lastWords is why a run ended without saying so itself, in the phase that it was in.
func (f *follower) lastWords(ctx context.Context, phase schema.LoadPhase) *schema.LoadError {
	if f.gone {
		return &schema.LoadError{
			Code: report.Failure, Message: "the Job of the loader was deleted", Hint: report.Run("deploy loader start").String(),
		}
	}
	last := &schema.LoadError{Code: report.Failure, Message: "the loader crashed", Hint: report.Run("deploy loader logs").String()}
	if health.JobTimedOut(f.job) {
		last.Code, last.Message = report.Timeout, "the loader did not end in time"
	}
	if phase == schema.LoadPending && len(f.why) > 0 { // there are no logs
		last.Message, last.Hint = short(last.Message+": "+strings.Join(f.why, "; ")), report.Run("deploy doctor").String()
		return last
	}
	pods, err := f.pods(ctx)
	if err == nil && len(pods) > 0 {
		if message := terminationMessage(pods[len(pods)-1]); message != "" {
			last.Message = short(last.Message + ": " + message)
		}
	}
	return last
}

// pods returns the pods of the run, the newest last.
func (f *follower) pods(ctx context.Context) ([]*unstructured.Unstructured, error) {
	pods, err := cluster.Collect(f.Deployer.Cluster.List(ctx, cluster.PodKind, cluster.SystemNamespace, metav1.ListOptions{LabelSelector: LabelRun + "=" + f.run}))
	slices.SortFunc(pods, byCreation)
	return pods, err
}

func terminationMessage(pod *unstructured.Unstructured) string {
	statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
	for _, item := range statuses {
		status, _ := item.(map[string]any)
		message, _, _ := unstructured.NestedString(status, "state", "terminated", "message")
		reason, _, _ := unstructured.NestedString(status, "state", "terminated", "reason")
		if message != "" || reason != "" {
			return strings.TrimSpace(reason + " " + lastLine(message))
		}
	}
	return ""
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// explain reports why the pod has not started to work, as long as it has not.
func (f *follower) explain(ctx context.Context) {
	f.mu.Lock()
	job, waits := f.job, f.progress != nil && f.progress.Phase == schema.LoadPending
	f.mu.Unlock()
	if job == nil {
		return
	}
	event := report.Event{Step: "start", Name: fmt.Sprintf("Job %s/%s", cluster.SystemNamespace, job.GetName()), State: report.Done}
	if !waits {
		if f.why != nil {
			f.why = nil
			f.Deployer.Sink.Emit(event)
		}
		return
	}
	why := f.obstacles(ctx, job)
	if len(why) == 0 || slices.Equal(why, f.why) {
		return
	}
	f.why = why
	event.State, event.Note = report.Started, why[0] // a log gets it at once, unlike the state of a step that continues
	f.Deployer.Sink.Emit(event)
}
