// Package hostd is the privileged half of the console: it takes archives into the store of this host for people who have
// no rights on the host itself.
//
// A [Desk] does what is asked, with the whole admission of package host, and writes the cluster's records with the token of
// whoever asks. What that person may do the cluster says: the verbs import and unimport on archives.archives.solutionctl.io.
// A [Server] is a desk on a Unix socket, for a program that runs as another user; a [Client] is that program's end of it.
//
// The server believes nothing of what its clients say. There is no way to say whom to trust, to accept what is not signed or
// older, or to name a file: an archive comes as an open descriptor, and its signatures as bytes. A console that was taken over
// can import what the trust policy of the host accepts, for somebody whose token it has, and nothing else.
package hostd

import (
	"context"
	"os"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
)

// Archive is an archive with its signatures. Without a file it is one that is still to come.
type Archive struct {
	Name    string // for people
	File    *os.File
	Bundles []sign.NamedBundle
}

// Version is an imported version.
type Version struct {
	Solution string `json:"solution"`
	Version  string `json:"version"`
}

// Desk does what people ask of this host. All but Sink is required.
type Desk struct {
	// Open returns this host, for one request. The desk says which cluster it serves.
	Open func() (*host.Host, error)
	// Connect reaches the cluster with a token; "" stands for whoever runs the program.
	Connect func(token string) (*cluster.Cluster, error)
	// Options say whom to believe and how to import. What is imported is the desk's to say.
	Options  host.ImportOptions
	Version  string // of the program
	Host     string // for whoever finds a lock taken
	LockWait time.Duration
	Now      func() time.Time
}

// at returns this host for somebody who has a right.
func (d *Desk) at(ctx context.Context, token, verb string, sink report.Sink) (*host.Host, error) {
	if sink == nil {
		sink = report.Discard
	}
	c, err := d.Connect(token)
	if err != nil {
		return nil, err
	}
	if token != "" { // whoever runs the program has the rights of its user on this host
		if err = c.Require(ctx, []cluster.Permission{rights.OnArchives(verb)}); err != nil {
			return nil, err
		}
	}
	h, err := d.Open()
	if err != nil {
		return nil, err
	}
	verbs := deployer.New(deployer.Config{
		Cluster: c, Sink: sink, Now: d.Now, Version: d.Version, Identity: c.User(ctx) + "@" + d.Host, LockWait: d.LockWait,
	})
	h.Cluster, h.LockWait, h.Sink, h.Now, h.Version = host.ClusterOf(verbs), d.LockWait, sink, d.Now, d.Version
	return h, nil
}

func (d *Desk) options(a Archive) host.ImportOptions {
	o := d.Options
	o.Archives, o.Bundles, o.Opened = nil, nil, []host.OpenArchive{{Name: a.Name, File: a.File, Bundles: a.Bundles}}
	return o
}

// Examine judges an archive as Import would, and changes nothing. One without a file is judged by its signatures alone. The
// examination is nil only when nothing was examined.
func (d *Desk) Examine(ctx context.Context, token string, a Archive, sink report.Sink) (*host.Examination, error) {
	h, err := d.at(ctx, token, rights.VerbImport, sink)
	switch {
	case err != nil:
		return nil, err
	case a.File == nil:
		return h.Expect(ctx, d.Options, a.Bundles)
	}
	if err = checkFile(a.File); err != nil {
		return nil, err
	}
	return h.Examine(ctx, d.options(a))
}

// Import takes an archive into the store and tells the cluster. Done again it finishes what was interrupted.
func (d *Desk) Import(ctx context.Context, token string, a Archive, sink report.Sink) (*schema.ImportReport, error) {
	h, err := d.at(ctx, token, rights.VerbImport, sink)
	if err != nil {
		return nil, err
	}
	if err = checkFile(a.File); err != nil {
		return nil, err
	}
	return h.Import(ctx, d.options(a))
}

// Unimport takes a version away, from the cluster first, unless something uses it.
func (d *Desk) Unimport(ctx context.Context, token string, v Version, sink report.Sink) (*schema.UnimportReport, error) {
	if v.Solution == "" || v.Version == "" { // an id or a path would be looked up
		return nil, report.Errorf(report.Usage, "a Solution and a version are needed")
	}
	h, err := d.at(ctx, token, rights.VerbUnimport, sink)
	if err != nil {
		return nil, err
	}
	return h.Unimport(ctx, host.UnimportOptions{Archive: v.Solution, Version: v.Version})
}

// checkFile refuses what is no regular file: reading from a device or a pipe could wait for whoever fills it.
func checkFile(f *os.File) error {
	if f == nil {
		return report.Errorf(report.Usage, "there is no archive")
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return report.Errorf(report.Usage, "the archive is not a regular file (%s)", info.Mode().Type())
	}
	return checkMedium(f)
}
