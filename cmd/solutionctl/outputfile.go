package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

// outputFile returns the file that a command writes: to itself, or name in it when it is a directory. A path that ends with a
// slash is a directory, and is made; an empty one is the current directory.
func outputFile(to, name string) (string, error) {
	if to == "" {
		return name, nil
	}
	if os.IsPathSeparator(to[len(to)-1]) {
		if err := durable.MkdirAll(to, 0o755); err != nil {
			return "", err
		}
	}
	if isDirectory(to) {
		return filepath.Join(to, name), nil
	}
	if _, err := os.Stat(filepath.Dir(to)); errors.Is(err, fs.ErrNotExist) {
		return "", report.Errorf(report.NotFound, "write %s: %w", to, err).WithHint("make the directory first")
	}
	return to, nil
}
