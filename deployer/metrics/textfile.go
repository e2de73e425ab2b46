package metrics

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/solutionctl/solutionctl/durable"
)

// Textfile is a file for node_exporter's textfile collector: the results of the last successful run of a program, and
// how the last run ended. It is replaced atomically, so that a reader finds a complete text even after a power failure.
type Textfile struct {
	Name string // ends in .prom, as node_exporter requires
	// Run begins the names of two families: RUN_success, and RUN_timestamp_seconds, which is when the last run ended.
	Run string
}

// maxTextfile bounds the text of an earlier run, in bytes.
const maxTextfile = 16 << 20

// Succeed replaces the file by the results of a run.
func (t Textfile) Succeed(found *Page, ended time.Time) error { return t.write(found, 1, ended) }

// Fail keeps the results of the last successful run and adds that a later one failed. A file without a successful run
// is replaced.
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
	page.Family(t.Run+"_success", Gauge, "Whether the last run succeeded. If it failed, all other metrics come from an earlier run.").Add(success)
	page.Family(t.Run+"_timestamp_seconds", Gauge, "When the last run ended.").Add(float64(ended.Unix()))
	return durable.WriteFile(t.Name, page.text.Bytes(), 0o644)
}
