package media

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

// SplitOptions say how an archive is divided.
type SplitOptions struct {
	Size  int64 // the most that a part may have, in bytes
	Chunk int64 // parts are cut at multiples of it, so that each one is whole chunks of the signature
	Sink  report.Sink
}

// Split writes the parts of an archive to X.iso.001 and so on, and returns their names. A file has its name once it is complete;
// the same call finishes what was interrupted.
func (i *Image) Split(ctx context.Context, archive string, o SplitOptions) ([]string, error) {
	if !strings.EqualFold(filepath.Ext(archive), ".iso") {
		archive += ".iso"
	}
	size := o.Size - o.Size%o.Chunk
	if size <= 0 {
		return nil, report.Errorf(report.Usage, "a part of %d bytes is too small, want %d or more", o.Size, o.Chunk)
	}
	count := int((i.Size + size - 1) / size)
	if count > maxParts {
		return nil, report.Errorf(report.Usage, "parts of %d bytes would be %d, more than %d", size, count, maxParts).WithHint("choose a larger --size")
	}
	if _, err := os.Lstat(partName(archive, count+1)); err == nil {
		return nil, report.Errorf(report.Usage, "%s is of another division of the archive: this one has %d parts", partName(archive, count+1), count).
			WithHint("remove the parts with higher numbers than %d, or write to another directory with --to", count)
	}
	var names []string
	for number := 1; number <= count; number++ {
		name, at := partName(archive, number), int64(number-1)*size
		part := io.NewSectionReader(i, at, min(size, i.Size-at))
		if err := writePart(ctx, name, part, report.Event{Step: "split", Name: filepath.Base(archive), Done: at, Total: i.Size}, o.Sink); err != nil {
			return names, err
		}
		names = append(names, name)
	}
	return names, i.Unchanged()
}

func writePart(ctx context.Context, name string, content *io.SectionReader, e report.Event, sink report.Sink) error {
	f, err := durable.TryCreate(name)
	if err != nil {
		return WriteError(name, err)
	}
	buffer, left := make([]byte, 1<<20), content.Size()
	for left > 0 && err == nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			break
		}
		piece := buffer[:min(int64(len(buffer)), left)]
		if _, err = io.ReadFull(content, piece); err == nil {
			_, err = f.Write(piece)
		}
		left -= int64(len(piece))
		if e.Done += int64(len(piece)); e.Done%(32<<20) == 0 && e.Done < e.Total {
			e.State = report.Running
			sink.Emit(e)
		}
	}
	if err != nil {
		return errors.Join(WriteError(name, err), f.Discard())
	}
	if e.Done == e.Total {
		e.State = report.Done
		sink.Emit(e)
	}
	return WriteError(name, f.Publish(0o644))
}

// WriteError gives the errors of a full disk and of a file that another process is writing their codes and hints, and returns any
// other as it is.
func WriteError(name string, err error) error {
	if errors.Is(err, durable.ErrBusy) {
		return report.Errorf(report.Failure, "another process is writing %s", name).WithHint("wait until it has finished, or write to another file")
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return report.Errorf(report.NoSpace, "write %s: %w", name, err).WithHint("free some space, or write to another place with --to")
	}
	return err
}
