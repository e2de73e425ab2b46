package preload

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Options select the images and the nodes.
type Options struct {
	records.NeedOptions
	Release bool          // keep no image
	Nodes   []string      // names; none are all nodes
	Socket  string        // of the container runtime on the nodes; "" is that of their distribution
	Timeout time.Duration // for each node
	DryRun  bool

	needed  []string
	program string // the image of Jobs
}

// images returns the images that nodes keep after the run.
func (o *Options) images() []string {
	if o.Release {
		return nil
	}
	return o.needed
}

// Need returns what a run begins with: the needed images, and notices about them.
func (o *Options) Need(ctx context.Context, d *deployer.Deployer) (*schema.Preload, error) {
	result := &schema.Preload{Images: []string{}, Nodes: []schema.NodePreload{}, Notices: []string{}, DryRun: o.DryRun}
	if o.Release {
		return result, nil
	}
	needed, notices, err := d.Records.Needed(ctx, o.NeedOptions)
	if err != nil {
		return nil, err
	}
	o.needed = needed
	result.Images, result.Notices = append(result.Images, needed...), append(result.Notices, notices...)
	const most = 512 << 10
	if size := len(strings.Join(needed, " ")); size > most {
		return nil, report.Errorf(report.Refused, "the names of %d images are larger than %d KiB", len(needed), most>>10)
	}
	return result, nil
}

// Run makes nodes of the cluster keep the needed images, by a Job for each node. The error is that of the first node that does not have all of
// them; the result has all nodes.
func Run(ctx context.Context, d *deployer.Deployer, o Options) (*schema.Preload, error) {
	result, err := o.Need(ctx, d)
	if err != nil {
		return nil, err
	}
	r := &run{deployer: d, options: &o, result: result}
	if err = r.prepare(ctx); err != nil {
		return nil, err
	}
	if o.DryRun {
		return result, r.compare(ctx)
	}
	err = d.Locked(ctx, r.work, lockName)
	if err == nil {
		err = Failure(result.Nodes)
	}
	return result, err
}

// lockName is the lock under which Jobs run.
const lockName = "preload"

// atOnce is the number of nodes that are at work at the same time.
const atOnce = 8

// run is one call of Run.
type run struct {
	deployer *deployer.Deployer
	options  *Options
	result   *schema.Preload
	nodes    []*target
	existing []string // all nodes of the cluster
}

// target is a node of the cluster.
type target struct {
	name, socket string
	problem      error // why no Job can run there
}

// work is the digest of a Job's work.
func (n *target) work(o *Options) string {
	return hexOf(append([]string{o.program, n.socket}, o.images()...)...)
}

// prepare finds the nodes and the image of Jobs, and checks the permissions.
func (r *run) prepare(ctx context.Context) error {
	c := r.deployer.Cluster
	if !r.options.DryRun {
		if err := c.Require(ctx, rights.Preload()); err != nil {
			return err
		}
		if err := r.checkNamespace(ctx); err != nil {
			return err
		}
	}
	if err := r.findNodes(ctx); err != nil {
		return err
	}
	slices.SortFunc(r.nodes, func(a, b *target) int { return cmp.Compare(a.name, b.name) })
	if r.options.DryRun {
		return nil
	}
	image, _, err := r.deployer.Records.ProgramImage(ctx, schema.ProgramImage, "")
	if report.CodeOf(err) == report.NotImported {
		return report.Errorf(report.NotImported, "the Jobs have no image: Solution %s was not imported", schema.ProgramImage).
			WithHint("import its archive: %s; or print the lines for each node: %s",
				report.Run("deploy import", "solutionctl-VERSION.iso"), report.Run("deploy node preload").With("print", "shell"))
	}
	if err != nil {
		return err
	}
	r.options.program = image
	return nil
}

