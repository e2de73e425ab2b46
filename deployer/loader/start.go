package loader

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// StartOptions say how to start.
type StartOptions struct {
	Local  bool // do it in this process and start no Job: before there is a network of pods, or an image
	Prune  bool // remove loaded Solutions that left the configuration
	NoWait bool // return when the Job runs
}

// lockName is that of the lock under which runs begin.
const lockName = "loader"

// Start deploys the configuration and returns the result. Without any changes, it starts no Job and writes nothing. A
// run of the same configuration that is in progress is followed; one of another configuration is a conflict. The error
// is that of the run, as if it had happened here.
func (l *Launcher) Start(ctx context.Context, o StartOptions) (*schema.LoadProgress, error) {
	var begun begun
	err := l.Deployer.Locked(ctx, func(ctx context.Context) (err error) {
		begun, err = l.begin(ctx, o)
		return err
	}, lockName)
	if err != nil {
		return nil, err
	}
	if begun.progress != nil && begun.progress.Phase.Ended() || o.NoWait {
		return begun.progress, failureOf(begun.progress)
	}
	return l.follow(ctx, begun.run)
}

// begun is a run that is under way, or has ended.
type begun struct {
	run      string
	progress *schema.LoadProgress
}

// begin starts a run, under the lock. Where none is needed, or it was done here, it has ended.
func (l *Launcher) begin(ctx context.Context, o StartOptions) (begun, error) {
	under, err := l.underWay(ctx)
	if err != nil || under.run != "" {
		return under, err
	}
	p, err := l.prepareSettled(ctx, preparation{local: o.Local})
	if err != nil {
		return begun{}, err
	}
	if o.Prune {
		if _, err = l.prune(ctx, p.progress, p.parameters, false); err != nil {
			return begun{}, err
		}
		p.Unlisted = nil
	}
	// No Job needs the account of runs now, but a launcher that was killed may have left it.
	if p.Run == "" {
		var done begun
		if done, err = l.settled(ctx, p); err == nil {
			err = l.keepRepairs(ctx, p.parameters, accountName)
		}
		return done, err
	}
	if o.Local {
		if err = l.drop(ctx, accountName); err != nil {
			return begun{}, err
		}
	}
	progress := l.newProgress(p)
	if err = l.announce(ctx, progress); err != nil {
		return begun{}, err
	}
	if o.Local {
		config := l.Deployer.Config
		failure := Run(ctx, config, p.parameters) // how it ended is in the ConfigMap, if that could be written
		if progress, _, err = readProgress(ctx, l.Deployer.Cluster); err == nil && progress != nil && !progress.Phase.Ended() {
			return begun{}, failure
		}
		if err == nil && progress != nil && !stopped(progress) {
			err = l.keepRepairs(ctx, p.parameters)
		}
		if report.CodeOf(err) == report.NotImported { // the next start has an image, or reports that there is none
			err = nil
		}
		return begun{p.Run, progress}, err
	}
	return begun{p.Run, progress}, l.launch(ctx, p)
}

// underWay finds a run in progress: one of this configuration continues. One whose Job was still suspended is started
// again.
func (l *Launcher) underWay(ctx context.Context) (begun, error) {
	jobs, err := l.jobs(ctx)
	if err != nil {
		return begun{}, err
	}
	for _, job := range jobs {
		if health.JobEnded(job) != "" {
			continue
		}
		run := job.GetLabels()[LabelRun]
		if isSuspended(job) {
			if err = l.remove(ctx, job); err != nil {
				return begun{}, err
			}
			continue
		}
		progress, _, err := readProgress(ctx, l.Deployer.Cluster)
		if err != nil {
			return begun{}, err
		}
		parameters, err := l.resolve(ctx, l.spec())
		if err != nil {
			return begun{}, err
		}
		if progress == nil || progress.Run != run || progress.Digest != digestOf(parameters) {
			return begun{}, report.Errorf(report.Conflict, "run %s of the loader, with another configuration, has not ended", run).
				WithHint("wait for it: %s; or end it: %s", report.Run("deploy loader status").With("wait", ""), report.Run("deploy loader stop"))
		}
		return begun{run: run}, nil
	}
	return begun{}, nil
}

// jobs returns the Jobs of the loader.
func (l *Launcher) jobs(ctx context.Context) ([]*unstructured.Unstructured, error) {
	return cluster.Collect(l.Deployer.Cluster.List(ctx, jobKind, cluster.SystemNamespace, metav1.ListOptions{LabelSelector: LabelRun}))
}

// remove deletes a Job with its pods, and waits until it is gone.
func (l *Launcher) remove(ctx context.Context, job *unstructured.Unstructured) error {
	same := job.DeepCopy()
	same.SetResourceVersion("") // in any state
	if err := l.Deployer.Cluster.Delete(ctx, same, cluster.DeleteOptions{Propagation: metav1.DeletePropagationForeground}); err != nil {
		return err
	}
	one := metav1.ListOptions{FieldSelector: "metadata.name=" + job.GetName(), ResourceVersion: job.GetResourceVersion()}
	for change, err := range l.Deployer.Cluster.Watch(ctx, jobKind, cluster.SystemNamespace, one, job) {
		if err != nil {
			return err
		}
		if change.Type == "DELETED" || change.Object.GetUID() != job.GetUID() {
			return nil
		}
	}
	return ctx.Err()
}

