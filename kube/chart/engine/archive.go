package engine

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// The bounds of a chart with all its subcharts, after decompression.
const (
	maxTotal   = 64 << 20
	maxFile    = 5 << 20 // as Helm
	maxFiles   = 10_000
	maxNesting = 8 // charts within charts
)

// File is a file of a chart.
type File struct {
	Name string // below the chart's directory
	Data []byte
}

// allowance is the number of bytes and files that may still be unpacked, and of bytes that may still be decompressed, headers and padding
// included. Packed subcharts draw on the budget of the chart that holds them, so nesting multiplies nothing.
type allowance struct{ bytes, files, decompressed int64 }

func (b *allowance) take(bytes int64) error {
	b.bytes -= bytes
	b.files--
	if b.bytes < 0 || b.files < 0 {
		return report.Errorf(report.Invalid, "chart: unpacks to more than %d MiB or %d files", maxTotal>>20, maxFiles)
	}
	return nil
}

// meter counts the output of a decompressor: a stream of empty entries ends as well.
type meter struct {
	r    io.Reader
	left *allowance
}

func (m meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if m.left.decompressed -= int64(n); m.left.decompressed < 0 {
		return 0, report.Errorf(report.Invalid, "chart: unpacks to more than %d MiB", maxTotal>>20)
	}
	return n, err
}

// Unpack reads a packaged chart, a .tgz, and the packaged subcharts in it, whose files are then below charts/ and the
// name of their package. Files are ordered by name. Files that are too large, or could reach outside of the chart, are
// refused as [report.Invalid].
func Unpack(r io.Reader) ([]File, error) {
	files, err := unpack(r, &allowance{bytes: maxTotal, files: maxFiles, decompressed: 2 * maxTotal}, 0)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	for i := 1; i < len(files); i++ {
		if files[i].Name == files[i-1].Name {
			return nil, report.Errorf(report.Invalid, "chart: %s is in the archive twice", files[i].Name)
		}
	}
	return files, nil
}

func unpack(r io.Reader, left *allowance, depth int) ([]File, error) {
	if depth > maxNesting {
		return nil, report.Errorf(report.Invalid, "chart: subcharts are nested more than %d deep", maxNesting)
	}
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, report.Errorf(report.Invalid, "chart: not a packaged chart: %w", err).WithHint("make one with \"helm package\"")
	}
	var files []File
	entries := tar.NewReader(meter{unzipped, left})
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, report.Errorf(report.Invalid, "chart: %w", err)
		}
		name, err := entryName(header)
		if err != nil {
			return nil, err
		}
		if err = left.take(header.Size); err != nil {
			return nil, err
		}
		if name == "" {
			continue
		}
		packed := isPackedSubchart(name)
		if header.Size > maxFile && !packed {
			return nil, report.Errorf(report.Invalid, "chart: %s is larger than %d MiB", header.Name, maxFile>>20)
		}
		data, err := io.ReadAll(entries)
		if err != nil {
			return nil, report.Errorf(report.Invalid, "chart: %s: %w", header.Name, err)
		}
		if !packed {
			files = append(files, File{Name: name, Data: bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))})
			continue
		}
		nested, err := unpack(bytes.NewReader(data), left, depth+1)
		if err != nil {
			return nil, report.Errorf(report.Invalid, "%s: %w", name, err)
		}
		for _, f := range nested {
			files = append(files, File{Name: strings.TrimSuffix(name, ".tgz") + "/" + f.Name, Data: f.Data})
		}
	}
}

// entryName returns the name below the chart's directory; "" for entries that hold nothing. Names that lead elsewhere
// and entries that are neither files nor directories are refused: no chart has them.
func entryName(header *tar.Header) (string, error) {
	refuse := func(why string) (string, error) {
		return "", report.Errorf(report.Invalid, "chart: entry %.200q %s", header.Name, why)
	}
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeDir:
	case tar.TypeXGlobalHeader:
		return "", nil
	case tar.TypeSymlink, tar.TypeLink:
		return refuse("is a link")
	default:
		return refuse("is not a file")
	}
	name := strings.ReplaceAll(header.Name, `\`, "/")
	switch {
	case strings.ContainsAny(name, "\x00:"):
		return refuse("has a name that is not portable")
	case path.IsAbs(name):
		return refuse("has an absolute name")
	case slices.Contains(strings.Split(name, "/"), ".."):
		return refuse("leads out of the chart")
	}
	_, name, _ = strings.Cut(path.Clean(name), "/")
	if header.Typeflag == tar.TypeDir {
		return "", nil
	}
	if name == "" {
		return refuse("is not in the chart's directory")
	}
	return name, nil
}

// isPackedSubchart reports charts/x.tgz, also of subcharts; Helm ignores names that begin with a dot or an underscore.
func isPackedSubchart(name string) bool {
	for {
		below, ok := strings.CutPrefix(name, "charts/")
		if !ok || ignored(below) {
			return false
		}
		if _, name, ok = strings.Cut(below, "/"); !ok {
			return path.Ext(below) == ".tgz"
		}
	}
}

// ignored reports names in charts/ that are never subcharts.
func ignored(name string) bool { return strings.IndexAny(name, "._") == 0 }
