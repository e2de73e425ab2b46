package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

// PushTarget is a registry of the site that images are pushed to.
type PushTarget struct {
	Registry string   // HOST[:PORT]/PATH; each image has a repository below that path
	CA       string   // the file with certificates by which this host and the nodes trust it; "": they do so anyway
	Plain    []string // registries that are asked without TLS
	Jobs     int      // uploads at once; 0 is the default of [oci.PushOptions]

	Keychain  oci.Keychain
	CertsDirs []string
}

// PushOptions name an archive of the store, and the registry that gets its images.
type PushOptions struct {
	PushTarget
	Solution, Version string
	DryRun            bool // only plan
}

// endpoint is the registry as nodes are given it.
func (t *PushTarget) endpoint() (string, error) {
	scheme, host := "https://", t.Registry
	host, _, _ = strings.Cut(host, "/")
	if slices.Contains(t.Plain, host) {
		scheme = "http://"
	}
	endpoint, err := schema.ParseEndpoint(scheme + t.Registry)
	if err != nil || !schema.IsPushedTo(endpoint) || strings.Contains(t.Registry, "://") {
		return "", report.Errorf(report.Usage, "%q is not a place in a registry", t.Registry).
			WithHint("write HOST[:PORT]/PATH in small letters, such as registry.example.com/solutions; in Harbor, the first part is a project")
	}
	return endpoint, nil
}

// record returns the entry of the registry in the cluster's record.
func (t *PushTarget) record() (*schema.ClusterRegistry, error) {
	endpoint, err := t.endpoint()
	if err != nil {
		return nil, err
	}
	record := &schema.ClusterRegistry{Mode: schema.RegistryExternal, Host: schema.RegistryHostOwn, Endpoints: []string{endpoint}}
	if t.CA != "" {
		data, failure := os.ReadFile(t.CA)
		if failure != nil {
			return nil, report.As(report.Usage, failure).WithHint("name the file with the certificates of the registry's authority")
		}
		record.CA = string(data)
	}
	return record, nil
}

// Push uploads the images of an imported version to a registry of the site, and records it as an endpoint of the cluster.
// It can be repeated: what the registry has is not sent again. Nothing is recorded before every digest was compared.
func (h *Host) Push(ctx context.Context, o PushOptions) (*schema.PushReport, error) {
	record, err := o.record()
	if err != nil {
		return nil, err
	}
	entry, err := h.Store.Find(o.Solution, o.Version)
	if err != nil {
		return nil, err
	}
	if err = h.checkPushed(ctx, record); err != nil {
		return nil, err
	}
	done, err := h.pushEntry(ctx, entry, o.PushTarget, record, o.DryRun)
	if err != nil || o.DryRun || h.Cluster == nil {
		return done, err
	}
	if _, err = h.Cluster.AddEndpoints(ctx, deployer.EndpointOptions{More: *record}); err != nil {
		return done, fmt.Errorf("the images are in the registry, but the cluster does not know it: %w", err)
	}
	done.Recorded = true
	return done, nil
}

// checkPushed refuses, before anything is uploaded, a registry that the cluster could not record.
func (h *Host) checkPushed(ctx context.Context, record *schema.ClusterRegistry) error {
	if h.Cluster == nil {
		return nil
	}
	_, err := h.Cluster.AddEndpoints(ctx, deployer.EndpointOptions{More: *record, DryRun: true})
	return err
}

// pushEntry uploads the images of one archive.
func (h *Host) pushEntry(ctx context.Context, entry store.Entry, t PushTarget, record *schema.ClusterRegistry, dryRun bool) (_ *schema.PushReport, err error) {
	registry := schema.EndpointPlace(record.Endpoints[0])
	uploads, stored, err := h.uploads(entry, registry)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stored.Close()) }()
	done := &schema.PushReport{Solution: entry.Name, Version: entry.Version, Registry: registry, Images: []schema.PushedImage{}, DryRun: dryRun}
	for _, u := range uploads {
		done.Images = append(done.Images, schema.PushedImage{Name: u.Image.Ref.String(), Repository: u.Repository, Tag: u.Image.Ref.Tag, Digest: u.Image.Root.Digest.String()})
	}
	if len(uploads) == 0 {
		return done, nil
	}
	push, err := oci.NewPush(ctx, uploads, h.earlier(entry, registry), oci.PushOptions{
		Keychain: t.Keychain, CertsDirs: t.CertsDirs, CA: []byte(record.CA), PlainHTTP: t.Plain, Jobs: t.Jobs, Sink: h.Sink,
	})
	if err != nil {
		return nil, fmt.Errorf("images of %s: %w", entry.ID(), err)
	}
	done.Blobs, done.Bytes, done.NewBlobs, done.NewBytes, done.Mounts = push.Blobs, push.Bytes, push.NewBlobs, push.NewBytes, push.Mounts
	if !dryRun {
		err = push.Run(ctx)
	}
	if err != nil {
		return nil, unfinished(fmt.Errorf("images of %s: %w", entry.ID(), explainDamage(ctx, stored, err)))
	}
	return done, nil
}

