package host

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestEndPull keeps an archive that another try can import, and names it.
func TestEndPull(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		kept bool
	}{
		{"imported", nil, false},
		{"signed by others", report.Errorf(report.Untrusted, "x"), false},
		{"other content", report.Errorf(report.Corrupt, "x"), false},
		{"another name", report.Errorf(report.Mismatch, "x"), false},
		{"not an archive", report.Errorf(report.Invalid, "x"), false},
		{"a full disk", report.Errorf(report.NoSpace, "x").WithHint("free some space"), true},
		{"no cluster", report.Errorf(report.Unavailable, "x"), true},
		{"to be approved", report.Errorf(report.Refused, "x"), true},
		{"interrupted", context.Canceled, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newWorld(t).Host
			var files []string
			for _, version := range []string{"1.0.0", "1.1.0"} {
				file := h.pulledFile(&schema.ArchiveLayout{Name: "demo", Version: version})
				for _, name := range []string{file, layout.BundleFile(file, ""), layout.BundleFile(file, "site")} {
					if err := errors.Join(durable.MkdirAll(h.Store.PulledDir(), 0o700), os.WriteFile(name, nil, 0o600)); err != nil {
						t.Fatal(err)
					}
				}
				files = append(files, file)
			}
			err := h.EndPull(test.err, files...)
			if !errors.Is(err, test.err) || report.CodeOf(err) != report.CodeOf(test.err) {
				t.Errorf("%v, want %v", err, test.err)
			}
			hints := strings.Join(report.Hints(err), "\n")
			for _, file := range files {
				if strings.Contains(hints, "rm -f "+file+"*") != test.kept {
					t.Errorf("hints %q about %s", hints, file)
				}
			}
			left, err := os.ReadDir(h.Store.PulledDir())
			if want := map[bool]int{true: 6}[test.kept]; len(left) != want || err != nil {
				t.Errorf("%d files are left, want %d: %v", len(left), want, err)
			}
		})
	}
}
