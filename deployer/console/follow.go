package console

import (
	"github.com/solutionctl/solutionctl/deployer/console/live"

	"github.com/solutionctl/solutionctl/deployer/console/web"
)

// followStatus streams changes of the cluster to a browser.
func (c *Console) followStatus(v *web.Visit) (live.Follower, func(), error) {
	f := c.server.Everything(v.Identity)
	if environment := v.FormValue("environment"); environment != "" {
		f = c.server.EnvironmentFeed(v.Identity, environment, v.FormValue("namespace"))
		if _, err := f.Read(v.Context(), nil); err != nil {
			return nil, nil, err
		}
	}
	next, leave := f.Follow()
	return next, leave, nil
}

// followOperation streams the steps of an operation to a browser.
func (c *Console) followOperation(v *web.Visit) (live.Follower, func(), error) {
	op := c.server.Operations.Find(v.Identity, v.PathValue("id"))
	if op == nil {
		return nil, nil, noOperation()
	}
	return op.Follow, func() {}, nil
}
