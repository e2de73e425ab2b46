package deploy

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestExportIsWholeAndPrivate: the exported resources are about to be deleted.
func TestExportIsWholeAndPrivate(t *testing.T) {
	name := filepath.Join(t.TempDir(), "data.json")
	a := cli.New(nil, io.Discard, io.Discard, func(string) string { return "" }, time.Now, "1.2.3")
	a.Sink = console.NewSink(console.None, a.Err, console.Options{})
	export := export(a, name, "shop")
	full := errors.New("no space left")
	err := export(func(w io.Writer) error {
		if _, err := io.WriteString(w, "half"); err != nil {
			t.Error(err)
		}
		return full
	})
	if !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
	left, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	write := func(w io.Writer) error {
		_, failure := io.WriteString(w, "all of it")
		return failure
	}
	if err = export(write); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(name)
	if err != nil || string(data) != "all of it" {
		t.Errorf("%q, %v", data, err)
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err = export(write); report.CodeOf(err) != report.Usage {
		t.Errorf("what is there is replaced: %v", err)
	}
}
