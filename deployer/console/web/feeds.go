package web

import (
	"context"

	"github.com/solutionctl/solutionctl/deployer/console/live"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/deployer/loader"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Everything returns the feed of the whole cluster.
func (c *Server) Everything(i *session.Identity) *live.Feed {
	return c.feed(i, survey.EnvironmentOptions{}, c.accepted(i, func(ctx context.Context) (*live.Snapshot, error) {
		d := c.deployer(i, nil)
		status, err := d.Survey.Status(ctx, survey.StatusOptions{})
		if err != nil {
			return nil, err
		}
		stateOf(i).keepName(status.Cluster)
		s := &live.Snapshot{Status: status}
		s.Locks, _ = d.Cluster.Locks(ctx) // without permission, the rest is shown
		if s.Loader, s.Unloaded = loader.Read(ctx, d.Cluster); s.Loader != nil {
			loader.Compare(s.Loader, status.Environments)
		}
		return s, nil
	}), func(ctx context.Context) (*schema.AlertList, error) {
		return c.deployer(i, nil).Survey.Alerts(ctx, survey.AlertOptions{})
	})
}

// EnvironmentFeed returns the feed of the part of an environment that a visitor can see.
func (c *Server) EnvironmentFeed(i *session.Identity, environment, namespace string) *live.Feed {
	o := survey.EnvironmentOptions{Environment: environment, Namespace: namespace, Members: true}
	return c.feed(i, o, c.accepted(i, func(ctx context.Context) (*live.Snapshot, error) {
		d := c.deployer(i, nil)
		status, err := d.Survey.EnvironmentStatus(ctx, o)
		if name, failure := d.Records.NameOfCluster(ctx); failure == nil {
			stateOf(i).keepName(name)
		}
		return &live.Snapshot{Environment: status}, err
	}), func(ctx context.Context) (*schema.AlertList, error) {
		return c.deployer(i, nil).Survey.Alerts(ctx, survey.AlertOptions{Environment: environment, Namespace: namespace})
	})
}

// feed returns the feed of an identity; see reads its snapshots.
func (c *Server) feed(i *session.Identity, of survey.EnvironmentOptions, see func(context.Context) (*live.Snapshot, error),
	alerts func(context.Context) (*schema.AlertList, error),
) *live.Feed {
	return stateOf(i).Feeds.Of(of, live.Source{Context: c.Context, Now: c.Now, Cluster: i.Cluster, See: see, Ask: alerts})
}

// accepted is a look after which the sessions of a user are over whose token the API server does not accept any more: pages that are open
// say so at once.
func (c *Server) accepted(i *session.Identity, see func(context.Context) (*live.Snapshot, error)) func(context.Context) (*live.Snapshot, error) {
	return func(ctx context.Context) (*live.Snapshot, error) {
		s, err := see(ctx)
		if report.CodeOf(err) == report.Unauthenticated && i.Way != session.ByLink {
			c.Sessions.Refuse(i)
		}
		return s, err
	}
}
