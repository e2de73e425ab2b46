package host

import (
	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema/report"
)

// StoredArchives reads the manifests of the archives in the store at dir. Unreadable ones are reported and left out:
// any user can search, but not every user can read the store.
func StoredArchives(dir string, sink report.Sink) []records.StoredArchive {
	skip := func(name string, err error) {
		sink.Emit(report.Event{Step: "read", Name: name, State: report.Skipped, Note: err.Error()})
	}
	s, err := store.Open(dir)
	if err != nil {
		skip(dir, err)
		return nil
	}
	entries, err := s.Entries()
	if err != nil {
		skip(dir, err)
		return nil
	}
	var archives []records.StoredArchive
	for _, entry := range entries {
		stored, file, err := archive.OpenFile(entry.Path)
		if err != nil {
			skip(entry.Path, err)
			continue
		}
		archives = append(archives, records.StoredArchive{Solution: stored.Solution, Path: entry.Path})
		file.Close() //nolint:errcheck // read only
	}
	return archives
}
