//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	growthSizes = 4 // of each series, each growthStep times the one before
	growthStep  = 8
	growthFiles = 40 // of the smallest size
)

// series has the medians of one use of the program, for inputs of several sizes.
type series struct {
	name, unit        string
	sizes             []float64
	wall, cpu, memory []float64 // seconds, seconds, MiB
}

// benchmarkGrowth measures commands on inputs of several sizes, prints the exponents of what they take, and draws their time.
func benchmarkGrowth(ctx context.Context, s settings) error {
	var all []*series
	for step := range growthSizes {
		factor := int64(math.Pow(growthStep, float64(step)))
		sized := s
		sized.size = s.size * factor / int64(math.Pow(growthStep, growthSizes-1))
		sized.dir = filepath.Join(s.dir, "growth")
		if err := os.Mkdir(sized.dir, 0o755); err != nil {
			return err
		}
		subjects, err := newSubjects(ctx, sized, growthFiles*int(factor))
		if err != nil {
			return err
		}
		for i, one := range subjects[1:] { // the start has no input
			if step == 0 {
				all = append(all, &series{name: one.name, unit: "MiB"})
			}
			size := float64(sized.size) / (1 << 20)
			if one.name == "lint" {
				all[i].unit, size = "files", float64(growthFiles*factor)
			}
			if err = all[i].measure(ctx, size, s.rounds, contestant{one.name, append([]string{s.binary}, one.args...), one.prepare}); err != nil {
				return err
			}
		}
		if err = os.RemoveAll(sized.dir); err != nil {
			return err
		}
	}
	fmt.Printf("\nGrowth: each input is %d times as large as the one before. The exponent is that of the last step, 1 is linear.\n\n"+
		"| | sizes | wall | exponent | CPU | exponent | peak RssAnon | exponent |\n|---|---|---|---|---|---|---|---|\n", growthStep)
	for _, one := range all {
		fmt.Printf("| %s, %s | %s | %s s | %.2f | %s s | %.2f | %s MiB | %.2f |\n", one.name, one.unit, list("%.0f", one.sizes),
			list("%.2f", one.wall), one.exponent(one.wall), list("%.2f", one.cpu), one.exponent(one.cpu), list("%.0f", one.memory), one.exponent(one.memory))
	}
	if s.svg == "" {
		return nil
	}
	return os.WriteFile(s.svg, []byte(drawGrowth(all)), 0o644)
}

func (l *series) measure(ctx context.Context, size float64, rounds int, c contestant) error {
	samples, err := compare(ctx, rounds, c)
	if err != nil {
		return err
	}
	l.sizes = append(l.sizes, size)
	l.wall = append(l.wall, median(seconds(samples[0], wall)))
	l.cpu = append(l.cpu, median(seconds(samples[0], cpu)))
	l.memory = append(l.memory, median(anon(samples[0])))
	return nil
}

// exponent is that with which values grew from the second largest size to the largest one.
func (l *series) exponent(values []float64) float64 {
	n := len(values)
	return math.Log(values[n-1]/values[n-2]) / math.Log(l.sizes[n-1]/l.sizes[n-2])
}

func list(format string, values []float64) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprintf(format, v)
	}
	return strings.Join(texts, " · ")
}

// drawGrowth draws the wall time of each series as SVG, on logarithmic axes: a series that grows linearly has the slope of the grey lines.
func drawGrowth(all []*series) string {
	const (
		width, height, margin = 640, 420, 60
		decades               = 5 // 1 ms to 100 s
	)
	colors := []string{"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf"}
	steps := math.Log(growthStep) / math.Log(10) * (growthSizes - 1)
	x := func(size, smallest float64) float64 {
		return margin + math.Log10(size/smallest)/steps*(width-2.5*margin)
	}
	y := func(seconds float64) float64 {
		return height - margin - (math.Log10(seconds)+3)/decades*(height-2*margin)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" role="img" aria-label="wall time by size">`+"\n"+
		`<rect width="100%%" height="100%%" fill="#fff"/>`+"\n", width, height)
	for decade := range decades + 1 {
		value := math.Pow10(decade - 3)
		fmt.Fprintf(&b, `<path d="M%d %.1fH%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			margin, y(value), width-1.5*margin, margin-6, y(value)+4, time.Duration(value*float64(time.Second)))
	}
	for step := range growthSizes {
		times := math.Pow(growthStep, float64(step))
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%.0f×</text>`+"\n", x(times, 1), height-margin+20, times)
	}
	for _, start := range []float64{0.001, 0.01, 0.1} {
		fmt.Fprintf(&b, `<path d="M%.1f %.1fL%.1f %.1f" stroke="#bbb" stroke-dasharray="4 4"/>`+"\n",
			x(1, 1), y(start), x(math.Pow(growthStep, growthSizes-1), 1), y(start*math.Pow(growthStep, growthSizes-1)))
	}
	slowestFirst := slices.SortedFunc(slices.Values(all), func(a, b *series) int { return cmp.Compare(b.wall[growthSizes-1], a.wall[growthSizes-1]) })
	label := 0.0
	for i, one := range slowestFirst {
		var points []string
		for k, size := range one.sizes {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(size, one.sizes[0]), y(one.wall[k])))
		}
		label = max(y(one.wall[growthSizes-1])+4, label+14) // below that of the slower one
		fmt.Fprintf(&b, `<polyline points="%[1]s" fill="none" stroke="%[2]s" stroke-width="2"/><text x="%.1[3]f" y="%.1[4]f" fill="%[2]s">%[5]s</text>`+"\n",
			strings.Join(points, " "), colors[i%len(colors)], x(one.sizes[growthSizes-1], one.sizes[0])+6, label, one.name)
	}
	return b.String() + "</svg>\n"
}
