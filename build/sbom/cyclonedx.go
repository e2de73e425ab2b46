package sbom

import (
	"fmt"
	"io"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
)

// The parts of CycloneDX 1.6 that are written. See https://cyclonedx.org/docs/1.6/json/.
type (
	cycloneDocument struct {
		Schema       string               `json:"$schema"`
		BOMFormat    string               `json:"bomFormat"`
		SpecVersion  string               `json:"specVersion"`
		SerialNumber string               `json:"serialNumber"`
		Version      int                  `json:"version"`
		Metadata     cycloneMetadata      `json:"metadata"`
		Components   []cycloneComponent   `json:"components"`
		Compositions []cycloneComposition `json:"compositions"`
	}
	cycloneMetadata struct {
		Timestamp  string             `json:"timestamp"`
		Lifecycles []cycloneLifecycle `json:"lifecycles"`
		Tools      cycloneTools       `json:"tools"`
		Component  cycloneComponent   `json:"component"`
		Properties []cycloneProperty  `json:"properties"`
	}
	cycloneLifecycle struct {
		Phase string `json:"phase"`
	}
	cycloneTools struct {
		Components []cycloneComponent `json:"components"`
	}
	cycloneComponent struct {
		Type       string             `json:"type"`
		Reference  string             `json:"bom-ref,omitempty"`
		Name       string             `json:"name"`
		Version    string             `json:"version,omitempty"`
		Hashes     []cycloneHash      `json:"hashes,omitempty"`
		Licenses   []cycloneLicense   `json:"licenses,omitempty"`
		PURL       string             `json:"purl,omitempty"`
		Properties []cycloneProperty  `json:"properties,omitempty"`
		Components []cycloneComponent `json:"components,omitempty"`
	}
	cycloneHash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	cycloneLicense struct {
		License    *cycloneName `json:"license,omitempty"`
		Expression string       `json:"expression,omitempty"`
	}
	cycloneName struct {
		Name string `json:"name"`
	}
	cycloneProperty struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	cycloneComposition struct {
		Aggregate  string   `json:"aggregate"`
		Assemblies []string `json:"assemblies"`
	}
)

// CycloneDX writes the document as CycloneDX 1.6 in JSON: images, with their packages as parts.
func (d *Document) CycloneDX(w io.Writer) error {
	sum := d.sum()
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // a UUID of version 8, made of a digest
	const archive = "archive"
	c := &cycloneDocument{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", BOMFormat: "CycloneDX", SpecVersion: "1.6", Version: 1,
		SerialNumber: fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]),
		Metadata: cycloneMetadata{
			Timestamp:  d.created(),
			Lifecycles: []cycloneLifecycle{{"post-build"}},
			Tools:      cycloneTools{[]cycloneComponent{{Type: "application", Name: "solutionctl", Version: d.Tool}}},
			Component:  cycloneComponent{Type: "application", Reference: archive, Name: d.Solution, Version: d.Version},
			Properties: []cycloneProperty{{"solutionctl:context", d.context()}},
		},
		Components: []cycloneComponent{},
	}
	assemblies := []string{archive}
	for i := range d.Images {
		image := cycloneImage(&d.Images[i])
		c.Components = append(c.Components, image)
		assemblies = append(assemblies, image.Reference)
	}
	c.Compositions = []cycloneComposition{{"unknown", assemblies}} // packages of other kinds are not listed
	return writeJSON(w, c)
}

func cycloneImage(image *schema.ImagePackages) cycloneComponent {
	name, tag, _ := strings.Cut(image.Image, ":")
	c := cycloneComponent{Type: "container", Reference: elementID(image, ""), Name: name, Version: tag, PURL: imageURL(image)}
	for _, p := range []cycloneProperty{{"solutionctl:brought", brings(image)}, {"solutionctl:unread", unread(image)}} {
		if p.Value != "" {
			c.Properties = append(c.Properties, p)
		}
	}
	if id, version, _ := strings.Cut(image.Distribution, "-"); id != "" {
		c.Components = append(c.Components, cycloneComponent{Type: "operating-system", Reference: elementID(image, "distribution"), Name: id, Version: version})
	}
	for _, p := range image.Packages {
		part := cycloneComponent{Type: "library", Reference: elementID(image, p.PURL), Name: p.Name, Version: p.Version, PURL: p.PURL}
		if algorithm, value, ok := checksum(p.Digest); ok {
			part.Hashes = []cycloneHash{{strings.Replace(algorithm, "SHA", "SHA-", 1), value}}
		}
		part.Licenses = cycloneLicenses(p.License)
		for _, path := range p.Paths {
			part.Properties = append(part.Properties, cycloneProperty{"solutionctl:path", path})
		}
		if p.Origin == schema.OriginBrought {
			part.Properties = append(part.Properties, cycloneProperty{"solutionctl:origin", string(p.Origin)}, cycloneProperty{"solutionctl:bill", p.Bill})
		}
		c.Components = append(c.Components, part)
	}
	return c
}

// cycloneLicenses returns an expression if all its licenses are in the list of SPDX, and otherwise what the package states.
func cycloneLicenses(stated string) []cycloneLicense {
	license := parseLicense(stated)
	switch {
	case license.text == "":
		return nil
	case len(license.references) > 0:
		return []cycloneLicense{{License: &cycloneName{stated}}}
	}
	return []cycloneLicense{{Expression: license.text}}
}
