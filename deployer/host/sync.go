package host

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/build/artifact"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
)

// SyncOptions say from which host archives are copied, and how they are imported here.
type SyncOptions struct {
	Source    string   // the registry of the other host: https://HOST:PORT, http://HOST:PORT or HOST:PORT
	CA        string   // the file with certificates by which it is trusted; "": those of the endpoints that the cluster records
	Solutions []string // only these; nil: all
	Prune     bool     // remove versions that neither the other host nor the cluster has
	DryRun    bool     // copy and remove nothing
	Jobs      int      // blobs at once; 0 is the default of [artifact.PullOptions]

	Import ImportOptions // without archives
}

// syncing is a run of Sync.
type syncing struct {
	*Host
	o        SyncOptions
	registry string // HOST:PORT
	plain    []string
	resolver *oci.Resolver
	tags     map[string][]string // of the other host's archives, by Solution
	report   schema.SyncReport
	failures []error
	notReady error // why the other host may lack archives that it has
}

// Sync imports the archives that another host serves and this one lacks, older versions first. This host's own policy decides about each,
// before it is transferred. An archive that is refused or cannot be copied stops no other one; the error then names the first, and
// the report has all.
func (h *Host) Sync(ctx context.Context, o SyncOptions) (_ *schema.SyncReport, err error) {
	s := &syncing{Host: h, o: o, tags: map[string][]string{}, report: schema.SyncReport{Archives: []schema.SyncedArchive{}, Removed: []schema.SolutionAt{}, DryRun: o.DryRun}}
	if err = s.connect(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.resolver.Close()) }()
	if o.Prune { // before and after: an archive that is listed at neither time was removed there
		s.notReady = s.resolver.Ready(ctx, s.registry)
	}
	references, err := s.served(ctx)
	if err != nil {
		return nil, err
	}
	if o.Prune {
		s.notReady = cmp.Or(s.notReady, s.resolver.Ready(ctx, s.registry))
	}
	for _, reference := range references {
		if err = s.copy(ctx, reference); ctx.Err() != nil {
			return &s.report, unfinished(err)
		}
	}
	if o.Prune && len(references) == 0 {
		return &s.report, report.Errorf(report.Refused, "%s serves no archive, so nothing is removed here", s.registry).
			WithHint("see that it serves the right store; to remove all archives of this host, unimport them: %s", report.Run("deploy unimport", "SOLUTION", "VERSION"))
	}
	if o.Prune {
		s.prune(ctx)
	}
	if o.Solutions == nil && !o.DryRun {
		s.clean()
	}
	if len(s.failures) > 0 {
		first := s.failures[0]
		return &s.report, report.Errorf(report.CodeOf(first), "%s failed, the first with: %w", report.Count(len(s.failures), "archive"), first)
	}
	return &s.report, nil
}

// connect sets how the other host is reached.
func (s *syncing) connect(ctx context.Context) error {
	address := s.o.Source
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	endpoint, err := schema.ParseEndpoint(address)
	if err != nil {
		return err
	}
	if schema.IsPushedTo(endpoint) {
		return report.Errorf(report.Usage, "%s is not the registry of a host: it has a path", s.o.Source).
			WithHint("write https://HOST:PORT, where '%s' runs; an archive in another registry is imported by its name, oci://…", report.Run("deploy serve"))
	}
	scheme, host, _ := strings.Cut(endpoint, "://")
	s.registry, s.report.Source = host, endpoint
	if scheme == "http" {
		s.plain = []string{host}
	}
	options := oci.Options{PlainHTTP: s.plain, NoMirrors: true, Jobs: s.o.Jobs, CertsDirs: oci.DefaultCertsDirs(), Sink: s.Sink}
	authority, err := s.authority(ctx)
	if err == nil && len(authority) > 0 {
		var trusting *http.Transport
		if trusting, err = oci.TrustingTransport(authority); err != nil {
			err = fmt.Errorf("authority of %s: %w", host, err)
		}
		options.Transport = trusting
	}
	s.resolver = oci.NewResolver(options)
	return err
}

// authority returns the certificates by which the other host is trusted.
func (s *syncing) authority(ctx context.Context) ([]byte, error) {
	if s.o.CA != "" {
		data, err := os.ReadFile(s.o.CA)
		if err != nil {
			return nil, report.As(report.Usage, err).WithHint("name a copy of %s of the other host", filepath.Join("STORE", authorityDir, authorityFile))
		}
		return data, nil
	}
	if s.Cluster == nil || len(s.plain) > 0 {
		return nil, nil
	}
	recorded, err := s.Cluster.Registry(ctx)
	if err != nil || recorded == nil {
		return nil, err
	}
	return []byte(recorded.CA), nil
}

