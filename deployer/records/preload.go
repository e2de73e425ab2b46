package records

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// PreloadName is the ConfigMap with the images that nodes keep.
const PreloadName = "preload"

// NeedOptions select images besides those of the versions that are active or deployed.
type NeedOptions struct {
	Next              bool   // those of the highest imported version of each of these Solutions
	Solution, Version string // those of one imported version; "" adds none
}

// Needed returns the references, with digest, of the images that nodes need, sorted. All of them are in imported archives. That of
// solutionctl is among them, so that Jobs of the loader and of preloads start. Notices name deployed versions whose images are unknown.
func (r *Records) Needed(ctx context.Context, o NeedOptions) (references, notices []string, err error) {
	catalog, err := r.Catalog(ctx)
	if err != nil {
		return nil, nil, err
	}
	host, err := r.registryHost(ctx)
	if err != nil {
		return nil, nil, err
	}
	versions, notices, err := r.neededVersions(ctx, catalog, o)
	if err != nil {
		return nil, nil, err
	}
	for _, version := range versions {
		for image, digest := range version.Images {
			references = append(references, host+"/"+version.ID()+"/"+image+"@"+digest)
		}
	}
	image, _, err := r.ProgramImage(ctx, schema.ProgramImage, "")
	switch code := report.CodeOf(err); {
	case err == nil:
		references = append(references, image)
	case code != report.NotImported && code != report.NotFound:
		return nil, nil, err
	}
	slices.Sort(references)
	return slices.Compact(references), notices, nil
}

// neededVersions returns the imported versions whose images nodes need.
func (r *Records) neededVersions(ctx context.Context, catalog *Catalog, o NeedOptions) (versions []schema.Import, notices []string, err error) {
	states, err := r.Engine.States(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, state := range states {
		if state.Damage != nil {
			return nil, nil, state.Damage
		}
		for _, revision := range state.Recent() {
			if revision.Version == "" {
				continue
			}
			version, found := catalog.Get(state.Name + "-" + revision.Version)
			if !found {
				notices = append(notices, "version "+revision.Version+" of Solution "+state.Name+" is deployed and was not imported: its images are not known")
				continue
			}
			versions = append(versions, version)
			if !o.Next {
				continue
			}
			if next, _, err := catalog.Find(state.Name, ""); err == nil && VersionOf(next).Compare(VersionOf(version)) > 0 {
				versions = append(versions, next)
			}
		}
	}
	if o.Solution != "" {
		version, notice, err := catalog.Find(o.Solution, o.Version)
		if err != nil {
			return nil, nil, err
		}
		if versions = append(versions, version); notice != "" {
			notices = append(notices, notice)
		}
	}
	slices.Sort(notices)
	return versions, slices.Compact(notices), nil
}

// registryHost is the name of the registry in image references.
func (r *Records) registryHost(ctx context.Context) (string, error) {
	registry, err := r.Registry(ctx)
	if err != nil || registry == nil {
		return schema.RegistryHostOwn, err
	}
	return registry.Host, nil
}

// Preloaded returns which images nodes keep, nil when none were preloaded.
func (r *Records) Preloaded(ctx context.Context) (*schema.PreloadedImages, error) {
	preloaded, _, err := r.readPreloaded(ctx)
	return preloaded, err
}

func (r *Records) readPreloaded(ctx context.Context) (*schema.PreloadedImages, *unstructured.Unstructured, error) {
	preloaded, object, err := readDocument[schema.PreloadedImages](ctx, r, PreloadName)
	return preloaded, object, recordAgain(err, PreloadName, "", report.Run("deploy node preload").With("nodes", "all"))
}

// NodeImages are the images that a node has.
type NodeImages struct {
	Images   []string
	Unpinned bool // the kubelet may remove some of them
}

// maxPreloaded bounds the record, in bytes. A ConfigMap can have a mebibyte.
const maxPreloaded = 900 << 10

// RecordPreloaded records which images nodes have; nil removes a node. With existing, the nodes that it does not list are removed. Runs on
// several hosts may record at the same time.
func (r *Records) RecordPreloaded(ctx context.Context, nodes map[string]*NodeImages, existing []string) error {
	const attempts = 8
	var err error
	for range attempts {
		if err = r.recordPreloaded(ctx, nodes, existing); report.CodeOf(err) != report.Conflict {
			return err
		}
	}
	return err
}

func (r *Records) recordPreloaded(ctx context.Context, nodes map[string]*NodeImages, existing []string) error {
	known, object, err := r.readPreloaded(ctx)
	if err != nil {
		return err
	}
	next := schema.PreloadedImages{Stamp: schema.NewStamp("preload", r.Version), Sets: map[string][]string{}, Nodes: map[string]schema.PreloadedNode{}}
	if known != nil {
		maps.Copy(next.Sets, known.Sets)
		maps.Copy(next.Nodes, known.Nodes)
	}
	for name, node := range nodes {
		putNode(&next, name, node, r.Now())
	}
	pruneNodes(&next, existing)
	if known != nil && maps.Equal(known.Nodes, next.Nodes) || known == nil && len(next.Nodes) == 0 {
		return nil
	}
	data, err := schema.MarshalStored(next)
	if err != nil {
		return err
	}
	if data, err = compactDocument(data, maxPreloaded); err != nil { // which has room for 10,000 nodes
		return err
	}
	if len(data) > maxPreloaded {
		return report.Errorf(report.Refused, "ConfigMap %s/%s would have the images of %d nodes in %d KiB, and can have %d", cluster.SystemNamespace, PreloadName,
			len(next.Nodes), len(data)>>10, maxPreloaded>>10).
			WithHint("keep the same images on all nodes, so that they share one list: %s", report.Run("deploy node preload").With("nodes", "all"))
	}
	return r.writeDocument(ctx, PreloadName, object, data)
}

// putNode records the images of a node. A node that has the same ones as before keeps its entry.
func putNode(p *schema.PreloadedImages, name string, node *NodeImages, now time.Time) {
	if node == nil {
		delete(p.Nodes, name)
		return
	}
	images := append([]string{}, node.Images...)
	slices.Sort(images)
	digest := sha256.Sum256([]byte(strings.Join(images, "\n")))
	const short = 6
	entry := schema.PreloadedNode{Set: hex.EncodeToString(digest[:short]), Unpinned: node.Unpinned, At: now.UTC().Truncate(time.Second)}
	if before, ok := p.Nodes[name]; ok && before.Set == entry.Set && before.Unpinned == entry.Unpinned {
		return
	}
	p.Sets[entry.Set], p.Nodes[name] = images, entry
}

// pruneNodes removes the nodes that do not exist, and the sets of none.
func pruneNodes(p *schema.PreloadedImages, existing []string) {
	used, exists := map[string]bool{}, map[string]bool{}
	for _, name := range existing {
		exists[name] = true
	}
	for name, node := range p.Nodes {
		if existing != nil && !exists[name] {
			delete(p.Nodes, name)
			continue
		}
		used[node.Set] = true
	}
	maps.DeleteFunc(p.Sets, func(set string, _ []string) bool { return !used[set] })
}

// Lacking returns the images that a node lacks by the record, which may be nil.
func Lacking(needed []string, preloaded *schema.PreloadedImages, node string) []string {
	if preloaded == nil {
		return needed
	}
	has := preloaded.Sets[preloaded.Nodes[node].Set]
	return slices.DeleteFunc(slices.Clone(needed), func(image string) bool { return slices.Contains(has, image) })
}
