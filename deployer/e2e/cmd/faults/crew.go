//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/solutionctl/solutionctl/deployer/e2e/faults"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

// crew are lanes that work side by side.
type crew struct {
	*book
	dir, source, program string
	seed                 uint64
	sample               int
	lanes                []*faults.Lane
	clusters             []*testcluster.Cluster

	mu    sync.Mutex
	clean map[string]*faults.Clean
}

func (c *crew) start(ctx context.Context, lanes int) error {
	c.clean = map[string]*faults.Clean{}
	for n := range lanes {
		cluster, err := testcluster.Start(ctx, clusterOptions)
		if err != nil {
			return err
		}
		c.clusters = append(c.clusters, cluster)
		host := filepath.Join(c.dir, fmt.Sprintf("host-%d", n))
		if err = os.Mkdir(host, 0o755); err != nil {
			return err
		}
		lane, err := faults.NewLane(ctx, cluster, c.program, host)
		if err != nil {
			return err
		}
		c.lanes = append(c.lanes, lane)
	}
	return nil
}

func (c *crew) close() {
	for _, lane := range c.lanes {
		_ = lane.Close()
	}
	for _, cluster := range c.clusters {
		_ = cluster.Stop()
	}
}

// share gives each lane one job after the other.
func share[T any](ctx context.Context, c *crew, jobs []T, do func(context.Context, *faults.Lane, T) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	queue := make(chan T)
	go func() {
		defer close(queue)
		for _, job := range jobs {
			select {
			case queue <- job:
			case <-ctx.Done():
				return
			}
		}
	}()
	errs := make([]error, len(c.lanes))
	var working sync.WaitGroup
	for i, lane := range c.lanes {
		working.Go(func() {
			for job := range queue {
				if errs[i] = do(ctx, lane, job); errs[i] != nil {
					cancel()
					return
				}
			}
		})
	}
	working.Wait()
	return errors.Join(errs...)
}

// survey counts the steps of the verbs.
func (c *crew) survey(ctx context.Context, verbs []*faults.Verb) error {
	return share(ctx, c, verbs, func(ctx context.Context, lane *faults.Lane, v *faults.Verb) error {
		clean, err := lane.Clean(ctx, v)
		if err != nil {
			return fmt.Errorf("%s, not killed: %w", v.Name, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.clean[v.Name] = clean
		return c.noteVerb(v, clean)
	})
}

// prove makes sure that builds with a fault are found.
func (c *crew) prove(ctx context.Context) error {
	return share(ctx, c, faults.Sabotages, func(ctx context.Context, lane *faults.Lane, s *faults.Sabotage) error {
		if c.proved(s) {
			return nil
		}
		program := filepath.Join(c.dir, s.Name)
		if err := faults.Build(ctx, c.source, program, s); err != nil {
			return err
		}
		lane.Use(program)
		defer lane.Use(c.program)
		found, err := lane.Finds(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		return c.noteProof(s, found)
	})
}

// batch is how many points of a verb a lane takes at a time: what they begin with is made once.
const batch = 12

// kill kills the verbs at every step, or a sample of them, that the book does not know yet.
func (c *crew) kill(ctx context.Context, verbs []*faults.Verb) error {
	var batches [][]faults.Point
	for rank := range faults.Ranks {
		var some [][]faults.Point
		for _, v := range verbs {
			clean := c.clean[v.Name]
			points := slices.DeleteFunc(clean.Sample(v, c.seed, c.sample), func(p faults.Point) bool { return clean.Rank(p) != rank || c.known(p) })
			some = slices.AppendSeq(some, slices.Chunk(points, batch))
		}
		batches = append(batches, faults.Shuffle(some, c.seed)...)
	}
	return share(ctx, c, batches, func(ctx context.Context, lane *faults.Lane, points []faults.Point) error {
		for _, point := range points {
			if err := c.killAt(ctx, lane, point); err != nil {
				return err
			}
		}
		return nil
	})
}

// tries is how often a point is tried of which nothing is found out.
const tries = 3

func (c *crew) killAt(ctx context.Context, lane *faults.Lane, point faults.Point) error {
	v := faults.Verbs[slices.IndexFunc(faults.Verbs, func(v *faults.Verb) bool { return v.Name == point.Verb })]
	result, err := lane.Kill(ctx, v, point)
	for range tries - 1 {
		if err == nil || ctx.Err() != nil {
			break
		}
		fmt.Fprintf(os.Stderr, "%s, %s %d: tried again: %v\n", point.Verb, point.Kind, point.N, err)
		result, err = lane.Kill(ctx, v, point)
	}
	if err != nil && ctx.Err() == nil {
		// What stands in the way of one run need not stand in that of the others.
		result, err = &faults.Result{Point: point, Outcome: faults.Unknown, Detail: err.Error()}, nil
	}
	if err != nil {
		return err
	}
	if result.Outcome == faults.Bad || result.Outcome == faults.Unknown {
		fmt.Fprintf(os.Stderr, "%s\n%s\n", result, result.Detail)
	}
	return c.note(v, result)
}
