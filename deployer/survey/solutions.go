package survey

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
)

// Solutions returns the imported Solutions without their deployments, for a user who is not allowed to list environments.
func (v *Survey) Solutions(ctx context.Context) ([]schema.SolutionStatus, error) {
	s := &picture{states: map[record.Key]*record.State{}}
	if err := v.readImported(ctx, s); err != nil {
		return nil, err
	}
	return s.solutionStatuses(), nil
}

// readImported reads what was imported, as recorded by MetalK8s and here.
func (v *Survey) readImported(ctx context.Context, s *picture) error {
	return together(
		func() (err error) {
			s.solutions, err = v.Records.Documents.Solutions(ctx)
			return err
		},
		func() (err error) {
			s.catalog, err = v.Records.CatalogOrDamage(ctx)
			return err
		},
	)
}

// solutionStatuses lists the imported versions, as recorded here and by MetalK8s.
func (s *picture) solutionStatuses() []schema.SolutionStatus {
	names := s.imported()
	there := map[record.Key]bool{}
	for _, key := range s.in("") {
		there[key], names = true, append(names, key.Name)
	}
	slices.Sort(names)
	statuses := []schema.SolutionStatus{}
	for _, name := range slices.Compact(names) {
		status := s.solutionStatus(name)
		if key := (record.Key{Name: name}); there[key] {
			part := s.deployment(key, status.Active, "")
			status.Deployment, status.Active = &part, cmp.Or(part.Version, status.Active)
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// imported lists the Solutions of which a version was imported, sorted.
func (s *picture) imported() []string {
	names := slices.AppendSeq(s.catalog.Names(), maps.Keys(s.solutions.Versions))
	slices.Sort(names)
	return slices.Compact(names)
}

// solutionStatus is the status of a Solution without its deployment.
func (s *picture) solutionStatus(name string) schema.SolutionStatus {
	return schema.SolutionStatus{Name: name, DisplayName: s.displayName(name), Active: s.solutions.Active(name), Versions: s.versions(name)}
}

// displayName is that of the highest version that has one.
func (s *picture) displayName(solution string) string {
	name := solution
	for _, entry := range s.solutions.Versions[solution] {
		name = cmp.Or(entry.Name, name)
	}
	return name
}

// versions are the imported versions of a Solution, the lowest first.
func (s *picture) versions(solution string) []schema.ImportedVersion {
	byVersion := map[string]schema.ImportedVersion{}
	for _, entry := range s.solutions.Versions[solution] {
		byVersion[entry.Version] = schema.ImportedVersion{
			Version: entry.Version, ID: cmp.Or(entry.ID, solution+"-"+entry.Version), Active: entry.Active, Archive: entry.Archive, SupportedUntil: entry.SupportedUntil(),
		}
	}
	for _, i := range s.catalog.Of(solution) {
		v := byVersion[i.Version]
		v.Version, v.ID, v.ImportedAt, v.ImportedBy = i.Version, i.ID(), &i.ImportedAt, i.ImportedBy
		v.Signers = i.Signers
		v.Archive = cmp.Or(v.Archive, i.Archive.Path)
		byVersion[i.Version] = v
	}
	versions := slices.AppendSeq([]schema.ImportedVersion{}, maps.Values(byVersion))
	slices.SortFunc(versions, func(a, b schema.ImportedVersion) int { return schema.CompareVersions(a.Version, b.Version) })
	return versions
}
