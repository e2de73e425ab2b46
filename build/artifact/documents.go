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
	"github.com/solutionctl/solutionctl/build/sbom"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	spdxType     = "application/spdx+json"
	spdxFiles    = "sbom/*/*.spdx.json.gz"
	maxDocument  = 64 << 20 // bytes of a bill of materials that is not compressed
	maxDocuments = 1000     // of one kind in one archive
)

// documents returns the bills of materials and the statements of OpenVEX in an archive as artifacts, so that tools which look for those of the
// archive find them. They are read from the archive each time, and bills of materials are decompressed. A file of the project that only has the
// name of one is left out.
func documents(ctx context.Context, s layout.Source) ([]oci.Artifact, error) {
	a, err := archive.Open(s.ReaderAt, s.Size)
	if err != nil {
		return nil, err
	}
	var found []oci.Artifact
	for _, k := range []documentKind{{spdxFiles, spdxBlob}, {sbom.StatementFiles, vexBlob}} {
		more, err := k.find(ctx, a, s)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// documentKind is a kind of documents in an archive.
type documentKind struct {
	pattern string // of the names of files
	// blob describes the document in a file; report.Invalid for a file that only has such a name.
	blob func(ctx context.Context, name string, file *io.SectionReader) (*oci.Blob, error)
}

// find returns the documents as artifacts, in the order of their names.
func (k documentKind) find(ctx context.Context, a *archive.Archive, s layout.Source) (found []oci.Artifact, err error) {
	names, err := fs.Glob(a, k.pattern)
	if err != nil {
		return nil, err
	}
	for _, name := range names[:min(len(names), maxDocuments)] {
		info, err := fs.Stat(a, name)
		if err != nil {
			return nil, err
		}
		sections := info.Sys().(*iso.Stat).Sections
		if len(sections) != 1 {
			continue // empty, or larger than such a document can be
		}
		blob, err := k.blob(ctx, name, io.NewSectionReader(s, sections[0].Offset, sections[0].Size))
		if report.CodeOf(err) == report.Invalid {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		found = append(found, oci.Artifact{Type: string(blob.MediaType), Layers: []oci.Blob{*blob}})
	}
	return found, nil
}

// vexBlob describes a document of OpenVEX.
func vexBlob(_ context.Context, name string, file *io.SectionReader) (*oci.Blob, error) {
	if file.Size() > sbom.MaxAdvisory {
		return nil, report.Errorf(report.Invalid, "it has more than %d bytes", sbom.MaxAdvisory)
	}
	data := make([]byte, file.Size())
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, err
	}
	if err := (&sbom.Statements{}).Add(name, data); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return &oci.Blob{
		Descriptor: oci.Descriptor{
			MediaType: sbom.StatementType, Digest: digestOf(hex.EncodeToString(sum[:])), Size: file.Size(),
			Annotations: map[string]string{titleAnnotation: path.Base(name)},
		},
		Open: func(_ context.Context, offset int64) (io.ReadCloser, error) {
			return io.NopCloser(io.NewSectionReader(file, offset, file.Size()-offset)), nil
		},
	}, nil
}

// spdxBlob describes what the compressed file of a bill of materials decompresses to.
func spdxBlob(ctx context.Context, name string, file *io.SectionReader) (*oci.Blob, error) {
	open := func(_ context.Context, offset int64) (io.ReadCloser, error) {
		plain, err := gzip.NewReader(io.NewSectionReader(file, 0, file.Size()))
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
	title := strings.TrimSuffix(path.Base(path.Dir(name))+"-"+path.Base(name), ".gz")
	return &oci.Blob{
		Descriptor: oci.Descriptor{
			MediaType: spdxType, Digest: digestOf(hex.EncodeToString(sum.Sum(nil))), Size: size, Annotations: map[string]string{titleAnnotation: title},
		},
		Open: open,
	}, plain.Close()
}
