package testcluster

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

// TestSlots: no more clusters than slots run at once, and who waits gets the next one that is free.
func TestSlots(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var taken []*os.File
	for range slots() {
		file, err := takeSlot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, file)
	}
	over, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := takeSlot(over); !errors.Is(err, enough) {
		t.Errorf("there is one slot more: %v", err)
	}
	next := make(chan error, 1)
	go func() {
		file, err := takeSlot(t.Context())
		if err == nil {
			err = file.Close()
		}
		next <- err
	}()
	for _, file := range taken {
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-next; err != nil {
		t.Error(err)
	}
}

func TestSlowness(t *testing.T) {
	for _, test := range []struct {
		load       float64
		processors int
		want       float64
	}{{0, 2, 2}, {2, 2, 2}, {6, 2, 6}, {6, 64, 2}, {100, 2, 12}} {
		if got := slowness(test.load, test.processors); got != test.want {
			t.Errorf("load %v on %d processors: got %v, want %v", test.load, test.processors, got, test.want)
		}
	}
	if got := Deadline(time.Second); got < leastSlowness*time.Second || got > mostSlowness*time.Second {
		t.Errorf("got %s", got)
	}
}