// explainDamage adds to the error of a blob without its digest which bytes of the archive were changed since its import.
func explainDamage(ctx context.Context, stored *store.File, err error) error {
	if report.CodeOf(err) != report.Corrupt || len(report.Hints(err)) > 0 {
		return err
	}
	if _, damage := chunk.Check(ctx, stored.File, stored.Verified.List(), nil, report.Discard); damage != nil {
		return report.Errorf(report.Corrupt, "%w; in the archive, %w", err, damage).WithHint("import the archive again")
	}
	return report.As(report.Corrupt, err).WithHint("the archive is as it was imported: ask the vendor for a correct one")
}

// uploads are the images of an archive of the store and their repositories. The caller closes the archive after the push.
//
// Manifests are read with the digests of the import. Blobs are not: each has to have the digest in its manifest, which the upload
// compares before the registry gets a manifest. The other digests would find the same damage, not a fault of the vendor, and cost
// another hash of each byte.
func (h *Host) uploads(entry store.Entry, registry string) (list []oci.Upload, _ *store.File, err error) {
	stored, err := h.Store.Open(entry)
	if err != nil {
		return nil, nil, err
	}
	reader := &struct{ io.ReaderAt }{stored.Verified}
	opened, err := archive.Open(reader, entry.Size)
	if err != nil {
		return nil, nil, errors.Join(err, stored.Close())
	}
	for _, image := range opened.Images.Images() {
		list = append(list, oci.Upload{Repository: registry + "/" + entry.ID() + "/" + image.Ref.Name, Image: image, Tags: []string{image.Ref.Tag}})
	}
	reader.ReaderAt = stored.File
	return list, stored, nil
}

// earlier are the images of other versions of the same Solution in the store, which the registry may have: their blobs are
// not sent again. An archive that cannot be read only costs this.
func (h *Host) earlier(entry store.Entry, registry string) (list []oci.Upload) {
	entries, err := h.Store.Entries()
	if err != nil {
		return nil
	}
	for _, other := range entries {
		if other.Name != entry.Name || other.Version == entry.Version {
			continue
		}
		uploads, stored, err := h.uploads(other, registry)
		if err != nil {
			continue
		}
		_ = stored.Close() // only its manifests were needed
		list = append(list, uploads...)
	}
	return list
}

// describePushed sets the registry that images are pushed to as the endpoint to record.
func (i *importing) describePushed(ctx context.Context) (err error) {
	if len(i.o.Endpoints) > 0 || i.o.CA != "" {
		return report.Errorf(report.Usage, "--push-to does not go with --endpoint and --ca").
			WithHint("record the address of this host with '%s'; the authority of the registry is --push-ca", report.Run("deploy registry add"))
	}
	if i.registry, err = i.o.PushTo.record(); err != nil || i.absent != nil {
		return err
	}
	return i.checkPushed(ctx, i.registry)
}

// push uploads the images of the imported archives. The cluster learns of none before all are there.
func (i *importing) push(ctx context.Context, entries []store.Entry) error {
	if i.o.PushTo == nil {
		return i.remindOfPush(ctx, entries)
	}
	for _, entry := range entries {
		done, err := i.pushEntry(ctx, entry, *i.o.PushTo, i.registry, false)
		if err != nil {
			e := report.Errorf(report.CodeOf(err), "imported on this host, but its images were not pushed, and the cluster does not know it: %w", err)
			return e.WithHint("run the same command again when the cause is removed: it continues")
		}
		i.report.Pushed = append(i.report.Pushed, *done)
	}
	return nil
}

// remindOfPush adds a notice where nodes get images from registries that this import has not pushed to, and from no others.
func (i *importing) remindOfPush(ctx context.Context, entries []store.Entry) error {
	if i.Cluster == nil || i.absent != nil || i.mode != schema.RegistryExternal {
		return nil
	}
	registry, err := i.Cluster.Registry(ctx)
	if err != nil || registry == nil {
		return err
	}
	for _, endpoint := range registry.Endpoints {
		if !schema.IsPushedTo(endpoint) {
			continue
		}
		for _, entry := range entries {
			i.report.Notices = append(i.report.Notices, fmt.Sprintf("nodes get images from %s, too, which might not have those of %s: %s",
				endpoint, entry.ID(), report.Run("deploy push", entry.Name, entry.Version, schema.EndpointPlace(endpoint))))
		}
	}
	return nil
}
