package archives

import (
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/hostd"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// showContent shows the facts about an imported version.
func (p *Pages) showContent(v *web.Visit) (*web.Answer, error) {
	o := hostd.Version{Solution: v.PathValue("solution"), Version: v.PathValue("version")}
	if _, err := schema.ParseVersion(o.Version); err != nil {
		return nil, report.Errorf(report.Usage, "%q is not a version", o.Version)
	}
	if p.Host == nil {
		return nil, report.Errorf(report.Refused, "archives are read on the host that keeps them").
			WithHint("run it there: %s", report.Run("inspect", o.Solution+"-"+o.Version+".iso", "--sbom"))
	}
	token, err := credentials(v.Context(), v)
	if err != nil {
		return nil, err
	}
	facts, err := p.Host.Facts(v.Context(), token, o, nil)
	if err != nil {
		return nil, err
	}
	v.Frame.Section = page.SectionSolutions
	v.Frame.Trail = []page.Link{{Label: page.Text("solutions.title"), URL: "/solutions"}, {Label: o.Solution, URL: page.URL("solutions", o.Solution)}}
	return &web.Answer{Document: facts, Content: &page.ArchiveContent{Facts: facts}}, nil
}

// ContentAction returns the action that leads to the content of a version; none where this console keeps no archives.
func (p *Pages) ContentAction(v *web.Visit, solution, version string) []page.Action {
	if p.Host == nil {
		return nil
	}
	return []page.Action{{
		Label: page.Text("action.content") + " " + version, URL: page.URL("solutions", solution, "content", version),
		Denied: denialOnHost(v, rights.VerbImport),
	}}
}
