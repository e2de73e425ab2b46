// Package bundle collects the data with which remote support can understand a problem of a cluster, and nothing else.
//
// [Collect] composes every document field by field: no object of the cluster is ever copied as a whole. There are no
// values of Secrets or ConfigMaps, no environment, arguments or commands of containers, no annotations, no content of
// custom resources and, unless logs are requested, no text that a program of a Solution has written. [Write] makes one
// archive of it that can be read without solutionctl.
package bundle

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Options select the data to collect. Diagnosis and Now are required.
type Options struct {
	Diagnosis *schema.Diagnosis  // the findings of the doctor
	Archives  []store.Entry      // in the store of this host
	Deployer  *deployer.Deployer // nil when there is no cluster
	Tool      string             // version of this program
	Now       time.Time
	// Logs adds the output of containers and other quotes of programs, which can contain anything.
	Logs bool
}

// File is a file of the bundle.
type File struct {
	Name string
	Data []byte
}

// Bundle holds the collected files.
type Bundle struct {
	Files    []File // sorted by name
	Document schema.SupportBundle
}

const (
	// maxItems bounds every list, maxLog one log and maxLogs their number.
	maxItems, maxLog, maxLogs = 2000, 256 << 10, 100
	// timeout bounds all requests to the cluster together.
	timeout = 2 * time.Minute
)

// Collect collects the bundle. Data that cannot be read is listed as missing, and is not an error.
func Collect(ctx context.Context, o Options) (*Bundle, error) {
	c := &collector{Options: o, document: schema.SupportBundle{Collected: o.Now.UTC().Truncate(time.Second), Tool: o.Tool}}
	c.empty()
	c.archives()
	var logs []File
	if o.Deployer == nil {
		c.missing("everything in the cluster: there is none that can be reached")
	} else {
		reading, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		c.ctx = reading
		c.cluster()
		if o.Logs {
			logs = c.logs()
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	files := logs
	for name, document := range map[string]any{"bundle.json": c.document, "diagnosis.json": o.Diagnosis} {
		data, err := json.MarshalIndent(document, "", "  ")
		if err != nil {
			return nil, err
		}
		files = append(files, File{name, append(data, '\n')})
	}
	files = append(files, File{"README.txt", c.readme()})
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	return &Bundle{files, c.document}, nil
}

// Write writes the files as one archive: the same files give the same bytes.
func Write(w io.Writer, files []File, modified time.Time) error {
	compressed := gzip.NewWriter(w)
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{
			Name: "solutionctl-support/" + f.Name, Mode: 0o600, Size: int64(len(f.Data)), ModTime: modified.UTC().Truncate(time.Second), Format: tar.FormatPAX,
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(f.Data); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

// collector is one call of Collect.
type collector struct {
	Options
	ctx        context.Context //nolint:containedctx // lives for one call of Collect
	document   schema.SupportBundle
	namespaces []string // of environments, of Solutions and of this tool
}

// empty makes lists of nothing, which JSON shows as such.
func (c *collector) empty() {
	d := &c.document
	d.Nodes, d.Imports, d.Archives = []schema.SupportNode{}, []schema.SupportImport{}, []schema.SupportArchive{}
	d.Environments, d.Deployments, d.Releases = []schema.SupportEnvironment{}, []schema.SupportDeployment{}, []schema.SupportRelease{}
	d.Definitions, d.Workloads, d.Pods = []schema.SupportDefinition{}, []schema.SupportWorkload{}, []schema.SupportPod{}
	d.Events, d.Stores, d.Missing = []schema.SupportEvent{}, []schema.SupportStore{}, []string{}
}

func (c *collector) missing(format string, args ...any) {
	c.document.Missing = append(c.document.Missing, fmt.Sprintf(format, args...))
}

func (c *collector) archives() {
	for _, e := range c.Archives {
		c.document.Archives = append(c.document.Archives, schema.SupportArchive{ID: e.ID(), Path: e.Path, SHA256: e.SHA256, Size: e.Size, InPlace: e.InPlace})
	}
}

const intro = `'solutionctl deploy support-bundle' has collected these states, versions and events, so that remote
support can find the problem of a cluster.

  README.txt      this file, with what the doctor found
  diagnosis.json  what the doctor found (solutionctl deploy doctor --output json)
  bundle.json     nodes, imports, environments, records, workloads, pods, events, the loader
  logs/           what containers have written; only with --logs

There are no values of Secrets and ConfigMaps in it, no environment, arguments or commands of
containers, no annotations and nothing out of custom resources. It does have names: of objects, hosts,
users, images and paths. Messages of events are left out unless Kubernetes puts them together from
such names. What --logs adds may be anything: look through it before you pass it on.
`

// readme is for the reader of the bundle.
func (c *collector) readme() []byte {
	var b bytes.Buffer
	b.WriteString(intro)
	fmt.Fprintf(&b, "\nCollected %s with solutionctl %s, Kubernetes %s, logs: %t\n", c.document.Collected.Format(time.RFC3339), c.Tool, cmp.Or(c.document.Kubernetes, "unknown"), c.Logs)
	fmt.Fprintf(&b, "\nThe doctor found %s and %s:\n\n",
		report.Count(c.Diagnosis.Problems, "problem"), report.Count(c.Diagnosis.Warnings, "warning"))
	for _, check := range c.Diagnosis.Checks {
		fmt.Fprintf(&b, "%-8s %s %s: %s\n", check.Result, check.Area, check.Name, strings.ReplaceAll(check.Message, "\n", " "))
	}
	if len(c.document.Missing) > 0 {
		b.WriteString("\nNot collected:\n\n")
	}
	for _, text := range c.document.Missing {
		fmt.Fprintf(&b, "%s\n", strings.ReplaceAll(text, "\n", " "))
	}
	return b.Bytes()
}