// findNodes finds the nodes to work on. Of other ones only the names are read: a kubelet reports the images that its node has.
func (r *run) findNodes(ctx context.Context) (err error) {
	c := r.deployer.Cluster
	if len(r.options.Nodes) == 0 {
		for object, err := range c.List(ctx, nodeKind, "", metav1.ListOptions{Limit: largeObjects}) {
			if err != nil {
				return err
			}
			r.existing = append(r.existing, object.GetName())
			r.nodes = append(r.nodes, r.newNode(object))
		}
		slices.Sort(r.existing)
		return nil
	}
	if r.existing, err = NodeNames(ctx, c); err != nil {
		return err
	}
	slices.Sort(r.existing)
	names := slices.Compact(slices.Sorted(slices.Values(r.options.Nodes)))
	for _, name := range names {
		if !slices.Contains(r.existing, name) {
			return report.Errorf(report.NotFound, "the cluster has no node %s", name).WithHint("it has %s", strings.Join(r.existing, ", "))
		}
	}
	r.nodes = make([]*target, len(names))
	return cluster.Each(len(names), func(i int) error {
		object, err := c.Get(ctx, nodeKind, "", names[i])
		if err == nil && object == nil {
			err = report.Errorf(report.NotFound, "node %s was removed from the cluster", names[i])
		}
		if err == nil {
			r.nodes[i] = r.newNode(object)
		}
		return err
	})
}

// largeObjects is how many nodes are read at a time.
const largeObjects = 100

// checkNamespace refuses a namespace whose pod security does not allow the socket of a container runtime.
func (r *run) checkNamespace(ctx context.Context) error {
	const label = "pod-security.kubernetes.io/enforce"
	namespace, err := r.deployer.Cluster.Get(ctx, cluster.NamespaceKind, "", cluster.SystemNamespace)
	if err != nil || namespace == nil {
		return err
	}
	if level := namespace.GetLabels()[label]; level == "baseline" || level == "restricted" {
		return report.Errorf(report.Refused, "namespace %s enforces the pod security standard %s, which does not allow a pod the socket of the container runtime", cluster.SystemNamespace, level).
			WithHint("allow it there: kubectl label --overwrite namespace %s %s=privileged; or print the lines for each node: %s",
				cluster.SystemNamespace, label, report.Run("deploy node preload").With("print", "shell"))
	}
	return nil
}

// newNode returns a node with the socket of its container runtime.
func (r *run) newNode(object *unstructured.Unstructured) *target {
	n := &target{name: object.GetName(), socket: cmp.Or(r.options.Socket, socketOf(object))}
	system, _, _ := unstructured.NestedString(object.Object, "status", "nodeInfo", "operatingSystem")
	again := report.Run("deploy node preload").With("nodes", n.name)
	switch {
	case system != "" && system != "linux":
		n.problem = report.Errorf(report.Refused, "node %s runs %s: its images are left alone", n.name, system)
	case !health.IsTrue(object, "Ready"):
		n.problem = report.Errorf(report.Unavailable, "node %s is not ready", n.name).WithHint("once it is: %s", again)
	case n.socket == "":
		n.problem = report.Errorf(report.Refused, "node %s does not report a known container runtime", n.name).
			WithHint("name the socket that its kubelet uses: %s", again.With("socket", "FILE"))
	}
	return n
}

// compare fills in, for a dry run, the recorded images of each node.
func (r *run) compare(ctx context.Context) error {
	known, err := r.deployer.Records.Preloaded(ctx)
	if err != nil {
		return err
	}
	for _, n := range r.nodes {
		one := schema.NodePreload{Node: n.name, Missing: records.Lacking(r.result.Images, known, n.name)}
		one.Present = len(r.result.Images) - len(one.Missing)
		if n.problem != nil {
			one.Code, one.Problem, one.Hint = report.CodeOf(n.problem), n.problem.Error(), strings.Join(report.Hints(n.problem), "; ")
		}
		r.result.Nodes = append(r.result.Nodes, one)
	}
	return nil
}

// work runs the Jobs and records what nodes have, also of a run that is interrupted.
func (r *run) work(ctx context.Context) error {
	var mu sync.Mutex
	group, working := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, n := range r.nodes {
		group.Go(func() error {
			result, err := r.node(working, n)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			r.result.Nodes = append(r.result.Nodes, *result)
			return nil
		})
	}
	err := group.Wait()
	slices.SortFunc(r.result.Nodes, func(a, b schema.NodePreload) int { return cmp.Compare(a.Node, b.Node) })
	if ctx.Err() != nil {
		err = report.Errorf(report.Interrupted, "stopped waiting for the Jobs on nodes, which continue: %w", ctx.Err()).
			WithHint("run the same command again: it follows them to their end")
	}
	ctx, cancel := recording(ctx)
	defer cancel()
	return errors.Join(err, Record(ctx, r.deployer, r.result, r.existing))
}

