package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestLimitMemory checks that the limit follows what is in use, and that the one before applies afterwards. It changes the whole process, and runs
// alone.
func TestLimitMemory(t *testing.T) {
	const least, used = 1 << 20, 64 << 20
	before := debug.SetMemoryLimit(1 << 40)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	remove := limitMemory(least)
	data := make([]byte, used)
	for deadline := time.Now().Add(time.Minute); debug.SetMemoryLimit(-1) < used*3/2 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		runtime.GC()
	}
	if got := debug.SetMemoryLimit(-1); got < used*3/2 {
		t.Errorf("the limit is %d bytes, want half more than the %d in use", got, used)
	}
	runtime.KeepAlive(data)
	remove()
	runtime.GC()
	if got := debug.SetMemoryLimit(-1); got != 1<<40 {
		t.Errorf("the limit is %d bytes afterwards, want that of before", got)
	}

	debug.SetMemoryLimit(least)
	limitMemory(2 * least)()
	if got := debug.SetMemoryLimit(-1); got != least {
		t.Errorf("the limit is %d bytes, want the lower one that was set", got)
	}
}
