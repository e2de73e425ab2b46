package delta

import (
	"context"
	"errors"
	"io"

	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/build/recompress"
	"github.com/solutionctl/solutionctl/build/tardiff"
	"github.com/solutionctl/solutionctl/durable"
)

// unpacked is the content of a compressed blob, in a temporary file.
type unpacked struct {
	file *durable.Scratch
	size int64
}

// tar is the content as a tar file.
func (u *unpacked) tar() tardiff.Tar { return tardiff.Tar{ReaderAt: u.file, Size: u.size} }

func (u *unpacked) section() *io.SectionReader { return io.NewSectionReader(u.file, 0, u.size) }

func (u *unpacked) close() error {
	if u == nil {
		return nil
	}
	return u.file.Close()
}

// errContent means that a blob has no content of the expected size.
var errContent = errors.New("it cannot be decompressed")

// unpack decompresses a blob of most bytes or fewer into a file without a name in a directory. It fails with errContent when the blob has more,
// or is damaged.
func unpack(ctx context.Context, dir string, blob media.Run, most int64) (_ *unpacked, err error) {
	r, err := recompress.NewReader(io.NewSectionReader(blob, blob.From, blob.Size))
	if err != nil {
		return nil, errContent
	}
	defer r.Close() //nolint:errcheck // it was read
	u := &unpacked{}
	if u.file, err = durable.NewScratch(dir); err != nil {
		return nil, err
	}
	limited := &failing{r: io.LimitReader(r, most+1)}
	err = layout.Copy(ctx, u.file, limited)
	if limited.failed && ctx.Err() == nil {
		err = errContent
	}
	if err == nil {
		u.size, err = u.file.Seek(0, io.SeekCurrent)
	}
	if err == nil && u.size > most {
		err = errContent
	}
	if err != nil {
		return nil, errors.Join(err, u.close())
	}
	return u, nil
}

// failing remembers that reading has failed: to write may fail as well.
type failing struct {
	r      io.Reader
	failed bool
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	f.failed = err != nil && !errors.Is(err, io.EOF)
	return n, err
}
