package engine

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// files are the files of a chart as .Files: all except templates, values and Chart.yaml.
type files map[string][]byte

func newFiles(list []File) files {
	f := files{}
	for _, file := range list {
		f[file.Name] = file.Data
	}
	return f
}

// GetBytes returns the content of a file, nothing when there is no such file.
func (f files) GetBytes(name string) []byte { return append([]byte{}, f[name]...) }

// Get returns the content of a file as text.
func (f files) Get(name string) string { return string(f[name]) }

// maxLines bounds the lines of a file that are returned as a list.
const maxLines = 500_000

// Lines returns the lines of a file.
func (f files) Lines(name string) ([]string, error) {
	if len(f[name]) == 0 {
		return []string{}, nil
	}
	if count := bytes.Count(f[name], []byte("\n")); count > maxLines {
		return nil, excess(fmt.Sprintf("Lines: %s has more than %d lines", name, maxLines))
	}
	return strings.Split(strings.TrimSuffix(f.Get(name), "\n"), "\n"), nil
}

// Glob returns the files whose names match a pattern, all of them when it is none. The pattern is a [globPattern]: see checkGlob.
func (f files) Glob(pattern any) (files, error) {
	p, ok := pattern.(globPattern)
	if !ok {
		return nil, fmt.Errorf("wrong type for value; expected string; got %T", pattern)
	}
	match, err := p.compile()
	if err != nil {
		return nil, err
	}
	found := files{}
	for name, data := range f {
		matches, err := match(name)
		if err != nil {
			return nil, err
		}
		if matches {
			found[name] = data
		}
	}
	return found, nil
}

// AsConfig returns the files as the data of a ConfigMap, by their base names.
func (f files) AsConfig() (string, error) {
	return f.document("AsConfig", func(data []byte) string { return string(data) })
}

// AsSecrets returns the files as the data of a Secret, by their base names.
func (f files) AsSecrets() (string, error) {
	return f.document("AsSecrets", base64.StdEncoding.EncodeToString)
}

// maxDocument bounds the files in one document. Kubernetes takes 1 MiB.
const maxDocument = 5 << 20

func (f files) document(name string, encode func([]byte) string) (string, error) {
	total := 0
	for _, data := range f {
		if total += len(data); total > maxDocument {
			return "", excess(fmt.Sprintf("%s: the files are larger than %d MiB", name, maxDocument>>20))
		}
	}
	data := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		data[path.Base(name)] = encode(f[name])
	}
	return encodeYAML(data)
}
