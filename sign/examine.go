package sign

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

// Identify reads name and version from the manifest of an archive; see [Options].
func Identify(r io.ReaderAt, size int64) (Identity, error) {
	fsys, err := iso.Open(r, size)
	if err != nil {
		return Identity{}, err
	}
	data, err := archive.ReadDocument(fsys, archive.ManifestFile)
	if err != nil {
		return Identity{}, report.As(report.Invalid, err)
	}
	s, _, err := schema.ParseSolution(archive.ManifestFile, data)
	if err != nil {
		return Identity{}, err
	}
	digest := sha256.Sum256(data)
	return Identity{
		Solution:       bundle.Solution{Name: s.Metadata.Name, Version: s.Spec.Version},
		ManifestDigest: "sha256:" + hex.EncodeToString(digest[:]),
	}, nil
}

// CheckStructure refuses an archive that its signer should have refused already; see [Options]. Only the bytes between
// files are read from spaces, by this number of workers; see [iso.CheckVerified].
func CheckStructure(r, spaces io.ReaderAt, size int64, workers int) error {
	if err := iso.Refusal(append(iso.CheckVerified(r, spaces, size, workers), iso.CompareDiskFS(r, size)...)); err != nil {
		return report.As(report.CodeOf(err), err).
			WithHint("do not use this archive: other programs may show other content than the checked one; inform the vendor")
	}
	return nil
}

// Locate names the files of an archive that lie in a range of bytes. The archive is damaged when this is asked, so
// the answer is a hint for people and nothing is decided by it; see [Options]. Its directories are read once, and not after the
// context has ended: no signature vouches for their size.
func Locate(ctx context.Context, r io.ReaderAt, size int64) func(chunk.Range) string {
	list := sync.OnceValues(func() ([]placedFile, error) { return listFiles(untilDone{ctx, r}, size) })
	return func(place chunk.Range) string {
		files, err := list()
		var names []string
		for i := range files {
			if files[i].overlaps(place) {
				names = append(names, files[i].name)
			}
		}
		switch {
		case ctx.Err() != nil:
			return ""
		case err != nil:
			return "the directories of the image, or what they name"
		case len(names) == 0:
			return "directories or padding"
		case len(names) == 1:
			return names[0]
		default:
			return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
		}
	}
}

// untilDone reads nothing more after the context has ended.
type untilDone struct {
	ctx context.Context
	io.ReaderAt
}

func (r untilDone) ReadAt(p []byte, offset int64) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.ReaderAt.ReadAt(p, offset)
}

// placedFile is a file of an image and its places there.
type placedFile struct {
	name     string
	sections []iso.Section
}

// listFiles lists the files up to a directory that cannot be read.
func listFiles(r io.ReaderAt, size int64) (files []placedFile, err error) {
	image, err := iso.Open(r, size)
	if err != nil {
		return nil, err
	}
	_ = fs.WalkDir(image, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(name, "blobs/") { // the same bytes as below images/
			return err
		}
		info, err := entry.Info()
		if err == nil {
			files = append(files, placedFile{name, info.Sys().(*iso.Stat).Sections})
		}
		return err
	})
	return files, nil
}

func (f *placedFile) overlaps(place chunk.Range) bool {
	for _, s := range f.sections {
		if s.Offset < place.To && s.Offset+s.Size > place.From {
			return true
		}
	}
	return false
}
