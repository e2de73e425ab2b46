package host

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	replicaInterval = time.Second     // between questions to the endpoints
	replicaAnswer   = 5 * time.Second // that an endpoint gets
)

// checkReplicas refuses an import that must be on more endpoints than the cluster records.
func (i *importing) checkReplicas(ctx context.Context) error {
	if i.o.Replicas == 0 {
		return nil
	}
	if i.Cluster == nil || i.absent != nil {
		return report.Errorf(report.Usage, "--require-replicas needs the cluster, which records the endpoints").WithHint("leave it out, or run the command when the API server answers")
	}
	recorded, err := i.Cluster.Registry(ctx)
	if err != nil {
		return err
	}
	endpoints := slices.Clone(i.o.Endpoints)
	if recorded != nil {
		endpoints = append(endpoints, recorded.Endpoints...)
	}
	slices.Sort(endpoints)
	if known := len(slices.Compact(endpoints)); known < i.o.Replicas {
		return report.Errorf(report.Refused, "%s must serve the archives, and the cluster records %d", report.Count(i.o.Replicas, "endpoint"), known).
			WithHint("on each further host: %s, then %s", report.Run("deploy store sync").With("from", "https://HOST:PORT"), records.RegistryRemedy())
	}
	return nil
}

// awaitReplicas waits until enough endpoints serve the imported archives.
func (i *importing) awaitReplicas(ctx context.Context, entries []store.Entry) error {
	if i.o.Replicas == 0 {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, i.o.ReplicaTimeout)
	defer cancel()
	for {
		serving, err := i.replicas(bounded, entries)
		if err == nil && serving >= i.o.Replicas {
			i.Sink.Emit(report.Event{Step: "replicate", State: report.Done, Note: fmt.Sprintf("%d endpoints serve the archives", serving)})
			return nil
		}
		if err != nil && bounded.Err() == nil {
			return err
		}
		i.Sink.Emit(report.Event{Step: "replicate", State: report.Running, Note: fmt.Sprintf("%d of %d endpoints serve the archives", serving, i.o.Replicas)})
		if cluster.Sleep(bounded, replicaInterval) != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return report.Errorf(report.Unavailable, "imported, but %d of %d endpoints serve the archives after %v", serving, i.o.Replicas, i.o.ReplicaTimeout).
				WithHint("'%s' shows which ones lack them; on each of these hosts: %s", report.Run("deploy registry list").With("check"),
					report.Run("deploy store sync").With("from", "https://HOST:PORT"))
		}
	}
}

// replicas counts the endpoints that serve all of the archives.
func (i *importing) replicas(ctx context.Context, entries []store.Entry) (serving int, err error) {
	recorded, err := i.Cluster.Registry(ctx)
	if err != nil || recorded == nil {
		return 0, err
	}
	imports, err := i.Cluster.Imports(ctx)
	if err != nil {
		return 0, err
	}
	imports = slices.DeleteFunc(imports, func(known schema.Import) bool {
		return !slices.ContainsFunc(entries, func(e store.Entry) bool { return e.ID() == known.ID() })
	})
	for _, answer := range records.AskRegistry(ctx, recorded, imports, replicaAnswer) {
		if answer.Err == nil && len(answer.Missing) == 0 {
			serving++
		}
	}
	return serving, nil
}
