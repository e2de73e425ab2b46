package artifact

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	spdxType     = "application/spdx+json"
	spdxFiles    = "sbom/*/*.spdx.json.gz"
	maxDocument  = 64 << 20 // bytes of a bill of materials that is not compressed
	maxDocuments = 1000     // of one archive
)

// documents returns the bills of materials in an archive as artifacts, so that tools which look for those of the archive find them. They are
// read from the archive each time, and decompressed.
func documents(ctx context.Context, s layout.Source) ([]oci.Artifact, error) {
	a, err := archive.Open(s.ReaderAt, s.Size)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(a, spdxFiles)
	if err != nil {
		return nil, err
	}
	var found []oci.Artifact
	for _, name := range names[:min(len(names), maxDocuments)] {
		info, err := fs.Stat(a, name)
		if err != nil {
			return nil, err
		}
		sections := info.Sys().(*iso.Stat).Sections
		if len(sections) != 1 {
			continue // empty, or larger than such a document can be
		}
		blob, err := spdxBlob(ctx, func() io.Reader { return io.NewSectionReader(s, sections[0].Offset, sections[0].Size) })
		if report.CodeOf(err) == report.Invalid {
			continue // a file of the project that has only the name
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		title := strings.TrimSuffix(path.Base(path.Dir(name))+"-"+path.Base(name), ".gz")
		blob.Annotations = map[string]string{titleAnnotation: title}
		found = append(found, oci.Artifact{Type: spdxType, Layers: []oci.Blob{*blob}})
	}
	return found, nil
}

// spdxBlob describes what a compressed file decompresses to.
func spdxBlob(ctx context.Context, file func() io.Reader) (*oci.Blob, error) {
	open := func(_ context.Context, offset int64) (io.ReadCloser, error) {
		plain, err := gzip.NewReader(file())
		if err == nil {
			_, err = io.CopyN(io.Discard, plain, offset)
		}
		return plain, err
	}
	plain, err := open(ctx, 0)
	if err != nil {
		return nil, report.As(report.Invalid, err)
	}
	sum := sha256.New()
	size, err := io.Copy(sum, io.LimitReader(plain, maxDocument+1))
	if err == nil && size > maxDocument {
		err = fmt.Errorf("it has more than %d bytes", maxDocument)
	}
	if err != nil {
		return nil, report.As(report.Invalid, errors.Join(err, plain.Close()))
	}
	return &oci.Blob{Descriptor: oci.Descriptor{MediaType: spdxType, Digest: digestOf(hex.EncodeToString(sum.Sum(nil))), Size: size}, Open: open}, plain.Close()
}
