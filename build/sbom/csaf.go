package sbom

import (
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// csafDocument is an advisory in CSAF 2.0, as far as it names packages. See https://docs.oasis-open.org/csaf/csaf/v2.0/csaf-v2.0.html.
type csafDocument struct {
	ProductTree struct {
		Branches      []csafBranch  `json:"branches"`
		FullNames     []csafProduct `json:"full_product_names"`
		Relationships []struct {
			Product   csafProduct `json:"full_product_name"`
			Reference string      `json:"product_reference"`
		} `json:"relationships"`
	} `json:"product_tree"`
	Vulnerabilities []csafVulnerability `json:"vulnerabilities"`
}

type csafVulnerability struct {
	CVE string `json:"cve"`
	IDs []struct {
		Text string `json:"text"`
	} `json:"ids"`
	Status struct {
		KnownAffected      []string `json:"known_affected"`
		FirstAffected      []string `json:"first_affected"`
		LastAffected       []string `json:"last_affected"`
		UnderInvestigation []string `json:"under_investigation"`
	} `json:"product_status"`
}

type csafBranch struct {
	Branches []csafBranch `json:"branches"`
	Category string       `json:"category"`
	Name     string       `json:"name"`
	Product  *csafProduct `json:"product"`
}

type csafProduct struct {
	ID     string `json:"product_id"`
	Name   string `json:"name"`
	Helper struct {
		PURL string `json:"purl"`
	} `json:"product_identification_helper"`
}

// csafPackage is a package by its URL, with its range if the document has one.
type csafPackage struct{ purl, set string }

// csafProducts are the packages by the identifiers of their products.
type csafProducts map[string]csafPackage

func (p csafProducts) add(product *csafProduct, set string) {
	if product.Helper.PURL != "" {
		p[product.ID] = csafPackage{product.Helper.PURL, set}
	}
}

func (p csafProducts) addBranches(branches []csafBranch, depth int) error {
	if depth > maxBranches {
		return report.Errorf(report.Invalid, "the branches of its product tree are nested more than %d deep", maxBranches)
	}
	for _, b := range branches {
		if b.Product != nil {
			set := ""
			if b.Category == "product_version_range" && strings.HasPrefix(b.Name, "vers:") {
				_, set, _ = strings.Cut(b.Name, "/")
			}
			p.add(b.Product, set)
		}
		if err := p.addBranches(b.Branches, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// products finds the packages of a document. A product that consists of a package in another product is that package.
func (d *csafDocument) products() (csafProducts, error) {
	p := csafProducts{}
	if err := p.addBranches(d.ProductTree.Branches, 1); err != nil {
		return nil, err
	}
	for i := range d.ProductTree.FullNames {
		p.add(&d.ProductTree.FullNames[i], "")
	}
	for i := range d.ProductTree.Relationships {
		r := &d.ProductTree.Relationships[i]
		p.add(&r.Product, "")
		if _, known := p[r.Product.ID]; !known {
			if part, ok := p[r.Reference]; ok {
				p[r.Product.ID] = part
			}
		}
	}
	return p, nil
}

func (a *advisoryReader) readCSAF(d *csafDocument) error {
	products, err := d.products()
	if err != nil {
		return err
	}
	for i := range d.Vulnerabilities {
		if err = a.readCSAFVulnerability(&d.Vulnerabilities[i], products); err != nil {
			return err
		}
	}
	return nil
}

func (a *advisoryReader) readCSAFVulnerability(v *csafVulnerability, products csafProducts) error {
	var ids []string
	if v.CVE != "" {
		ids = append(ids, v.CVE)
	}
	for _, id := range v.IDs {
		ids = append(ids, id.Text)
	}
	for _, list := range [][]string{v.Status.KnownAffected, v.Status.FirstAffected, v.Status.LastAffected, v.Status.UnderInvestigation} {
		for _, id := range list {
			product, ok := products[id]
			if !ok {
				a.leave("product " + id)
				continue
			}
			if err := a.askCSAF(ids, product); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *advisoryReader) askCSAF(ids []string, product csafPackage) error {
	p, ok := parsePackageURL(product.purl)
	if !ok || product.set == "" {
		return a.askURL(ids, product.purl)
	}
	return a.ask(ids, p, product.set)
}
