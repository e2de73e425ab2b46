// Package chart reads Helm charts and renders them offline.
//
// [Load] reads a packaged chart, a .tgz, with bounds on everything a hostile one could make large, and refuses what
// could reach outside of it. [Chart.Render] turns it into Kubernetes objects with Helm's own engine, so that the result
// is what "helm template" prints; each [Manifest] knows the template it comes from. Nothing is downloaded: every
// subchart must be in the archive, lookup finds what [Options.Lookup] finds, host names do not resolve, and a values schema
// cannot refer to other documents.
//
// What functions draw at random (randAlphaNum, genCA, now) goes into a [Memo], with which the next rendering gets the same
// values. For judging a chart there are stand-ins instead, which depend on the chart and the arguments only.
// A template is a program all the same: the time and the text of a rendering are bounded, and charts are rendered after
// their archive was verified. Helm's libraries write some warnings to the standard logger.
package chart

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	helm "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Chart is a chart in memory. It may be rendered any number of times, from several goroutines.
type Chart struct {
	Name, Version, AppVersion string
	KubeVersion               string // the constraint of Chart.yaml, "" for none
	Digest                    string // of the content: sha256 in hex; the same for archives that unpack to the same files
	Dependencies              []Dependency
	files                     []file
}

// Dependency is a subchart that Chart.yaml names.
type Dependency struct {
	Name, Alias, Version, Repository string
	Condition                        string
}

// Load reads a packaged chart.
func Load(r io.Reader) (*Chart, error) {
	files, err := readArchive(r)
	if err != nil {
		return nil, err
	}
	c := &Chart{files: files, Digest: digest(files)}
	loaded, err := c.load()
	if err != nil {
		return nil, err
	}
	meta := loaded.Metadata
	if meta.Type == "library" {
		return nil, report.Errorf(report.Invalid, "chart %s is a library, which cannot be installed", meta.Name)
	}
	c.Name, c.Version, c.AppVersion, c.KubeVersion = meta.Name, meta.Version, meta.AppVersion, meta.KubeVersion
	for _, d := range meta.Dependencies {
		c.Dependencies = append(c.Dependencies, Dependency{
			Name: d.Name, Alias: d.Alias, Version: d.Version, Repository: d.Repository, Condition: d.Condition,
		})
	}
	return c, complete(loaded, 0)
}

// load makes Helm's form of the chart. Rendering changes it, so each rendering has its own.
func (c *Chart) load() (*helm.Chart, error) {
	buffered := make([]*archive.BufferedFile, len(c.files))
	for i, f := range c.files {
		buffered[i] = &archive.BufferedFile{Name: f.name, Data: f.data}
	}
	loaded, err := loader.LoadFiles(buffered)
	if err != nil {
		return nil, report.Errorf(report.Invalid, "chart: %w", err)
	}
	return loaded, nil
}

// complete refuses a chart that would need a download.
func complete(c *helm.Chart, depth int) error {
	if depth > maxNesting {
		return report.Errorf(report.Invalid, "chart %s: subcharts are nested more than %d deep", c.Name(), maxNesting)
	}
	for _, d := range c.Metadata.Dependencies {
		if d == nil {
			return report.Errorf(report.Invalid, "chart %s: an entry of dependencies is empty", c.Name())
		}
		if !slices.ContainsFunc(c.Dependencies(), func(sub *helm.Chart) bool { return satisfies(sub, d) }) {
			return report.Errorf(report.Invalid, "chart %s: subchart %s %s of %q is not in the archive", c.Name(), d.Name, d.Version, d.Repository).
				WithHint("run \"helm dependency update\" and package the chart again")
		}
	}
	for _, sub := range c.Dependencies() {
		if err := complete(sub, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func satisfies(sub *helm.Chart, d *helm.Dependency) bool {
	if sub.Name() != d.Name {
		return false
	}
	if d.Version == "" {
		return true
	}
	constraint, err := semver.NewConstraint(d.Version)
	if err != nil {
		return false
	}
	version, err := semver.NewVersion(sub.Metadata.Version)
	return err == nil && constraint.Check(version)
}

func digest(files []file) string {
	sum := sha256.New()
	for _, f := range files {
		fmt.Fprintf(sum, "%d %s %d ", len(f.name), f.name, len(f.data))
		sum.Write(f.data)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Metadata returns Chart.yaml as JSON, the way Helm writes it into a registry.
func (c *Chart) Metadata() ([]byte, error) {
	loaded, err := c.load()
	if err != nil {
		return nil, err
	}
	return json.Marshal(loaded.Metadata)
}

// CheckFile refuses a file that is not called after the chart in it: NAME-VERSION.tgz, as "helm package" does, or NAME.tgz.
func (c *Chart) CheckFile(name string) error {
	packed := c.Name + "-" + c.Version + ".tgz"
	if base := path.Base(name); base != packed && base != c.Name+".tgz" {
		return report.Errorf(report.Invalid, "it holds chart %s in version %s", c.Name, c.Version).WithHint("call the file %s", packed)
	}
	return nil
}

// README returns the chart's README.md, or nil.
func (c *Chart) README() []byte {
	for _, f := range c.files {
		if strings.EqualFold(f.name, "README.md") {
			return bytes.Clone(f.data)
		}
	}
	return nil
}
