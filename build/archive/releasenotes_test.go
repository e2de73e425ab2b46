package archive_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/solutionctl/solutionctl/build/archive"
)

func TestReleaseNotes(t *testing.T) {
	for name, test := range map[string]struct{ notes, want, problem string }{
		"lines":     {"\nFaster orders.\r\n\r\n- one\r\n", "Faster orders.\n\n- one", ""},
		"largest":   {strings.Repeat("a", 64<<10), strings.Repeat("a", 64<<10), ""},
		"too large": {strings.Repeat("a", 64<<10+1), "", "the release notes have more than 64 KiB"},
		"no text":   {"\xff\xfe", "", "the release notes are not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := archive.ReleaseNotes(fstest.MapFS{"release-notes.md": {Data: []byte(test.notes)}})
			if problem := ""; got != test.want || err != nil && err.Error() != test.problem || err == nil && test.problem != problem {
				t.Errorf("%.40q, %v", got, err)
			}
		})
	}
	if got, err := archive.ReleaseNotes(fstest.MapFS{}); got != "" || err != nil {
		t.Errorf("of an archive without: %q, %v", got, err)
	}
	if _, err := archive.ReleaseNotes(fstest.MapFS{"release-notes.md/x": {}}); err == nil {
		t.Error("a directory was read")
	}
}
