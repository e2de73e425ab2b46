package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ignoreFile lists the files of a chart's directory that do not go into its package.
const ignoreFile = ".helmignore"

// maxPacked bounds a file of a chart before it is read; [Load] bounds the whole chart.
const maxPacked = 64 << 20

// Pack returns the package of a chart's directory, as "helm package" makes it, and the chart in it. The same files give the same bytes.
func Pack(dir fs.FS) ([]byte, *Chart, error) {
	ignored, err := readIgnored(dir)
	if err != nil {
		return nil, nil, err
	}
	meta, err := fs.ReadFile(dir, "Chart.yaml")
	if err != nil {
		return nil, nil, err
	}
	var head struct {
		Name string `json:"name"`
	}
	if err = schema.CheckYAML("Chart.yaml", meta); err != nil {
		return nil, nil, err
	}
	if err = yaml.Unmarshal(meta, &head); err != nil || head.Name == "" {
		return nil, nil, report.Errorf(report.Invalid, "chart: Chart.yaml has no name").WithHint("see https://helm.sh/docs/topics/charts/#the-chartyaml-file")
	}
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	entries := tar.NewWriter(zipped)
	err = fs.WalkDir(dir, ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case file != "." && file != "Chart.yaml" && ignored.match(file, entry.IsDir()):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		}
		return packFile(entries, dir, head.Name, file)
	})
	if err = errors.Join(err, entries.Close(), zipped.Close()); err != nil {
		return nil, nil, err
	}
	loaded, err := Load(bytes.NewReader(packed.Bytes()))
	return packed.Bytes(), loaded, err
}

func packFile(entries *tar.Writer, dir fs.FS, chart, file string) error {
	info, err := fs.Stat(dir, file) // of the target of a link, as in Helm
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return report.Errorf(report.Invalid, "chart: %s is not a file", file).WithHint("exclude it in %s", ignoreFile)
	}
	if info.Size() > maxPacked {
		return report.Errorf(report.Invalid, "chart: %s is larger than %d MiB", file, maxPacked>>20).WithHint("exclude it in %s", ignoreFile)
	}
	data, err := fs.ReadFile(dir, file)
	if err != nil {
		return err
	}
	header := tar.Header{Name: path.Join(chart, file), Mode: 0o644, Size: int64(len(data)), ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	if err = entries.WriteHeader(&header); err != nil {
		return err
	}
	_, err = entries.Write(data)
	return err
}

// ignoreList holds the patterns of a .helmignore file, in its order; the last one that matches decides.
type ignoreList []ignorePattern

type ignorePattern struct {
	glob      string
	keep      bool // "!": matches stay
	directory bool // "/" at the end: only directories match
	rooted    bool // it has a "/": the whole path has to match, not the last element
}

func readIgnored(dir fs.FS) (ignoreList, error) {
	list := ignoreList{{glob: "templates/.?*", rooted: true}} // Helm always ignores these
	data, err := fs.ReadFile(dir, ignoreFile)
	if errors.Is(err, fs.ErrNotExist) {
		return list, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var p ignorePattern
		line, p.keep = strings.CutPrefix(line, "!")
		line, p.directory = strings.CutSuffix(line, "/")
		p.rooted = strings.Contains(line, "/")
		p.glob = strings.TrimPrefix(line, "/")
		if _, err := path.Match(p.glob, ""); err != nil || strings.Contains(p.glob, "**") {
			return nil, report.Errorf(report.Invalid, "chart: %s: %q is not a pattern that Helm reads", ignoreFile, line)
		}
		list = append(list, p)
	}
	return list, nil
}

// match reports whether a file or a directory does not go into the package.
func (l ignoreList) match(name string, directory bool) bool {
	ignored := false
	for _, p := range l {
		subject := name
		if !p.rooted {
			subject = path.Base(name)
		}
		matched, err := path.Match(p.glob, subject)
		switch {
		case err != nil || p.directory && !directory:
		case p.keep:
			ignored = ignored && !matched
		default:
			ignored = ignored || matched
		}
	}
	return ignored
}
