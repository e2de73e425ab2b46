// Package hostd is the privileged half of the console: it imports archives into the store of this host for users
// without permissions on the host itself.
//
// A [Desk] carries out requests, with the whole admission of package host, and writes the cluster's records with the
// token of the user. The cluster decides what that user can do, by the verbs import and unimport on
// archives.archives.solutionctl.io. A [Server] is a desk on a Unix socket, for a program that runs as another user; a
// [Client] is that program's end of it.
//
// The server does not trust its clients. A request cannot select the trust store, accept unsigned or older archives, or
// name a file: an archive comes as an open descriptor, and its signatures as bytes. A compromised console can import
// archives that the trust policy of the host accepts, and read facts about their content, for a user whose token it has, and nothing else.
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
	Expect  string // the digest that the user has seen; "" for any
}

// Version is an imported version.
type Version struct {
	Solution string `json:"solution"`
	Version  string `json:"version"`
}

// Desk carries out requests of users on this host. All fields except Sink are required.
type Desk struct {
	// Open returns this host, for one request. The desk sets the cluster that it serves.
	Open func() (*host.Host, error)
	// Connect reaches the cluster with a token; "" means the user who runs the program.
	Connect func(token string) (*cluster.Cluster, error)
	// Options have the trust store and the way of the import. The desk sets the archives.
	Options  host.ImportOptions
	Version  string // of the program
	Host     string // shown to a user who waits for the lock
	LockWait time.Duration
	Now      func() time.Time
}

// at returns this host for a user with permission for a verb.
func (d *Desk) at(ctx context.Context, token, verb string, sink report.Sink) (*host.Host, error) {
	if sink == nil {
		sink = report.Discard
	}
	c, err := d.Connect(token)
	if err != nil {
		return nil, err
	}
	if token != "" { // without a token, permissions on this host suffice
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
	o.Expect = []string{a.Expect}
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

// Import stores an archive and records it in the cluster. Repeated, it finishes an interrupted import.
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

// Facts returns facts about the content of an imported version. The user needs the permission to import.
func (d *Desk) Facts(ctx context.Context, token string, v Version, sink report.Sink) (*schema.ArchiveFacts, error) {
	if v.Solution == "" || v.Version == "" { // an id or a path would be looked up
		return nil, report.Errorf(report.Usage, "a Solution and a version are needed")
	}
	h, err := d.at(ctx, token, rights.VerbImport, sink)
	if err != nil {
		return nil, err
	}
	return h.Facts(ctx, d.Options, v.Solution, v.Version)
}

// checkFile refuses all but regular files: reading a device or a pipe could block.
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
