//go:build linux

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/e2e/faults"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

const introduction = `# Reliability: killed at every step

This page is written by ` + "`make faults`" + `, except for the section about [tests by hand](#attacked).

The released program runs the commands of the table, and is killed with SIGKILL. The kills come before and after each
of its calls to the API server; after means that the server has executed the call, without an answer to the client. They also come before
and after each system call that changes a file. Then the same command runs again. The cluster and the host must then be as after an undisturbed run:

* the same objects with the same fields and owners, the same records, shared documents and files;
* no unrecorded object, no pending operation, no lock;
* the earlier custom resources and foreign objects, with the same content;
* each deleted custom resource in the export.

If a call changes something, other commands follow a killed run as well. One goes back, such as ` + "`rollback`" + ` after ` + "`upgrade`" + `: then no object may
remain or be lost. ` + "`deploy resume`" + ` is another: then no operation may be pending, unless it refuses to delete custom resources.

The lock of a killed run stays. The next run finds that the process of its holder has ended, and takes it.
[The program](../deployer/e2e/faults) is in this repository.

`

// report is the page for people.
func (b *book) report() string {
	var w strings.Builder
	w.WriteString(introduction)
	first, last := b.times()
	fmt.Fprintf(&w, "Kubernetes %s, %s to %s. Results belong to a program, whose digest is in the table. They hold for later\ncommits that do not change it.\n\n",
		testcluster.KubernetesVersion, first.Format(time.RFC3339), last.Format(time.RFC3339))
	w.WriteString("| command | calls | file changes | points | killed | as it should be | wrong | over before | not found out | program | commit | seed |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	var total [8]int
	for _, v := range faults.Verbs {
		if row, ok := b.row(v); ok {
			fmt.Fprintf(&w, "| %s | %d | %d | %d | %d | %d | %d | %d | %d | %s | %s | %s |\n", v.Name,
				row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], b.verbs[v.Name].Program,
				b.each(v, func(f found) string { return f.Commit }), b.each(v, func(f found) string { return strconv.FormatUint(f.Seed, 10) }))
			for i := range total {
				total[i] += row[i]
			}
		}
	}
	fmt.Fprintf(&w, "| **all** | %d | %d | %d | %d | %d | %d | %d | %d | | | |\n\n",
		total[0], total[1], total[2], total[3], total[4], total[5], total[6], total[7])
	w.WriteString(b.coverage())
	w.WriteString("Other commands that change a cluster or a host are not killed here:\n\n| command | reason, and its test |\n|---|---|\n")
	for _, left := range faults.LeftOut {
		fmt.Fprintf(&w, "| %s | %s |\n", left.Command, left.Reason)
	}
	w.WriteString("\n")
	b.reportFaults(&w)
	b.reportProofs(&w)
	return w.String()
}

// handwritten is the part of the page that people write: from a heading on.
func handwritten(page string) string {
	if i := strings.Index(page, "\n## Attacked\n"); i >= 0 {
		return page[i:]
	}
	return ""
}

// times are when the first and the last result were found.
func (b *book) times() (first, last time.Time) {
	for _, l := range b.results {
		if first.IsZero() || l.Time.Before(first) {
			first = l.Time
		}
		if l.Time.After(last) {
			last = l.Time
		}
	}
	return first, last
}

// each lists what the results of a verb were found with.
func (b *book) each(v *faults.Verb, of func(found) string) string {
	with := map[string]bool{of(b.verbs[v.Name].found): true}
	if results := b.of(v); len(results) > 0 {
		clear(with)
		for _, l := range results {
			with[of(l.found)] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(with)), ", ")
}

// row are the numbers of a verb: calls, file changes, points, killed, good, bad, unreached, unknown.
func (b *book) row(v *faults.Verb) (row [8]int, ok bool) {
	counts := b.verbs[v.Name]
	if counts == nil {
		return row, false
	}
	row = [8]int{counts.Clean.Calls, counts.Clean.Files, counts.Clean.Points}
	for _, r := range b.of(v) {
		switch r.Outcome {
		case faults.Good:
			row[3]++
			row[4]++
		case faults.Bad:
			row[3]++
			row[5]++
		case faults.Unreached:
			row[6]++
		case faults.Unknown:
			row[7]++
		}
	}
	return row, true
}

// coverage reports how much of the matrix was run.
func (b *book) coverage() string {
	points, tried := 0, 0
	for _, counts := range b.verbs {
		points += counts.Clean.Points
	}
	for point := range b.results {
		if b.known(point) {
			tried++
		}
	}
	if tried >= points && len(b.verbs) == len(faults.Verbs) {
		return "The table has every command of package faults.\n\n"
	}
	return fmt.Sprintf("The run was a sample, or was stopped: it has tried %d of %d points, of %d of %d commands. Most of them are steps that\nchange something; the choice among them depends on the seed.\n\n",
		tried, points, len(b.verbs), len(faults.Verbs))
}

func (b *book) reportFaults(w *strings.Builder) {
	var bad []*faults.Result
	for _, l := range b.results {
		if r := l.Result; r.Outcome == faults.Bad || r.Outcome == faults.Unknown {
			bad = append(bad, r)
		}
	}
	if len(bad) == 0 {
		return
	}
	slices.SortFunc(bad, func(a, b *faults.Result) int {
		return cmp.Or(cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.N, b.N))
	})
	w.WriteString("## What was wrong\n\n")
	for _, r := range bad {
		detail, _, _ := strings.Cut(r.Detail, "\n")
		fmt.Fprintf(w, "- %s: %s\n", r, detail)
	}
	w.WriteString("\n")
}

func (b *book) reportProofs(w *strings.Builder) {
	w.WriteString("## Proof that it can fail\n\nBuilds with a fault on purpose have to be found.\n\n| name | fault | found |\n|---|---|---|\n")
	for _, s := range faults.Sabotages {
		how := "**no**"
		if l := b.proofs[s.Name]; l != nil && l.Proof.Found != "" {
			how = l.Proof.Found
		}
		fmt.Fprintf(w, "| `%s` | %s | %s |\n", s.Name, s.Fault, strings.ReplaceAll(how, "\n", "; "))
	}
}
