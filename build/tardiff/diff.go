package tardiff

import (
	"bytes"
	"context"
	"io"
	"path"
	"strings"
)

const (
	maxOld   = 64 << 20 // bytes of an old file that are compared at a time
	maxMade  = 16 << 20 // bytes of a new one
	maxTwins = 4        // files of the same size that are compared with one that has another name
)

// Diff writes a patch that makes the second tar file from the first one: the same bytes for the same files. It fails with
// [report.Invalid] when one of them is not a tar file.
func Diff(ctx context.Context, w io.Writer, old, made Tar) error {
	d := &differ{ctx: ctx, old: old, made: made}
	if err := d.index(); err != nil {
		return err
	}
	var targets []file
	if err := made.walk(ctx, func(f file) { targets = append(targets, f) }, func(string) {}); err != nil {
		return err
	}
	var err error
	if d.w, err = newWriter(w); err != nil {
		return err
	}
	at := int64(0)
	for _, f := range targets {
		if err = d.emit(at, f.at); err != nil {
			return err
		}
		if err = d.file(f); err != nil {
			return err
		}
		at = f.at + f.size
	}
	if err = d.emit(at, made.Size); err != nil {
		return err
	}
	return d.w.close()
}

// differ is a comparison on its way.
type differ struct {
	ctx       context.Context //nolint:containedctx // it lives as long as one call of Diff
	old, made Tar
	w         *writer

	byName map[string]file
	bySize map[int64][]file
	byBase map[string][]file // by the last component of the name, and by its beginning

	match            matcher
	oldData, newData []byte
}

func (d *differ) index() error {
	d.byName, d.bySize, d.byBase = map[string]file{}, map[int64][]file{}, map[string][]file{}
	var order []string
	err := d.old.walk(d.ctx, func(f file) {
		d.byName[f.name] = f
		order = append(order, f.name)
	}, func(name string) { delete(d.byName, name) })
	seen := map[string]bool{}
	for _, name := range order {
		f, ok := d.byName[name]
		if !ok || seen[name] {
			continue
		}
		seen[name] = true
		d.bySize[f.size] = append(d.bySize[f.size], f)
		base := path.Base(name)
		for _, key := range []string{base, stem(base)} {
			d.byBase[key] = append(d.byBase[key], f)
		}
	}
	return err
}

// stem is the common part of the names of different versions of one file, libx of libx.so.1.2, as a key that no file has as its name.
func stem(base string) string {
	before, _, _ := strings.Cut(base, ".")
	return before + "./"
}

// emit writes bytes of the new tar file.
func (d *differ) emit(from, to int64) error {
	buffer := make([]byte, min(bufferSize, to-from))
	for ; from < to; from += int64(len(buffer)) {
		buffer = buffer[:min(int64(len(buffer)), to-from)]
		if err := d.read(d.made, from, buffer); err != nil {
			return err
		}
		if err := d.w.emit(buffer); err != nil {
			return err
		}
	}
	return nil
}

func (d *differ) read(t Tar, at int64, p []byte) error {
	if d.ctx.Err() != nil {
		return context.Cause(d.ctx)
	}
	n, err := t.ReadAt(p, at)
	if n == len(p) {
		return nil
	}
	return err
}

// file writes one file of the new tar file.
func (d *differ) file(f file) error {
	same, ok := d.byName[f.name]
	candidates := d.bySize[f.size]
	candidates = candidates[:min(len(candidates), maxTwins)]
	if ok && same.size == f.size {
		candidates = append([]file{same}, candidates...)
	}
	for _, twin := range candidates {
		equal, err := d.equal(twin, f)
		if err != nil {
			return err
		}
		if equal {
			return d.w.copy(twin.name, 0, f.size)
		}
	}
	base := path.Base(f.name)
	for _, key := range []string{base, stem(base)} {
		if ok {
			break
		}
		same, ok = nearest(d.byBase[key], f.size)
	}
	if !ok {
		return d.emit(f.at, f.at+f.size)
	}
	return d.compare(same, f)
}

