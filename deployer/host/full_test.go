//go:build unix

package host

import (
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
)

// TestImportIntoFullStore lets no file become larger than a part of an archive.
func TestImportIntoFullStore(t *testing.T) {
	w := newWorld(t)
	filling := strings.Repeat("x", 4<<20) // the log of the test itself has to stay below the limit
	first, second := w.archive("1.0.0", "docs/filling", filling), w.archive("2.0.0", "docs/filling", filling)
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	small := old
	small.Cur = uint64(len(w.read(first)) / 2)
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	w.before = func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
			t.Error(err)
		}
	}
	done, err := w.do(first, second)
	w.before = nil
	if failure := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); failure != nil {
		t.Fatal(failure)
	}
	checkCode(t, err, report.Failure)
	if got := w.stored(); done != nil || len(got) > 0 || len(w.cluster.imports) > 0 {
		t.Errorf("stored %q, recorded %v", got, w.cluster.imports)
	}
	if done, err = w.do(first, second); err != nil || !done.Recorded || !slices.Equal(w.stored(), []string{"demo-1.0.0", "demo-2.0.0"}) {
		t.Errorf("afterwards: %+v, %v", done, err)
	}
}
