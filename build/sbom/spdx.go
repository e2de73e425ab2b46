package sbom

import (
	"cmp"
	"encoding/hex"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
)

const noAssertion = "NOASSERTION"

// The parts of SPDX 2.3 that are written. See https://spdx.github.io/spdx-spec/v2.3/.
type (
	spdxDocument struct {
		SPDXVersion       string             `json:"spdxVersion"`
		DataLicense       string             `json:"dataLicense"`
		SPDXID            string             `json:"SPDXID"`
		Name              string             `json:"name"`
		DocumentNamespace string             `json:"documentNamespace"`
		CreationInfo      spdxCreation       `json:"creationInfo"`
		Packages          []spdxPackage      `json:"packages"`
		Licenses          []spdxLicense      `json:"hasExtractedLicensingInfos,omitempty"`
		Relationships     []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Comment  string   `json:"comment"`
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		SPDXID           string          `json:"SPDXID"`
		Name             string          `json:"name"`
		VersionInfo      string          `json:"versionInfo,omitempty"`
		Supplier         string          `json:"supplier"`
		DownloadLocation string          `json:"downloadLocation"`
		FilesAnalyzed    bool            `json:"filesAnalyzed"`
		Checksums        []spdxChecksum  `json:"checksums,omitempty"`
		SourceInfo       string          `json:"sourceInfo,omitempty"`
		LicenseConcluded string          `json:"licenseConcluded"`
		LicenseDeclared  string          `json:"licenseDeclared"`
		CopyrightText    string          `json:"copyrightText"`
		ExternalRefs     []spdxReference `json:"externalRefs,omitempty"`
		Purpose          string          `json:"primaryPackagePurpose,omitempty"`
		Comment          string          `json:"comment,omitempty"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxReference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxLicense struct {
		ID   string `json:"licenseId"`
		Text string `json:"extractedText"`
	}
	spdxRelationship struct {
		Element string `json:"spdxElementId"`
		Type    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	}
)

// SPDX writes the document as SPDX 2.3 in JSON: the archive, its images, and their packages.
func (d *Document) SPDX(w io.Writer) error {
	sum := d.sum()
	const archive = "SPDXRef-Archive"
	s := &spdxDocument{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT", Name: d.Solution + "-" + d.Version,
		DocumentNamespace: "https://solutionctl.io/spdx/" + d.Solution + "-" + d.Version + "/" + hex.EncodeToString(sum[:16]),
		CreationInfo:      spdxCreation{d.context(), d.created(), []string{"Tool: solutionctl-" + d.Tool}},
		Packages:          []spdxPackage{spdxElement(archive, d.Solution, d.Version, "APPLICATION")},
		Relationships:     []spdxRelationship{{"SPDXRef-DOCUMENT", "DESCRIBES", archive}},
	}
	references := map[string]string{}
	for i := range d.Images {
		image := s.addImage(&d.Images[i], archive)
		for _, p := range d.Images[i].Packages {
			license := parseLicense(p.License)
			maps.Copy(references, license.references)
			element := spdxElement("SPDXRef-Package-"+elementID(&d.Images[i], p.PURL), p.Name, p.Version, "")
			element.LicenseDeclared = cmp.Or(license.text, noAssertion)
			element.ExternalRefs = []spdxReference{{"PACKAGE-MANAGER", "purl", p.PURL}}
			element.SourceInfo = sourceInfo(&p)
			if algorithm, value, ok := checksum(p.Digest); ok {
				element.Checksums = []spdxChecksum{{algorithm, value}}
			}
			s.add(element, image)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(references)) {
		s.Licenses = append(s.Licenses, spdxLicense{id, references[id]})
	}
	return writeJSON(w, s)
}

// sourceInfo explains where a package is named.
func sourceInfo(p *schema.Package) string {
	if p.Origin == schema.OriginBrought {
		return "only in the bill of materials " + p.Bill + " that the image brings; it was not verified"
	}
	return "found in " + strings.Join(p.Paths, ", ") + " of layer " + p.Layer
}

// addImage adds an image and its distribution, and returns its identifier.
func (s *spdxDocument) addImage(image *schema.ImagePackages, archive string) string {
	name, tag, _ := strings.Cut(image.Image, ":")
	element := spdxElement("SPDXRef-Image-"+elementID(image, ""), name, tag, "CONTAINER")
	element.ExternalRefs = []spdxReference{{"PACKAGE-MANAGER", "purl", imageURL(image)}}
	if algorithm, value, ok := checksum(image.Manifest); ok {
		element.Checksums = []spdxChecksum{{algorithm, value}}
	}
	element.Comment = strings.Trim(brings(image)+"\n"+unread(image), "\n")
	s.add(element, archive)
	if id, version, _ := strings.Cut(image.Distribution, "-"); id != "" {
		s.add(spdxElement("SPDXRef-Distribution-"+elementID(image, ""), id, version, "OPERATING-SYSTEM"), element.SPDXID)
	}
	return element.SPDXID
}

// add adds a package that is contained in another.
func (s *spdxDocument) add(element spdxPackage, container string) {
	s.Packages = append(s.Packages, element)
	s.Relationships = append(s.Relationships, spdxRelationship{container, "CONTAINS", element.SPDXID})
}

func spdxElement(id, name, version, purpose string) spdxPackage {
	return spdxPackage{
		SPDXID: id, Name: name, VersionInfo: version, Supplier: noAssertion, DownloadLocation: noAssertion,
		LicenseConcluded: noAssertion, LicenseDeclared: noAssertion, CopyrightText: noAssertion, Purpose: purpose,
	}
}
