package host

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/sbom"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
)

// maxStatements is how many statements of a vendor are shown of one archive.
const maxStatements = 200

// Facts returns facts about the content of an imported version: its provenance by the policy of o, the vendor's statements, and the packages if they
// were listed before. It reads no layer.
func (h *Host) Facts(ctx context.Context, o ImportOptions, solution, version string) (_ *schema.ArchiveFacts, err error) {
	e, err := h.Store.Find(solution, version)
	if err != nil {
		return nil, err
	}
	f := newFacts(e.Name, e.Version)
	if f.Provenance, err = h.provenanceOf(ctx, o, e); err != nil {
		f.Problems = append(f.Problems, err.Error())
	}
	if f.Packages, err = h.keptPackages(e); err != nil {
		f.Problems = append(f.Problems, err.Error())
	}
	opened, file, err := h.openArchive(e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	addStatements(f, opened)
	return f, ctx.Err()
}

func newFacts(solution, version string) *schema.ArchiveFacts {
	return &schema.ArchiveFacts{Solution: solution, Version: version, Statements: []schema.ProductStatement{}}
}

// provenanceOf judges the provenance of a stored archive by its signatures; nil without one.
func (h *Host) provenanceOf(ctx context.Context, o ImportOptions, e store.Entry) (*schema.ProvenanceFacts, error) {
	kept, err := h.Store.Bundles(e)
	if err != nil || len(kept) == 0 {
		return nil, err
	}
	d, err := h.newAdmission(o)
	if err != nil {
		return nil, err
	}
	var bundles []layout.Bundle
	for _, data := range kept {
		bundles = append(bundles, layout.Bundle{Data: data})
	}
	options := d.signOptions("")
	options.AllowDowngrade = true // newer versions were imported since
	verdict, _, err := sign.Judge(ctx, sign.NameBundles(filepath.Base(e.Path), bundles), options)
	if err == nil && verdict.Archive.SHA256 != e.SHA256 {
		err = report.Errorf(report.Mismatch, "the signatures are of another archive")
	}
	if err != nil {
		return nil, err
	}
	return provenanceFacts(verdict), nil
}

// provenanceFacts summarizes the provenance of a verdict, and takes it out: it can be large. It returns nil without one.
func provenanceFacts(v *sign.Verdict) *schema.ProvenanceFacts {
	if v == nil || v.Provenance == nil {
		return nil
	}
	f := v.Provenance.Facts()
	v.Provenance = nil
	for _, s := range v.Signatures {
		if s.Status == sign.Attested {
			f.Signer, f.SignedAt = s.KeyName, s.SignedAt
			break
		}
	}
	return f
}

// addStatements adds the statements of an archive. Damaged ones are a problem.
func addStatements(f *schema.ArchiveFacts, archive fs.FS) {
	statements, err := sbom.ReadStatements(archive)
	if err != nil {
		f.Problems = append(f.Problems, err.Error())
		return
	}
	f.Statements, f.MoreStatements = statements.List(maxStatements)
}

// keptPackages returns the packages of an archive if they were listed before, else nil.
func (h *Host) keptPackages(e store.Entry) (*schema.PackageFacts, error) {
	data, err := h.Store.ReadPackages(e, sbom.Edition)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // documented
	}
	if err != nil {
		return nil, err
	}
	list, err := unpackPackages(data)
	if err != nil {
		return nil, nil //nolint:nilnil,nilerr // it is made again at the next question
	}
	return list.Facts(), nil
}
