package console

import (
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// alerts shows those of the whole cluster. This page waits for them.
func (c *Console) alerts(v *web.Visit) (*web.Answer, error) {
	_, err := c.watched(v, page.SectionOverview, nil)
	if web.IsVisitor(err) {
		return c.yours(v, page.SectionOverview, err, nil), nil
	}
	if err != nil {
		return nil, err
	}
	s, answer, err := c.server.Everything(v.Identity).AwaitAlerts(v.Context())
	if err != nil {
		return nil, err
	}
	v.Frame.Feed = "/events?seen=" + s.Mark()
	if answer.Failure != nil && web.WantsJSON(v.Request) {
		return nil, answer.Failure
	}
	var list *schema.AlertList
	if answer.Alerts != nil {
		list = answer.Alerts.List
	}
	return &web.Answer{Document: list, Content: &page.Alerts{AlertState: answer.Alerts, Hints: report.Hints(answer.Failure)}}, nil
}
