package sbom

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// vexStatement is a statement of https://openvex.dev/.
type vexStatement struct {
	Vulnerability struct {
		Name    string   `json:"name"`
		Aliases []string `json:"aliases"`
	} `json:"vulnerability"`
	Products      []vexProduct `json:"products"`
	Status        string       `json:"status"`
	Justification string       `json:"justification"`
}

type vexProduct struct {
	vexComponent
	Subcomponents []vexComponent `json:"subcomponents"`
}

type vexComponent struct {
	ID          string `json:"@id"`
	Identifiers struct {
		PURL string `json:"purl"`
	} `json:"identifiers"`
}

// packages returns the packages that a product of a statement is about: its parts, else itself.
func (p *vexProduct) packages() []string {
	components := p.Subcomponents
	if len(components) == 0 {
		components = []vexComponent{p.vexComponent}
	}
	var list []string
	for _, c := range components {
		list = append(list, cmp.Or(c.Identifiers.PURL, c.ID))
	}
	return list
}

func (s *vexStatement) ids() []string {
	return append([]string{s.Vulnerability.Name}, s.Vulnerability.Aliases...)
}

func (a *advisoryReader) readVEX(statements []vexStatement) error {
	for _, s := range statements {
		if s.Status != "affected" && s.Status != "under_investigation" {
			continue
		}
		for _, product := range s.Products {
			for _, text := range product.packages() {
				if err := a.askURL(s.ids(), text); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// maxStatements bounds the statements of one archive.
const maxStatements = 10_000

// Statements of a vendor about vulnerabilities of the packages in an archive, in OpenVEX documents that the archive has.
type Statements struct{ list []vendorStatement }

type vendorStatement struct {
	vexStatement
	author string
	file   string
}

// Add reads an OpenVEX document. All errors have the code report.Invalid.
func (s *Statements) Add(file string, data []byte) error {
	if len(data) > MaxAdvisory {
		return report.Errorf(report.Invalid, "%s has more than %d bytes", file, MaxAdvisory)
	}
	if err := checkValues(data); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var document struct {
		Context    json.RawMessage `json:"@context"`
		Author     string          `json:"author"`
		Statements []vexStatement  `json:"statements"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return report.Errorf(report.Invalid, "%s is not a valid OpenVEX document: %w", file, err)
	}
	if !strings.HasPrefix(string(document.Context), `"https://openvex.dev/ns`) {
		return report.Errorf(report.Invalid, "%s is not an OpenVEX document: want the @context https://openvex.dev/ns/v0.2.0", file)
	}
	if len(s.list)+len(document.Statements) > maxStatements {
		return report.Errorf(report.Invalid, "%s: the archive has more than %d statements", file, maxStatements)
	}
	for _, statement := range document.Statements {
		if !slices.Contains([]string{"not_affected", "affected", "fixed", "under_investigation"}, statement.Status) {
			return report.Errorf(report.Invalid, "%s: status %.100q, want not_affected, affected, fixed or under_investigation", file, statement.Status)
		}
		statement.Justification = clean(statement.Justification, 200)
		s.list = append(s.list, vendorStatement{statement, clean(document.Author, 200), file})
	}
	return nil
}

// StatementFiles is the pattern of the OpenVEX documents of an archive.
const StatementFiles = "vex/*.json"

// StatementType is the media type of an OpenVEX document in a registry, and the type of its artifact.
const StatementType = "application/vnd.openvex+json"

// maxStatementFiles bounds the documents that are read of one archive.
const maxStatementFiles = 1000

// ReadStatements reads the OpenVEX documents of an archive.
func ReadStatements(archive fs.FS) (*Statements, error) {
	files, err := fs.Glob(archive, StatementFiles)
	if err != nil {
		return nil, err
	}
	if len(files) > maxStatementFiles {
		return nil, report.Errorf(report.Invalid, "the archive has %d files vex/*.json, more than %d", len(files), maxStatementFiles)
	}
	s := &Statements{}
	left := int64(MaxAdvisory)
	for _, name := range files {
		info, err := fs.Stat(archive, name)
		if err != nil {
			return nil, err
		}
		if left -= info.Size(); left < 0 {
			return nil, report.Errorf(report.Invalid, "the files vex/*.json of the archive have more than %d bytes", MaxAdvisory)
		}
		data, err := fs.ReadFile(archive, name)
		if err == nil {
			err = s.Add(name, data)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// List returns the statements, one for each product, and how many more there are than a number.
func (s *Statements) List(most int) (list []schema.ProductStatement, more int) {
	list = []schema.ProductStatement{}
	for i := range s.list {
		statement := &s.list[i]
		for j := range statement.Products {
			for _, product := range statement.Products[j].titles() {
				if len(list) == most {
					more++
					continue
				}
				list = append(list, schema.ProductStatement{VendorStatement: statement.describe(), Product: clean(product, 300)})
			}
		}
	}
	return list, more
}

// titles names the packages that a product of a statement is about, and the product that has them.
func (p *vexProduct) titles() []string {
	list := p.packages()
	if len(p.Subcomponents) > 0 {
		for i := range list {
			list[i] += " in " + cmp.Or(p.Identifiers.PURL, p.ID)
		}
	}
	return list
}

func (s *vendorStatement) describe() schema.VendorStatement {
	return schema.VendorStatement{
		Vulnerability: cleanIDs(s.ids())[0], Status: s.Status, Justification: s.Justification, Author: s.author, File: s.file,
	}
}

// Explain adds to each package the statements about it: those about the vulnerabilities of the question, or all if it names none.
func (s *Statements) Explain(found *schema.AffectedArchive) {
	for i := range found.Packages {
		p := &found.Packages[i]
		for _, statement := range s.list {
			if statement.concerns(p) {
				p.Statements = append(p.Statements, statement.describe())
			}
		}
	}
}

func (s *vendorStatement) concerns(p *schema.AffectedPackage) bool {
	if len(p.Vulnerabilities) > 0 && !slices.ContainsFunc(s.ids(), func(id string) bool { return slices.Contains(p.Vulnerabilities, id) }) {
		return false
	}
	return slices.ContainsFunc(s.Products, func(product vexProduct) bool {
		isImage, possible := product.image(p.Image)
		if !possible {
			return false
		}
		if isImage && len(product.Subcomponents) == 0 {
			return len(p.Vulnerabilities) > 0 // of the whole image: about any of its packages
		}
		return slices.ContainsFunc(product.packages(), func(text string) bool { return names(text, p) })
	})
}

// image reports whether a product is an image, and whether it can be in this one, name:tag: it is this image, or none.
func (p *vexProduct) image(wanted string) (isImage, possible bool) {
	image, ok := parsePackageURL(cmp.Or(p.Identifiers.PURL, p.ID))
	if !ok || image.typ != "oci" {
		return false, true
	}
	name, _, _ := strings.Cut(wanted, ":")
	return true, image.path == name || strings.HasSuffix(image.path, "/"+name)
}

// Files returns the documents with a statement about an image, name:tag, in the order in which they were read: one that names this image, or
// packages of any.
func (s *Statements) Files(image string) []string {
	var files []string
	for _, statement := range s.list {
		if slices.Contains(files, statement.file) {
			continue
		}
		if slices.ContainsFunc(statement.Products, func(p vexProduct) bool { _, possible := p.image(image); return possible }) {
			files = append(files, statement.file)
		}
	}
	return files
}

// names reports whether a package URL is that of a package, or of its source package. One without a version names all versions.
func names(text string, p *schema.AffectedPackage) bool {
	stated, ok := parsePackageURL(text)
	has, known := parsePackageURL(p.PURL)
	if !ok || !known || stated.typ != has.typ {
		return false
	}
	namespace := has.path[:strings.LastIndex(has.path, "/")+1]
	if stated.path != has.path && (p.Source == "" || stated.path != namespace+p.Source) {
		return false
	}
	return stated.version == "" || stated.version == has.version || stated.version == p.Version
}
