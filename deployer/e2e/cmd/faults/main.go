//go:build linux

// Command faults kills the program at every step of every verb, as package faults describes, and writes docs/reliability.md.
//
//	go run ./cmd/faults [-verbs A,B] [-parallel N] [-seed N] [-sample N] [-limit DURATION] [-results FILE] [-report FILE]
//
// Results are appended to a file, one JSON document per line; an interrupted run continues where it was, as long as the
// program and what is done with it are the same, whatever the commit. The order of the points depends on the seed alone. Each of the
// parallel lanes has a cluster of its own.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/solutionctl/solutionctl/deployer/e2e/faults"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/durable"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := options{source: filepath.Join("..", "..")}
	verbs := flag.String("verbs", "", "only these verbs, separated by commas")
	flag.IntVar(&o.parallel, "parallel", runtime.NumCPU(), "how many `LANES` at once")
	flag.Uint64Var(&o.seed, "seed", 1, "order of the points")
	flag.IntVar(&o.sample, "sample", 0, "at most `N` points of each verb, chosen by the seed; 0 is all")
	flag.DurationVar(&o.limit, "limit", 0, "stop after this `TIME` with what is known then; 0 is never")
	flag.StringVar(&o.results, "results", "faults.jsonl", "`FILE` of results, to which others are appended")
	flag.StringVar(&o.report, "report", filepath.Join("..", "..", "docs", "reliability.md"), "`FILE` to write the report to")
	flag.BoolVar(&o.reportOnly, "report-only", false, "kill nothing, write the report from the results")
	flag.Parse()
	if *verbs != "" {
		o.verbs = strings.Split(*verbs, ",")
	}
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

type options struct {
	source          string // the checkout
	verbs           []string
	parallel        int
	seed            uint64
	sample          int
	limit           time.Duration
	results, report string
	reportOnly      bool
}

func (o *options) run(ctx context.Context) error {
	commit, err := o.commit(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "solutionctl-faults-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // temporary
	program := filepath.Join(dir, "solutionctl")
	if err = faults.Build(ctx, o.source, program, nil); err != nil {
		return err
	}
	digest, err := digestOf(program)
	if err != nil {
		return err
	}
	book, err := openBook(o.results, found{Program: digest, Commit: commit, Seed: o.seed})
	if err != nil {
		return err
	}
	defer func() { _ = book.file.Close() }() // each line was written
	var failure error
	if !o.reportOnly {
		failure = o.work(ctx, book, dir, program)
	}
	page, err := os.ReadFile(o.report)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(failure, err)
	}
	if err = errors.Join(failure, durable.WriteFile(o.report, []byte(book.report()+handwritten(string(page))), 0o644)); err != nil {
		return err
	}
	return book.verdict()
}

// digestOf names the program that is tested.
func digestOf(program string) (string, error) {
	data, err := os.ReadFile(program)
	return fmt.Sprintf("%x", sha256.Sum256(data))[:12], err
}

// commit names where it was built. The page that an earlier run has written does not make it another one.
func (o *options) commit(ctx context.Context) (string, error) {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", o.source}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	commit, err := git("rev-parse", "--short=12", "HEAD")
	if err != nil {
		return "", err
	}
	changed, err := git("status", "--porcelain", "--", ":!docs/reliability.md")
	if changed != "" {
		commit += "-dirty"
	}
	return commit, err
}

// work fills the book.
func (o *options) work(ctx context.Context, book *book, dir, program string) error {
	if o.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.limit)
		defer cancel()
	}
	if err := os.Setenv("GOGC", "400"); err != nil { // of the clusters: there is more memory than time
		return err
	}
	c := &crew{book: book, dir: dir, source: o.source, program: program, seed: o.seed, sample: o.sample}
	defer c.close()
	if err := c.start(ctx, o.parallel); err != nil {
		return err
	}
	var verbs []*faults.Verb
	for _, v := range faults.Verbs {
		if o.verbs == nil || slices.Contains(o.verbs, v.Name) {
			verbs = append(verbs, v)
		}
	}
	if len(verbs) == 0 {
		return fmt.Errorf("none of the verbs is called that: %s", strings.Join(o.verbs, ", "))
	}
	err := c.survey(ctx, verbs)
	if err == nil {
		err = c.prove(ctx)
	}
	if err == nil {
		err = c.kill(ctx, verbs)
	}
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was to stop, and says how far it came
	}
	return err
}

// options of the clusters: one node that pretends to run pods.
var clusterOptions = testcluster.Options{FakeNodes: 1, ReadyAtOnce: true, Progress: os.Stderr}
