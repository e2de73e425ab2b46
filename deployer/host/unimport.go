package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// UnimportOptions name an archive.
type UnimportOptions struct {
	// Archive is the name of a Solution, with Version; without it, an id, or the path that the archive was imported from or lies at.
	Archive string
	Version string
}

// Unimport removes an archive, from the cluster first. It refuses an archive in use.
func (h *Host) Unimport(ctx context.Context, o UnimportOptions) (*schema.UnimportReport, error) {
	locked, err := h.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer locked.Unlock() //nolint:errcheck // the end of the process gives it back, too
	e, err := h.Store.Find(o.Archive, o.Version)
	if err != nil {
		return h.unimported(ctx, err, o)
	}
	done := &schema.UnimportReport{Solution: e.Name, Version: e.Version, Path: e.Path, Notices: []string{}}
	if !e.InPlace {
		done.Freed = e.Size
	}
	if err = errors.Join(h.checkInactive(e), h.Configuration.Check()); err != nil {
		return nil, err
	}
	if h.Cluster != nil {
		if err = h.Cluster.RecordUnimport(ctx, deployer.UnimportOptions{ID: e.ID()}); err != nil {
			return nil, err
		}
		done.Recorded = true
	}
	if err = h.withdraw(ctx, e, done); err == nil {
		err = locked.Remove(e.ID())
	}
	return done, unfinished(err)
}

// errElsewhere marks the error for an archive that was imported on another host.
var errElsewhere = errors.New("imported on another host")

// unimported returns an empty report if a fully named version, or the archive of a path, is gone already: an earlier
// run removed it, perhaps an interrupted one. Any other missing version is an error, and so is one that the cluster
// records, or may record.
func (h *Host) unimported(ctx context.Context, missing error, o UnimportOptions) (*schema.UnimportReport, error) {
	if report.CodeOf(missing) != report.NotFound {
		return nil, missing
	}
	at, full := o.At()
	isPath := o.Version == "" && (strings.ContainsRune(o.Archive, filepath.Separator) || strings.HasSuffix(o.Archive, ".iso"))
	err := h.checkElsewhere(ctx, o)
	switch {
	case errors.Is(err, errElsewhere):
		return nil, err
	case !full && !isPath: // a misspelling, rather
		return nil, missing
	case err != nil:
		return nil, report.Errorf(report.CodeOf(err), "%w, and the cluster's records cannot be read: %w", missing, err)
	}
	return &schema.UnimportReport{
		Solution: at.Solution, Version: at.Version, Notices: append([]string{missing.Error() + ": there is nothing to do"}, report.Hints(missing)...),
	}, nil
}

// At is the version that is named in full, by an id, too, or by the name that 'build' gives to its file.
func (o UnimportOptions) At() (at schema.SolutionAt, full bool) {
	if o.Version != "" {
		_, err := schema.ParseVersion(o.Version)
		return schema.SolutionAt{Solution: o.Archive, Version: o.Version}, err == nil
	}
	id := strings.TrimSuffix(filepath.Base(o.Archive), ".iso")
	for i := 2; i < len(id); i++ { // a name may have dashes, too
		if _, err := schema.ParseVersion(id[i:]); err == nil && id[i-1] == '-' {
			return schema.SolutionAt{Solution: id[:i-1], Version: id[i:]}, id[i] != '-'
		}
	}
	return schema.SolutionAt{}, false
}

// checkElsewhere fails with errElsewhere for an archive that the cluster records.
func (h *Host) checkElsewhere(ctx context.Context, o UnimportOptions) error {
	if h.Cluster == nil {
		return nil
	}
	imports, err := h.Cluster.Imports(ctx)
	if err != nil {
		return err
	}
	for _, i := range imports {
		if o.Version == "" && (o.Archive == i.ID() || o.Archive == i.Archive.Path) || o.Archive == i.Name && o.Version == i.Version {
			return report.Errorf(report.NotFound, "%s was %w by %s, as %s", i.ID(), errElsewhere, i.ImportedBy, i.Archive.Path).
				WithHint("run the command on the host that has this file")
		}
	}
	return nil
}

// checkInactive refuses to take away what MetalK8s' configuration makes active.
func (h *Host) checkInactive(e store.Entry) error {
	configuration, err := h.Configuration.Load()
	if err != nil || h.Cluster != nil { // the cluster knows better
		return err
	}
	active := configuration.Active[e.Name]
	if active == schema.ActiveLatest {
		entries, err := h.Store.Entries()
		if err != nil {
			return err
		}
		for _, other := range entries { // ordered by version
			if other.Name == e.Name {
				active = other.Version
			}
		}
	}
	if active != e.Version {
		return nil
	}
	return report.Errorf(report.InUse, "%s is active in %s", e.ID(), h.Configuration.Path).
		WithHint("deactivate it first: %s", report.Run("deploy deactivate", e.Name))
}

// mayList reports whether a configuration lists an archive with a version of a Solution, "" for any, or one that cannot be read.
func (h *Host) mayList(c *schema.SolutionsConfiguration, solution, version string) bool {
	return slices.ContainsFunc(c.Archives, func(path string) bool {
		manifest, err := h.Configuration.Identify(path)
		return err != nil || manifest.Metadata.Name == solution && (version == "" || manifest.Spec.Version == version)
	})
}

// activeVersion returns the version of a Solution that is active in the cluster, "" without a cluster.
func (h *Host) activeVersion(ctx context.Context, solution string) (string, error) {
	if h.Cluster == nil {
		return "", nil
	}
	return h.Cluster.Active(ctx, solution)
}

// unlist removes an archive from MetalK8s' configuration, and its version from the active ones. Another version that is active in the cluster takes its
// place if it has an archive here: MetalK8s deletes the CRDs of one that is not listed. The notices report a changed active version.
func (h *Host) unlist(ctx context.Context, e store.Entry) (notices []string, err error) {
	version, unknown := h.activeVersion(ctx, e.Name)
	var change string
	edited, err := h.Configuration.Edit(ctx, func(c *schema.SolutionsConfiguration) {
		store.UnlistArchive(c, e)
		listed := c.Active[e.Name]
		none := !h.mayList(c, e.Name, "")
		switch {
		case listed == "" || listed != e.Version && !none:
		case !none && unknown != nil:
			change = fmt.Sprintf("still lists %s %s as active: the version that is active in the cluster is not known: %v", e.Name, listed, unknown)
		case version != "" && h.mayList(c, e.Name, version):
			c.Active[e.Name] = version
			change = fmt.Sprintf("now lists %s %s, which is active in the cluster, instead of %s", e.Name, version, listed)
		default:
			delete(c.Active, e.Name)
			change = fmt.Sprintf("no longer lists %s %s as active", e.Name, listed)
		}
	})
	if err != nil {
		return nil, err
	}
	if change != "" {
		notices = append(notices, h.Configuration.Path+" "+change)
	}
	return append(notices, edited.Notes...), nil
}

// withdraw takes away everything on this host that names an archive.
func (h *Host) withdraw(ctx context.Context, e store.Entry, done *schema.UnimportReport) error {
	notices, err := h.unlist(ctx, e)
	if err != nil {
		return err
	}
	done.Notices = append(done.Notices, notices...)
	excluded, err := h.Nginx.Exclude(e.ID())
	if err != nil {
		return err
	}
	if excluded {
		done.Notices = append(done.Notices, "MetalK8s' nginx forgets the images after: salt-call state.sls metalk8s.repo.installed")
	}
	_, err = h.Mounts.Unmount(ctx, e)
	return err
}
