package loader

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ProgressName is the ConfigMap in namespace [cluster.SystemNamespace] with the progress of the loader. Beside the
// document it has the keys phase, run and ready ("9/10"), for 'kubectl wait --for=jsonpath={.data.phase}=Ready'.
const (
	ProgressName = records.LoaderName
	progressKey  = "progress.json"
)

// readProgress returns the progress in the ConfigMap, nil when there is none, and the ConfigMap.
func readProgress(ctx context.Context, c *cluster.Cluster) (*schema.LoadProgress, *unstructured.Unstructured, error) {
	object, err := c.Get(ctx, cluster.ConfigMapKind, cluster.SystemNamespace, ProgressName)
	if err != nil || object == nil {
		return nil, nil, err
	}
	progress, err := parseProgress(object)
	return progress, object, err
}

func parseProgress(object *unstructured.Unstructured) (*schema.LoadProgress, error) {
	text, _, _ := unstructured.NestedString(object.Object, "data", progressKey)
	return schema.ParseStored[schema.LoadProgress]("loadprogress", "ConfigMap "+cluster.SystemNamespace+"/"+ProgressName, []byte(text))
}

// progressObject returns the ConfigMap with the progress of a run.
func progressObject(p *schema.LoadProgress) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(p) // compact: it may have hundreds of parts
	if err != nil {
		return nil, err
	}
	return newObject(cluster.ConfigMapKind, ProgressName, map[string]any{"data": map[string]any{
		"phase": string(p.Phase), "run": p.Run, "ready": strconv.Itoa(p.Ready) + "/" + strconv.Itoa(len(p.Parts)), progressKey: string(text),
	}}), nil
}

// writeProgress stores the progress of a run: over object, unless that is nil. The error is [cluster.ErrChanged], or
// [cluster.ErrExists], when another process has written in the meantime.
func writeProgress(ctx context.Context, c *cluster.Cluster, object *unstructured.Unstructured, p *schema.LoadProgress) (*unstructured.Unstructured, error) {
	wanted, err := progressObject(p)
	if err != nil {
		return nil, err
	}
	if object == nil {
		return c.Create(ctx, wanted, cluster.WriteOptions{})
	}
	object = object.DeepCopy()
	object.Object["data"] = wanted.Object["data"]
	return c.Update(ctx, object, cluster.WriteOptions{})
}

// rewrite changes the progress of a run that may still be active, unless change returns false.
func rewrite(ctx context.Context, c *cluster.Cluster, change func(*schema.LoadProgress) bool) error {
	const tries = 10 // a run writes twice a second
	for n := 1; ; n++ {
		progress, object, err := readProgress(ctx, c)
		if err != nil || progress == nil || !change(progress) {
			return err
		}
		if _, err = writeProgress(ctx, c, object, progress); !errors.Is(err, cluster.ErrChanged) || n == tries {
			return err
		}
	}
}

// Bounds of the progress: how many objects that a part waits for are named, how long, how long an error is, and how
// many notices there are.
const (
	maxWaiting = 3
	maxReason  = 160
	maxText    = 512
	maxNotices = 50
)

// publisher is a sink that keeps the ConfigMap up to date during a run.
type publisher struct {
	cluster *cluster.Cluster
	next    report.Sink
	now     func() time.Time

	mu       sync.Mutex
	progress *schema.LoadProgress
	object   *unstructured.Unstructured
	parts    map[string]int            // by the name that events give
	waiting  map[int]map[string]string // objects that are not ready yet, and why
	dirty    chan struct{}

	interrupted func() bool // by SIGTERM: parts fail from then on, and are left as they were
}

func newPublisher(ctx context.Context, c deployer.Config, progress *schema.LoadProgress, object *unstructured.Unstructured) *publisher {
	p := &publisher{
		cluster: c.Cluster, next: c.Sink, now: c.Now, progress: progress, object: object,
		parts: map[string]int{}, waiting: map[int]map[string]string{}, dirty: make(chan struct{}, 1),
		interrupted: func() bool { return ctx.Err() != nil },
	}
	for i := range progress.Parts {
		p.parts[partName(&progress.Parts[i])] = i
	}
	return p
}

// partName is how events call a part.
func partName(p *schema.LoadPart) string {
	name := p.Namespace + "/" + p.Solution
	if p.Component != "" {
		name += "." + p.Component
	}
	return name
}

// Emit passes an event on and updates the part that it is about.
func (p *publisher) Emit(e report.Event) {
	p.next.Emit(e)
	p.mu.Lock()
	i, known := p.parts[e.Part]
	if known = known && !p.interrupted(); known {
		p.note(&p.progress.Parts[i], i, e)
	}
	p.mu.Unlock()
	if known {
		p.touch()
	}
}

