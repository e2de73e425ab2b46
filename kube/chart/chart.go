// Package chart reads Helm charts and renders them offline.
//
// [Load] reads a packaged chart, a .tgz, with bounds on everything that a hostile one could make large, and refuses
// references outside of it. [Chart.Render] turns it into Kubernetes objects, with an engine of our own; the result is
// that of "helm template", and each [Manifest] has the template that it comes from. Nothing is downloaded: every
// subchart must be in the archive, lookup uses [Options.Lookup], host names do not resolve, and a values schema cannot
// refer to other documents.
//
// Generated values (of randAlphaNum, genCA, now) go into a [GeneratedValues], from which the next rendering gets the same values.
// For checking a chart there are stand-ins instead, which depend only on the chart and the arguments. A template is a
// program, so the time, the text and the memory of a rendering are bounded, and so are the objects that are parsed from
// it.
package chart

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/solutionctl/solutionctl/kube/chart/engine"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Chart is a chart in memory. It may be rendered any number of times, from several goroutines.
type Chart struct {
	Name, Version, AppVersion string
	KubeVersion               string // the constraint of Chart.yaml, "" for none
	Digest                    string // of the content: sha256 in hex; the same for archives that unpack to the same files
	Dependencies              []Dependency
	engine                    *engine.Chart
}

// Dependency is a subchart that Chart.yaml names.
type Dependency struct {
	Name, Alias, Version, Repository string
	Condition                        string
}

// Load reads a packaged chart.
func Load(r io.Reader) (*Chart, error) {
	files, err := engine.Unpack(r)
	if err != nil {
		return nil, err
	}
	loaded, err := engine.Load(files)
	if err != nil {
		return nil, report.Errorf(report.Invalid, "chart: %w", err)
	}
	meta := loaded.Metadata
	if meta.Type == "library" {
		return nil, report.Errorf(report.Invalid, "chart %s is a library, which cannot be installed", meta.Name).
			WithHint("name a chart that depends on it")
	}
	if err = complete(loaded, engine.NewVersions()); err != nil {
		return nil, err
	}
	c := &Chart{
		Name: meta.Name, Version: meta.Version, AppVersion: meta.AppVersion, KubeVersion: meta.KubeVersion,
		Digest: digest(files), engine: loaded,
	}
	for _, d := range meta.Dependencies {
		c.Dependencies = append(c.Dependencies, Dependency{
			Name: d.Name, Alias: d.Alias, Version: d.Version, Repository: d.Repository, Condition: d.Condition,
		})
	}
	return c, nil
}

// complete refuses a chart that would need a download.
func complete(c *engine.Chart, versions *engine.Versions) error {
	byName := map[string][]*engine.Chart{}
	for _, sub := range c.Subcharts {
		byName[sub.Name] = append(byName[sub.Name], sub)
	}
	for _, d := range c.Dependencies {
		found := false
		for _, sub := range byName[d.Name] {
			satisfied, err := versions.Satisfies(sub.Version, d.Version)
			if err != nil {
				return report.Errorf(report.Invalid, "chart %s: %w", c.Name, err)
			}
			if found = satisfied || d.Version == ""; found {
				break
			}
		}
		if !found {
			return report.Errorf(report.Invalid, "chart %s: subchart %s %s of %q is not in the archive%s", c.Name, d.Name, d.Version, d.Repository, others(c, d.Name)).
				WithHint("run \"helm dependency update\" in the chart's directory, and package the chart again")
		}
	}
	for _, sub := range c.Subcharts {
		if err := complete(sub, versions); err != nil {
			return err
		}
	}
	return nil
}

// others lists the other versions of a subchart.
func others(c *engine.Chart, name string) string {
	var versions []string
	for _, sub := range c.Subcharts {
		if sub.Name == name {
			versions = append(versions, sub.Version)
		}
	}
	if versions == nil {
		return ""
	}
	return fmt.Sprintf(", which has %s %s instead", name, strings.Join(versions, " and "))
}

func digest(files []engine.File) string {
	sum := sha256.New()
	for _, f := range files {
		fmt.Fprintf(sum, "%d %s %d ", len(f.Name), f.Name, len(f.Data))
		sum.Write(f.Data)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Metadata returns Chart.yaml as JSON, the way Helm writes it into a registry.
func (c *Chart) Metadata() ([]byte, error) { return json.Marshal(c.engine.Metadata) }

// CheckFile refuses a file that is not called after the chart in it: NAME-VERSION.tgz, as "helm package" does, or NAME.tgz.
func (c *Chart) CheckFile(name string) error {
	packed := c.Name + "-" + c.Version + ".tgz"
	if base := path.Base(name); base != packed && base != c.Name+".tgz" {
		return report.Errorf(report.Invalid, "it holds chart %s in version %s", c.Name, c.Version).WithHint("call the file %s", packed)
	}
	return nil
}
