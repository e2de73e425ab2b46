package host

import (
	"context"

	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

// Examination is the judgement on an archive before it is imported.
type Examination struct {
	Solution string        `json:"solution,omitempty"` // "" without a trusted signature
	Version  string        `json:"version,omitempty"`
	SHA256   string        `json:"sha256,omitempty"` // "" where the archive was not read
	Size     int64         `json:"size"`
	Verdict  *sign.Verdict `json:"verdict,omitempty"` // nil where it did not come to that
	Signers  []string      `json:"signers"`           // names of those whose signatures count
	// Chunks are the signed digests of the archive's chunks; nil where they were not requested.
	Chunks *chunk.List `json:"chunks,omitempty"`
	// Findings are the findings of lint that matter for an import.
	Findings []report.Finding `json:"findings"`
	// Brings is nil where the archive was not read.
	Brings *Contents `json:"brings,omitempty"`
	// Powers are the powers of the archive in a cluster; nil where the archive was not read.
	Powers *schema.Powers `json:"powers,omitempty"`
	// Facts has the provenance and the vendor's statements; nil where the archive was not read.
	Facts *schema.ArchiveFacts `json:"facts,omitempty"`
	// Known reports that exactly this archive is in the store already.
	Known bool `json:"known"`
	// Activation is the plan of activating it after the import, without any accepted refusals; nil without a plan, for
	// the reason in NoActivation.
	Activation   *schema.Operation `json:"activation,omitempty"`
	NoActivation string            `json:"noActivation,omitempty"`
}

// Contents summarises the content of an archive.
type Contents struct {
	Images      []schema.PayloadImage `json:"images"`
	Definitions []string              `json:"definitions"`
	DependsOn   []schema.Dependency   `json:"dependsOn,omitempty"`

	ReleaseNotes string `json:"releaseNotes,omitempty"`
}

// Examine checks one archive as [Host.Import] would, and changes nothing. The error is the reason why the archive would
// be refused. The examination is never nil, and has the results up to the error.
func (h *Host) Examine(ctx context.Context, o ImportOptions) (*Examination, error) {
	e := &Examination{Signers: []string{}, Findings: []report.Finding{}}
	i := &importing{Host: h, o: o}
	var err error
	if i.admission, err = h.newAdmission(o); err != nil {
		return e, err
	}
	c, err := i.admission.open(ctx, 0)
	if err != nil {
		return e, err
	}
	defer c.close()
	err = i.admission.admit(ctx, c)
	e.Size, e.SHA256, e.Solution, e.Version = c.size, c.source.SHA256, c.source.Name, c.source.Version
	e.describe(c.verdict)
	if provenance := provenanceFacts(c.verdict); c.facts != nil {
		e.Facts = c.facts
		e.Facts.Provenance = provenance
	}
	e.Findings, e.Powers = append(e.Findings, c.findings...), c.powers
	if err != nil {
		return e, err
	}
	e.Known = i.admission.has(c.solution(), c.source.SHA256)
	if e.Brings, err = contentsOf(c.payload); err != nil {
		return e, err
	}
	if err = i.judge(ctx, []*admitted{c}); err != nil || h.Cluster == nil || i.absent != nil {
		return e, err
	}
	e.Activation, err = h.Cluster.PreviewActivation(ctx, records.ImportRecord{Payload: c.payload, SHA256: c.source.SHA256, Size: c.size})
	if err != nil {
		e.NoActivation = err.Error()
	}
	return e, ctx.Err()
}

// Expect judges an archive by its signatures alone, before it is transferred. Chunks has the digests that it must have.
func (h *Host) Expect(ctx context.Context, o ImportOptions, bundles []sign.NamedBundle) (*Examination, error) {
	e := &Examination{Signers: []string{}, Findings: []report.Finding{}}
	d, err := h.newAdmission(o)
	if err != nil {
		return e, err
	}
	verdict, list, err := d.judgeBundles(ctx, bundles, "")
	verdict.Provenance = nil // it is shown with the archive
	e.describe(verdict)
	if err != nil {
		return e, err
	}
	e.Chunks, e.Size = list, list.Size
	e.Known = d.has(*verdict.Solution, verdict.Archive.SHA256)
	return e, nil
}

// judgeBundles decides by signatures alone whether an archive may be imported.
func (d *admission) judgeBundles(ctx context.Context, bundles []sign.NamedBundle, name string) (*sign.Verdict, *chunk.List, error) {
	options := d.signOptions(name)
	verdict, list, err := sign.Judge(ctx, bundles, options)
	if report.CodeOf(err) == report.Downgrade && d.has(*verdict.Solution, verdict.Archive.SHA256) {
		options.AllowDowngrade = true // archives of the store do not make anything older
		verdict, list, err = sign.Judge(ctx, bundles, options)
	}
	return verdict, list, err
}

func (e *Examination) describe(v *sign.Verdict) {
	if e.Verdict = v; v == nil {
		return
	}
	e.Signers = signersOf(v)
	if v.Solution != nil {
		e.Solution, e.Version = v.Solution.Name, v.Solution.Version
	}
}

func contentsOf(p *render.Payload) (*Contents, error) {
	c := &Contents{Images: append([]schema.PayloadImage{}, p.Images...), Definitions: []string{}, DependsOn: p.Solution.Spec.DependsOn, ReleaseNotes: p.ReleaseNotes()}
	definitions, err := render.Definitions(p)
	for _, d := range definitions {
		c.Definitions = append(c.Definitions, d.GetName())
	}
	return c, err
}
