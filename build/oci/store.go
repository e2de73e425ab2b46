package oci

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// maxStore bounds the bytes of manifests in an archive; one that several images have counts for each.
const maxStore = 256 << 20

// Store reads the images of an archive. It keeps their manifests in memory.
type Store struct {
	fsys   fs.FS
	layout *layout // nil: the archive has the images/ view only
	all    []*Image
	bytes  int64 // of manifests
}

// Open reads the OCI view of an archive, or its images/ directories when it has none. Every manifest is read and
// verified; of each blob it makes sure that it is there and has the right size. An archive without any image is valid.
func Open(fsys fs.FS) (*Store, error) {
	s := &Store{fsys: fsys}
	var err error
	if hasIndex(fsys) {
		err = s.readLayout()
	} else {
		err = s.readDirs()
	}
	if err != nil {
		return nil, err
	}
	s.all = sorted(s.all)
	return s, checkImages(s.all)
}

// Images returns the images that run, ordered by name and tag.
func (s *Store) Images() []*Image { return slices.DeleteFunc(slices.Clone(s.all), isArtifact) }

// Artifacts returns the artifacts beside the images, ordered by name and tag: the payload, and the charts, see
// [ChartImage].
func (s *Store) Artifacts() []*Image {
	return slices.DeleteFunc(slices.Clone(s.all), func(image *Image) bool { return !isArtifact(image) })
}

// Charts returns those artifacts that are charts.
func (s *Store) Charts() []*Image {
	return slices.DeleteFunc(slices.Clone(s.all), func(image *Image) bool { return !isChart(image) })
}

// Image returns an image or an artifact, or nil when the archive has none of that name.
func (s *Store) Image(ref schema.ImageRef) *Image {
	i := slices.IndexFunc(s.all, func(image *Image) bool { return image.Ref == ref })
	if i < 0 {
		return nil
	}
	return s.all[i]
}

func (s *Store) readLayout() error {
	s.layout = &layout{fsys: s.fsys, strict: true}
	listed, err := s.layout.list()
	if err != nil {
		return err
	}
	read := map[Digest]*Image{} // whose manifest has several names
	for _, d := range listed.all {
		if isStandIn(d) {
			continue // the image once more
		}
		ref, err := nameOf(d)
		if err != nil {
			return report.Errorf(report.Invalid, "index.json: %w", err)
		}
		if ref == (schema.ImageRef{}) {
			continue // a referrer, found through its subject
		}
		image := read[d.Digest]
		if image == nil || image.Root.MediaType != d.MediaType || image.Root.Size != d.Size {
			if image, err = s.layout.image(context.Background(), d, nil); err != nil {
				return inContext("image "+ref.String(), err)
			}
			read[d.Digest] = image
		}
		if err = s.add(*image, ref, d.Annotations[fullName]); err != nil {
			return err
		}
	}
	return s.checkStandIns(listed.all)
}

func (s *Store) readDirs() error {
	names, err := directories(s.fsys, "images")
	if err != nil {
		return err
	}
	for _, name := range names {
		tags, err := directories(s.fsys, path.Join("images", name))
		if err != nil {
			return err
		}
		for _, tag := range tags {
			ref := schema.ImageRef{Name: name, Tag: tag}
			if len(s.all) == maxDescriptors {
				return report.Errorf(report.Invalid, "the archive has more than %d images", maxDescriptors)
			}
			image, err := skopeoDir{s.fsys, imageDir(ref)}.image(context.Background(), nil)
			if err != nil {
				return inContext("image "+ref.String(), err)
			}
			if err = s.add(*image, ref, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) add(image Image, ref schema.ImageRef, origin string) error {
	for _, m := range image.Manifests {
		s.bytes += m.Size
	}
	if s.bytes > maxStore {
		return report.Errorf(report.Invalid, "the images of the archive have more than %d MiB of manifests", maxStore>>20)
	}
	image.Ref, image.Origin = ref, origin
	s.all = append(s.all, &image)
	return nil
}

// directories lists the directories in a directory; none when it does not exist.
func directories(fsys fs.FS, dir string) ([]string, error) {
	entries, err := fs.ReadDir(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, err
}

// named returns the images and artifacts called "name:tag", or "name" with any tag.
func (s *Store) named(text string) []*Image {
	var found []*Image
	for _, image := range s.all {
		if image.Ref.String() == text || image.Ref.Name == text {
			found = append(found, image)
		}
	}
	return found
}

// names returns the names of the images.
func (s *Store) names() []string {
	var names []string
	for _, image := range s.Images() {
		names = append(names, image.Ref.String())
	}
	return names
}

// choose returns an image of its own with the given platforms of the image; all when there are none.
func (s *Store) choose(ctx context.Context, image *Image, platforms []schema.Platform) (*Image, error) {
	var chosen *Image
	var err error
	if s.layout != nil {
		chosen, err = s.layout.image(ctx, image.Root, platforms)
	} else {
		chosen, err = skopeoDir{s.fsys, imageDir(image.Ref)}.image(ctx, platforms)
	}
	if err != nil {
		return nil, err
	}
	chosen.Origin = image.Origin
	return chosen, nil
}