// recording is a context in which what was done is recorded, also of a run that was stopped.
func recording(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
}

// recordTimeout is how long a run that was stopped takes at most to record what it has done.
const recordTimeout = 5 * time.Second

// Record records what nodes have after a run. Of existing nodes only are records kept; nil leaves those of other nodes.
func Record(ctx context.Context, d *deployer.Deployer, p *schema.Preload, existing []string) error {
	nodes := map[string]*records.NodeImages{}
	for _, n := range p.Nodes {
		switch {
		case len(p.Images) == 0 && n.Problem == "":
			nodes[n.Node] = nil
		case n.Runtime != "": // else nothing is known of it
			has := slices.DeleteFunc(slices.Clone(p.Images), func(image string) bool { return slices.Contains(n.Missing, image) })
			nodes[n.Node] = &records.NodeImages{Images: has, Unpinned: len(n.Unpinned) > 0}
		}
	}
	return d.Records.RecordPreloaded(ctx, nodes, existing)
}

// Failure is the error of the first node with a problem.
func Failure(nodes []schema.NodePreload) error {
	bad := slices.DeleteFunc(slices.Clone(nodes), func(n schema.NodePreload) bool { return n.Problem == "" })
	if len(bad) == 0 {
		return nil
	}
	err := report.Errorf(cmp.Or(bad[0].Code, report.Failure), "%d of %s do not have all images: %s: %s", len(bad), report.Count(len(nodes), "node"), bad[0].Node, bad[0].Problem)
	if bad[0].Hint != "" {
		err = err.WithHint("%s", bad[0].Hint)
	}
	return err
}

// node runs the Job of a node to its end, and removes it.
func (r *run) node(ctx context.Context, n *target) (*schema.NodePreload, error) {
	result := &schema.NodePreload{Node: n.name, Missing: slices.Clone(r.result.Images)}
	problem := n.problem
	event := report.Event{Step: "preload", Name: n.name, State: report.Started}
	if problem == nil {
		r.deployer.Sink.Emit(event)
		job, err := r.start(ctx, n)
		if err != nil {
			return nil, err
		}
		job, problem, err = r.follow(ctx, job)
		if err != nil {
			return nil, err
		}
		if problem == nil {
			var done *schema.NodePreload
			if done, problem, err = r.read(ctx, job); err != nil {
				return nil, err
			}
			if done != nil {
				result = done
				result.Node = n.name
			}
		}
		if err = r.drop(ctx, job, metav1.DeletePropagationBackground); err != nil {
			return nil, err
		}
	}
	event.State = report.Done
	if problem != nil {
		result.Code, result.Problem, result.Hint = report.CodeOf(problem), problem.Error(), strings.Join(report.Hints(problem), "; ")
	}
	if result.Problem != "" {
		event.State, event.Note = report.Failed, result.Problem
	}
	r.deployer.Sink.Emit(event)
	return result, nil
}

// start creates the Job of a node. One of a command that was killed, with the same work, is taken as it is; another one is replaced.
func (r *run) start(ctx context.Context, n *target) (*unstructured.Unstructured, error) {
	c := r.deployer.Cluster
	wanted := newJob(r.options, n, r.options.Timeout)
	for {
		job, err := c.Create(ctx, wanted, cluster.WriteOptions{})
		if !errors.Is(err, cluster.ErrExists) {
			return job, err
		}
		old, err := c.Get(ctx, jobKind, cluster.SystemNamespace, wanted.GetName())
		if err != nil {
			return nil, err
		}
		if old == nil {
			continue
		}
		if old.GetDeletionTimestamp() == nil && old.GetLabels()[LabelWork] == wanted.GetLabels()[LabelWork] && health.JobEnded(old) == "" {
			return old, nil
		}
		if err = r.remove(ctx, old); err != nil {
			return nil, err
		}
	}
}