func (p *publisher) note(part *schema.LoadPart, i int, e report.Event) {
	if part.StartedAt.IsZero() && e.Step != "deploy" {
		part.StartedAt, part.State = p.second(), schema.PartApplying
	}
	switch {
	case e.Step == "wait" && e.State == report.Running && part.State != schema.PartReady:
		part.State = schema.PartWaiting
		if part.ReadyAt.IsZero() && e.OwnPartReady {
			part.ReadyAt = p.second()
		}
		if p.waiting[i] == nil {
			p.waiting[i] = map[string]string{}
		}
		p.waiting[i][e.Name] = e.Note
	case e.Step == "wait":
		delete(p.waiting[i], e.Name)
	case e.Step == "deploy" && (e.State == report.Done || e.OwnPartReady):
		part.State, part.ReadyAt, part.Error = schema.PartReady, p.second(), nil
		if part.StartedAt.IsZero() {
			part.StartedAt = part.ReadyAt
		}
		delete(p.waiting, i)
	case e.Step == "deploy" && e.State == report.Failed && part.StartedAt.IsZero():
		part.State = schema.PartBlocked
	case e.Step == "deploy" && e.State == report.Failed:
		part.State = schema.PartFailed
	}
	part.WaitingFor = waitingFor(p.waiting[i])
}

// waitingFor are a few lines, the same for the same objects.
func waitingFor(objects map[string]string) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		if len(lines) == maxWaiting {
			break
		}
		lines = append(lines, report.OneLine(name+": "+objects[name], maxReason))
	}
	return lines
}

func short(text string) string { return report.OneLine(text, maxText) }

// addNotices adds new notices, up to the limit.
func addNotices(p *schema.LoadProgress, texts ...string) {
	for _, text := range texts {
		if text = short(text); !slices.Contains(p.Notices, text) && len(p.Notices) < maxNotices {
			p.Notices = append(p.Notices, text)
		}
	}
}

func (p *publisher) second() time.Time { return p.now().UTC().Truncate(time.Second) }

func (p *publisher) touch() {
	select {
	case p.dirty <- struct{}{}:
	default:
	}
}

// change changes the progress, and publishes it soon.
func (p *publisher) change(f func(*schema.LoadProgress)) {
	p.mu.Lock()
	f(p.progress)
	p.mu.Unlock()
	p.touch()
}

// pause is the least time between two writes.
const pause = 500 * time.Millisecond

// checkInterval is the interval at which a run without progress checks that it is still the present one.
const checkInterval = 3 * time.Second

// follow publishes until ctx ends. It returns an error when the ConfigMap belongs to another run that is in progress,
// or when a user has stopped this one.
func (p *publisher) follow(ctx context.Context) error {
	ticker, idle := time.NewTicker(pause), time.NewTicker(checkInterval)
	defer ticker.Stop()
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-idle.C:
			if _, err := p.reread(ctx); errors.Is(err, errOver) {
				return err
			}
			continue
		case <-p.dirty:
		}
		if err := p.publish(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		ticker.Reset(pause)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// publish writes the present progress. If the API server does not answer, the run continues.
func (p *publisher) publish(ctx context.Context) error {
	err := p.write(ctx)
	if report.CodeOf(err) == report.Unavailable {
		p.touch()
		return nil
	}
	return err
}

// write writes the present progress over what is known to be there.
func (p *publisher) write(ctx context.Context) error {
	p.mu.Lock()
	p.progress.UpdatedAt = p.second()
	p.progress.Ready = readyParts(p.progress)
	progress := *p.progress
	progress.Parts = slices.Clone(p.progress.Parts)
	object := p.object
	p.mu.Unlock()
	written, err := writeProgress(ctx, p.cluster, object, &progress)
	if errors.Is(err, cluster.ErrChanged) {
		if object, err = p.reread(ctx); err == nil {
			written, err = writeProgress(ctx, p.cluster, object, &progress)
		}
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.object = written
	p.mu.Unlock()
	return nil
}

// errOver ends a run that another one has replaced, or that a user has stopped.
var errOver = errors.New("the run was replaced or stopped")

// reread gets the changed ConfigMap, unless it belongs to another run now, or this one was stopped.
func (p *publisher) reread(ctx context.Context) (*unstructured.Unstructured, error) {
	object, err := p.cluster.Get(ctx, cluster.ConfigMapKind, cluster.SystemNamespace, ProgressName)
	if err != nil || object == nil {
		return nil, err
	}
	if run, _, _ := unstructured.NestedString(object.Object, "data", "run"); run != p.progress.Run {
		return nil, report.Errorf(report.Conflict, "run %s of the loader has taken the place of %s: %w", run, p.progress.Run, errOver)
	}
	if now, err := parseProgress(object); err == nil && stopped(now) {
		return nil, report.Errorf(report.Interrupted, "run %s of the loader: %s: %w", now.Run, now.Error.Message, errOver).WithHint("%s", report.Run("deploy loader start"))
	}
	return object, nil
}
