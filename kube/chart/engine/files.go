package engine

import (
	"encoding/base64"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gobwas/glob"
)

// files are what templates see of a chart as .Files: what is neither template, nor values, nor Chart.yaml.
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

// Lines returns the lines of a file.
func (f files) Lines(name string) []string {
	if len(f[name]) == 0 {
		return []string{}
	}
	return strings.Split(strings.TrimSuffix(f.Get(name), "\n"), "\n")
}

// Glob returns the files whose names match a pattern, all of them when it is none.
func (f files) Glob(pattern string) files {
	found := files{}
	matcher, err := glob.Compile(pattern, '/')
	for name, data := range f {
		if err != nil || matcher.Match(name) {
			found[name] = data
		}
	}
	return found
}

// AsConfig returns the files as the data of a ConfigMap, by their base names.
func (f files) AsConfig() string {
	return f.document(func(data []byte) string { return string(data) })
}

// AsSecrets returns the files as the data of a Secret, by their base names.
func (f files) AsSecrets() string { return f.document(base64.StdEncoding.EncodeToString) }

func (f files) document(encode func([]byte) string) string {
	data := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		data[path.Base(name)] = encode(f[name])
	}
	return toYAML(data)
}