// served lists the archives of the other host, by name and version.
func (s *syncing) served(ctx context.Context) (list []artifact.Reference, err error) {
	repositories, err := s.resolver.Repositories(ctx, s.registry, artifact.ServedIn)
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return nil, report.As(report.CodeOf(err), err).WithHint("name a copy of tls/ca.crt in the store of that host with --ca")
	}
	if err != nil {
		return nil, err
	}
	for _, repository := range repositories {
		solution := strings.TrimPrefix(repository, artifact.ServedIn)
		if s.o.Solutions != nil && !slices.Contains(s.o.Solutions, solution) {
			continue
		}
		tags, err := s.resolver.Tags(ctx, s.registry+"/"+repository)
		if err != nil {
			return nil, err
		}
		tags = slices.DeleteFunc(tags, func(tag string) bool { // other names of an archive, or lists of signatures
			_, err := schema.ParseVersion(versionOf(tag))
			return err != nil
		})
		slices.SortFunc(tags, compareTags)
		s.tags[solution] = tags
		for _, tag := range tags {
			reference, err := artifact.ParseReference(artifact.Scheme + s.registry + "/" + repository + ":" + tag)
			if err != nil {
				return nil, err
			}
			list = append(list, reference)
		}
	}
	for _, wanted := range s.o.Solutions {
		if s.tags[wanted] == nil {
			return nil, report.Errorf(report.NotFound, "%s serves no archive of Solution %s", s.registry, wanted).
				WithHint("'%s' on that host lists what it has", report.Run("deploy search"))
		}
	}
	return list, nil
}

// versionOf is the version that a tag stands for.
func versionOf(tag string) string { return strings.Replace(tag, "_", "+", 1) }

func compareTags(a, b string) int {
	return cmp.Or(schema.CompareVersions(versionOf(a), versionOf(b)), cmp.Compare(a, b))
}

func solutionOf(r artifact.Reference) string {
	_, path, _ := strings.Cut(r.Repository, "/")
	return strings.TrimPrefix(path, artifact.ServedIn)
}

// copy imports an archive of the other host, unless this one has it, and adds it to the report. The error is in the report, too.
func (s *syncing) copy(ctx context.Context, reference artifact.Reference) error {
	done := schema.SyncedArchive{Solution: solutionOf(reference), Version: reference.Tag, Signers: []string{}, Notices: []string{}}
	err := s.copyInto(ctx, reference, &done)
	if err != nil {
		done.State, done.Reason = schema.SyncFailed, err.Error()
		s.failures = append(s.failures, err)
	}
	s.report.Archives = append(s.report.Archives, done)
	return err
}

func (s *syncing) copyInto(ctx context.Context, reference artifact.Reference, done *schema.SyncedArchive) error {
	remote, err := artifact.Open(ctx, s.resolver, reference)
	if err != nil {
		return err
	}
	l := &remote.Layout
	if l.Name != done.Solution || artifact.DefaultTag(l.Version) != reference.Tag {
		return report.Errorf(report.Invalid, "%s has the archive %s", reference, l.ID())
	}
	done.Version, done.SHA256, done.Size, done.State = l.Version, l.SHA256, l.Size, schema.SyncPresent
	if entry, failure := s.Store.Find(l.Name, l.Version); failure == nil && entry.SHA256 == l.SHA256 {
		if s.o.DryRun {
			return nil
		}
		return s.update(ctx, remote, entry, done)
	}
	o := PullOptions{Reference: reference, Jobs: s.o.Jobs, Import: s.o.Import}
	if s.o.DryRun {
		done.State = schema.SyncMissing
		_, _, err = s.expected(ctx, remote, o)
		return err
	}
	file, pulled, err := s.pull(ctx, remote, o)
	if err != nil {
		return err
	}
	done.Fetched = pulled.Fetched
	o.Import.Archives = []string{file}
	if err = s.importInto(ctx, o.Import, done); report.CodeOf(err) == report.Corrupt {
		return errors.Join(err, removeBundles(file)) // the next run compares the file, and asks for what is damaged
	}
	if err != nil {
		return err // the next run, which a timer may start, does not transfer it again
	}
	done.State = schema.SyncImported
	return s.removePulled(file)
}

// importInto imports one archive, and adds the import to the report.
func (s *syncing) importInto(ctx context.Context, o ImportOptions, done *schema.SyncedArchive) error {
	imported, err := s.Import(ctx, o)
	if imported != nil {
		done.Notices = append(done.Notices, imported.Notices...)
		for _, archive := range imported.Archives {
			done.Signers = append(done.Signers, archive.Signers...)
		}
	}
	return err
}