// newProgress is that of a run at its beginning.
func (l *Launcher) newProgress(p *prepared) *schema.LoadProgress {
	now := l.Deployer.Now().UTC().Truncate(time.Second)
	progress := &schema.LoadProgress{
		Stamp: schema.NewStamp("loadprogress", l.Deployer.Version), Run: p.Run, Phase: schema.LoadPending, Digest: p.digest, StartedAt: now, UpdatedAt: now,
		Parts: append([]schema.LoadPart{}, p.parts...), Notices: []string{}, Loaded: []schema.LoadedContent{},
	}
	addNotices(progress, p.Notices...)
	addNotices(progress, unlistedTexts(p.Unlisted)...)
	if p.progress != nil {
		progress.Loaded = append(progress.Loaded, p.progress.Loaded...)
	}
	for _, c := range contents(p.parameters) {
		if !slices.Contains(progress.Loaded, c) {
			progress.Loaded = append(progress.Loaded, c)
		}
	}
	return progress
}

// announce writes how the loader is over whatever was known before.
func (l *Launcher) announce(ctx context.Context, progress *schema.LoadProgress) error {
	object, err := l.Deployer.Cluster.Get(ctx, cluster.ConfigMapKind, cluster.SystemNamespace, ProgressName)
	if err == nil {
		_, err = writeProgress(ctx, l.Deployer.Cluster, object, progress)
	}
	return err
}

// settled completes a start without changes, once all objects are ready, which can take time after a boot.
func (l *Launcher) settled(ctx context.Context, p *prepared) (begun, error) {
	progress := l.newProgress(p)
	progress.Run = runName(p.digest, "", p.plans)
	deadline := l.Deployer.Now().Add(time.Duration(p.parameters.Timeout) * time.Second)
	for {
		seen, err := look(ctx, l.Deployer, p.parameters.Environments)
		if err != nil {
			return begun{}, err
		}
		unready := slices.ContainsFunc(progress.Parts, func(part schema.LoadPart) bool { return !seen[partName(&part)].ready && !part.Optional })
		if !unready || l.Deployer.Now().After(deadline) {
			for i := range progress.Parts {
				progress.Parts[i].State = schema.PartWaiting
			}
			_ = conclude(progress, seen, nil)
			break
		}
		if err = cluster.Sleep(ctx, time.Second); err != nil {
			return begun{}, err
		}
	}
	progress.Ready = readyParts(progress)
	if known := p.progress; known != nil && known.Digest == progress.Digest && known.Phase == schema.LoadReady && progress.Phase == schema.LoadReady && slices.Equal(known.Loaded, progress.Loaded) {
		known.Notices = progress.Notices
		return begun{known.Run, known}, nil
	}
	return begun{progress.Run, progress}, l.announce(ctx, progress)
}

// launch starts the Job of a run: suspended at first, so that everything it needs belongs to it and goes with it.
func (l *Launcher) launch(ctx context.Context, p *prepared) error {
	c := l.Deployer.Cluster
	visible, hidden, err := parametersOf(p.parameters)
	if err != nil {
		return err
	}
	wanted, err := newJob(l.spec(), p.Image, p.Run, hidden != nil)
	if err != nil {
		return err
	}
	job, err := l.replace(ctx, wanted, l.remove) // an earlier run possibly did the same, and it was undone
	if err != nil {
		return err
	}
	if err = l.keep(ctx, accountName, labelled(account(accountName, p.rights), LabelJob, string(job.GetUID()))); err != nil {
		return err
	}
	drop := func(ctx context.Context, old *unstructured.Unstructured) error {
		return c.Delete(ctx, old, cluster.DeleteOptions{})
	}
	for _, object := range []*unstructured.Unstructured{visible, hidden} {
		if object == nil {
			continue
		}
		if _, err = l.replace(ctx, ofRun(object, p.Run, job), drop); err != nil {
			return err
		}
	}
	_, err = c.Patch(ctx, job, types.MergePatchType, []byte(`{"spec":{"suspend":false}}`), cluster.WriteOptions{})
	return err
}

// replace creates an object. One that an earlier run has left under the same name is removed first.
func (l *Launcher) replace(ctx context.Context, object *unstructured.Unstructured, remove func(context.Context, *unstructured.Unstructured) error) (*unstructured.Unstructured, error) {
	c := l.Deployer.Cluster
	created, err := c.Create(ctx, object, cluster.WriteOptions{})
	if !errors.Is(err, cluster.ErrExists) {
		return created, err
	}
	old, err := c.Get(ctx, object.GroupVersionKind(), object.GetNamespace(), object.GetName())
	if err == nil && old != nil {
		err = remove(ctx, old)
	}
	if err != nil {
		return nil, err
	}
	return c.Create(ctx, object, cluster.WriteOptions{})
}
