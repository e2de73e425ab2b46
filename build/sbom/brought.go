package sbom

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ownTool begins the name of this program in bills of materials.
const ownTool = "solutionctl-"

// Bounds on the bills of materials that images bring.
const (
	maxBills      = 16 // of one image for one platform
	maxEnvelopes  = 4  // in each other
	maxComponents = 32 // levels of components of CycloneDX
)

// brought is a bill of materials that an image brings.
type brought struct {
	format, tool string
	packages     []schema.Package // each once
	left         int              // packages without a package URL
}

// addBills adds the bills of materials that an image brings, and the packages that are only there. One that cannot be read is listed.
func (m *merger) addBills(ctx context.Context, t target, d *schema.ImagePackages) error {
	known := map[string]bool{}
	for _, p := range d.Packages {
		known[identity(p.PURL)] = true
	}
	d.Bills = []schema.PackageBill{{Origin: schema.OriginMade, Packages: len(d.Packages)}}
	for i, blob := range t.bills() {
		unread := schema.UnreadFile{Path: "bill of materials " + blob.Digest.String()}
		if i == maxBills {
			d.Unread = append(d.Unread, schema.UnreadFile{Path: unread.Path, Reason: fmt.Sprintf("the image brings more than %d", maxBills)})
			break
		}
		bill, err := m.readBill(ctx, t, blob)
		if report.CodeOf(err) == report.Invalid {
			unread.Reason = clean(err.Error(), m.limit.text)
			d.Unread = append(d.Unread, unread)
			continue
		}
		if err != nil {
			return fmt.Errorf("image %s: bill of materials %s: %w", t.image.Ref, blob.Digest, err)
		}
		if bill == nil || strings.HasPrefix(bill.tool, ownTool) { // made of what is read here
			continue
		}
		listed := schema.PackageBill{
			Origin: schema.OriginBrought, Format: bill.format, Tool: bill.tool, Digest: blob.Digest.String(), Packages: len(bill.packages), Left: bill.left,
		}
		for _, p := range bill.packages {
			if key := identity(p.PURL); !known[key] {
				known[key] = true
				p.Origin, p.Bill = schema.OriginBrought, listed.Digest
				d.Packages = append(d.Packages, p)
				listed.Only++
			}
		}
		d.Bills = append(d.Bills, listed)
	}
	sortPackages(d.Packages)
	return nil
}

// bills returns the documents about an image for one platform that can be bills of materials, each once, and not many more than are read.
func (t *target) bills() (blobs []oci.Blob) {
	seen := map[oci.Digest]bool{}
	for _, a := range t.attachments {
		if a.About != t.Manifest && a.About != t.image.Root.Digest {
			continue
		}
		for _, layer := range a.Layers {
			if len(blobs) <= maxBills && !seen[layer.Digest] && a.CanBeBill(layer.Descriptor) {
				seen[layer.Digest] = true
				blobs = append(blobs, layer)
			}
		}
	}
	return blobs
}

// readBill reads a document; nil if it is not a bill of materials, or one about another image.
func (m *merger) readBill(ctx context.Context, t target, blob oci.Blob) (*brought, error) {
	if m.bills += blob.Size; m.bills > m.limit.bills {
		return nil, report.Errorf(report.Invalid, "those that the images bring have more than %d bytes", m.limit.bills)
	}
	data, err := oci.ReadBlob(ctx, blob, m.limit.document)
	if err != nil {
		return nil, err
	}
	b := &billReader{limit: &m.limit, subjects: []string{t.Manifest.Hex, t.image.Root.Digest.Hex}, seen: map[string]bool{}}
	if err = b.read(data, 0); err != nil {
		return nil, report.As(report.Invalid, err)
	}
	if m.stated += len(b.packages); m.stated > m.limit.packages {
		return nil, errLayer
	}
	if b.format == "" {
		return nil, nil //nolint:nilnil // documented
	}
	return &b.brought, nil
}

// billReader reads a bill of materials, which may be in envelopes.
type billReader struct {
	brought
	limit    *limits
	subjects []string // digests of the image in hexadecimal
	seen     map[string]bool
}

