package records

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ImportRecord is the message of an import to the cluster.
type ImportRecord struct {
	Payload *render.Payload
	// Path is where the archive is on this host, from now on.
	Path   string
	SHA256 string
	Size   int64
	// Signers are the names of the keys whose signatures counted, nil where they are not known.
	Signers []string
	// Registry has the endpoints to add to the record; nil leaves the record unchanged.
	Registry *schema.ClusterRegistry
}

// Import records an imported version: its payload, its entry in the catalogue, and its entry for MetalK8s. The caller
// has checked it with [Records.CheckImport]. An unreadable catalogue is replaced by a new one.
func (r *Records) Import(ctx context.Context, catalog *Catalog, imported ImportRecord) error {
	if imported.Registry != nil {
		_, err := r.EditRegistry(ctx, func(known *schema.ClusterRegistry) (*schema.ClusterRegistry, error) {
			return WithEndpoints(known, *imported.Registry, false)
		})
		if err != nil {
			return err
		}
	}
	encoded, err := imported.Payload.Encode()
	if err != nil {
		return err
	}
	digest, err := r.Engine.StoreContent(ctx, ImportsName, encoded)
	if err != nil {
		return err
	}
	entry := r.entry(ctx, imported, digest)
	if previous, ok := catalog.imports[entry.ID()]; ok && previous.Archive == entry.Archive && previous.Payload == digest {
		entry.ImportedAt, entry.ImportedBy = previous.ImportedAt, previous.ImportedBy
		if entry.Signers == nil {
			entry.Signers = previous.Signers
		}
	}
	if catalog.Damage != nil {
		if err := r.discardImports(ctx); err != nil {
			return err
		}
	}
	if err := r.editImports(ctx, func(imports map[string]schema.Import) { imports[entry.ID()] = entry }); err != nil {
		return err
	}
	if err := r.publish(ctx, imported.Payload, imported.Path); err != nil {
		return err
	}
	return r.collect(ctx)
}

// entry builds the entry of the catalogue for an import.
func (r *Records) entry(ctx context.Context, imported ImportRecord, digest string) schema.Import {
	entry := schema.Import{
		Name: imported.Payload.Solution.Metadata.Name, Version: imported.Payload.Solution.Spec.Version, Payload: digest,
		Archive:   schema.ImportedArchive{Path: imported.Path, SHA256: imported.SHA256, Size: imported.Size},
		DependsOn: imported.Payload.Solution.Spec.DependsOn, Signers: imported.Signers,
		Images: map[string]string{}, ImportedAt: r.Now().UTC().Truncate(time.Second), ImportedBy: r.Cluster.User(ctx),
	}
	for _, image := range imported.Payload.Images {
		entry.Images[image.Ref.String()] = image.Digest
	}
	return entry
}

// Foresee returns the catalogue after an import, for plans of later operations. Nothing is written.
func (r *Records) Foresee(ctx context.Context, catalog *Catalog, imported ImportRecord) (*Catalog, error) {
	encoded, err := imported.Payload.Encode()
	if err != nil {
		return nil, err
	}
	digest := record.DigestOf(encoded)
	r.payloads.put(digest, imported.Payload)
	foreseen := &Catalog{imports: maps.Clone(catalog.imports)}
	foreseen.Put(r.entry(ctx, imported, digest))
	return foreseen, nil
}

// CheckImport refuses an import that would change the content of a deployed version, or that could not be distinguished
// from another one.
func (r *Records) CheckImport(ctx context.Context, catalog *Catalog, imported ImportRecord) (notices []string, err error) {
	id := imported.Payload.Solution.ID()
	if catalog.Damage != nil {
		if report.CodeOf(catalog.Damage) != report.Corrupt {
			return nil, catalog.Damage // it is of a newer version of this program
		}
		notices = append(notices, fmt.Sprintf("the record of what was imported could not be read (%v) and begins again with %s: import every other archive again",
			catalog.Damage, id))
	}
	if previous, ok := catalog.imports[id]; ok && previous.Archive.SHA256 != imported.SHA256 {
		if schema.Replaceable(previous.Version) {
			notices, err = r.outdated(ctx, previous)
		} else {
			err = r.checkReleased(ctx, previous)
		}
		if err != nil {
			return nil, err
		}
	}
	if err = catalog.checkNew(imported.Payload.Solution); err != nil {
		return nil, err
	}
	return notices, r.checkRoom(ctx, catalog, imported)
}

// checkRoom refuses an import for which the catalogue, or the record of MetalK8s, has no room.
func (r *Records) checkRoom(ctx context.Context, catalog *Catalog, imported ImportRecord) error {
	entry, err := schema.NewImportedSolution(imported.Payload.Solution, imported.Path)
	if err == nil {
		err = r.Documents.CheckVersion(ctx, imported.Payload.Solution.Metadata.Name, entry)
	}
	if err != nil {
		return err
	}
	known := &Catalog{imports: maps.Clone(catalog.imports)}
	if catalog.Damage != nil || known.imports == nil {
		known.imports = map[string]schema.Import{}
	}
	known.Put(r.entry(ctx, imported, record.DigestOf(nil)))
	_, err = r.encodeImports(&schema.Imports{Imports: known.imports})
	return err
}

