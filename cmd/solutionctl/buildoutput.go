package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

// sourceDateEpoch reads the variable of https://reproducible-builds.org/specs/source-date-epoch/.
func sourceDateEpoch(value string) (*time.Time, error) {
	if value == "" {
		return nil, nil //nolint:nilnil // unset is a valid answer and not an error
	}
	seconds, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return nil, report.Errorf(report.Usage, "SOURCE_DATE_EPOCH %q is not a number of seconds since 1970", value).
			WithHint("for example: SOURCE_DATE_EPOCH=$(git log -1 --format=%%ct)")
	}
	t := time.Unix(seconds, 0).UTC()
	return &t, nil
}

// parseMirrors reads REGISTRY=ENDPOINT pairs.
func parseMirrors(pairs []string) (map[string][]string, error) {
	mirrors := map[string][]string{}
	for _, pair := range pairs {
		registry, endpoint, found := strings.Cut(pair, "=")
		if !found || registry == "" || endpoint == "" {
			return nil, report.Errorf(report.Usage, "mirror %q is not REGISTRY=ENDPOINT", pair).
				WithHint("for example --mirror docker.io=registry.example:5000")
		}
		mirrors[registry] = append(mirrors[registry], endpoint)
	}
	return mirrors, nil
}

// sumFile names the checksums beside an archive, for `sha256sum -c`.
func sumFile(path string) string { return filepath.Join(filepath.Dir(path), "SHA256SUM") }

// maxSums bounds a file of checksums, in bytes.
const maxSums = 4 << 20

// openSums begins to write the checksums beside an archive that is not published yet: its own, and those of the other archives
// there. Until it is published or discarded, other builds wait for that.
func openSums(path, sum string) (*durable.File, error) {
	name := sumFile(path)
	f, err := durable.Create(name)
	if err != nil {
		return nil, err
	}
	before, err := readSums(name)
	if err == nil {
		_, err = f.Write(withSum(before, filepath.Base(path), sum))
	}
	if err != nil {
		return nil, errors.Join(err, f.Discard())
	}
	return f, nil
}

func readSums(name string) ([]byte, error) {
	switch info, err := os.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, report.Errorf(report.Failure, "%s is a directory", name).WithHint("remove it, or leave out --sha256sum")
	case !info.Mode().IsRegular() || info.Size() > maxSums:
		return nil, report.Errorf(report.Failure, "%s is not a list of checksums", name).WithHint("remove it, or leave out --sha256sum")
	}
	f, err := durable.OpenNoFollow(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSums))
	return data, errors.Join(err, f.Close())
}

// withSum returns a list of checksums with that of one file added, or replaced if the list has the file.
func withSum(list []byte, name, sum string) []byte {
	var next []byte
	for line := range bytes.Lines(list) {
		line = bytes.TrimRight(line, "\r\n")
		_, file, _ := bytes.Cut(line, []byte(" "))
		if len(line) > 0 && (len(file) == 0 || string(file[1:]) != name) { // a blank or a star is before the name
			next = append(append(next, line...), '\n')
		}
	}
	return fmt.Appendf(next, "%s  %s\n", sum, name)
}

// planSummary is the result of `solutionctl build --plan`.
type planSummary struct {
	ID       string       `json:"id"`
	VolumeID string       `json:"volumeID"`
	ModTime  time.Time    `json:"modTime"`
	Size     int64        `json:"size"`
	Files    []build.File `json:"files"`
	LeftOut  []string     `json:"leftOut,omitempty"`
}

func summarizePlan(plan *build.Plan) planSummary {
	return planSummary{plan.Solution.ID(), plan.VolumeID, plan.ModTime, plan.Size(), plan.Files(), plan.LeftOut}
}

func printPlan(w *console.Stream, plan *build.Plan) {
	fmt.Fprintf(w, "%s, %s, volume %q, dated %s\n\n", plan.Solution.ID(), report.Bytes(plan.Size()), plan.VolumeID, plan.ModTime.Format(time.RFC3339))
	table := console.Table{Columns: []string{"SIZE", "DIGEST", "FILE"}}
	for _, file := range plan.Files() {
		table.Add(report.Bytes(file.Size), file.Digest[:min(19, len(file.Digest))], file.Path)
	}
	table.Print(w)
	for _, name := range plan.LeftOut {
		fmt.Fprintf(w, "left out: %s\n", name)
	}
}

func printBuildSummary(w *console.Stream, s *buildSummary) {
	fmt.Fprintf(w, "%s  %s in %s\n", s.Path, report.Bytes(s.Size), report.Duration(s.Elapsed))
	fmt.Fprintf(w, "  images    %d, distinct blobs %d\n", s.Images, s.Blobs)
	if s.BytesSaved > 0 {
		fmt.Fprintf(w, "  sharing   saves %s\n", report.Bytes(s.BytesSaved))
	}
	if s.BytesResumed > 0 {
		fmt.Fprintf(w, "  resumed   %s were written before\n", report.Bytes(s.BytesResumed))
	}
	for _, name := range s.LeftOut {
		fmt.Fprintf(w, "  left out  %s\n", name)
	}
	if s.SHA256 != "" {
		fmt.Fprintf(w, "  sha256    %s\n", s.SHA256)
	}
	if s.Signature != "" {
		fmt.Fprintf(w, "  signature %s\n", s.Signature)
	}
	if s.Provenance != "" {
		fmt.Fprintf(w, "  made of   %s\n", s.Provenance)
	}
	if d := s.Delta; d != nil {
		fmt.Fprintf(w, "  delta     %s  %s, for sites with %s\n", d.File, report.Bytes(d.Size), d.needs())
	}
	if s.Reproducible {
		fmt.Fprintln(w, "  check     a second build gives the same bytes")
	}
	fmt.Fprintf(w, "\nNext: solutionctl inspect %s\n", report.ShellFile(cmp.Or(s.Path, "FILE")))
}
