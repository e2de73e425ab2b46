// Package archive is the only reader of Solution archives.
//
// An [Archive] is a file system with a manifest and images. It can be in an ISO image ([Open]), in a directory or in a
// test ([FromFS]). [Archive.Describe] describes its content, [Compare] the changes between two.
//
// Opening reads directory records and a few small documents, whatever the archive's size. It checks only what reading
// depends on: the trees of the image agree, and the manifest names a Solution and its version. An Archive is safe for
// concurrent use and never modified.
package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ManifestFile is the name of the document at the root of every archive.
const ManifestFile = "manifest.yaml"

// Bounds on documents that are read into memory: files of an image can share their bytes.
const (
	maxDocument  = 4 << 20
	maxDocuments = 64 << 20 // all CustomResourceDefinitions, or all roles
)

// Archive is an open Solution archive.
type Archive struct {
	fs.FS
	Solution *schema.Solution
	Warnings []report.Finding // fields of the manifest that are unknown to this version
	Images   *oci.Store

	volumeID string
	size     int64
}

// Open reads an archive in ISO 9660 format of the given size. The archive reads from r as long as it is used.
func Open(r io.ReaderAt, size int64) (*Archive, error) {
	schema.Prepare(schema.KindSolution)
	image, err := iso.Open(r, size)
	if err != nil {
		return nil, err
	}
	a, err := FromFS(image)
	if err != nil {
		return nil, err
	}
	a.volumeID, a.size = image.VolumeID(), size
	return a, nil
}

// FromFS takes a file system with the layout of an archive.
func FromFS(fsys fs.FS) (*Archive, error) {
	data, err := ReadDocument(fsys, ManifestFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, report.Errorf(report.Invalid, "%s is missing: this is not a Solution archive", ManifestFile).
			WithHint("build an archive with: solutionctl build")
	}
	if err != nil {
		return nil, err
	}
	solution, warnings, err := schema.ParseSolution(ManifestFile, data)
	if err != nil {
		return nil, err
	}
	images, err := oci.Open(fsys)
	if err != nil {
		return nil, err
	}
	return &Archive{FS: fsys, Solution: solution, Warnings: warnings, Images: images}, nil
}

// VolumeID is the volume identifier of the image, empty for an archive that is not one.
func (a *Archive) VolumeID() string { return a.volumeID }

// ReadDocument reads a document of an archive. It can have 4 MiB, and a registry configuration [oci.MaxRegistryConfig].
func ReadDocument(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	limit := maxDocument
	if name == oci.RegistryConfigFile {
		limit = oci.MaxRegistryConfig
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(data) > limit {
		return nil, report.Errorf(report.Invalid, "%s is larger than %d bytes", name, limit)
	}
	return data, nil
}
