package store

import (
	"fmt"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// fstabLine holds the fields of a line of /etc/fstab; see fstab(5).
type fstabLine struct{ device, point, kind, options string }

// fstabLineOf returns nil for a line that mounts nothing.
func fstabLineOf(text string) *fstabLine {
	fields := strings.Fields(text)
	if len(fields) < 3 || strings.HasPrefix(fields[0], "#") {
		return nil
	}
	line := &fstabLine{device: unescapeMount(fields[0]), point: unescapeMount(fields[1]), kind: fields[2]}
	if len(fields) > 3 {
		line.options = fields[3]
	}
	return line
}

func (l fstabLine) String() string {
	return fmt.Sprintf("%s %s %s %s 0 0\n", escapeMount(l.device), escapeMount(l.point), l.kind, l.options)
}

var mountEscapes = [][2]string{{`\`, `\134`}, {" ", `\040`}, {"\t", `\011`}, {"\n", `\012`}, {"#", `\043`}}

// escapeMount writes a path as fstab(5) and /proc/self/mountinfo have it.
func escapeMount(path string) string {
	for _, e := range mountEscapes {
		path = strings.ReplaceAll(path, e[0], e[1])
	}
	return path
}

func unescapeMount(field string) string {
	for _, e := range slices.Backward(mountEscapes) {
		field = strings.ReplaceAll(field, e[1], e[0])
	}
	return field
}

// setFstab returns the lines of a file with this one for its mount point. Every other line stays as it is, byte by byte. A
// mount point that is used for something else than an archive is a conflict.
func setFstab(data []byte, want fstabLine) ([]byte, error) {
	var lines []string
	written := false
	for text := range strings.Lines(string(data)) {
		line := fstabLineOf(text)
		if line == nil || line.point != want.point {
			lines = append(lines, text)
			continue
		}
		if line.kind != archiveFileSystem {
			return nil, foreignMount(want.point, line.kind, line.device)
		}
		if !written {
			if *line != want {
				text = want.String()
			}
			lines, written = append(lines, text), true
		}
	}
	if !written {
		if n := len(lines); n > 0 && !strings.HasSuffix(lines[n-1], "\n") {
			lines[n-1] += "\n"
		}
		lines = append(lines, want.String())
	}
	return []byte(strings.Join(lines, "")), nil
}

// dropFstab returns the lines of a file without those that mount an archive at this point.
func dropFstab(data []byte, point string) []byte {
	lines := slices.DeleteFunc(slices.Collect(strings.Lines(string(data))), func(text string) bool {
		line := fstabLineOf(text)
		return line != nil && line.point == point && line.kind == archiveFileSystem
	})
	return []byte(strings.Join(lines, ""))
}

func foreignMount(point, kind, device string) error {
	return report.Errorf(report.Conflict, "%s is used for something else: %s %s", point, kind, device).
		WithHint("MetalK8s expects the archive there: move the existing content to another directory")
}
