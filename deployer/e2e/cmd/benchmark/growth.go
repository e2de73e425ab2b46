//go:build linux

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
)

const growthSizes = 4 // of each series

// series has the medians of one use of the program, for inputs of several sizes.
type series struct {
	name, unit        string
	sizes             []float64
	wall, cpu, memory []float64 // seconds, seconds, MiB
}

// panel has the series whose sizes grow in the same steps.
type panel struct {
	title  string
	series []*series
}

// benchmarkGrowth measures the program on inputs of several sizes, prints the exponents of what it takes, and draws its time.
func benchmarkGrowth(ctx context.Context, s settings) error {
	bytes := &panel{title: "bytes of an archive; files of a project (lint)"}
	images := &panel{title: "images of an archive"}
	objects := &panel{title: "objects of a Solution; environments of a cluster (console)"}
	if s.sizes < 1 || s.sizes > growthSizes {
		return fmt.Errorf("-sizes must be 1 to %d", growthSizes)
	}
	for _, one := range []struct {
		name    string
		measure func() error
	}{
		{"bytes", func() error { return growBytes(ctx, s, bytes) }},
		{"images", func() error { return growImages(ctx, s, images) }},
		{"objects", func() error { return growObjects(ctx, s, objects) }},
		{"environments", func() error { return growEnvironments(ctx, s, objects) }},
	} {
		if !slices.Contains(strings.Split(s.series, ","), one.name) {
			continue
		}
		if err := one.measure(); err != nil {
			return err
		}
	}
	panels := slices.DeleteFunc([]*panel{bytes, images, objects}, func(p *panel) bool { return len(p.series) == 0 })
	printSeries(panels)
	if s.svg != "" && len(panels) > 0 && s.sizes > 1 {
		if err := os.WriteFile(s.svg, []byte(drawPanels(panels)), 0o644); err != nil {
			return err
		}
	}
	if s.sparse == 0 {
		return nil
	}
	return measureSparse(ctx, s)
}

func printSeries(panels []*panel) {
	fmt.Printf("\nGrowth: the exponent is that of the last step, 1 is linear.\n\n" +
		"| | sizes | wall | exponent | CPU | exponent | peak RssAnon | exponent |\n|---|---|---|---|---|---|---|---|\n")
	for _, p := range panels {
		for _, one := range p.series {
			fmt.Printf("| %s, %s | %s | %s s | %s | %s s | %s | %s MiB | %s |\n", one.name, one.unit, list("%.0f", one.sizes),
				list("%.2f", one.wall), one.exponent(one.wall), list("%.2f", one.cpu), one.exponent(one.cpu), list("%.0f", one.memory), one.exponent(one.memory))
		}
	}
}

// add adds the medians of samples to the series of a name, and reports them: all series take long.
func (p *panel) add(name, unit string, size float64, samples []sample) {
	i := slices.IndexFunc(p.series, func(one *series) bool { return one.name == name })
	if i < 0 {
		i, p.series = len(p.series), append(p.series, &series{name: name, unit: unit})
	}
	one := p.series[i]
	one.sizes = append(one.sizes, size)
	one.wall = append(one.wall, median(seconds(samples, wall)))
	one.cpu = append(one.cpu, median(seconds(samples, cpu)))
	one.memory = append(one.memory, median(anon(samples)))
	fmt.Fprintf(os.Stderr, "== %s, %.0f %s: %.2f s, CPU %.2f s, %.0f MiB; load %s\n", name, size, unit,
		one.wall[len(one.wall)-1], one.cpu[len(one.cpu)-1], one.memory[len(one.memory)-1], load())
}

// exponent is that with which values grew from the second largest size to the largest one, empty for one size.
func (l *series) exponent(values []float64) string {
	n := len(values)
	if n < 2 {
		return ""
	}
	return fmt.Sprintf("%.2f", math.Log(values[n-1]/values[n-2])/math.Log(l.sizes[n-1]/l.sizes[n-2]))
}

// sizesTo returns the largest count of the sizes of a series, which go from 1 to the largest in equal ratios.
func sizesTo(largest, count int) []int {
	sizes := make([]int, growthSizes)
	for i := range sizes {
		sizes[i] = int(math.Round(math.Pow(float64(largest), float64(i)/(growthSizes-1))))
	}
	return sizes[growthSizes-count:]
}

func list(format string, values []float64) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprintf(format, v)
	}
	return strings.Join(texts, " · ")
}
