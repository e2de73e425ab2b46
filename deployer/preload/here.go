package preload

import (
	"context"
	"errors"
	"fmt"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Here makes the node that this process runs on keep the needed images, and records it under the name that the cluster has for the node.
func Here(ctx context.Context, d *deployer.Deployer, r Runtime, name string, o Options) (*schema.Preload, error) {
	if !o.DryRun {
		if err := d.Cluster.Require(ctx, rights.RecordPreload()); err != nil {
			return nil, err
		}
	}
	result, err := o.Need(ctx, d)
	if err != nil {
		return nil, err
	}
	var done *schema.NodePreload
	if o.DryRun {
		if done, err = look(ctx, r, result.Images); err != nil {
			return nil, err
		}
	} else {
		done = OnNode(ctx, r, o.images(), d.Sink)
	}
	done.Node = name
	result.Nodes = append(result.Nodes, *done)
	if o.DryRun {
		return result, nil
	}
	stopped := ctx.Err()
	ctx, cancel := recording(ctx)
	defer cancel()
	node, err := d.Cluster.Get(ctx, nodeKind, "", name)
	switch {
	case err != nil && report.CodeOf(err) != report.Forbidden:
		return result, err
	case err == nil && node == nil:
		result.Notices = append(result.Notices, fmt.Sprintf("the cluster has no node %s, so nothing was recorded: --node names this one", name))
	default:
		if err := Record(ctx, d, result, nil); err != nil {
			return result, err
		}
	}
	if stopped != nil {
		return result, interruption(stopped, done)
	}
	return result, Failure(result.Nodes)
}

// interruption is the error of a run that ended before this node had all images.
func interruption(stopped error, n *schema.NodePreload) error {
	code, what := report.Interrupted, "interrupted"
	if errors.Is(stopped, context.DeadlineExceeded) {
		code, what = report.Timeout, "the time is up"
	}
	return report.Errorf(code, "%s: node %s lacks %s: %s", what, n.Node, report.Count(len(n.Missing), "image"), n.Problem).
		WithHint("run the same command again: it continues")
}

// look returns which images a node has, and changes nothing.
func look(ctx context.Context, r Runtime, images []string) (*schema.NodePreload, error) {
	result := &schema.NodePreload{}
	var err error
	if result.Runtime, err = r.Version(ctx); err != nil {
		return nil, err
	}
	for _, image := range images {
		status, err := r.Status(ctx, image)
		switch {
		case err != nil:
			return nil, err
		case status == nil:
			result.Missing = append(result.Missing, image)
		default:
			if result.Present++; !status.Pinned {
				result.Unpinned = append(result.Unpinned, image)
			}
		}
	}
	return result, nil
}
