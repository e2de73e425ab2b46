package layout

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Archive is an archive that is put together from a frame and blobs. It may be used by several goroutines at once.
type Archive struct {
	layout *schema.ArchiveLayout
	from   string
	runs   media.Runs
}

// Frame is where a compressed frame lies.
type Frame struct {
	io.ReaderAt
	At int64 // of its first byte
}

// Assemble returns the archive of a document that was validated. Where each blob lies is known by its digest; from is the file or the place
// that has the document, for messages. Whether the bytes are right is known once all of them were compared: [Archive.Copy] and the signatures
// of the archive do so.
func Assemble(l *schema.ArchiveLayout, from string, frame Frame, places map[string]media.Run) (*Archive, error) {
	reader, err := newFrameReader(frame, l.Frame, from)
	if err != nil {
		return nil, err
	}
	a := &Archive{layout: l, from: from}
	at, inFrame := int64(0), int64(0)
	for _, s := range l.Segments {
		run := media.Run{ReaderAt: reader, Name: "the frame in " + from, From: inFrame}
		if s.SHA256 != "" {
			run = places[s.SHA256]
		} else {
			inFrame += s.Size
		}
		run.At, run.Size = at, s.Size
		a.runs = append(a.runs, run)
		at += s.Size
	}
	return a, nil
}

// Size is the size of the archive.
func (a *Archive) Size() int64 { return a.layout.Size }

// ReadAt implements [io.ReaderAt].
func (a *Archive) ReadAt(p []byte, offset int64) (int, error) {
	return a.runs.ReadAt(p, offset)
}

// Copy writes the archive and compares its digest. It fails with [report.Corrupt] where the frame or a blob is damaged: then the written bytes
// are worthless.
func (a *Archive) Copy(ctx context.Context, w io.Writer, sink report.Sink) error {
	digest, err := copyHashing(ctx, w, io.NewSectionReader(a, 0, a.Size()), a.Size(), a.layout.ID(), sink)
	if err != nil {
		return err
	}
	if err = a.CheckDigest(digest); err != nil {
		return cmp.Or(a.FindDamage(ctx), err)
	}
	sink.Emit(report.Event{Step: rebuildStep, Name: a.layout.ID(), State: report.Done, Done: a.Size(), Total: a.Size()})
	return nil
}

// CheckDigest compares the digest of the whole archive, which was read, with the one that its document names. [Archive.FindDamage] finds the
// reason of a difference.
func (a *Archive) CheckDigest(digest string) error {
	if digest == a.layout.SHA256 {
		return nil
	}
	return report.Errorf(report.Corrupt, "%s is damaged: the archive that it makes does not have the digest sha256:%s", a.from, a.layout.SHA256).
		WithHint("copy it again from its source")
}

// rebuildStep is the step of events about an archive that is written out of blobs.
const rebuildStep = "rebuild"

// progressStep is the number of bytes between two events.
const progressStep = 32 << 20

// copyHashing copies and returns the digest. One goroutine reads, one writes, and one hashes.
func copyHashing(ctx context.Context, w io.Writer, r io.Reader, size int64, name string, sink report.Sink) (string, error) {
	const buffers = 4
	type piece struct {
		data  []byte
		users atomic.Int32 // that are not done with it
	}
	// No queue is ever full: the pieces are as many as its places.
	free, toHash, toWrite := make(chan *piece, buffers), make(chan *piece, buffers), make(chan *piece, buffers)
	for range buffers {
		free <- &piece{data: make([]byte, bufferSize)}
	}
	release := func(p *piece) {
		if p.users.Add(-1) == 0 {
			free <- p
		}
	}
	sum := sha256.New()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		for p := range toHash {
			sum.Write(p.data)
			release(p)
		}
		return nil
	})
	group.Go(func() error {
		done := int64(0)
		for p := range toWrite {
			if _, err := w.Write(p.data); err != nil {
				return err
			}
			before := done
			if done += int64(len(p.data)); done/progressStep != before/progressStep && done < size {
				sink.Emit(report.Event{Step: rebuildStep, Name: name, State: report.Running, Done: done, Total: size})
			}
			release(p)
		}
		return nil
	})
	group.Go(func() error {
		defer close(toHash)
		defer close(toWrite)
		for left := size; left > 0; {
			var p *piece
			select {
			case p = <-free:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			p.data = p.data[:min(bufferSize, left)]
			if _, err := io.ReadFull(r, p.data); err != nil {
				return err
			}
			left -= int64(len(p.data))
			p.users.Store(2)
			toHash <- p
			toWrite <- p
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// FindDamage reads all blobs and names the file that has one without its digest. It returns nil when all have theirs: then
// the frame is another one.
func (a *Archive) FindDamage(ctx context.Context) error {
	for i, s := range a.layout.Segments {
		if s.SHA256 == "" {
			continue
		}
		if err := CheckBlob(ctx, a.runs[i], s.SHA256); err != nil {
			return err
		}
	}
	return nil
}

// CheckBlob reads a blob, and names the file that has it without its digest.
func CheckBlob(ctx context.Context, run media.Run, digest string) error {
	got, err := sumOf(ctx, io.NewSectionReader(run, run.From, run.Size))
	if err != nil {
		return fmt.Errorf("%s: %w", run.Name, err)
	}
	if got != digest {
		return report.Errorf(report.Corrupt, "%s is damaged: blob sha256:%s has the digest sha256:%s", run.Name, digest, got).
			WithHint("copy it again from its source")
	}
	return nil
}

// WriteFile writes the archive to a file, and its signatures beside it. After an error, and when the process is killed, the file has its old
// content.
func (a *Archive) WriteFile(ctx context.Context, name string, bundles []Bundle, sink report.Sink) error {
	f, err := durable.TryCreate(name)
	if err != nil {
		return media.WriteError(name, err)
	}
	if err = durable.Allocate(f.File, a.Size()); err == nil {
		direct := durable.NewDirect(f.File)
		err = a.Copy(ctx, io.NewOffsetWriter(direct, 0), sink)
		direct.Close()
	}
	if err != nil {
		return errors.Join(media.WriteError(name, err), f.Discard())
	}
	if err = f.Publish(0o644); err != nil {
		return media.WriteError(name, err)
	}
	return WriteBundles(name, bundles)
}

// Bundle is a signature of an archive. Signer is the part of its file's name that distinguishes signers.
type Bundle struct {
	Signer string
	Data   []byte
}

// validSigner matches names of signers that may become a part of a file's name, here and at a site.
var validSigner = lazyregexp.New(`^[0-9A-Za-z_-][0-9A-Za-z._-]{0,63}$`)

// IsSigner reports whether a further signer can have a name: a delta and a registry have no others.
func IsSigner(name string) bool { return validSigner.MatchString(name) }

// WriteBundles writes the signatures of an archive beside it.
func WriteBundles(archive string, bundles []Bundle) error {
	for _, b := range bundles {
		if err := durable.WriteFile(BundleFile(archive, b.Signer), b.Data, 0o644); err != nil {
			return media.WriteError(archive, err)
		}
	}
	return nil
}

// BundleFile is the name of a signature beside an archive.
func BundleFile(archive, signer string) string {
	if signer != "" {
		signer = "." + signer
	}
	return archive + signer + ".sigstore.json"
}
