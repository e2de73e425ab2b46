package schema

import (
	"fmt"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// PackageList lists the packages in the images of an archive. `solutionctl inspect --sbom` prints it.
type PackageList struct {
	Solution string          `json:"solution"`
	Version  string          `json:"version"`
	Images   []ImagePackages `json:"images"`
	// LookedFor lists the kinds of packages that are found, and where. Other software is not listed.
	LookedFor []PackageKind `json:"lookedFor"`
}

// PackageKind is a kind of packages and the files that name them.
type PackageKind struct {
	Type  string   `json:"type"` // of the purl
	Files []string `json:"files"`
}

// ImagePackages lists the packages in the root file system of an image for one platform.
type ImagePackages struct {
	Image        string    `json:"image"`    // name:tag
	Manifest     string    `json:"manifest"` // digest of the manifest for this platform
	Platform     *Platform `json:"platform,omitempty"`
	Created      string    `json:"created,omitempty"`      // in RFC 3339
	Distribution string    `json:"distribution,omitempty"` // ID and VERSION_ID of os-release, such as debian-12
	// Bills lists the bills of materials that the packages come from: first the one that is made of the layers, then those that the image brings.
	Bills    []PackageBill `json:"bills"`
	Packages []Package     `json:"packages"`
	// Unread lists files that can have packages which are not in the list, and why they were not read.
	Unread []UnreadFile `json:"unread,omitempty"`
	// UnreadMore is the number of such files beyond those in the list.
	UnreadMore int `json:"unreadMore,omitempty"`
}

// UnreadFile is a file of an image that can have packages, and could not be read.
type UnreadFile struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Package is a package in an image.
type Package struct {
	Name    string `json:"name"`              // with its group, scope or path
	Version string `json:"version,omitempty"` // as the package states it
	Type    string `json:"type"`              // of the purl: deb, apk, rpm, golang, pypi, npm, maven
	PURL    string `json:"purl"`
	License string `json:"license,omitempty"` // as the package states it
	// Source is the source package of a distribution's package, where it has another name or version.
	Source        string `json:"source,omitempty"`
	SourceVersion string `json:"sourceVersion,omitempty"`
	// Digest is the digest of the package that its kind records: h1 of a Go module, sha256 of a jar.
	Digest string `json:"digest,omitempty"`
	// Paths lists the files that name the package, at most ten.
	Paths []string `json:"paths"`
	Layer string   `json:"layer,omitempty"` // digest of the layer that has the first of these files
	// Origin is where the package is listed. One that the image brings is only there, and in no file that is looked for.
	Origin PackageOrigin `json:"origin"`
	Bill   string        `json:"bill,omitempty"` // digest of the bill of materials that the image brings
}

// PackageOrigin is the origin of a bill of materials.
type PackageOrigin string

// The origins of bills of materials.
const (
	OriginMade    PackageOrigin = "made-by-solutionctl"
	OriginBrought PackageOrigin = "brought-unverified"
)

// String describes the origin to people.
func (o PackageOrigin) String() string {
	if o == OriginBrought {
		return "brought by the image, not verified"
	}
	return "made by solutionctl"
}

// PackageBill is a bill of materials of an image for one platform.
type PackageBill struct {
	Origin   PackageOrigin `json:"origin"`
	Format   string        `json:"format,omitempty"` // of one that the image brings, such as SPDX-2.3
	Tool     string        `json:"tool,omitempty"`   // that has made it, as it states
	Digest   string        `json:"digest,omitempty"` // of the document
	Packages int           `json:"packages"`         // packages that it lists
	// Only is the number of its packages that no bill before it lists.
	Only int `json:"only,omitempty"`
	// Left is the number of its packages that are not listed, as they have no valid package URL.
	Left int `json:"left,omitempty"`
}

// String describes to people a bill that the image brings.
func (b *PackageBill) String() string {
	text := b.Format
	if b.Tool != "" {
		text += " by " + b.Tool
	}
	text += ", " + report.Count(b.Packages, "package")
	if b.Only > 0 {
		text += fmt.Sprintf(", %d of them only there", b.Only)
	}
	if b.Left > 0 {
		text += fmt.Sprintf(", %d more without a package URL", b.Left)
	}
	return text + ", " + b.Digest
}

// PackageDifference lists the packages that changed between the images of two archives. `solutionctl inspect --sbom --diff` prints it.
type PackageDifference struct {
	From    string          `json:"from"` // NAME-VERSION
	To      string          `json:"to"`
	Changes []PackageChange `json:"changes"`
	// Unread lists files of the images of the second archive that can have packages which are in no change.
	Unread []UnreadFile `json:"unread,omitempty"`
}

// PackageChange is a package that came, went, or changed its version.
type PackageChange struct {
	Image string `json:"image"` // without its tag
	Type  string `json:"type"`
	Name  string `json:"name"`
	From  string `json:"from,omitempty"` // version; empty for a package that came
	To    string `json:"to,omitempty"`   // version; empty for a package that went
}

// AffectedReport lists the packages that a question matches. `solutionctl affected` prints it.
type AffectedReport struct {
	Package  string            `json:"package"`            // of the question, as a package URL without a version; "" for an advisory
	Range    string            `json:"range"`              // of versions, in the syntax of vers
	Advisory string            `json:"advisory,omitempty"` // the file that was asked with
	LeftOut  []string          `json:"leftOut,omitempty"`  // packages of the question that cannot be searched for everywhere
	Archives []AffectedArchive `json:"archives"`
}

// AffectedArchive lists what a question matches in one archive.
type AffectedArchive struct {
	Archive  string            `json:"archive"` // file
	Solution string            `json:"solution"`
	Version  string            `json:"version"`
	Images   int               `json:"images"` // number of images and platforms that were searched
	Packages []AffectedPackage `json:"packages"`
	// Unread lists the files that can have packages of this type, and were not read: they can be affected as well.
	Unread []UnreadFile `json:"unread,omitempty"`
}

// Remark explains to people why a package is in the list; "" if its own version is in the range.
func (p *AffectedPackage) Remark() string {
	remark := p.Unclear
	if remark == "" && p.Source != "" {
		remark = "source package " + p.Source
	}
	if p.Origin == OriginBrought {
		remark = strings.TrimPrefix(remark+"; "+p.Origin.String(), "; ")
	}
	if len(p.Vulnerabilities) > 0 {
		remark = strings.TrimPrefix(remark+"; "+p.Vulnerabilities[0], "; ")
	}
	for i := range p.Statements {
		remark += "; vendor: " + p.Statements[i].String()
	}
	return strings.TrimPrefix(remark, "; ")
}

// SiteAffectedReport lists the packages of a site that a question matches. `solutionctl deploy affected` prints it.
type SiteAffectedReport struct {
	Package  string            `json:"package"`            // of the question, as a package URL without a version; "" for an advisory
	Range    string            `json:"range"`              // of versions, in the syntax of vers
	Advisory string            `json:"advisory,omitempty"` // the file that was asked with
	LeftOut  []string          `json:"leftOut,omitempty"`  // packages of the question that cannot be searched for everywhere
	Versions []AffectedVersion `json:"versions"`
	// NotSearched lists versions whose archive is not on this host or could not be read: they can be affected as well.
	NotSearched []UnsearchedVersion `json:"notSearched"`
	// Problems of the cluster: some deployments may be unknown.
	Problems []string `json:"problems"`
}

// UnsearchedVersion is an imported version that was not searched.
type UnsearchedVersion struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// AffectedVersion lists what a question matches in one imported version, and where that version is used.
type AffectedVersion struct {
	AffectedArchive
	// Active is true for the active version of its Solution.
	Active bool `json:"active"`
	// Nodes lists the nodes that run an affected image of its parts for the whole cluster.
	Nodes []string `json:"nodes,omitempty"`
	// Uses lists the namespaces where the version is deployed; empty for one that is only imported, or if no cluster was asked.
	Uses []VersionUse `json:"uses"`
}

// VersionUse is a namespace where a version of a Solution is deployed.
type VersionUse struct {
	Environment string `json:"environment"`
	Namespace   string `json:"namespace"`
	// Nodes lists the nodes that run an affected image there.
	Nodes []string `json:"nodes,omitempty"`
}

// AffectedPackage is a package in an image that a question matches.
type AffectedPackage struct {
	Image    string    `json:"image"` // name:tag
	Platform *Platform `json:"platform,omitempty"`
	Name     string    `json:"name"`
	Version  string    `json:"version,omitempty"`
	PURL     string    `json:"purl"`
	// Source is the source package, if the question names that.
	Source string   `json:"source,omitempty"`
	Paths  []string `json:"paths"`
	// Origin is the bill of materials that lists the package.
	Origin PackageOrigin `json:"origin"`
	// Unclear explains why the version cannot be compared. Such a package can be affected.
	Unclear string `json:"unclear,omitempty"`
	// Vulnerabilities of the advisory that the package has, by all their names.
	Vulnerabilities []string `json:"vulnerabilities,omitempty"`
	// Statements of the vendor about the package, in the archive.
	Statements []VendorStatement `json:"statements,omitempty"`
}

// VendorStatement is a statement of OpenVEX in an archive, whose signature covers it.
type VendorStatement struct {
	Vulnerability string `json:"vulnerability"`
	Status        string `json:"status"`
	Justification string `json:"justification,omitempty"`
	Author        string `json:"author,omitempty"`
	File          string `json:"file"` // in the archive
}

func (s *VendorStatement) String() string {
	text := s.Vulnerability + " " + s.Status
	if s.Justification != "" {
		text += ": " + s.Justification
	}
	return text
}
