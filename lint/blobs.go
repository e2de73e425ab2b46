package lint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema/report"
)

// checkUnpackable compares the layers of each image with its configuration: their number, and with --deep their content.
func checkUnpackable(ctx context.Context, t *subject, r *reporter) {
	noteUnread(t, r)
	for _, image := range t.Images {
		if image.Err != nil {
			r.Report(t.imagePlace(image.Ref), strings.Join(report.Hints(image.Err), "; "), "image %s: %v", image.Ref, image.Err)
		}
		if image.Content == nil {
			continue
		}
		judge := image.Content.CheckLayers
		if t.deep {
			judge = image.Content.VerifyLayers
		}
		if err := judge(ctx); err != nil {
			r.Report(t.imagePlace(image.Ref), strings.Join(report.Hints(err), "; "), "image %s cannot be unpacked: %v", image.Ref, err)
		}
	}
}

// noteUnread names the images of a project that a deep judgement has not read.
func noteUnread(t *subject, r *reporter) {
	if !t.deep {
		return
	}
	var unread []string
	for _, image := range t.Images {
		if image.Unread != "" {
			unread = append(unread, fmt.Sprintf("%s (%s)", image.Ref, image.Unread))
		}
	}
	if len(unread) > 0 {
		r.ReportAs(report.SeverityNote, target.InFile(build.ManifestFile), "build the project, and judge the archive: solutionctl lint --deep ARCHIVE",
			"images were not read: %s", strings.Join(unread, ", "))
	}
}

// checkDigests reads every blob of an archive once, several at a time.
func checkDigests(ctx context.Context, t *subject, r *reporter) {
	if !t.deep || t.Kind == target.Project {
		return
	}
	entries, err := oci.Layout(t.contents())
	if err != nil {
		return
	}
	var mu sync.Mutex
	bad := map[string]error{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, entry := range t.distinct(entries) {
		group.Go(func() error {
			if err := verify(ctx, t.FS, entry); err != nil {
				mu.Lock()
				defer mu.Unlock()
				bad[entry.Path] = err
			}
			return nil
		})
	}
	_ = group.Wait() // nothing fails
	for _, entry := range entries {
		if err := bad[entry.Path]; err != nil {
			r.Report(target.InFile(entry.Path), "copy or download the archive again, or build it again", "%v", err)
		}
	}
}

// distinct returns the blobs, each extent of the image once: both views of a blob are usually the same bytes.
func (t *subject) distinct(entries []oci.Entry) []oci.Entry {
	type extent struct {
		offset int64
		digest string
	}
	seen := map[extent]bool{}
	return slices.DeleteFunc(slices.Clone(entries), func(entry oci.Entry) bool {
		info, err := fs.Stat(t.FS, entry.Path)
		if entry.Blob == nil || err != nil || info.Size() != entry.Size {
			return true // reported by other rules
		}
		stat, ok := info.Sys().(*iso.Stat)
		if !ok || len(stat.Sections) == 0 {
			return false
		}
		at := extent{stat.Sections[0].Offset, entry.Key}
		known := seen[at]
		seen[at] = true
		return known
	})
}

// verify hashes a file of the archive.
func verify(ctx context.Context, fsys fs.FS, entry oci.Entry) error {
	f, err := fsys.Open(entry.Path)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, oci.VerifyReader(stopped{ctx, f}, entry.Blob.Descriptor))
	return errors.Join(err, f.Close())
}

// stopped is a reader that ends when the context does.
type stopped struct {
	ctx context.Context //nolint:containedctx // the reader lives as long as one call
	r   io.Reader
}

func (s stopped) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}