// billHead has the fields by which a document is recognized.
type billHead struct {
	SPDXVersion string `json:"spdxVersion"`
	BOMFormat   string `json:"bomFormat"`
	SpecVersion string `json:"specVersion"`

	Envelope    json.RawMessage `json:"dsseEnvelope"` // of a sigstore bundle
	PayloadType string          `json:"payloadType"`  // of an envelope
	Payload     string          `json:"payload"`

	StatementType string `json:"_type"` // of in-toto
	PredicateType string `json:"predicateType"`
	Subject       []struct {
		Digest map[string]string `json:"digest"`
	} `json:"subject"`
	Predicate json.RawMessage `json:"predicate"`
}

// read reads a document. Errors are about its content.
func (b *billReader) read(data []byte, depth int) error {
	if depth > maxEnvelopes {
		return fmt.Errorf("envelopes are nested more than %d deep", maxEnvelopes)
	}
	if bytes.Count(data, []byte("{")) > b.limit.objects || bytes.Count(data, []byte(",")) > 4*b.limit.objects {
		return fmt.Errorf("it has more than %d objects, or %d values", b.limit.objects, 4*b.limit.objects)
	}
	var head billHead
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(head.SPDXVersion, "SPDX-2."):
		return b.readSPDX(data, head.SPDXVersion)
	case head.BOMFormat == "CycloneDX":
		return b.readCycloneDX(data, head.SpecVersion)
	case head.Envelope != nil:
		return b.read(head.Envelope, depth+1)
	case head.Payload != "" && head.PayloadType == oci.InTotoType:
		payload, err := base64.StdEncoding.DecodeString(head.Payload)
		if err != nil {
			return err
		}
		return b.read(payload, depth+1)
	case strings.HasPrefix(head.StatementType, "https://in-toto.io/Statement/"):
		if !strings.HasPrefix(head.PredicateType, "https://spdx.dev/Document") && !strings.HasPrefix(head.PredicateType, "https://cyclonedx.org/bom") {
			return nil // another statement
		}
		for _, s := range head.Subject {
			if slices.Contains(b.subjects, s.Digest["sha256"]) {
				return b.read(head.Predicate, depth+1)
			}
		}
		return errors.New("it is about another image")
	}
	return errors.New("it is neither SPDX 2 nor CycloneDX")
}

