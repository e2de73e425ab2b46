package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// lintMemory is how much memory the collector of garbage lets lint have before it works for every byte. What the largest
// definitions need at once is half of it.
const lintMemory = 76 << 20

// memoryLimit is a soft limit of the memory of the process, which grows with what is in use: beyond a fixed one, the collector would run
// without a pause.
type memoryLimit struct {
	least int64 // bytes

	mu      sync.Mutex
	removed bool
}

// limitMemory lets the process have so many bytes, or half more than are in use, until the returned function is called. A lower GOMEMLIMIT stays
// in force.
func limitMemory(least int64) (remove func()) {
	before := debug.SetMemoryLimit(-1)
	if before <= least {
		return func() {}
	}
	l := &memoryLimit{least: least}
	debug.SetMemoryLimit(least)
	l.follow()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.removed = true
		debug.SetMemoryLimit(before)
	}
}

// follow adapts the limit after each collection, which finds the marker unused. It has a pointer, because objects without are freed in groups.
func (l *memoryLimit) follow() {
	type marker struct{ _ *int }
	runtime.AddCleanup(&marker{}, (*memoryLimit).adapt, l)
}

func (l *memoryLimit) adapt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.removed {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetMemoryLimit(max(l.least, int64(live[0].Value.Uint64())*3/2)) //nolint:gosec // no heap has 2⁶² bytes
	l.follow()
}