// update imports an archive of this host again, if the other host serves further signatures of it, or if the file that was pulled is still
// there: then an import ended after the archive was stored, and before all of its other steps were done.
func (s *syncing) update(ctx context.Context, remote *artifact.Remote, entry store.Entry, done *schema.SyncedArchive) (err error) {
	served, err := remote.Bundles(ctx)
	if err != nil {
		return err
	}
	added, err := s.addedBundles(s.o.Import, served, entry)
	if err != nil {
		return err
	}
	pulled := s.pulledFile(&remote.Layout)
	if _, failure := os.Lstat(pulled); len(added) == 0 && errors.Is(failure, fs.ErrNotExist) {
		return nil
	}
	kept, err := s.Store.Bundles(entry)
	if err != nil {
		return err
	}
	bundles := sign.NameBundles(entry.Path, added)
	for _, data := range kept { // they alone may be trusted here
		bundles = append(bundles, sign.NamedBundle{File: entry.Path, Data: data})
	}
	if len(bundles) == 0 {
		again := report.Run("deploy import", artifact.Scheme+s.registry+"/"+artifact.ServedIn+done.Solution+":"+artifact.DefaultTag(done.Version)).With("insecure-skip-verify")
		if len(s.plain) > 0 {
			again = again.With("plain-http", s.plain...)
		}
		return report.Errorf(report.Unsigned, "an import of Solution %s %s without a signature has not ended", done.Solution, done.Version).WithHint("to end it: %s", again)
	}
	f, err := s.Store.Open(entry)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	o := s.o.Import
	o.Archives, o.Opened = nil, []OpenArchive{{Name: entry.Path, File: f.File, Bundles: bundles}}
	if err = s.importInto(ctx, o, done); err != nil {
		return err
	}
	return s.removePulled(pulled)
}

// prune removes the versions that neither the other host nor the cluster has. An archive that is damaged there, or still being verified, is not
// listed either: then nothing is removed.
func (s *syncing) prune(ctx context.Context) {
	if s.notReady != nil {
		s.failures = append(s.failures, fmt.Errorf("nothing is removed here: %w", s.notReady))
		return
	}
	entries, err := s.Store.Entries()
	var recorded []schema.Import
	if err == nil && s.Cluster != nil {
		recorded, err = s.Cluster.Imports(ctx)
	}
	if err != nil {
		s.failures = append(s.failures, err)
		return
	}
	for _, e := range entries {
		switch {
		case s.o.Solutions != nil && !slices.Contains(s.o.Solutions, e.Name):
			continue
		case slices.ContainsFunc(s.tags[e.Name], func(tag string) bool { return tag == artifact.DefaultTag(e.Version) }):
			continue
		case slices.ContainsFunc(recorded, func(i schema.Import) bool { return i.ID() == e.ID() }):
			continue
		}
		if !s.o.DryRun {
			if _, err = s.Unimport(ctx, UnimportOptions{Archive: e.Name, Version: e.Version}); err != nil {
				s.failures = append(s.failures, err)
				continue
			}
		}
		s.report.Removed = append(s.report.Removed, schema.SolutionAt{Solution: e.Name, Version: e.Version})
	}
}

// keepPulled is for how long files stay that were pulled, not imported, and are not served any more.
const keepPulled = 7 * 24 * time.Hour

// clean removes what was pulled and not imported, when the other host does not serve it any more. A further host may serve it, or an
// administrator import it, so it stays for a while. That of an archive of the store shows that its import is not finished.
func (s *syncing) clean() {
	dir := s.Store.PulledDir()
	found, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	entries, failure := s.Store.Entries()
	if err = errors.Join(err, failure); err != nil {
		s.failures = append(s.failures, err)
		return
	}
	wanted := map[string]bool{}
	for _, e := range entries {
		wanted[s.pulledFile(&schema.ArchiveLayout{Name: e.Name, Version: e.Version})] = true
	}
	for solution, tags := range s.tags {
		for _, tag := range tags {
			wanted[s.pulledFile(&schema.ArchiveLayout{Name: solution, Version: versionOf(tag)})] = true
		}
	}
	for _, entry := range found {
		file := filepath.Join(dir, strings.TrimSuffix(strings.TrimPrefix(entry.Name(), "."), ".partial"))
		info, err := entry.Info()
		if err != nil || wanted[file] || filepath.Ext(file) != ".iso" || s.Now().Sub(info.ModTime()) < keepPulled {
			continue
		}
		if err = s.giveUp(file); err != nil {
			s.failures = append(s.failures, err)
		}
	}
}
