package records

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
)

// StoredArchive is an archive on this host, as search needs to know it.
type StoredArchive struct {
	Solution *schema.Solution
	Path     string
}

// SearchOptions select the versions to find.
type SearchOptions struct {
	// Term is a part of the name of a Solution, of its display name or version, or of the name of an image, here or where it comes
	// from. Upper and lower case are the same, and "" finds all.
	Term   string
	Stored []StoredArchive // of this host
}

// Search finds versions of Solutions that are imported, or in archives of this host.
func (r *Records) Search(ctx context.Context, o SearchOptions) (*schema.SearchResult, error) {
	solutions, err := r.Documents.Solutions(ctx)
	if err != nil {
		return nil, err
	}
	catalog, err := r.CatalogOrDamage(ctx)
	if err != nil {
		return nil, err
	}
	environments, err := r.Documents.Environments(ctx)
	if err != nil {
		return nil, err
	}
	found := index{}
	for name, list := range solutions.Versions {
		for _, entry := range list {
			v := found.version(name, entry.Version)
			v.DisplayName, v.Active, v.Imported, v.Archive = cmp.Or(entry.Name, name), entry.Active, true, entry.Archive
			if manifest, err := entry.Solution(); err == nil && manifest != nil {
				found.addManifest(v, manifest)
			}
		}
	}
	for _, i := range catalog.Imports() {
		v := found.version(i.Name, i.Version)
		v.Imported, v.Archive, v.Signers = true, cmp.Or(v.Archive, i.Archive.Path), i.Signers
		for image, digest := range i.Images {
			found.image(v, image).Digest = digest
		}
	}
	for _, a := range o.Stored {
		v := found.version(a.Solution.Metadata.Name, a.Solution.Spec.Version)
		v.DisplayName, v.Stored, v.Archive = a.Solution.DisplayName(), true, a.Path
		found.addManifest(v, a.Solution)
	}
	for _, e := range environments {
		for _, n := range e.Namespaces {
			for solution, version := range n.Versions {
				if v := found[solution+" "+version]; v != nil && !slices.Contains(v.Environments, e.Name) {
					v.Environments = append(v.Environments, e.Name)
				}
			}
		}
	}
	result := found.result(strings.ToLower(o.Term))
	if catalog.Damage != nil {
		result.Problems = []string{catalog.Unread()}
	}
	return result, nil
}

// index has the versions found so far, by name and version.
type index map[string]*schema.FoundVersion

func (x index) version(name, version string) *schema.FoundVersion {
	key := name + " " + version
	if x[key] == nil {
		x[key] = &schema.FoundVersion{
			Name: name, DisplayName: name, Version: version, ID: name + "-" + version, Environments: []string{}, Images: []schema.FoundImage{},
		}
	}
	return x[key]
}

func (x index) image(v *schema.FoundVersion, image string) *schema.FoundImage {
	i := slices.IndexFunc(v.Images, func(one schema.FoundImage) bool { return one.Image == image })
	if i < 0 {
		i = len(v.Images)
		v.Images = append(v.Images, schema.FoundImage{Image: image})
	}
	return &v.Images[i]
}

func (x index) addManifest(v *schema.FoundVersion, manifest *schema.Solution) {
	for _, ref := range manifest.Spec.Images {
		x.image(v, ref.String()).Origin = manifest.Spec.ImageOrigins[ref]
	}
}

// result returns the versions that match, sorted.
func (x index) result(term string) *schema.SearchResult {
	matches := func(text string) bool { return strings.Contains(strings.ToLower(text), term) }
	result := &schema.SearchResult{Versions: []schema.FoundVersion{}}
	for _, v := range x {
		found := slices.ContainsFunc([]string{v.Name, v.DisplayName, v.Version, v.ID}, matches)
		for i := range v.Images {
			v.Images[i].Matches = term != "" && (matches(v.Images[i].Image) || matches(v.Images[i].Origin))
			found = found || v.Images[i].Matches
		}
		if !found {
			continue
		}
		slices.SortFunc(v.Images, func(a, b schema.FoundImage) int { return cmp.Compare(a.Image, b.Image) })
		result.Versions = append(result.Versions, *v)
	}
	slices.SortFunc(result.Versions, func(a, b schema.FoundVersion) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), schema.CompareVersions(a.Version, b.Version))
	})
	return result
}
