package archive

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/solutionctl/solutionctl/schema/report"
)

// ReleaseNotesFile describes the changes in a version, for people: plain text or Markdown, shown as it is.
const ReleaseNotesFile = "release-notes.md"

const maxReleaseNotes = 64 << 10 // bytes

// ReleaseNotes returns the release notes of an archive or a project, without blank lines around them, or "". More than 64 KiB,
// or bytes that are not UTF-8, are an error.
func ReleaseNotes(files fs.FS) (string, error) {
	f, err := files.Open(ReleaseNotesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // read only
	data, err := io.ReadAll(io.LimitReader(f, maxReleaseNotes+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > maxReleaseNotes:
		return "", report.Errorf(report.Invalid, "the release notes have more than %d KiB", maxReleaseNotes>>10)
	case !utf8.Valid(data):
		return "", report.Errorf(report.Invalid, "the release notes are not UTF-8")
	}
	return strings.Trim(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n"), nil
}
