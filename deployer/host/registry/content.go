package registry

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/solutionctl/solutionctl/kube/images"
	"github.com/solutionctl/solutionctl/schema/report"
)

// content is the set of archives that a registry serves at one time. It is never changed.
type content struct {
	repositories map[string]*repository
	names        []string // sorted
	archives     []*Archive
	images       int
}

// repository holds the manifests and blobs of one name.
type repository struct {
	tags      map[string]*manifest
	tagNames  []string // sorted
	manifests map[string]*manifest
	blobs     map[string]*blob
	referrers map[string][]descriptor // by the digest of the subject, sorted by digest

	shared    []*Archive // that the repository has as artifacts; it has none of their manifests and blobs before it is prepared
	preparing sync.Mutex
	prepared  atomic.Pointer[repository]
}

func newRepository() *repository {
	return &repository{
		tags: map[string]*manifest{}, manifests: map[string]*manifest{}, blobs: map[string]*blob{}, referrers: map[string][]descriptor{},
	}
}

func (r *repository) sortReferrers() {
	for _, list := range r.referrers {
		slices.SortFunc(list, func(a, b descriptor) int { return strings.Compare(a.Digest, b.Digest) })
	}
}

// merge arranges archives by the names of their images.
func merge(archives []*Archive, origins bool) (*content, error) {
	c := &content{repositories: map[string]*repository{}, archives: slices.Clone(archives)}
	ids := map[string]bool{}
	for _, a := range archives {
		if ids[a.id] {
			return nil, report.Errorf(report.Conflict, "two archives are called %s", a.id)
		}
		ids[a.id] = true
		c.images += len(a.images)
		for _, i := range a.images {
			c.repository(a.id+"/"+i.ref.Name).add(i, i.ref.Tag)
		}
		if a.shared != nil {
			r := c.repository(a.shared.Repository)
			r.shared, r.tags[a.shared.Tag] = append(r.shared, a), nil
		}
	}
	if origins {
		if err := c.addOrigins(archives); err != nil {
			return nil, err
		}
	}
	for _, r := range c.repositories {
		r.tagNames = slices.Sorted(maps.Keys(r.tags))
		r.sortReferrers()
	}
	c.names = slices.Sorted(maps.Keys(c.repositories))
	return c, nil
}

// addOrigins gives images their original names, too.
func (c *content) addOrigins(archives []*Archive) error {
	type claim struct{ digest, archive string }
	claims := map[string]claim{}
	for _, a := range archives {
		for _, i := range a.images {
			origin, ok := images.ParseReference(i.origin)
			name := OriginRepository(origin.Registry, origin.Repository)
			if !ok || !validName(name) {
				continue // without an origin, or with one that no node can request
			}
			if origin.Tag == "" && origin.Digest == "" {
				origin.Tag = "latest"
			}
			if origin.Tag != "" {
				full := origin.Registry + "/" + origin.Repository + ":" + origin.Tag
				if other, taken := claims[full]; taken && other.digest != i.root {
					return report.Errorf(report.Conflict, "%s is %s in %s and %s in %s", full, other.digest, other.archive, i.root, a.id).
						WithHint("serve without original names, or remove one of the two archives")
				}
				claims[full] = claim{i.root, a.id}
			}
			c.repository(name).add(i, origin.Tag)
		}
	}
	return nil
}

// OriginRepository is the repository of an image from another registry: the host and the original repository. A colon
// before a port becomes an underscore, because a repository cannot contain one. A node that requests it by path (CRI-O)
// has to be configured with this name; one that sends the host as ns (containerd) does not.
func OriginRepository(host, repository string) string {
	return strings.ToLower(strings.ReplaceAll(host, ":", "_")) + "/" + repository
}

// find returns a repository, or nil. namespace is the registry that a client would have asked; "" without parameter ns.
func (c *content) find(name, namespace string) *repository {
	if namespace != "" {
		if r := c.repositories[OriginRepository(namespace, name)]; r != nil {
			return r
		}
	}
	return c.repositories[name]
}

func (c *content) repository(name string) *repository {
	r := c.repositories[name]
	if r == nil {
		r = newRepository()
		c.repositories[name] = r
	}
	return r
}

// add adds an image under a tag, or without one.
func (r *repository) add(i *image, tag string) {
	for _, m := range i.manifests {
		if r.manifests[m.digest] != nil {
			continue
		}
		r.manifests[m.digest] = m
		if m.subject != "" {
			r.referrers[m.subject] = append(r.referrers[m.subject], m.referrer)
		}
	}
	for _, b := range i.blobs {
		if digest := b.Digest.String(); r.blobs[digest] == nil {
			r.blobs[digest] = b
		}
	}
	if tag != "" {
		r.tags[tag] = r.manifests[i.root]
	}
}

// manifest returns the manifest of a tag or digest, or nil.
func (r *repository) manifest(reference string) *manifest {
	if strings.Contains(reference, ":") {
		return r.manifests[reference]
	}
	return r.tags[reference]
}
