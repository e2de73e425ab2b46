package build

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Verify proves that r holds, byte for byte, the archive of this plan: it reads every source again, keeps nothing and
// compares. With a second plan it proves that a project builds reproducibly. An implanted checksum is not compared; it
// follows from the other bytes.
func (p *Plan) Verify(ctx context.Context, r io.ReaderAt, size int64) error {
	if size != p.image.Size() {
		return report.Errorf(report.Irreproducible, "the archive has %d bytes, a second build %d", size, p.image.Size())
	}
	same := &comparingWriter{r: withoutChecksum{r}}
	if err := p.image.WriteMetadata(same); err != nil {
		return describeDifference(err, fmt.Sprintf("directory records differ near byte %d", same.offset))
	}
	for _, extent := range p.image.Extents() {
		blob := p.content[extent.Key]
		source, err := blob.Open(ctx, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", blob.name, err)
		}
		same := &comparingWriter{r: r, offset: extent.Offset}
		_, err = io.Copy(same, readerOnly{ctx, oci.VerifyReader(source, blob.Descriptor)})
		if err = errors.Join(err, source.Close()); err != nil {
			return describeDifference(err, fmt.Sprintf("%s differs near byte %d of the archive", blob.name, same.offset))
		}
	}
	return nil
}

func describeDifference(err error, where string) error {
	if errors.Is(err, errDifferent) {
		return report.Errorf(report.Irreproducible, "two builds of the same project differ: %s", where).
			WithHint("something in the project or its images changed between the builds; pin images by digest")
	}
	return err
}

// The field of the primary volume descriptor that isomd5sum uses: application use, ECMA-119 8.4.32.
const (
	checksumOffset = 16*2048 + 883
	checksumSize   = 512
)

// withoutChecksum reads an image as it was before a checksum was implanted.
type withoutChecksum struct{ r io.ReaderAt }

func (w withoutChecksum) ReadAt(b []byte, offset int64) (int, error) {
	n, err := w.r.ReadAt(b, offset)
	for i := max(checksumOffset-offset, 0); i < min(int64(n), checksumOffset+checksumSize-offset); i++ {
		b[i] = ' '
	}
	return n, err
}
