// Package host has the use cases of a host that keeps imported archives, one method of [Host] for each:
//
//   - [Host.Import] verifies and checks archives, stores them, and records them in the cluster.
//   - [Host.Pull] brings an archive from a registry to this host, and [Host.Sync] imports those that another host serves.
//   - [Host.Push] uploads the images of an imported archive to a registry of the site.
//   - [Host.Unimport] removes one, from the cluster first.
//   - [Host.Converge] applies a configuration file to the host and the cluster.
//   - [Active] sets the active versions in the cluster and in MetalK8s' configuration.
//   - [Host.Affected] finds the imported versions that have a package, and where they are deployed.
//   - [StoredArchives] reads the manifests in the store, for a search.
//   - [Host.AddEndpoints] records in the cluster where nodes find the images of this host, and [Serve] serves them;
//     [ServeOptions.Unit] makes systemd run that.
//
// An import is an admission, then a change. The admission opens each archive once, and everything that is read later is
// checked against the signed digests: the stored bytes are the judged ones, even if the file changes. All archives are
// admitted before the first one is stored, and all are stored before the first one counts. Each step can be repeated:
// the same import finishes one that was interrupted anywhere.
//
// The packages below have the parts: store keeps the archives, serve and registry serve them, authority signs, node
// configures. The package prints nothing and asks no questions; it reports progress to a sink.
package host

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Host is the host of a store, with the cluster that it serves: everything that an import or unimport changes.
type Host struct {
	Dir           string // of the store
	Store         *store.Store
	Configuration *store.Configuration
	Mounts        Mounts
	Nginx         *store.Nginx
	Cluster       Cluster // nil: the cluster learns nothing
	LockWait      time.Duration
	Sink          report.Sink
	Now           func() time.Time
	Version       string // of the program
}

// Cluster keeps the records of imported archives. [ClusterOf] is a real one.
type Cluster interface {
	Registry(ctx context.Context) (*schema.ClusterRegistry, error)
	// Imports lists the imported versions. It fails with [report.Unavailable] when the cluster does not answer.
	Imports(ctx context.Context) ([]schema.Import, error)
	// Active returns the active version of a Solution, "" when there is none.
	Active(ctx context.Context, solution string) (string, error)
	AddEndpoints(ctx context.Context, o deployer.EndpointOptions) (*schema.ClusterRegistry, error)
	RecordImport(ctx context.Context, r records.ImportRecord) (notices []string, err error)
	// RecordUnimport fails with [report.InUse] for a version that is used.
	RecordUnimport(ctx context.Context, o deployer.UnimportOptions) error
	PreviewActivation(ctx context.Context, r records.ImportRecord) (*schema.Operation, error)
}

// ClusterOf is the cluster that a deployer works on: its records, and the verbs that change them.
func ClusterOf(d *deployer.Deployer) Cluster {
	return struct {
		*deployer.Deployer
		*records.Records
	}{d, d.Records}
}

// Mounts mounts archives on a host. [store.Mounts] is the one of this host.
type Mounts interface {
	// Possible returns the reason why archives cannot be mounted.
	Possible() error
	Mounted(e store.Entry) (bool, error)
	Mount(ctx context.Context, e store.Entry) (changed bool, err error)
	Unmount(ctx context.Context, e store.Entry) (changed bool, err error)
}

// Places are the places on a host that keep or name archives.
type Places struct {
	Store         string // a directory, such as [store.DefaultDir]
	Configuration string // MetalK8s' file, such as [store.DefaultConfiguration]
	Nginx         string // a directory, such as [store.DefaultNginxDir]
}

// Open returns this host. Its exported fields that say how it works, and for whom, are the caller's to set.
func Open(p Places) (*Host, error) {
	s, err := store.Open(p.Store)
	if err != nil {
		return nil, err
	}
	return &Host{
		Dir: p.Store, Store: s, Mounts: &store.Mounts{}, Nginx: &store.Nginx{Dir: p.Nginx},
		Configuration: &store.Configuration{Path: p.Configuration, Identify: archive.Identify},
	}, nil
}

// lock takes the lock of the store.
func (h *Host) lock(ctx context.Context) (*store.Locked, error) {
	return h.Store.LockWithin(ctx, h.LockWait, h.Sink)
}

// openArchive opens an archive of the store, to be read through the digests of its import. The caller closes the file.
func (h *Host) openArchive(e store.Entry) (_ *archive.Archive, file io.Closer, err error) {
	stored, err := h.Store.Open(e)
	if err != nil {
		return nil, nil, err
	}
	opened, err := archive.Open(stored.Verified, e.Size)
	if err != nil {
		return nil, nil, errors.Join(err, stored.Close())
	}
	return opened, stored, nil
}

func (h *Host) find(path string) (string, error) {
	entries, err := h.Store.Entries()
	if err != nil {
		return "", err
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if slices.Contains([]string{e.Original, e.Path}, full) {
			return e.Path, nil
		}
	}
	return path, nil
}

// unfinished marks the error of an operation that has changed something and can be repeated.
func unfinished(err error) error {
	if errors.Is(err, context.Canceled) {
		return report.As(report.Interrupted, err).WithHint("run the same command again, which finishes the work")
	}
	return err
}
