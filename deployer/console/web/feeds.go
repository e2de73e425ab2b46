package web

import (
	"context"
	"sync"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console/live"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/deployer/loader"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Everything returns the feed of the whole cluster.
func (c *Server) Everything(i *session.Identity) *live.Feed {
	return c.feed(i, survey.EnvironmentOptions{}, c.accepted(i, func(ctx context.Context, preview func(*schema.Status)) (*live.Snapshot, error) {
		d := c.deployer(i, nil)
		status, err := d.Survey.Status(ctx, survey.StatusOptions{Preview: preview})
		if err != nil {
			return nil, err
		}
		stateOf(i).keepName(status.Cluster)
		s := &live.Snapshot{Status: status}
		var reads sync.WaitGroup
		reads.Go(func() { s.Locks, _ = d.Cluster.Locks(ctx) }) // without permission, the rest is shown
		reads.Go(func() { s.Loader, s.Unloaded = loader.Read(ctx, d.Cluster) })
		reads.Wait()
		if s.Loader != nil {
			loader.Compare(s.Loader, status.Environments)
		}
		return s, nil
	}), survey.AlertOptions{})
}

// EnvironmentFeed returns the feed of the part of an environment that a visitor can see.
func (c *Server) EnvironmentFeed(i *session.Identity, environment, namespace string) *live.Feed {
	o := survey.EnvironmentOptions{Environment: environment, Namespace: namespace, Members: true}
	return c.feed(i, o, c.accepted(i, func(ctx context.Context, _ func(*schema.Status)) (*live.Snapshot, error) {
		d := c.deployer(i, nil)
		status, err := d.Survey.EnvironmentStatus(ctx, o)
		if name, failure := d.Records.NameOfCluster(ctx); failure == nil {
			stateOf(i).keepName(name)
		}
		return &live.Snapshot{Environment: status}, err
	}), survey.AlertOptions{Environment: environment, Namespace: namespace})
}

// see reads a snapshot, after a preview of it.
type see func(ctx context.Context, preview func(*schema.Status)) (*live.Snapshot, error)

// feed returns the feed of an identity; read reads its snapshots.
func (c *Server) feed(i *session.Identity, of survey.EnvironmentOptions, read see, alerts survey.AlertOptions) *live.Feed {
	feeds := &stateOf(i).Feeds
	return feeds.Of(of, live.Source{
		Context: c.Context, Now: c.Now, After: c.After, Cluster: i.Cluster, See: read,
		FindAlerts: func(ctx context.Context) (live.AskAlerts, error) {
			v := c.deployer(i, nil).Survey
			sources, err := v.AlertSources(ctx, alerts)
			if err != nil {
				return nil, err
			}
			ask := func(ctx context.Context, service cluster.Service, path string) ([]byte, error) {
				proxied := service.PermissionToGet()
				return feeds.Answers.Of(proxied.Namespace+"/"+proxied.Name+path, c.Now, func() ([]byte, error) { return v.AskPrometheus(ctx, service, path) })
			}
			return func(ctx context.Context) (*schema.AlertList, error) { return sources.Alerts(ctx, ask) }, nil
		},
	})
}

// accepted is a look after which the sessions of a user are over whose token the API server does not accept any more: pages that are open
// say so at once.
func (c *Server) accepted(i *session.Identity, read see) see {
	return func(ctx context.Context, preview func(*schema.Status)) (*live.Snapshot, error) {
		s, err := read(ctx, preview)
		if report.CodeOf(err) == report.Unauthenticated && i.Way != session.ByLink {
			c.Sessions.Refuse(i)
		}
		return s, err
	}
}
