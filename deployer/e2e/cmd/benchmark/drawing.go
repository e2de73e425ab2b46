//go:build linux

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

const (
	panelWidth, panelHeight, panelMargin = 640, 420, 60
	decades                              = 6 // 1 ms to 1000 s
)

var colors = []string{"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b"}

// drawPanels draws the wall time of each series as SVG, on logarithmic axes: a series that grows linearly has the slope of the grey lines.
func drawPanels(panels []*panel) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" role="img" aria-label="wall time by size">`+"\n"+
		`<rect width="100%%" height="100%%" fill="#fff"/>`+"\n", panelWidth, panelHeight*len(panels))
	for i, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(0 %d)">`+"\n", i*panelHeight)
		p.drawAxes(&b)
		p.drawSeries(&b)
		b.WriteString("</g>\n")
	}
	return b.String() + "</svg>\n"
}

// x is the place of a size, which is a multiple of the smallest one.
func (p *panel) x(times float64) float64 {
	sizes := p.series[0].sizes
	return panelMargin + math.Log(times)/math.Log(sizes[len(sizes)-1]/sizes[0])*(panelWidth-2.5*panelMargin)
}

func y(seconds float64) float64 {
	return panelHeight - panelMargin - (math.Log10(seconds)+3)/decades*(panelHeight-1.5*panelMargin)
}

func (p *panel) drawAxes(b *strings.Builder) {
	sizes := p.series[0].sizes
	most := sizes[len(sizes)-1] / sizes[0]
	for decade := range decades + 1 {
		value := math.Pow10(decade - 3)
		fmt.Fprintf(b, `<path d="M%d %.1fH%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			panelMargin, y(value), p.x(most), panelMargin-6, y(value)+4, time.Duration(value*float64(time.Second)))
	}
	for _, size := range sizes {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%.0f×</text>`+"\n", p.x(size/sizes[0]), panelHeight-panelMargin+20, size/sizes[0])
	}
	for _, start := range []float64{0.001, 0.01, 0.1} {
		fmt.Fprintf(b, `<path d="M%.1f %.1fL%.1f %.1f" stroke="#bbb" stroke-dasharray="4 4"/>`+"\n", p.x(1), y(start), p.x(most), y(start*most))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`+"\n", panelMargin, panelHeight-panelMargin+40, p.title)
}

func (p *panel) drawSeries(b *strings.Builder) {
	slowestFirst := slices.SortedFunc(slices.Values(p.series), func(a, b *series) int { return cmp.Compare(b.wall[len(b.wall)-1], a.wall[len(a.wall)-1]) })
	label := 0.0
	for i, one := range slowestFirst {
		var points []string
		for k, size := range one.sizes {
			points = append(points, fmt.Sprintf("%.1f,%.1f", p.x(size/one.sizes[0]), y(one.wall[k])))
		}
		label = max(y(one.wall[len(one.wall)-1])+4, label+14) // below that of the slower one
		fmt.Fprintf(b, `<polyline points="%[1]s" fill="none" stroke="%[2]s" stroke-width="2"/><text x="%.1[3]f" y="%.1[4]f" fill="%[2]s">%[5]s</text>`+"\n",
			strings.Join(points, " "), colors[i%len(colors)], p.x(one.sizes[len(one.sizes)-1]/one.sizes[0])+6, label, one.name)
	}
}
