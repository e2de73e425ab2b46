package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
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
	uploads, closeArchive, err := h.uploads(entry, registry)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeArchive()) }()
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
		return nil, unfinished(fmt.Errorf("images of %s: %w", entry.ID(), err))
	}
	return done, nil
}

// uploads are the images of an archive of the store and their repositories. Everything is read with the signed digests of the archive.
func (h *Host) uploads(entry store.Entry, registry string) (list []oci.Upload, closeArchive func() error, err error) {
	opened, file, err := h.openArchive(entry)
	if err != nil {
		return nil, nil, err
	}
	for _, image := range opened.Images.Images() {
		list = append(list, oci.Upload{Repository: registry + "/" + entry.ID() + "/" + image.Ref.Name, Image: image, Tags: []string{image.Ref.Tag}})
	}
	return list, file.Close, nil
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
		uploads, closeArchive, err := h.uploads(other, registry)
		if err != nil {
			continue
		}
		_ = closeArchive() // only its manifests were needed
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