func (r *Records) checkReleased(ctx context.Context, previous schema.Import) error {
	users, err := r.users(ctx, previous.Name, previous.Version)
	if err != nil || len(users) == 0 {
		return err
	}
	return report.Errorf(report.Replaced, "another archive of %s was imported before and is in use: %s", previous.ID(), strings.Join(users, ", ")).
		WithHint("give the new content a version of its own")
}

// outdated reports what was deployed from an archive that is being replaced, with the command that updates it. Deployed
// objects keep working: our records have them rendered. But no archive has their images any more, so new pods start
// only on nodes that still have these.
func (r *Records) outdated(ctx context.Context, previous schema.Import) (notices []string, err error) {
	active, err := r.Active(ctx, previous.Name)
	if err != nil {
		return nil, err
	}
	if active == previous.Version {
		notices = append(notices, fmt.Sprintf("the cluster-wide objects of %s still come from the archive imported before; update them: %s",
			previous.ID(), report.Run("deploy activate", previous.Name, previous.Version)))
	}
	deployed, err := r.Deployments(ctx, previous.Name)
	if err != nil {
		return nil, err
	}
	for _, there := range deployed {
		if there.Version != previous.Version {
			continue
		}
		notice := fmt.Sprintf("%s runs %s as imported before: nodes that do not have its images yet might fail to pull them", there, previous.ID())
		if there.Environment != "" {
			notice += "; update it: " + report.Run("deploy add", there.Environment, previous.Name, previous.Version).String()
		}
		notices = append(notices, notice)
	}
	return notices, nil
}

// collect throws payloads away that no import refers to any more.
func (r *Records) collect(ctx context.Context) error {
	imports, _, err := r.readImports(ctx)
	if err != nil {
		return err
	}
	var keep []string
	for _, i := range imports.Imports {
		keep = append(keep, i.Payload)
	}
	return r.Engine.CollectContent(ctx, ImportsName, keep...)
}

// checkNew refuses a version that cannot be distinguished from an imported one.
func (c *Catalog) checkNew(s *schema.Solution) error {
	for _, other := range c.Of(s.Metadata.Name) {
		if other.Version != s.Spec.Version && schema.SamePrecedence(other.Version, s.Spec.Version) {
			return report.Errorf(report.Refused, "version %s of Solution %s has the same precedence as %s, which is imported",
				s.Spec.Version, s.Metadata.Name, other.Version).WithHint("unimport %s first", other.ID())
		}
	}
	return nil
}

// Unimport removes a version from the catalogue unless it is in use. An unknown version is not an error.
func (r *Records) Unimport(ctx context.Context, id string) error {
	catalog, err := r.Catalog(ctx)
	if err != nil {
		return err
	}
	entry, ok := catalog.imports[id]
	if !ok {
		return r.finishUnimport(ctx, id)
	}
	if err := r.CheckUnused(ctx, entry.Name, entry.Version); err != nil {
		return err
	}
	if err := r.editImports(ctx, func(imports map[string]schema.Import) { delete(imports, id) }); err != nil {
		return err
	}
	// A concurrent run of add either does not find the entry any more, or its deployment is visible now.
	if err := r.CheckUnused(ctx, entry.Name, entry.Version); err != nil {
		return errors.Join(err, r.editImports(ctx, func(imports map[string]schema.Import) { imports[id] = entry }))
	}
	if err := r.Documents.RemoveVersion(ctx, entry.Name, entry.Version); err != nil {
		return err
	}
	return r.collect(ctx)
}

// finishUnimport removes the remains of an interrupted unimport, and MetalK8s' record.
func (r *Records) finishUnimport(ctx context.Context, id string) error {
	solutions, err := r.Documents.Solutions(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(solutions.Versions)) {
		for _, listed := range solutions.Versions[name] {
			if name+"-"+listed.Version != id {
				continue
			}
			if err := r.CheckUnused(ctx, name, listed.Version); err != nil {
				return err
			}
			if err := r.Documents.RemoveVersion(ctx, name, listed.Version); err != nil {
				return err
			}
		}
	}
	return r.collect(ctx)
}

// CheckUnused refuses, in-use, while a version is active or deployed in an environment, or while something runs its images.
func (r *Records) CheckUnused(ctx context.Context, solution, version string) error {
	users, err := r.users(ctx, solution, version)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		return report.Errorf(report.InUse, "version %s of Solution %s is in use: %s", version, solution, strings.Join(users, ", ")).
			WithHint("remove it from the environments ('%s') and deactivate it first", report.Run("deploy remove", "ENVIRONMENT", solution))
	}
	running, err := r.pullers(ctx, solution+"-"+version)
	if err != nil || len(running) == 0 {
		return err
	}
	return report.Errorf(report.InUse, "images of version %s of Solution %s run: %s", version, solution, strings.Join(running, ", ")).
		WithHint("let them run another version first; their pods could not start again")
}
