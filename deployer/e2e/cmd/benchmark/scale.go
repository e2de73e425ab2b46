//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/e2e/proxy"
	"github.com/solutionctl/solutionctl/deployer/e2e/scale"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

// size is the number of environments and nodes of a site.
type size struct{ environments, nodes int }

// cost has the resources that a verb took at one size.
type cost struct {
	sample
	kinds map[string]proxy.Count // of requests
}

// total returns the requests of a verb, besides those for its locks, whose number depends on how long it takes, and the bytes of all answers.
func (c cost) total() (requests, bytes float64) {
	for kind, count := range c.kinds {
		bytes += float64(count.Bytes)
		if !strings.HasSuffix(kind, " leases") {
			requests += float64(count.Requests)
		}
	}
	return requests, bytes
}

// measureScale prints what each verb takes while environments and then nodes get a hundred and five hundred times as many.
func measureScale(ctx context.Context, s settings) (err error) {
	few, manyEnvironments, manyNodes := 10, s.environments*5, s.environments*25
	sizes := []size{{few, few}, {few, manyNodes / 10}, {few, manyNodes}, {manyEnvironments / 10, few}, {manyEnvironments, few}, {manyEnvironments, manyNodes}}
	o := scale.Options
	o.Progress = os.Stderr
	c, err := testcluster.Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	dir, err := os.MkdirTemp(s.dir, "scale-")
	if err != nil {
		return err
	}
	site, err := scale.New(ctx, dir, s.binary, c)
	if err != nil {
		return err
	}
	defer site.Close()
	costs := map[string]map[size]cost{}
	for _, at := range sizes {
		if err := site.Grow(ctx, at.environments, at.nodes); err != nil {
			return fmt.Errorf("grow to %d environments and %d nodes: %w", at.environments, at.nodes, err)
		}
		fmt.Fprintf(os.Stderr, "== %d environments, %d nodes\n", at.environments, at.nodes)
		for _, verb := range scale.Verbs {
			site.Counts()
			taken, err := measureWith(site.Command(ctx, verb.Line), (*exec.Cmd).Start)
			if err != nil && !verb.MayFail {
				return fmt.Errorf("%s: %w", verb.Name, err)
			}
			if costs[verb.Name] == nil {
				costs[verb.Name] = map[size]cost{}
			}
			costs[verb.Name][at] = cost{taken, site.Counts()}
		}
	}
	printScale(sizes, costs)
	printGrowth(sizes, costs)
	return nil
}

// printScale prints a row for each verb: the requests, bytes, memory and time of the smallest and of the largest site, and the exponents
// between the last two numbers of environments, and of nodes.
func printScale(sizes []size, costs map[string]map[size]cost) {
	first, last := sizes[0], sizes[len(sizes)-1]
	fmt.Printf("\n%d and %d environments, %d and %d nodes; exponents of environments, nodes\n\n", first.environments, last.environments, first.nodes, last.nodes)
	fmt.Println("| | requests | exponents | KB read | exponents | peak RssAnon, MiB | exponents | seconds | exponents |\n|---|---|---|---|---|---|---|---|---|")
	for _, verb := range scale.Verbs {
		of := costs[verb.Name]
		fmt.Printf("| %s |", verb.Name)
		for _, value := range []struct {
			format string
			of     func(cost) float64
		}{
			{"%.0f", func(c cost) float64 { n, _ := c.total(); return n }},
			{"%.0f", func(c cost) float64 { _, n := c.total(); return n / 1000 }},
			{"%.0f", func(c cost) float64 { return float64(c.anon) / (1 << 20) }},
			{"%.2f", func(c cost) float64 { return c.wall.Seconds() }},
		} {
			exponent := func(from, to size) float64 {
				grown := float64(to.environments) / float64(from.environments) * float64(to.nodes) / float64(from.nodes)
				return math.Log(value.of(of[to])/value.of(of[from])) / math.Log(grown)
			}
			fmt.Printf(" "+value.format+" → "+value.format+" | %.2f, %.2f |", value.of(of[first]), value.of(of[last]), exponent(sizes[3], sizes[4]), exponent(sizes[1], sizes[2]))
		}
		fmt.Println()
	}
}

// printGrowth prints the kinds of requests of each verb whose number or answers grow with the site.
func printGrowth(sizes []size, costs map[string]map[size]cost) {
	fmt.Printf("\nWhat grows, requests and KB at (environments, nodes)")
	for _, at := range sizes {
		fmt.Printf(" (%d, %d)", at.environments, at.nodes)
	}
	fmt.Print("\n\n")
	for _, verb := range scale.Verbs {
		var kinds []string
		for _, of := range costs[verb.Name] {
			for kind := range of.kinds {
				kinds = append(kinds, kind)
			}
		}
		slices.Sort(kinds)
		for _, kind := range slices.Compact(kinds) {
			least, most, row := int64(math.MaxInt64), int64(0), ""
			for _, at := range sizes {
				count := costs[verb.Name][at].kinds[kind]
				least, most = min(least, count.Bytes), max(most, count.Bytes)
				row += fmt.Sprintf(" %d·%d", count.Requests, count.Bytes/1000)
			}
			if most > 2*least+4000 {
				fmt.Printf("  %-22s %-45s%s\n", verb.Name, kind, row)
			}
		}
	}
}
