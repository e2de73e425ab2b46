package host

import (
	"cmp"
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/solutionctl/solutionctl/build/artifact"
	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

// PullOptions name an archive in a registry.
type PullOptions struct {
	Reference artifact.Reference
	Plain     []string // registries that are asked without TLS
	Jobs      int      // blobs at once; 0 is the default of [artifact.PullOptions]

	Keychain  oci.Keychain
	CertsDirs []string

	Import ImportOptions // as it will be imported
}

// Pull brings an archive and its signatures from a registry to this host, beside the store, and returns the file, to be imported with the
// options o.Import and then given to EndPull. What archives of the store have is not asked for. An archive that its signatures do not
// allow is not transferred; else nothing is verified but digests. After an interruption, and where the file is there because its import was
// refused, the next call continues.
func (h *Host) Pull(ctx context.Context, o PullOptions) (file string, err error) {
	resolver := oci.NewResolver(oci.Options{Keychain: o.Keychain, CertsDirs: o.CertsDirs, PlainHTTP: o.Plain, NoMirrors: true, Jobs: o.Jobs, Sink: h.Sink})
	defer func() { err = errors.Join(err, resolver.Close()) }()
	remote, err := artifact.Open(ctx, resolver, o.Reference)
	if err != nil {
		return "", err
	}
	file, _, err = h.pull(ctx, remote, o)
	return file, err
}

// pull is Pull for an archive that was found.
func (h *Host) pull(ctx context.Context, remote *artifact.Remote, o PullOptions) (file string, done *artifact.Pulled, err error) {
	bundles, chunks, err := h.expected(ctx, remote, o)
	if err != nil {
		return "", nil, err
	}
	if err = durable.MkdirAll(h.Store.PulledDir(), 0o700); err != nil {
		return "", nil, err
	}
	file = h.pulledFile(&remote.Layout)
	done = &artifact.Pulled{Kept: remote.Layout.Size}
	if !h.isPulled(ctx, file, &remote.Layout, o.Import) {
		if done, err = h.transfer(ctx, remote, file, artifact.PullOptions{Jobs: o.Jobs, Sink: h.Sink, Damaged: damagedBy(chunks)}); err != nil {
			return "", nil, err
		}
	}
	if err = removeBundles(file); err != nil {
		return "", nil, err
	}
	return file, done, layout.WriteBundles(file, bundles)
}

// transfer writes an archive that was found to a file, and asks for nothing that archives of the store have.
func (h *Host) transfer(ctx context.Context, remote *artifact.Remote, file string, o artifact.PullOptions) (*artifact.Pulled, error) {
	have, closeAll, err := h.have(file, remote.Layout.Name)
	if err != nil {
		return nil, err
	}
	o.Have = have
	done, err := remote.WriteFile(ctx, file, o)
	return done, errors.Join(err, closeAll())
}

// isPulled reports whether the file of an earlier pull is the archive. A trusted signature beside it shows that without a reading: it
// was written after the file was compared.
func (h *Host) isPulled(ctx context.Context, file string, l *schema.ArchiveLayout, o ImportOptions) bool {
	f, err := durable.OpenNoFollow(file)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // opened for reading
	if info, err := f.Stat(); err != nil || info.Size() != l.Size {
		return false
	}
	if bundles, err := sign.FindBundles(file); err == nil {
		if e, err := h.Expect(ctx, o, bundles); err == nil {
			return e.Verdict.Archive.SHA256 == l.SHA256
		}
	}
	sum := sha256.New()
	return layout.Copy(ctx, sum, f) == nil && hex.EncodeToString(sum.Sum(nil)) == l.SHA256
}

// damagedBy returns the chunks of a blob that differ from the signed ones. Without any of these, the ends of the blob differ, which are in chunks
// with other content.
func damagedBy(list *chunk.List) func(ctx context.Context, written io.ReaderAt, from, to int64) ([]artifact.Range, error) {
	if list == nil {
		return nil
	}
	return func(ctx context.Context, written io.ReaderAt, from, to int64) (damaged []artifact.Range, err error) {
		first, last := (from+list.ChunkSize-1)/list.ChunkSize*list.ChunkSize, to/list.ChunkSize*list.ChunkSize
		if first >= last {
			return []artifact.Range{{From: from, To: to}}, nil
		}
		bad, err := chunk.Verify(ctx, io.NewSectionReader(written, first, last-first), list.Part(first, last-first), 1, report.Discard)
		for _, b := range bad {
			damaged = append(damaged, artifact.Range{From: first + b.From, To: first + b.To})
		}
		if len(damaged) == 0 {
			damaged = []artifact.Range{{From: from, To: first}, {From: last, To: to}}
		}
		return damaged, err
	}
}

// expected returns the signatures of an archive and the signed digests of its chunks, nil where they are not known. It refuses one that must
// not be imported by them, or that is not what they are of.
func (h *Host) expected(ctx context.Context, remote *artifact.Remote, o PullOptions) ([]layout.Bundle, *chunk.List, error) {
	bundles, err := remote.Bundles(ctx)
	if err != nil || o.Import.SkipVerify || o.Import.Bundles != nil {
		return bundles, nil, err
	}
	d, err := h.newAdmission(o.Import)
	if err != nil {
		return nil, nil, err
	}
	var judged []layout.Bundle
	var untrusted error
	for _, b := range bundles {
		parsed, malformed := bundle.Parse(b.Data)
		if malformed != nil || parsed.Statement() != nil {
			judged = append(judged, b)
			continue
		}
		if err = d.authenticatePlain(parsed, remote.Layout.SHA256); err == nil {
			return bundles, nil, nil // it can be compared with the archive only
		}
		untrusted = cmp.Or(untrusted, err)
	}
	e, err := h.Expect(ctx, o.Import, sign.NameBundles(filepath.Base(h.pulledFile(&remote.Layout)), judged))
	if report.CodeOf(err) == report.Unsigned {
		err = cmp.Or(untrusted, err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", o.Reference, err)
	}
	if signed := e.Verdict.Archive; signed.SHA256 != remote.Layout.SHA256 || signed.Size != remote.Layout.Size {
		return nil, nil, report.Errorf(report.Mismatch, "%s: the digest sha256:%s was signed, the archive is sha256:%s", o.Reference, signed.SHA256, remote.Layout.SHA256).
			WithHint("do not use it: the registry names a signature of another archive")
	}
	if e.Solution != remote.Layout.Name || e.Version != remote.Layout.Version {
		return nil, nil, report.Errorf(report.Mismatch, "%s: %s-%s was signed, the archive is called %s", o.Reference, e.Solution, e.Version, remote.Layout.ID()).
			WithHint("do not use it: the registry gives a signed archive another name")
	}
	return bundles, e.Chunks, nil
}

// authenticatePlain fails for a signature without a statement that is not one of a trusted key over the archive with this digest. One over a
// digest of another algorithm may be of any file.
func (d *admission) authenticatePlain(b *bundle.Bundle, sum string) error {
	algorithm, digest := b.Digest()
	if algorithm == crypto.SHA256 {
		var err error
		if digest, err = hex.DecodeString(sum); err != nil {
			return err
		}
	}
	_, err := d.trusted.Authenticate(b, digest)
	return err
}

// have are the archives of a Solution in the store, and the file of a pull whose import was refused. One that cannot be read only costs that
// its blobs are asked for.
func (h *Host) have(file, solution string) (list []layout.Source, closeAll func() error, err error) {
	var opened []*os.File
	add := func(name string, f *os.File, size int64) {
		opened = append(opened, f)
		source := layout.Source{Name: name, ReaderAt: f, Size: size}
		if _, failure := layout.NewIndex(source); failure == nil {
			list = append(list, source)
		}
	}
	entries, err := h.Store.Entries()
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range entries {
		if entry.Name != solution {
			continue
		}
		if f, err := h.Store.Open(entry); err == nil {
			add("archive "+entry.ID()+" of the store", f.File, entry.Size)
		}
	}
	if f, err := durable.OpenNoFollow(file); err == nil {
		if info, err := f.Stat(); err == nil {
			add(file, f, info.Size())
		}
	}
	return list, func() error {
		var failures []error
		for _, f := range opened {
			failures = append(failures, f.Close())
		}
		return errors.Join(failures...)
	}, nil
}

// pulledFile is where an archive lies until it is imported.
func (h *Host) pulledFile(l *schema.ArchiveLayout) string {
	return filepath.Join(h.Store.PulledDir(), l.ID()+".iso")
}

// EndPull removes what Pull returned when its import has succeeded, or has found that it is not what it should be; err is the error of the
// import. After any other error the next import can use the files: they stay, and the error that is returned names them.
func (h *Host) EndPull(err error, files ...string) error {
	status := report.CodeOf(err).ExitStatus()
	if err != nil && status != report.Untrusted.ExitStatus() && status != report.Corrupt.ExitStatus() {
		for _, file := range files {
			err = report.As(report.CodeOf(err), err).WithHint("%s stays, and the next import need not transfer it again; to give it up: rm -f %s*", file, report.ShellWord(file))
		}
		return err
	}
	failures := []error{err}
	for _, file := range files {
		failures = append(failures, h.removePulled(file))
	}
	return errors.Join(failures...)
}

// removePulled removes what Pull returned.
func (h *Host) removePulled(file string) error {
	if err := errors.Join(removeBundles(file), durable.Remove(file)); err != nil {
		return fmt.Errorf("%s stays: %w", file, err)
	}
	return nil
}

// giveUp removes what Pull returned, and what it wrote before it was interrupted, unless another process is pulling it.
func (h *Host) giveUp(file string) error {
	partial, err := durable.Continue(file)
	if errors.Is(err, durable.ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(h.removePulled(file), partial.Discard())
}

func removeBundles(archive string) error {
	found, err := filepath.Glob(layout.BundleFile(archive, "*"))
	if err != nil {
		return err
	}
	failures := []error{durable.Remove(layout.BundleFile(archive, ""))}
	for _, file := range found {
		failures = append(failures, durable.Remove(file))
	}
	return errors.Join(failures...)
}
