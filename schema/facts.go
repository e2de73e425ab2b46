package schema

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// ArchiveFacts describes the content of an archive: how it was made, the statements of the vendor about vulnerabilities, and the packages in its
// images. Its lists are cut, and the rest is counted.
type ArchiveFacts struct {
	Solution string `json:"solution"`
	Version  string `json:"version"`
	// Provenance is nil without one that a signer whom the policy allows has signed.
	Provenance *ProvenanceFacts `json:"provenance,omitempty"`
	// Statements of the vendor about vulnerabilities, in the archive.
	Statements     []ProductStatement `json:"statements"`
	MoreStatements int                `json:"moreStatements,omitempty"`
	// Packages is nil where they were not listed yet.
	Packages *PackageFacts `json:"packages,omitempty"`
	// Problems are why something is not known.
	Problems []string `json:"problems,omitempty"`
}

// ProvenanceFacts is how an archive was made, as its provenance states it.
type ProvenanceFacts struct {
	Builder  string     `json:"builder"` // with its version
	Signer   string     `json:"signer"`
	SignedAt *time.Time `json:"signedAt,omitempty"` // where a service for timestamps has confirmed it
	FileTime string     `json:"fileTime,omitempty"` // of the files in the archive
	// Options of the user, as NAME: VALUE in JSON.
	Options []string `json:"options,omitempty"`
	// Materials are the images and other inputs that are not files of the project.
	Materials     []ResourceFacts `json:"materials"`
	MoreMaterials int             `json:"moreMaterials,omitempty"`
	Files         int             `json:"files"` // of the project
}

// ResourceFacts is an input of an archive.
type ResourceFacts struct {
	Name   string `json:"name"`
	Origin string `json:"origin,omitempty"` // where it comes from
	Digest string `json:"digest,omitempty"`
}

// ProductStatement is the statement of a vendor about a vulnerability in a product.
type ProductStatement struct {
	VendorStatement
	Product string `json:"product"` // package URL, with that of the image that has it
}

// PackageFacts lists the packages in the images of an archive.
type PackageFacts struct {
	Images     []ImageBills    `json:"images"`
	MoreImages int             `json:"moreImages,omitempty"`
	Packages   []ListedPackage `json:"packages"`
	More       int             `json:"more,omitempty"` // packages that are left out
}

// ImageBills are the bills of materials of an image for one platform.
type ImageBills struct {
	Image    string        `json:"image"` // name:tag
	Platform *Platform     `json:"platform,omitempty"`
	Bills    []PackageBill `json:"bills"`
	Unread   int           `json:"unread,omitempty"` // files and bills that could not be read
}

// ListedPackage is a package in an image.
type ListedPackage struct {
	Image   string        `json:"image"`
	Name    string        `json:"name"`
	Version string        `json:"version,omitempty"`
	Type    string        `json:"type"`
	License string        `json:"license,omitempty"`
	Origin  PackageOrigin `json:"origin"`
}

const (
	maxMaterials = 200
	maxOptions   = 20
	maxImages    = 100
	maxListed    = 500
	maxFact      = 500 // bytes of a text
)

// Facts summarizes a provenance. The caller adds the signer.
func (s *ProvenanceStatement) Facts() *ProvenanceFacts {
	builder, made := s.Predicate.RunDetails.Builder, s.Predicate.BuildDefinition
	f := &ProvenanceFacts{Builder: builder.ID, Materials: []ResourceFacts{}}
	for _, name := range slices.Sorted(maps.Keys(builder.Version))[:min(len(builder.Version), maxOptions)] {
		f.Builder += ", " + name + " " + builder.Version[name]
	}
	f.Builder = cutFact(f.Builder)
	if text, ok := made.InternalParameters["fileTime"].(string); ok {
		f.FileTime = cutFact(text)
	}
	for _, name := range slices.Sorted(maps.Keys(made.ExternalParameters))[:min(len(made.ExternalParameters), maxOptions)] {
		if value, err := json.Marshal(made.ExternalParameters[name]); err == nil {
			f.Options = append(f.Options, cutFact(name+": "+string(value)))
		}
	}
	for _, d := range made.ResolvedDependencies {
		switch {
		case strings.HasPrefix(d.Name, "file "):
			f.Files++
		case len(f.Materials) == maxMaterials:
			f.MoreMaterials++
		default:
			f.Materials = append(f.Materials, ResourceFacts{Name: cutFact(cmp.Or(d.Name, d.URI)), Origin: cutFact(d.URI), Digest: cutFact(d.DigestText())})
		}
	}
	return f
}

// Facts summarizes the packages.
func (l *PackageList) Facts() *PackageFacts {
	f := &PackageFacts{Images: []ImageBills{}, Packages: []ListedPackage{}}
	for i := range l.Images {
		image := &l.Images[i]
		if len(f.Images) < maxImages {
			f.Images = append(f.Images, ImageBills{image.Image, image.Platform, image.Bills, len(image.Unread) + image.UnreadMore})
		} else {
			f.MoreImages++
		}
		for _, p := range image.Packages {
			if len(f.Packages) == maxListed {
				f.More++
				continue
			}
			f.Packages = append(f.Packages, ListedPackage{image.Image, p.Name, p.Version, p.Type, p.License, p.Origin})
		}
	}
	return f
}

// cutFact bounds a text.
func cutFact(text string) string {
	if len(text) > maxFact {
		return strings.ToValidUTF8(text[:maxFact], "") + "…"
	}
	return text
}
