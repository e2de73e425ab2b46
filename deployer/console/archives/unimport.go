package archives

import (
	"context"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/hostd"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// askUnimport shows the effects of an unimport, and asks for the name of the version.
func (p *Pages) askUnimport(v *web.Visit) (*web.Answer, error) {
	o, err := p.unimportOf(v)
	if err != nil {
		return nil, err
	}
	v.Frame.Section = page.SectionSolutions
	v.Frame.Trail = []page.Link{{Label: page.Text("solutions.title"), URL: "/solutions"}, {Label: o.Solution, URL: page.URL("solutions", o.Solution)}}
	at := page.URL("solutions", o.Solution)
	return &web.Answer{Document: o, Content: &page.Confirmation{
		Heading: (&schema.Operation{Operation: rights.VerbUnimport, Solution: o.Solution, Version: o.Version}).Heading(),
		Warnings: []page.Notice{
			{Tone: page.ToneWarn, Text: page.Text("unimport.goes", o.Solution+"-"+o.Version)},
			{Tone: page.ToneInfo, Text: page.Text("unimport.again")},
		},
		Form: page.Form{
			Action: page.Action{
				Label: page.Text("action.unimport"), URL: page.Query(at+"/unimport", "version", o.Version), Post: true, Weight: page.WeightDanger,
				Confirm: o.Solution + "-" + o.Version, Denied: denialOnHost(v, rights.VerbUnimport),
			},
			Cancel: page.Link{URL: at},
		},
	}}, nil
}

// unimportOf is the version that a page is about. One that is used stays.
func (p *Pages) unimportOf(v *web.Visit) (o hostd.Version, err error) {
	if p.Host == nil {
		return o, report.Errorf(report.Refused, "archives are removed on the host that keeps them").
			WithHint("run it there: %s", report.Run("deploy unimport", v.PathValue("solution"), v.FormValue("version")))
	}
	o = hostd.Version{Solution: v.PathValue("solution"), Version: v.FormValue("version")}
	if _, err = schema.ParseVersion(o.Version); err != nil {
		return o, report.Errorf(report.Usage, "%q is not a version", o.Version)
	}
	return o, v.Deployer(nil).Records.CheckUnused(v.Context(), o.Solution, o.Version)
}

// unimport begins to unimport a version, once the user has typed its name.
func (p *Pages) unimport(v *web.Visit) (*web.Answer, error) {
	o, err := p.unimportOf(v)
	if err != nil {
		return nil, err
	}
	if id := o.Solution + "-" + o.Version; v.PostFormValue("confirm") != id {
		return nil, report.Errorf(report.Cancelled, "not confirmed: the name that was typed is not %s", id)
	}
	planned := &schema.Operation{
		Operation: rights.VerbUnimport, Solution: o.Solution, Version: o.Version, Planned: true, Parts: []schema.OperationPart{}, Notices: []string{},
	}
	return p.server.Begin(v, planned, func(ctx context.Context, sink report.Sink) (*schema.Operation, error) {
		done, err := asUser(ctx, v, func(token string) (*schema.UnimportReport, error) { return p.Host.Unimport(ctx, token, o, sink) })
		return carriedOut(planned, err, done != nil, func() []string { return done.Notices }), err
	})
}

// UnimportAction returns the action that leads to the confirmation of an unimport; none where this console keeps no archives.
func (p *Pages) UnimportAction(v *web.Visit, solution, version string) []page.Action {
	if p.Host == nil {
		return nil
	}
	return []page.Action{{
		Label: page.Text("action.unimport") + " " + version, URL: page.Query(page.URL("solutions", solution)+"/unimport", "version", version),
		Weight: page.WeightDanger, Denied: denialOnHost(v, rights.VerbUnimport),
	}}
}