// readSPDX reads the packages of SPDX 2 in JSON that have a package URL.
func (b *billReader) readSPDX(data []byte, version string) error {
	var d struct {
		CreationInfo struct {
			Creators []string `json:"creators"`
		} `json:"creationInfo"`
		Packages []struct {
			Name            string          `json:"name"`
			VersionInfo     string          `json:"versionInfo"`
			LicenseDeclared string          `json:"licenseDeclared"`
			ExternalRefs    []spdxReference `json:"externalRefs"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return err
	}
	b.format = clean(version, 20)
	for _, creator := range d.CreationInfo.Creators {
		if tool, ok := strings.CutPrefix(creator, "Tool: "); ok && b.tool == "" {
			b.tool = clean(tool, 100)
		}
	}
	for _, p := range d.Packages {
		at := slices.IndexFunc(p.ExternalRefs, func(r spdxReference) bool { return r.Type == "purl" })
		if at < 0 {
			b.left++
			continue
		}
		license := p.LicenseDeclared
		if license == noAssertion || license == "NONE" || strings.Contains(license, "LicenseRef-") { // whose text is elsewhere
			license = ""
		}
		if err := b.add(statedPackage{p.Name, p.VersionInfo, p.ExternalRefs[at].Locator, license}); err != nil {
			return err
		}
	}
	return nil
}

// statedComponent is a component of CycloneDX.
type statedComponent struct {
	Group      string            `json:"group"`
	Name       string            `json:"name"`
	Version    string            `json:"version"`
	PURL       string            `json:"purl"`
	Components []statedComponent `json:"components"`
	Licenses   []struct {
		Expression string `json:"expression"`
		License    struct {
			ID string `json:"id"`
		} `json:"license"`
	} `json:"licenses"`
}

// readCycloneDX reads the components of CycloneDX in JSON that have a package URL.
func (b *billReader) readCycloneDX(data []byte, version string) error {
	var d struct {
		Metadata struct {
			Tools json.RawMessage `json:"tools"`
		} `json:"metadata"`
		Components []statedComponent `json:"components"`
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return err
	}
	b.format, b.tool = "CycloneDX-"+clean(version, 10), cycloneTool(d.Metadata.Tools)
	return b.addComponents(d.Components, 1)
}

// cycloneTool names the first tool, which is in one of two forms.
func cycloneTool(data json.RawMessage) string {
	var tools struct{ Components []statedComponent }
	if json.Unmarshal(data, &tools) != nil && json.Unmarshal(data, &tools.Components) != nil || len(tools.Components) == 0 {
		return ""
	}
	return clean(strings.Trim(tools.Components[0].Name+"-"+tools.Components[0].Version, "-"), 100)
}

func (b *billReader) addComponents(components []statedComponent, depth int) error {
	if depth > maxComponents {
		return fmt.Errorf("components are nested more than %d deep", maxComponents)
	}
	for _, c := range components {
		license := ""
		if len(c.Licenses) == 1 {
			license = cmp.Or(c.Licenses[0].Expression, c.Licenses[0].License.ID)
		}
		if c.PURL == "" {
			b.left++
		} else if err := b.add(statedPackage{c.Name, c.Version, c.PURL, license}); err != nil {
			return err
		}
		if err := b.addComponents(c.Components, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// statedPackage is a package as a bill of materials states it.
type statedPackage struct{ name, version, purl, license string }

// add adds a package, and leaves one whose package URL is not valid.
func (b *billReader) add(stated statedPackage) error {
	p, ok := parsePackageURL(stated.purl)
	if !ok || !validType(p.typ) {
		b.left++
		return nil
	}
	if p.typ == "oci" || p.typ == "docker" { // the image itself
		return nil
	}
	if p.version == "" && stated.version != noAssertion {
		p.version = stated.version
	}
	qualifiers := qualifiersOf(stated.purl)
	listed := schema.Package{Name: p.path, Version: p.version, Type: p.typ, PURL: p.canonical(qualifiers), License: clean(stated.license, b.limit.text), Paths: []string{}}
	listed.Source, listed.SourceVersion = upstreamOf(p.typ, qualifiers.Get("upstream"))
	switch p.typ {
	case "deb", "apk", "rpm":
		_, listed.Name = splitPURL(listed.PURL)
	case "maven":
		listed.Name = strings.Replace(p.path, "/", ":", 1)
	}
	c := component{name: listed.Name, version: listed.Version, source: listed.Source, sourceVersion: listed.SourceVersion}
	if err := c.valid(b.limit); err != nil {
		return err
	}
	if b.seen[listed.PURL] {
		return nil
	}
	b.seen[listed.PURL] = true
	if len(b.packages) >= b.limit.packages {
		return fmt.Errorf("it names more than %d packages", b.limit.packages)
	}
	b.packages = append(b.packages, listed)
	return nil
}

// canonical returns a package URL as this package writes it, with the qualifiers that it writes.
func (p packageURL) canonical(qualifiers url.Values) string {
	var text strings.Builder
	text.WriteString("pkg:" + p.typ)
	for segment := range strings.SplitSeq(p.path, "/") {
		text.WriteString("/" + escapePURL(segment))
	}
	version := p.version
	if epoch := qualifiers.Get("epoch"); epoch != "" {
		version = strings.TrimPrefix(version, epoch+":") // parsePackageURL has put it there
	}
	if version != "" {
		text.WriteString("@" + escapePURL(version))
	}
	separator := "?"
	for _, name := range []string{"arch", "distro", "epoch", "upstream"} {
		if value := qualifiers.Get(name); value != "" {
			text.WriteString(separator + name + "=" + escapePURL(value))
			separator = "&"
		}
	}
	return text.String()
}

// validType reports whether a text is the type of a package URL.
func validType(typ string) bool {
	return typ != "" && len(typ) <= 30 && !strings.ContainsFunc(typ, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '+'
	})
}

// qualifiersOf returns the qualifiers of a package URL.
func qualifiersOf(purl string) url.Values {
	purl, _, _ = strings.Cut(purl, "#")
	_, text, _ := strings.Cut(purl, "?")
	values, err := url.ParseQuery(strings.ReplaceAll(text, "+", "%2B"))
	if err != nil {
		return nil
	}
	return values
}

// upstreamOf reads the source package of a qualifier: NAME, NAME@VERSION, and for rpm the file.
func upstreamOf(typ, upstream string) (name, version string) {
	if typ == "rpm" {
		return splitSourceRPM(upstream)
	}
	name, version, _ = strings.Cut(upstream, "@")
	return name, version
}

// identity is the same for package URLs of one package in one version.
func identity(purl string) string {
	p, ok := parsePackageURL(purl)
	if !ok {
		return purl
	}
	return strings.ToLower(p.typ+"/"+p.path) + "@" + p.version
}
