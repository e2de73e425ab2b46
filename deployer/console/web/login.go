package web

import (
	"net/http"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/session"
)

// showLogin shows the ways to log in, and why the last attempt failed; the status 0 is that of the failure.
func (c *Server) showLogin(w http.ResponseWriter, r *http.Request, status int, to string, failure error) {
	content := &page.Login{}
	if status == 0 {
		status = StatusOf(failure)
	}
	if ended := session.EndedReason(r); ended != "" {
		content.Ended = page.Text("login.ended." + ended)
	}
	if c.Login.Provider != nil {
		content.Organisation = &page.Action{Label: page.Text("login.organisation"), URL: page.Query("/auth/start", "to", to), Weight: page.WeightPrimary}
	}
	if c.Login.Tokens {
		content.Token = &page.Action{Label: page.Text("login.button"), URL: "/login/token", Post: true, Fields: []page.Hidden{{Name: "to", Value: to}}, Weight: page.WeightPrimary}
	}
	if c.Login.Links {
		content.Local = page.Text("login.link")
	}
	c.render(w, r, status, page.View{Frame: page.Frame{Version: c.Version, Now: c.Now(), Problem: page.ProblemOf(failure)}, Content: content})
}
