package registry

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/solutionctl/solutionctl/build/oci"
)

// Shared is an archive as an artifact that other hosts pull, see package artifact.
type Shared struct {
	Repository, Tag string
	// Image describes the artifact when it is asked for first. The file of the archive is open meanwhile, and while one of its blobs is read.
	Image func(ctx context.Context) (*oci.Image, error)
}

// Share lets the registry serve the archive itself besides its images. It is for an archive that no registry serves yet.
func (a *Archive) Share(s Shared) { a.shared = &s }

// artifact describes the archive as it is shared.
func (a *Archive) artifact(ctx context.Context) (*image, error) {
	if !a.file.acquire() {
		return nil, fmt.Errorf("archive %s is not served any more", a.id)
	}
	defer a.file.release()
	described, err := a.shared.Image(ctx)
	if err != nil {
		return nil, fmt.Errorf("archive %s: %w", a.id, err)
	}
	made := &image{root: described.Root.Digest.String()}
	for _, m := range described.Manifests {
		parsed, err := parseManifest(m)
		if err != nil {
			return nil, fmt.Errorf("archive %s: %w", a.id, err)
		}
		made.manifests = append(made.manifests, parsed)
	}
	for _, b := range described.Blobs {
		made.blobs = append(made.blobs, &blob{Descriptor: b.Descriptor, archive: a, path: b.Digest.String(), open: b.Open})
	}
	return made, nil
}

// isShared reports whether the repository has archives. Then it has to be prepared.
func (r *repository) isShared() bool { return len(r.shared) > 0 }

// current returns the repository as it was prepared, or as it is.
func (r *repository) current() *repository {
	if prepared := r.prepared.Load(); prepared != nil {
		return prepared
	}
	return r
}

// prepare describes the archives of the repository. One request does it for all that wait.
func (r *repository) prepare(ctx context.Context) error {
	r.preparing.Lock()
	defer r.preparing.Unlock()
	if r.prepared.Load() != nil {
		return nil
	}
	prepared := newRepository()
	prepared.tagNames = r.tagNames
	for _, a := range r.shared {
		described, err := a.artifact(ctx)
		if err != nil {
			return err
		}
		prepared.add(described, a.shared.Tag)
	}
	prepared.sortReferrers()
	r.prepared.Store(prepared)
	return nil
}

// stream reads a blob that can be opened at any offset, from one end to the other.
type stream struct {
	ctx      context.Context //nolint:containedctx // of the request that reads it
	open     func(context.Context, int64) (io.ReadCloser, error)
	size, at int64
	from     io.ReadCloser // at this place; nil: not opened
}

func (s *stream) Read(p []byte) (n int, err error) {
	if s.at >= s.size {
		return 0, io.EOF
	}
	if s.from == nil {
		if s.from, err = s.open(s.ctx, s.at); err != nil {
			return 0, err
		}
	}
	n, err = s.from.Read(p[:min(int64(len(p)), s.size-s.at)])
	s.at += int64(n)
	if errors.Is(err, io.EOF) && s.at < s.size {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (s *stream) Seek(offset int64, whence int) (int64, error) {
	at, err := seek(offset, whence, s.at, s.size)
	if err != nil {
		return 0, err
	}
	s.at = at
	return at, s.Close()
}

func (s *stream) Close() error {
	if s.from == nil {
		return nil
	}
	from := s.from
	s.from = nil
	return from.Close()
}
