package lint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const registryConfigFile = oci.RegistryConfigFile

func checkRequiredFiles(_ context.Context, t *subject, r *reporter) {
	if t.Broken != nil {
		return
	}
	for _, name := range []string{archive.ManifestFile, registryConfigFile} {
		if name == registryConfigFile && (t.Kind == target.Project || t.ImagesKnown() && len(t.Images) == 0) {
			continue // it is made when the archive is built
		}
		if info, err := fs.Stat(t.FS, name); err != nil || !info.Mode().IsRegular() {
			r.Report(target.InFile(name), "build the archive with: solutionctl build", "the file is missing")
		}
	}
}

// checkImagesTree compares the directories with the names in the images' manifests.
func checkImagesTree(_ context.Context, t *subject, r *reporter) {
	expected := t.imageFiles()
	_ = fs.WalkDir(t.FS, "images", func(name string, entry fs.DirEntry, err error) error {
		depth := strings.Count(name, "/")
		switch {
		case err != nil:
			return nil //nolint:nilerr // no images/, or the format rules report it
		case entry.IsDir() && depth <= 2:
			if ref := (schema.ImageRef{Name: path.Base(path.Dir(name)), Tag: path.Base(name)}); depth == 2 && !expected.tags[ref] && t.ImagesKnown() {
				r.Report(target.InFile(name), "remove the directory, or add its image", "the directory belongs to no image")
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			r.Report(target.InFile(name), "remove the directory", "a directory inside of an image")
			return fs.SkipDir
		case depth < 3 || t.ImagesKnown() && !expected.files[name]:
			r.Report(target.InFile(name), "move the file elsewhere, or remove it", "no image refers to this file")
		}
		return nil
	})
}

// imageFiles are the files that the view for MetalK8s consists of.
type imageFiles struct {
	tags  map[schema.ImageRef]bool
	files map[string]bool
}

func (t *subject) imageFiles() imageFiles {
	expected := imageFiles{map[schema.ImageRef]bool{}, map[string]bool{}}
	for _, image := range t.Images {
		expected.tags[image.Ref] = true
	}
	entries, err := oci.Layout(t.contents())
	if err != nil {
		return expected
	}
	for _, entry := range entries {
		expected.files[entry.Path] = true
	}
	for _, image := range t.Images { // skopeo keeps signatures beside the manifest
		for n := 1; n <= 9; n++ {
			expected.files[fmt.Sprintf("images/%s/%s/signature-%d", image.Ref.Name, image.Ref.Tag, n)] = true
		}
	}
	return expected
}

// contents are the images whose content is at hand.
func (t *subject) contents() []*oci.Image {
	var contents []*oci.Image
	for _, image := range t.Images {
		if image.Content != nil {
			contents = append(contents, image.Content)
		}
	}
	return contents
}

func checkImagesReadable(_ context.Context, t *subject, r *reporter) {
	if t.ImagesError == nil {
		return
	}
	hint := "build the archive again"
	if hints := report.Hints(t.ImagesError); len(hints) > 0 {
		hint = hints[0]
	}
	r.Report(target.InFile("images"), hint, "the images cannot be read: %v", t.ImagesError)
}

func checkVolumeID(_ context.Context, t *subject, r *reporter) {
	image, ok := t.FS.(*iso.FS)
	if !ok || t.Solution == nil {
		return
	}
	version := " " + t.Solution.Spec.Version
	if id := image.VolumeID(); id != t.Solution.DisplayName()+version && id != t.Solution.Metadata.Name+version {
		r.Report(target.Place{Object: "volume id"}, fmt.Sprintf("give mkisofs -V %q", t.Solution.Metadata.Name+version),
			"the volume identifier is %q, expected %q", id, t.Solution.DisplayName()+version)
	}
}

func checkImplantedMD5(_ context.Context, t *subject, r *reporter) {
	if !t.deep || t.Kind != target.ISO || t.Broken != nil {
		return
	}
	if err := iso.CheckMD5(t.Reader, t.Size); report.CodeOf(err) == report.Corrupt {
		r.Report(target.Place{Object: "isomd5sum"}, "copy the archive again", "%v", err)
	}
}

// checkViews compares images/ and charts/ with the OCI view, where there is one. Blobs are compared by size; --deep reads them.
func checkViews(_ context.Context, t *subject, r *reporter) {
	if _, err := fs.Stat(t.FS, "index.json"); err != nil {
		return
	}
	t.checkChartImages(r)
	entries, err := oci.Layout(t.contents())
	if err != nil {
		return
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Path, "images/") {
			continue
		}
		info, err := fs.Stat(t.FS, entry.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			r.Report(target.InFile(entry.Path), "build the archive with: solutionctl build", "the OCI view has this content, images/ does not")
		case err == nil && info.Size() != entry.Size:
			r.Report(target.InFile(entry.Path), "build the archive with: solutionctl build",
				"the file has %d bytes, in the OCI view it has %d", info.Size(), entry.Size)
		case err == nil && entry.Data != nil:
			if data, err := t.Text(entry.Path); err == nil && string(data) != string(entry.Data) {
				r.Report(target.InFile(entry.Path), "build the archive with: solutionctl build", "the file differs from the one in the OCI view")
			}
		}
	}
}

// checkChartImages compares the chart that Helm pulls with the deployed one.
func (t *subject) checkChartImages(r *reporter) {
	packages := map[string]bool{} // by digest
	for _, file := range t.Files() {
		if path.Dir(file.Path) == "charts" {
			if f, err := t.FS.Open(file.Path); err == nil {
				hash := sha256.New()
				_, err = io.Copy(hash, f)
				packages[hex.EncodeToString(hash.Sum(nil))] = errors.Join(err, f.Close()) == nil
			}
		}
	}
	for _, image := range t.ChartImages {
		if !slices.ContainsFunc(image.Blobs, func(b oci.Blob) bool { return b.MediaType == oci.ChartContentType && packages[b.Digest.Hex] }) {
			r.Report(target.InFile("index.json"), "build the archive with: solutionctl build", "%s is none of the files in charts/", image.Ref)
		}
	}
}

func checkListed(_ context.Context, t *subject, r *reporter) {
	if t.Solution == nil || t.Solution.Spec.Images == nil || !t.ImagesKnown() {
		return
	}
	for i, ref := range t.Solution.Spec.Images {
		if !slices.ContainsFunc(t.Images, func(i target.Image) bool { return i.Ref == ref }) {
			r.Report(t.ManifestPlace("spec", "images", strconv.Itoa(i)), "add the image to the archive, or take it off the list", "image %s is listed, and the archive does not have it", ref)
		}
	}
	at := t.ManifestKey("spec", "images") // the list begins with one of the others
	for _, image := range t.Images {
		if !slices.Contains(t.Solution.Spec.Images, image.Ref) {
			r.Report(at, "add "+image.Ref.String()+" to the list", "image %s is in the archive and not in the list", image.Ref)
		}
	}
}
