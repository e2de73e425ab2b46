//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/solutionctl/solutionctl/deployer/e2e/faults"
)

// found records with what, where and when a line of the book was found out.
type found struct {
	Program  string    `json:"program"`            // digest of what was killed
	Scenario string    `json:"scenario,omitempty"` // digest of what was done with it
	Commit   string    `json:"commit"`
	Seed     uint64    `json:"seed"`
	Time     time.Time `json:"time"`
}

// same reports whether results of both go together. Commits that do not change the program do not matter.
func (f *found) same(other *found) bool {
	return f.Program == other.Program && f.Scenario == other.Scenario
}

// line is one line of the book: a result, an undisturbed verb, or the proof that a fault is found.
type line struct {
	found
	*faults.Result
	Clean *counts `json:"clean,omitempty"`
	Proof *proof  `json:"proof,omitempty"`
}

// counts are the steps of a verb.
type counts struct {
	Verb   string `json:"verb"`
	Calls  int    `json:"calls"`
	Files  int    `json:"files"`
	Points int    `json:"points"`
}

// proof reports how a fault was found.
type proof struct {
	Name  string `json:"name"`
	Found string `json:"found"`
}

// book has the latest results for each verb: with one program and one scenario.
type book struct {
	now  found
	file *os.File

	writing sync.Mutex
	results map[faults.Point]*line
	verbs   map[string]*line
	proofs  map[string]*line
}

func openBook(name string, now found) (*book, error) {
	b := &book{now: now, results: map[faults.Point]*line{}, verbs: map[string]*line{}, proofs: map[string]*line{}}
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
		b.proofs[l.Proof.Name] = l
	case l.Result != nil && b.verbs[l.Verb] != nil && b.verbs[l.Verb].same(&l.found):
		b.results[l.Point] = l
	}
}

// takeVerb begins with a verb. What is known about it from another program or scenario does not count any more.
func (b *book) takeVerb(l *line) {
	before := b.verbs[l.Clean.Verb]
	if before != nil && !before.same(&l.found) {
		maps.DeleteFunc(b.results, func(p faults.Point, _ *line) bool { return p.Verb == l.Clean.Verb })
	}
	b.verbs[l.Clean.Verb] = l
}

func (b *book) write(l line, scenario string) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	l.found = b.now
	l.Scenario, l.Time = scenario, time.Now().UTC().Truncate(time.Second)
	b.take(&l)
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(b.file, "%s\n", data)
	return err
}

func (b *book) note(v *faults.Verb, r *faults.Result) error {
	return b.write(line{Result: r}, v.Scenario())
}

func (b *book) noteVerb(v *faults.Verb, clean *faults.Clean) error {
	return b.write(line{Clean: &counts{Verb: v.Name, Calls: len(clean.Calls), Files: clean.Files, Points: len(clean.Points(v))}}, v.Scenario())
}

func (b *book) noteProof(s *faults.Sabotage, how string) error {
	return b.write(line{Proof: &proof{s.Name, how}}, "")
}

func (b *book) proved(s *faults.Sabotage) bool {
	l := b.proofs[s.Name]
	return l != nil && l.Proof.Found != "" && l.same(&found{Program: b.now.Program})
}

// known reports whether a point was tried, with a result.
func (b *book) known(p faults.Point) bool {
	b.writing.Lock()
	defer b.writing.Unlock()
	l := b.results[p]
	return l != nil && l.Outcome != faults.Unknown
}

// of are the results of a verb.
func (b *book) of(v *faults.Verb) []*line {
	return slices.DeleteFunc(slices.Collect(maps.Values(b.results)), func(l *line) bool { return l.Verb != v.Name })
}

// verdict is an error when something is wrong or was not found out, or a fault was not found.
func (b *book) verdict() error {
	for _, l := range b.results {
		if l.Outcome == faults.Bad || l.Outcome == faults.Unknown {
			return errors.New("something is wrong: see the report")
		}
	}
	for _, s := range faults.Sabotages {
		if !b.proved(s) {
			return fmt.Errorf("sabotage %s was not found: %s", s.Name, s.Fault)
		}
	}
	return nil
}
