package host

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/build/sbom"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// AffectedOptions ask which imported versions have a package.
type AffectedOptions struct {
	Package, Range, Advisory string // of the question, for the result
	LeftOut                  []string
	Search                   func(*schema.PackageList) *schema.AffectedArchive
	// Status reads which versions are active and deployed where; nil to ask no cluster.
	Status func(ctx context.Context) (*schema.Status, error)
	// Running reads the images that run in a namespace, by node; nil to ask no cluster.
	Running func(ctx context.Context, namespace string) (map[string][]string, error)
}

// Affected returns the imported versions with a package that a query selects, and where they are deployed. The packages of an archive are listed
// at the first question, and kept in the store if this user may write there.
func (h *Host) Affected(ctx context.Context, o AffectedOptions) (*schema.SiteAffectedReport, error) {
	result := &schema.SiteAffectedReport{
		Package: o.Package, Range: o.Range, Advisory: o.Advisory, LeftOut: o.LeftOut, Versions: []schema.AffectedVersion{}, NotSearched: []schema.UnsearchedVersion{}, Problems: []string{},
	}
	entries, err := h.Store.Entries()
	if err != nil {
		return nil, err
	}
	status := &schema.Status{}
	if o.Status != nil {
		if status, err = o.Status(ctx); err != nil {
			return nil, err
		}
		result.Problems = append(result.Problems, status.Problems...)
	}
	for _, e := range entries {
		list, err := h.packagesOf(ctx, e)
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			result.NotSearched = append(result.NotSearched, schema.UnsearchedVersion{ID: e.ID(), Reason: err.Error()})
			continue
		}
		found := o.Search(list)
		found.Archive = e.Path
		if err = h.explain(e, found); err != nil {
			result.Problems = append(result.Problems, e.ID()+": "+err.Error())
		}
		result.Versions = append(result.Versions, schema.AffectedVersion{
			AffectedArchive: *found, Active: isActive(status, e), Uses: usesOf(status, e),
		})
	}
	result.NotSearched = append(result.NotSearched, notStored(status, entries)...)
	if o.Running != nil {
		result.Problems = append(result.Problems, addNodes(ctx, result.Versions, o.Running)...)
	}
	return result, ctx.Err()
}

// explain adds the vendor's statements about the packages that were found.
func (h *Host) explain(e store.Entry, found *schema.AffectedArchive) (err error) {
	if len(found.Packages) == 0 {
		return nil
	}
	opened, file, err := h.openArchive(e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	statements, err := sbom.ReadStatements(opened)
	if err != nil {
		return err
	}
	statements.Explain(found)
	return nil
}

// packagesOf returns the packages of an archive: the kept list, or a new one.
func (h *Host) packagesOf(ctx context.Context, e store.Entry) (*schema.PackageList, error) {
	data, err := h.Store.ReadPackages(e, sbom.Edition)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		if kept, damaged := unpackPackages(data); damaged == nil {
			return kept, nil
		}
	}
	list, err := h.listPackages(ctx, e)
	if err != nil {
		return nil, err
	}
	if err = h.keepPackages(e, list); err != nil {
		h.Sink.Emit(report.Event{Step: "keep packages", Name: e.ID(), State: report.Skipped, Note: err.Error()})
	}
	return list, nil
}

// listPackages reads the layers of an archive, through the digests of its import.
func (h *Host) listPackages(ctx context.Context, e store.Entry) (list *schema.PackageList, err error) {
	opened, file, err := h.openArchive(e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return sbom.List(ctx, opened.Solution, opened.Images.Images(), sbom.Options{Sink: report.Named(h.Sink, e.ID())})
}

func (h *Host) keepPackages(e store.Entry, list *schema.PackageList) error {
	var data bytes.Buffer
	packed := gzip.NewWriter(&data)
	if err := errors.Join(json.NewEncoder(packed).Encode(list), packed.Close()); err != nil {
		return err
	}
	locked, err := h.Store.Lock()
	if err != nil {
		return err
	}
	return errors.Join(locked.WritePackages(e, sbom.Edition, data.Bytes()), locked.Unlock())
}

// maxPackageList bounds the uncompressed list of the packages of an archive.
const maxPackageList = 1 << 30

func unpackPackages(data []byte) (*schema.PackageList, error) {
	packed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	list := &schema.PackageList{}
	return list, json.NewDecoder(io.LimitReader(packed, maxPackageList)).Decode(list)
}

// atOnce is the number of namespaces that are read at the same time.
const atOnce = 8

// addNodes adds the nodes that run affected images, and returns why some are unknown.
func addNodes(ctx context.Context, versions []schema.AffectedVersion, running func(context.Context, string) (map[string][]string, error)) []string {
	readers := map[string][]func(images map[string][]string){} // by namespace
	for i := range versions {
		v := &versions[i]
		if len(v.Packages) == 0 {
			continue
		}
		if v.Active {
			system := render.SystemNamespace(v.Solution)
			readers[system] = append(readers[system], func(images map[string][]string) { v.Nodes = nodesOf(v, images) })
		}
		for j := range v.Uses {
			use := &v.Uses[j]
			readers[use.Namespace] = append(readers[use.Namespace], func(images map[string][]string) { use.Nodes = nodesOf(v, images) })
		}
	}
	var group errgroup.Group
	group.SetLimit(atOnce)
	namespaces := slices.Sorted(maps.Keys(readers))
	problems := make([]string, len(namespaces))
	for i, namespace := range namespaces {
		group.Go(func() error {
			images, err := running(ctx, namespace)
			if err != nil {
				problems[i] = "nodes of namespace " + namespace + ": " + err.Error()
			}
			for _, read := range readers[namespace] {
				read(images)
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are problems
	return slices.DeleteFunc(problems, func(problem string) bool { return problem == "" })
}

// nodesOf returns the nodes that run an affected image of a version.
func nodesOf(v *schema.AffectedVersion, running map[string][]string) (nodes []string) {
	isAffected := func(image string) bool {
		image, _, _ = strings.Cut(image, "@")
		return slices.ContainsFunc(v.Packages, func(p schema.AffectedPackage) bool {
			return strings.HasSuffix(image, "/"+v.Solution+"-"+v.Version+"/"+p.Image)
		})
	}
	for _, node := range slices.Sorted(maps.Keys(running)) {
		if slices.ContainsFunc(running[node], isAffected) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func isActive(status *schema.Status, e store.Entry) bool {
	return slices.ContainsFunc(status.Solutions, func(s schema.SolutionStatus) bool { return s.Name == e.Name && s.Active == e.Version })
}

// usesOf lists the namespaces where a version is deployed, or wanted and not deployed yet.
func usesOf(status *schema.Status, e store.Entry) []schema.VersionUse {
	uses := []schema.VersionUse{}
	for d := range status.Deployments() {
		if d.Namespace != "" && d.Solution == e.Name && (d.Version == e.Version || d.Wanted == e.Version) {
			uses = append(uses, schema.VersionUse{Environment: d.Environment, Namespace: d.Namespace})
		}
	}
	return uses
}

// notStored returns versions that the cluster knows and whose archive is not on this host.
func notStored(status *schema.Status, entries []store.Entry) (missing []schema.UnsearchedVersion) {
	for _, s := range status.Solutions {
		for _, v := range s.Versions {
			if !slices.ContainsFunc(entries, func(e store.Entry) bool { return e.Name == s.Name && e.Version == v.Version }) {
				missing = append(missing, schema.UnsearchedVersion{ID: v.ID, Reason: "its archive is not on this host"})
			}
		}
	}
	return missing
}
