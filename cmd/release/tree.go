package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// file is one of an archive or a package: with its content, or with the file that has it.
type file struct {
	path   string // inside, without a leading slash
	mode   uint32
	source string
	data   []byte
}

func (f file) content() ([]byte, error) {
	if f.source == "" {
		return f.data, nil
	}
	return os.ReadFile(f.source)
}

// inputFiles returns the files of a directory of the input as files below dir.
func (r release) inputFiles(from, dir string) ([]file, error) {
	entries, err := os.ReadDir(filepath.Join(r.input, from))
	if err != nil {
		return nil, err
	}
	var files []file
	for _, entry := range entries {
		files = append(files, file{path: path.Join(dir, entry.Name()), mode: 0o644, source: filepath.Join(r.input, from, entry.Name())})
	}
	return files, nil
}

// compressed returns files with gzip around their content and .gz after their names, as distributions want manual pages.
func compressed(files []file) ([]file, error) {
	var packed []file
	for _, f := range files {
		data, err := f.content()
		if err != nil {
			return nil, err
		}
		if data, err = zipped(data); err != nil {
			return nil, err
		}
		packed = append(packed, file{path: f.path + ".gz", mode: f.mode, data: data})
	}
	return packed, nil
}

// zipped compresses without a name and without a time.
func zipped(data []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err = z.Write(data); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}

// completions are the files of package completions of the input, and where shells look for them below share.
var completions = []struct{ shell, archive, deb, others string }{
	{"bash", "completions/bash/solutionctl", "bash-completion/completions/solutionctl", "bash-completion/completions/solutionctl"},
	{"zsh", "completions/zsh/_solutionctl", "zsh/vendor-completions/_solutionctl", "zsh/site-functions/_solutionctl"},
	{"fish", "completions/fish/solutionctl.fish", "fish/vendor_completions.d/solutionctl.fish", "fish/vendor_completions.d/solutionctl.fish"},
}

// fill puts the values of a release into a text.
func (r release) fill(text string) []byte {
	return []byte(strings.NewReplacer("@VERSION@", r.version, "@YEAR@", r.created.Format("2006"),
		"@DATE@", r.created.Format("Mon, 02 Jan 2006 15:04:05 -0700")).Replace(text))
}
