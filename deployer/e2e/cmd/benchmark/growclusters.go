//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

// growthCluster has pods that become ready at once: waiting for them is not measured.
var growthCluster = testcluster.Options{FakeNodes: 3, ReadyAtOnce: true, Progress: os.Stderr}

// growObjects measures a Solution of more and more components, on a cluster of its own for each size.
func growObjects(ctx context.Context, s settings, p *panel) error {
	for _, components := range sizesTo(s.components, s.sizes) {
		steps := []string{graphSteps[0], "plan", "add", "add again"}
		if s.alone {
			steps = steps[1:]
		}
		samples, err := measureGraphSteps(ctx, growthCluster, components, s.objects, steps)
		if err != nil {
			return fmt.Errorf("%d components: %w", components, err)
		}
		for i, name := range steps {
			if name == graphSteps[0] {
				name = "floor"
			}
			p.add(name, "objects", float64(components*s.objects), samples[i:i+1])
		}
	}
	return nil
}

// growEnvironments measures the first overview of the console on one cluster that gets more and more environments.
func growEnvironments(ctx context.Context, s settings, p *panel) (err error) {
	c, err := testcluster.Start(ctx, growthCluster)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	steps := []string{"prepare", "create environments", "add", "wait"}
	for i, environments := range sizesTo(s.environments, s.sizes) {
		for _, step := range steps[min(i, 1):] {
			if _, err = measure(ctx, os.Args[0], "fleet-step", c.Kubeconfig, strconv.Itoa(environments), "apart", step); err != nil {
				return fmt.Errorf("%d environments: %s: %w", environments, step, err)
			}
		}
		visits, err := firstVisits(ctx, c, s.binary, s.rounds)
		if err != nil {
			return err
		}
		var samples []sample
		for _, v := range visits {
			samples = append(samples, sample{wall: v.all, cpu: v.processor, anon: v.peak})
		}
		p.add("console", "environments", float64(environments), samples)
	}
	return nil
}
