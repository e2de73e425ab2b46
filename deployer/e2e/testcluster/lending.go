package testcluster

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"testing"
)

// lendable is how many clusters a package lends, unless its options have another number. They cost memory more than processor time:
// tests wait for most of theirs.
const lendable = 2

// lending lends clusters to one test at a time.
type lending struct {
	sync.Mutex
	limit    int           // how many clusters there are; 0 is lendable
	free     chan *Cluster // nil stands for one that was not started
	started  []*Cluster
	borrowed map[string]*Cluster // by the name of the test
}

// borrow returns the cluster that the test, or the test around it, has, or else a free one until the test ends.
func (l *lending) borrow(tb testing.TB, start func() (*Cluster, error)) (*Cluster, error) {
	tb.Helper()
	free, c := l.look(tb.Name())
	if c != nil {
		return c, nil
	}
	select {
	case c = <-free:
	case <-tb.Context().Done():
		return nil, context.Cause(tb.Context())
	}
	if c == nil {
		var err error
		if c, err = start(); err != nil {
			free <- nil
			return nil, err
		}
		l.locked(func() { l.started = append(l.started, c) })
	}
	l.locked(func() { l.borrowed[tb.Name()] = c })
	tb.Cleanup(func() {
		l.locked(func() { delete(l.borrowed, tb.Name()) })
		free <- c
	})
	return c, nil
}

// look returns where free clusters are, and the one that a test or a test around it has.
func (l *lending) look(test string) (free chan *Cluster, borrowed *Cluster) {
	l.locked(func() {
		if l.free == nil {
			limit := cmp.Or(l.limit, lendable)
			l.free, l.borrowed = make(chan *Cluster, limit), map[string]*Cluster{}
			for range limit {
				l.free <- nil
			}
		}
		free = l.free
		for inside := true; inside && borrowed == nil; {
			borrowed = l.borrowed[test]
			end := strings.LastIndexByte(test, '/')
			if inside = end >= 0; inside {
				test = test[:end]
			}
		}
	})
	return free, borrowed
}

func (l *lending) locked(do func()) {
	l.Lock()
	defer l.Unlock()
	do()
}