// remove deletes a Job with its pods, and waits until it is gone.
func (r *run) remove(ctx context.Context, job *unstructured.Unstructured) error {
	if err := r.drop(ctx, job, metav1.DeletePropagationForeground); err != nil {
		return err
	}
	for {
		now, err := r.deployer.Cluster.Get(ctx, jobKind, cluster.SystemNamespace, job.GetName())
		if err != nil || now == nil || now.GetUID() != job.GetUID() {
			return err
		}
		if err := cluster.Sleep(ctx, poll); err != nil {
			return err
		}
	}
}

// drop deletes a Job in any state, as the cluster changes its status at any time. Another one of its name stays.
func (r *run) drop(ctx context.Context, job *unstructured.Unstructured, propagation metav1.DeletionPropagation) error {
	job.SetResourceVersion("")
	if err := r.deployer.Cluster.Delete(ctx, job, cluster.DeleteOptions{Propagation: propagation}); !errors.Is(err, cluster.ErrChanged) {
		return err
	}
	return nil
}

// poll is the interval between two looks at a Job.
const poll = time.Second

// follow waits until a Job has ended, and shows why its pod does not start. The problem is that of a Job which was deleted, or whose time was up.
func (r *run) follow(ctx context.Context, job *unstructured.Unstructured) (ended *unstructured.Unstructured, problem, err error) {
	var why []string
	for {
		now, err := r.deployer.Cluster.Get(ctx, jobKind, cluster.SystemNamespace, job.GetName())
		switch {
		case err != nil:
			return job, nil, err
		case now == nil || now.GetUID() != job.GetUID():
			return job, report.Errorf(report.Failure, "its Job was deleted").WithHint("run the same command again"), nil
		case health.JobTimedOut(now):
			problem := report.Errorf(report.Timeout, "the images were not there after %s", r.options.Timeout)
			if len(why) > 0 {
				problem = report.Errorf(report.Timeout, "the Job did not start within %s: %s", r.options.Timeout, strings.Join(why, "; "))
			}
			return now, problem.WithHint("run the same command again: it continues; --timeout allows more time"), nil
		case health.JobEnded(now) != "":
			return now, nil, nil
		}
		if found := health.Explain(ctx, r.deployer.Cluster, now); len(found) > 0 && !slices.Equal(found, why) {
			why = found
			r.deployer.Sink.Emit(report.Event{Step: "preload", Name: job.GetAnnotations()[annotationNode], State: report.Running, Note: why[0]})
		}
		if err := cluster.Sleep(ctx, poll); err != nil {
			return job, nil, err
		}
	}
}

// read reads the result of a Job that has ended. The problem is that of a pod that crashed.
func (r *run) read(ctx context.Context, job *unstructured.Unstructured) (result *schema.NodePreload, problem, err error) {
	selector := "batch.kubernetes.io/controller-uid=" + string(job.GetUID())
	pods, err := cluster.Collect(r.deployer.Cluster.List(ctx, cluster.PodKind, cluster.SystemNamespace, metav1.ListOptions{LabelSelector: selector}))
	if err != nil {
		return nil, nil, err
	}
	text := ""
	for _, pod := range pods {
		statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
		for _, item := range statuses {
			status, _ := item.(map[string]any)
			if message, _, _ := unstructured.NestedString(status, "state", "terminated", "message"); message != "" {
				text = message
			}
		}
	}
	if result := parseMessage(text, r.options.images()); result != nil {
		return result, nil, nil
	}
	if text == "" {
		text = "its pod ended without a result"
	}
	return nil, report.Errorf(report.Failure, "the Job failed: %s", report.OneLine(text, maxProblem)).WithHint("run the same command again"), nil
}

// NodeNames returns the names of the nodes of a cluster.
func NodeNames(ctx context.Context, c *cluster.Cluster) (names []string, err error) {
	for object, err := range c.ListMetadata(ctx, nodeKind, "", metav1.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		names = append(names, object.GetName())
	}
	return names, nil
}
