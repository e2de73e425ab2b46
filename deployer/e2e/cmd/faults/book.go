//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/solutionctl/solutionctl/deployer/e2e/faults"
)

// line is one line of the book: a result, a verb that nobody killed, or the proof that a fault is found.
type line struct {
	Commit string    `json:"commit"`
	Seed   uint64    `json:"seed"`
	Time   time.Time `json:"time"`
	*faults.Result
	Clean *counts `json:"clean,omitempty"`
	Proof *proof  `json:"proof,omitempty"`
}

// counts are the steps of a verb.
type counts struct {
	commit string
	seed   uint64

	Verb   string `json:"verb"`
	Calls  int    `json:"calls"`
	Files  int    `json:"files"`
	Points int    `json:"points"`
}

// proof says how a fault was found.
type proof struct {
	Tag   string `json:"tag"`
	Found string `json:"found"`
}

// book is what was found out last about each verb: with one commit and one seed.
type book struct {
	commit string
	seed   uint64
	file   *os.File

	writing     sync.Mutex
	first, last time.Time
	results     map[faults.Point]*faults.Result
	verbs       map[string]*counts
	proofs      map[string]string
}

func openBook(name, commit string, seed uint64) (*book, error) {
	b := &book{commit: commit, seed: seed, results: map[faults.Point]*faults.Result{}, verbs: map[string]*counts{}, proofs: map[string]string{}}
	var err error
	if b.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(b.file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l line
		if json.Unmarshal(lines.Bytes(), &l) == nil { // else it was being written
			b.take(&l)
		}
	}
	return b, lines.Err()
}

func (b *book) take(l *line) {
	switch {
	case l.Clean != nil:
		b.takeVerb(l)
	case l.Proof != nil:
		b.proofs[l.Proof.Tag] = l.Proof.Found
	case l.Result != nil && b.verbs[l.Verb] != nil && b.verbs[l.Verb].commit == l.Commit:
		b.results[l.Point] = l.Result
	}
	if b.first.IsZero() {
		b.first = l.Time
	}
	b.last = l.Time
}

// takeVerb begins with a verb. What is known about it from another commit does not count any more.
func (b *book) takeVerb(l *line) {
	before := b.verbs[l.Clean.Verb]
	if before != nil && before.commit != l.Commit {
		maps.DeleteFunc(b.results, func(p faults.Point, _ *faults.Result) bool { return p.Verb == l.Clean.Verb })
	}
	l.Clean.commit, l.Clean.seed = l.Commit, l.Seed
	b.verbs[l.Clean.Verb] = l.Clean
}

func (b *book) write(l line) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	l.Commit, l.Seed, l.Time = b.commit, b.seed, time.Now().UTC().Truncate(time.Second)
	b.take(&l)
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(b.file, "%s\n", data)
	return err
}

func (b *book) note(r *faults.Result) error { return b.write(line{Result: r}) }

func (b *book) noteVerb(v *faults.Verb, clean *faults.Clean) error {
	return b.write(line{Clean: &counts{Verb: v.Name, Calls: len(clean.Calls), Files: clean.Files, Points: len(clean.Points(v))}})
}

func (b *book) noteProof(s faults.Sabotage, found string) error {
	return b.write(line{Proof: &proof{s.Tag, found}})
}

func (b *book) proved(s faults.Sabotage) bool { return b.proofs[s.Tag] != "" }

// known tells whether a point was tried, with a result.
func (b *book) known(p faults.Point) bool {
	r := b.results[p]
	return r != nil && r.Outcome != faults.Unknown
}

// verdict is an error when something is wrong, or a fault was not found.
func (b *book) verdict() error {
	for _, r := range b.results {
		if r.Outcome == faults.Bad {
			return fmt.Errorf("something is wrong: see the report")
		}
	}
	for _, s := range faults.Sabotages {
		if !b.proved(s) {
			return fmt.Errorf("the fault of a build with tag %s was not found", s.Tag)
		}
	}
	return nil
}
