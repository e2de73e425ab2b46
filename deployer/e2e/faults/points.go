//go:build linux

package faults

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
)

// Kind is the kind of step that is counted.
type Kind string

// The kinds of steps.
const (
	Calls Kind = "call" // to the API server
	Files Kind = "file" // changes of files
)

// Then is the command that is run after the one that was killed.
type Then string

// The commands.
const (
	Again  Then = "again"  // the same
	Back   Then = "back"   // one that takes it back
	Resume Then = "resume" // deploy resume, and then the same
	Finish Then = "finish" // that of another verb
)

// Point is a step of a verb at which it is killed.
type Point struct {
	Verb  string `json:"verb"`
	Kind  Kind   `json:"kind"`
	N     int    `json:"n"` // counted from 1
	After bool   `json:"after"`
	Then  Then   `json:"then"`
}

// Points are all steps of a verb, before and after each. The same command follows each of them, others where something is
// changed in the cluster.
func (c *Clean) Points(v *Verb) []Point {
	var points []Point
	add := func(kind Kind, n int) {
		thens := []Then{Again}
		if p := (Point{Kind: kind, N: n}); kind == Calls && c.changes(p) {
			thens = append(thens, v.thens()...)
		}
		for _, then := range thens {
			points = append(points, Point{v.Name, kind, n, false, then}, Point{v.Name, kind, n, true, then})
		}
	}
	for n := range c.Calls {
		add(Calls, n+1)
	}
	for n := range c.Files {
		add(Files, n+1)
	}
	return points
}

// changes reports whether a step changes something, or may.
func (c *Clean) changes(p Point) bool {
	return p.Kind == Files || !strings.HasPrefix(c.Calls[p.N-1], "GET ") && !strings.Contains(c.Calls[p.N-1], "/selfsubject")
}

// Ordered are all points of a verb in the order in which they are worth trying: where something is changed, then the same
// with other commands afterwards, then where something is only read. Within each the order depends on the seed only.
func (c *Clean) Ordered(v *Verb, seed uint64) []Point {
	points := Shuffle(c.Points(v), seed)
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(c.Rank(a), c.Rank(b)) })
	return points
}

// Sample are at most n points of a verb, those of a full run that come first in their rank: half of them where something is changed, a
// quarter of them with other commands afterwards, the rest where something is only read. What one rank lacks others get. 0 is all.
func (c *Clean) Sample(v *Verb, seed uint64, n int) []Point {
	ordered := c.Ordered(v, seed)
	if n <= 0 || n >= len(ordered) {
		return ordered
	}
	var ranks [Ranks][]Point
	for _, p := range ordered {
		ranks[c.Rank(p)] = append(ranks[c.Rank(p)], p)
	}
	var sample []Point
	take := func(rank, n int) {
		n = min(n, len(ranks[rank]))
		sample, ranks[rank] = append(sample, ranks[rank][:n]...), ranks[rank][n:]
	}
	take(0, n/2)
	take(1, n/4)
	take(2, n/8)
	take(3, n/8)
	for rank := range Ranks {
		take(rank, n-len(sample))
	}
	slices.SortStableFunc(sample, func(a, b Point) int { return cmp.Compare(c.Rank(a), c.Rank(b)) })
	return sample
}

// Ranks is how many places there are.
const Ranks = 4

// Rank is the place of a point in [Clean.Ordered].
func (c *Clean) Rank(p Point) int {
	switch {
	case !c.changes(p) && p.After: // what was read changed nothing: as before it
		return 3
	case !c.changes(p):
		return 2
	case p.Then != Again:
		return 1
	default:
		return 0
	}
}

// Shuffle puts points into an order that depends on the seed only.
func Shuffle[T any](points []T, seed uint64) []T {
	dice := rand.New(rand.NewPCG(seed, seed))
	dice.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	return points
}