// nearest returns the file whose size is nearest.
func nearest(list []file, size int64) (found file, ok bool) {
	for _, f := range list {
		if !ok || max(f.size-size, size-f.size) < max(found.size-size, size-found.size) {
			found, ok = f, true
		}
	}
	return found, ok
}

// equal reports whether two files of one size have the same content.
func (d *differ) equal(old, made file) (bool, error) {
	a, b := make([]byte, min(bufferSize, made.size)), make([]byte, min(bufferSize, made.size))
	for at := int64(0); at < made.size; at += int64(len(a)) {
		n := min(int64(len(a)), made.size-at)
		a, b = a[:n], b[:n]
		if err := d.read(d.old, old.at+at, a); err != nil {
			return false, err
		}
		if err := d.read(d.made, made.at+at, b); err != nil {
			return false, err
		}
		if !bytes.Equal(a, b) {
			return false, nil
		}
	}
	return true, nil
}

// compare writes how a file is made from another one, piece by piece.
func (d *differ) compare(old, made file) error {
	from, loaded := int64(0), false
	shift := int64(0) // of the place in the old file where the last piece has ended
	for at := int64(0); at < made.size; at += maxMade {
		place := max(0, min(int64(float64(at)/float64(made.size)*float64(old.size))/maxMade*maxMade-maxOld/2, old.size-maxOld))
		if !loaded || place != from {
			from, loaded = place, true
			if err := d.load(&d.oldData, d.old, old.at+from, min(maxOld, old.size-from)); err != nil {
				return err
			}
			d.match.reset(d.oldData)
		}
		if err := d.load(&d.newData, d.made, made.at+at, min(maxMade, made.size-at)); err != nil {
			return err
		}
		end, err := d.piece(old.name, from, int(at+shift-from))
		if err != nil {
			return err
		}
		shift = from + end - at - int64(len(d.newData))
	}
	return nil
}

func (d *differ) load(buffer *[]byte, t Tar, at, size int64) error {
	if int64(cap(*buffer)) < size {
		*buffer = make([]byte, size)
	}
	*buffer = (*buffer)[:size]
	return d.read(t, at, *buffer)
}

// piece writes the loaded piece of a new file. The loaded piece of the old one begins at from; at is the place in it that probably follows.
// It returns the place in it that follows the last region.
func (d *differ) piece(name string, from int64, at int) (int64, error) {
	made, done := d.newData, 0
	r := region{}
	if at >= 0 && at <= len(d.oldData) {
		r = region{0, d.match.extend(made, at), at}
	}
	for {
		if r.to > r.from {
			if err := d.w.emit(made[done:r.from]); err != nil {
				return 0, err
			}
			if err := d.region(name, from, r); err != nil {
				return 0, err
			}
			done, at = r.to, r.at+r.to-r.from
		}
		if d.ctx.Err() != nil {
			return 0, context.Cause(d.ctx)
		}
		if r = d.match.next(made, done); r.to == r.from {
			return int64(at + len(made) - done), d.w.emit(made[done:])
		}
	}
}

// region writes a piece that resembles the old file: long runs of equal bytes are copied.
func (d *differ) region(name string, from int64, r region) error {
	made, old := d.newData[r.from:r.to], d.oldData[r.at:r.at+r.to-r.from]
	at := from + int64(r.at)
	var differences []byte
	flush := func() error {
		if len(differences) == 0 {
			return nil
		}
		err := d.w.add(name, at, differences)
		at += int64(len(differences))
		differences = differences[:0]
		return err
	}
	for len(made) > 0 {
		run := sameRun(made, old)
		if run >= shortestRun || run == len(made) && len(differences) == 0 {
			if err := flush(); err != nil {
				return err
			}
			if err := d.w.copy(name, at, int64(run)); err != nil {
				return err
			}
			at += int64(run)
			made, old = made[run:], old[run:]
			continue
		}
		for i := range min(run+1, len(made)) {
			differences = append(differences, made[i]-old[i])
		}
		n := min(run+1, len(made))
		made, old = made[n:], old[n:]
		if len(differences) >= bufferSize {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}
