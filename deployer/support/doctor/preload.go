package doctor

import (
	"fmt"
	"maps"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/preload"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// preloaded compares the images that nodes keep with those that are needed. The status of a Node lists 50 images only, so the record of
// 'deploy node preload' counts.
func (x *examination) preloaded() {
	known, err := x.Deployer.Records.Preloaded(x.ctx)
	if err != nil {
		x.failed("registry", "nodes", err)
		return
	}
	if known == nil {
		x.skip("registry", "nodes", "no node keeps the images of Solutions: to start them while the registry is away, run '%s'", report.Run("deploy node preload").With("nodes", "all"))
		return
	}
	needed, _, err := x.Deployer.Records.Needed(x.ctx, records.NeedOptions{})
	if err != nil {
		x.failed("registry", "nodes", err)
		return
	}
	nodes, err := preload.NodeNames(x.ctx, x.Deployer.Cluster)
	if report.CodeOf(err) == report.Forbidden {
		nodes, err = slices.Sorted(maps.Keys(known.Nodes)), nil
	}
	if err != nil {
		x.failed("registry", "nodes", err)
		return
	}
	slices.Sort(nodes)
	x.lacking(nodes, needed, known)
}

// lacking reports nodes without needed images, and those that do not keep them.
func (x *examination) lacking(nodes, needed []string, known *schema.PreloadedImages) {
	bad := 0
	for _, node := range nodes {
		missing := records.Lacking(needed, known, node)
		cure := report.Run("deploy node preload").With("nodes", node).String()
		switch {
		case len(missing) == 0 && !known.Nodes[node].Unpinned:
			continue
		case len(missing) == 0 && bad < maxRows:
			x.add(schema.CheckWarning, "registry", "nodes", fmt.Sprintf("node %s has the images of deployed Solutions, but its container runtime does not keep all of them", node), cure)
		case bad < maxRows:
			x.add(schema.CheckWarning, "registry", "nodes", fmt.Sprintf("node %s lacks %d of the %d images of deployed Solutions: %s", node, len(missing), len(needed), report.Some(missing)), cure)
		}
		bad++
	}
	if bad == 0 {
		x.ok("registry", "nodes", "the %s of deployed Solutions stay on %s", report.Count(len(needed), "image"), report.Count(len(nodes), "node"))
	} else if bad > maxRows {
		x.add(schema.CheckWarning, "registry", "nodes", fmt.Sprintf("%d more nodes lack images", bad-maxRows), report.Run("deploy node preload").With("nodes", "all").String())
	}
}
