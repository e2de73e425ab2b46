package metrics

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/solutionctl/solutionctl/durable"
)

// Textfile is a file that node_exporter's textfile collector reads: what the last good run of a program has found, and then how the
// last run ended. Whoever reads it finds one of two complete texts, also when the power fails.
type Textfile struct {
	Name string // ends in .prom, or nobody reads it
	// Run begins the names of two families: RUN_success, and RUN_timestamp_seconds, which is when the last run ended.
	Run string
}

// maxTextfile bounds what is kept of an earlier run.
const maxTextfile = 16 << 20

// Succeed replaces the file by what a run has found.
func (t Textfile) Succeed(found *Page, ended time.Time) error { return t.write(found, 1, ended) }

// Fail keeps what the last good run has found and says that a later one has failed. A file that no good run has written is
// replaced.
func (t Textfile) Fail(ended time.Time) error {
	var kept Page
	if last, err := t.read(); err == nil {
		if good, _, ours := bytes.Cut(last, []byte(t.marker())); ours {
			kept.text.Write(good)
		}
	}
	return t.write(&kept, 0, ended)
}

// marker begins the last part of the file.
func (t Textfile) marker() string { return "# HELP " + t.Run + "_success " }

func (t Textfile) read() ([]byte, error) {
	f, err := durable.OpenNoFollow(t.Name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxTextfile))
	return data, errors.Join(err, f.Close())
}

func (t Textfile) write(page *Page, success float64, ended time.Time) error {
	page.Family(t.Run+"_success", Gauge, "Whether the last run worked. After one that has not, all other numbers are those of an earlier one.").Add(success)
	page.Family(t.Run+"_timestamp_seconds", Gauge, "When the last run ended.").Add(float64(ended.Unix()))
	return durable.WriteFile(t.Name, page.text.Bytes(), 0o644)
}
