package sbom

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Options change how images are read.
type Options struct {
	Sink report.Sink // progress; may be nil
	Jobs int         // layers that are read at the same time; 0 for one for each processor, at most four
}

// target is the root file system of one image for one platform.
type target struct {
	image *oci.Image
	oci.FileSystem
	attachments []oci.Attachment // of the image
}

// List lists the packages in images of a Solution, see [listImages].
func List(ctx context.Context, s *schema.Solution, images []*oci.Image, o Options) (*schema.PackageList, error) {
	found, err := listImages(ctx, images, o)
	if err != nil {
		return nil, err
	}
	return &schema.PackageList{Solution: s.Metadata.Name, Version: s.Spec.Version, Images: found, LookedFor: packageKinds()}, nil
}

// listImages lists the packages in images, for each of their platforms. Each layer is read once, whatever images have it. An image that is an artifact
// is not listed.
func listImages(ctx context.Context, images []*oci.Image, o Options) ([]schema.ImagePackages, error) {
	return scan(ctx, images, o, standardLimits())
}

func scan(ctx context.Context, images []*oci.Image, o Options, limit limits) ([]schema.ImagePackages, error) {
	var targets []target
	for _, image := range images {
		systems, err := image.FileSystems(ctx)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", image.Ref, err)
		}
		attachments, err := image.Attachments()
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", image.Ref, err)
		}
		for _, system := range systems {
			targets = append(targets, target{image, system, attachments})
		}
	}
	s := &scanner{limit: limit, seed: maphash.MakeSeed()}
	layers, err := s.layers(ctx, targets, o)
	if err != nil {
		return nil, err
	}
	m := &merger{limit: limit, seed: s.seed}
	list := []schema.ImagePackages{}
	for _, target := range targets {
		merged, err := m.merge(target.Layers, layers)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", target.image.Ref, err)
		}
		described := m.describe(target, merged)
		if err = m.addBills(ctx, target, &described); err != nil {
			return nil, err
		}
		list = append(list, described)
	}
	return list, nil
}

// scanner reads layers, all of which share one budget.
type scanner struct {
	limit  limits
	seed   maphash.Seed
	budget budget
}

// layers reads the layers of all targets, a few at a time.
func (s *scanner) layers(ctx context.Context, targets []target, o Options) (map[oci.Digest]*layer, error) {
	var blobs []oci.Blob
	first := map[oci.Digest]*oci.Image{}
	total := int64(0)
	for _, target := range targets {
		for _, blob := range target.Layers {
			if first[blob.Digest] == nil {
				first[blob.Digest] = target.image
				blobs = append(blobs, blob)
				total += blob.Size
			}
		}
	}
	results := make([]*layer, len(blobs))
	progress := newProgress(o.Sink, total)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cmp.Or(o.Jobs, min(runtime.GOMAXPROCS(0), 4)))
	for i, blob := range blobs {
		group.Go(func() (err error) {
			results[i], err = s.layer(ctx, blob)
			if err != nil {
				return fmt.Errorf("image %s: layer %s: %w", first[blob.Digest].Ref, blob.Digest, err)
			}
			progress.add(blob.Size)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	progress.done()
	layers := map[oci.Digest]*layer{}
	for i, blob := range blobs {
		layers[blob.Digest] = results[i]
	}
	return layers, nil
}

// describe makes the list of an image of its merged files.
func (m *merger) describe(t target, merged []located) schema.ImagePackages {
	d := schema.ImagePackages{Image: t.image.Ref.String(), Manifest: t.Manifest.String(), Packages: []schema.Package{}}
	if t.Platform != (schema.Platform{}) {
		d.Platform = &t.Platform
	}
	if !t.Created.IsZero() {
		d.Created = t.Created.UTC().Format(time.RFC3339)
	}
	release := releaseOf(merged)
	d.Distribution = release.String()
	licenses := licensesOf(merged)
	at := map[string]int{}
	for _, l := range merged {
		if l.unread != "" {
			if len(d.Unread) < m.limit.unread {
				d.Unread = append(d.Unread, schema.UnreadFile{Path: l.path, Reason: l.unread})
			} else {
				d.UnreadMore++
			}
		}
		for _, c := range l.packages {
			if c.kind == "deb" && c.license == "" {
				c.license = licenses[c.name]
			}
			p := c.describe(release)
			i, known := at[p.PURL]
			if !known {
				i = len(d.Packages)
				at[p.PURL] = i
				p.Layer = l.layer.String()
				d.Packages = append(d.Packages, p)
			}
			known = known && slices.Contains(d.Packages[i].Paths, l.path)
			if !known && len(d.Packages[i].Paths) < maxPaths {
				d.Packages[i].Paths = append(d.Packages[i].Paths, l.path)
			}
		}
	}
	sortPackages(d.Packages)
	return d
}

func sortPackages(list []schema.Package) {
	slices.SortFunc(list, func(a, b schema.Package) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version), cmp.Compare(a.PURL, b.PURL))
	})
}

func (c component) describe(release *osRelease) schema.Package {
	p := schema.Package{
		Name: c.name, Version: c.version, Type: c.kind, PURL: c.purl(release), License: c.license, Digest: c.digest, Origin: schema.OriginMade,
	}
	if c.namespace != "" {
		p.Name = c.namespace + "/" + c.name
		if c.kind == "maven" {
			p.Name = c.namespace + ":" + c.name
		}
	}
	if c.epoch != "" && c.epoch != "0" {
		p.Version = c.epoch + ":" + c.version
	}
	if c.sourceVersion != c.version {
		p.SourceVersion = c.sourceVersion
	}
	if c.source != c.name || p.SourceVersion != "" {
		p.Source = c.source
	}
	return p
}

// releaseOf returns what identifies the distribution of an image; nil without one.
func releaseOf(merged []located) *osRelease {
	for _, name := range osReleaseFiles {
		for _, l := range merged {
			if l.path == name && l.release != nil && l.release.id != "" {
				return l.release
			}
		}
	}
	return nil
}

func licensesOf(merged []located) map[string]string {
	licenses := map[string]string{}
	for _, l := range merged {
		maps.Copy(licenses, l.license)
	}
	return licenses
}
