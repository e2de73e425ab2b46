package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/lint"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// admission decides which archives may be imported, and remembers what was.
type admission struct {
	*Host
	options ImportOptions
	state   *trust.State
	trusted *trust.Store
}

func (h *Host) newAdmission(o ImportOptions) (*admission, error) {
	state, err := trust.LoadState(o.State)
	if err != nil {
		return nil, err
	}
	trusted, err := o.Trusted()
	if err == nil && o.SkipVerify {
		err = trusted.CheckOverride()
	}
	return &admission{Host: h, options: o, state: state, trusted: trusted}, err
}

// admitted is an archive that may be imported. Everything in it was read through its trusted digests.
type admitted struct {
	file    *sign.File
	source  store.Source
	payload *render.Payload
	nginx   []byte // nil: the archive has no such file
	names   []string
}

func (c *admitted) id() string { return c.source.ID() }

func (c *admitted) close() { _ = c.file.Close() } // opened for reading

// all admits archives, each version once.
func (d *admission) all(ctx context.Context, paths []string) (_ []*admitted, err error) {
	var list []*admitted
	defer func() {
		if err != nil {
			for _, c := range list {
				c.close()
			}
		}
	}()
	for _, path := range paths {
		c, err := d.one(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, c)
		for _, other := range list[:len(list)-1] {
			if other.id() == c.id() {
				return nil, report.Errorf(report.Usage, "%s and %s both hold %s", other.source.Path, path, c.id()).WithHint("import one of them")
			}
		}
	}
	return list, nil
}

func (d *admission) one(ctx context.Context, path string) (*admitted, error) {
	resolved, err := filepath.Abs(path)
	if err == nil {
		resolved, err = filepath.EvalSymlinks(resolved)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, report.Errorf(report.NotFound, "%w", err)
	}
	if err != nil {
		return nil, err
	}
	f, err := sign.Open(resolved)
	if err != nil {
		return nil, err
	}
	c := &admitted{file: f, source: store.Source{File: f.File, Path: resolved}}
	reader, err := d.verify(ctx, c, path)
	if err == nil {
		err = d.lint(ctx, c, reader)
	}
	if err == nil {
		err = c.read(reader)
	}
	if reader != nil && err != nil {
		// What was not there to be read looks like a fault of the vendor.
		err = cmp.Or(unreadable(reader, path), err)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func unreadable(r *chunk.Reader, path string) error {
	err := r.Failure()
	if report.CodeOf(err) != report.Corrupt {
		return err
	}
	return report.Errorf(report.Corrupt, "%w", err).
		WithHint("the archive was changed while it was read, or the copy is damaged: copy it again; '%s' lists what differs", report.Run("verify", path))
}

// verify finds out who vouches for the archive. Its content is compared later, when it is read into the store.
func (d *admission) verify(ctx context.Context, c *admitted, path string) (*chunk.Reader, error) {
	d.Sink.Emit(report.Event{Step: "verify", Name: filepath.Base(path), State: report.Started})
	reader, err := d.judge(ctx, c, path)
	if err != nil {
		d.Sink.Emit(report.Event{Step: "verify", Name: filepath.Base(path), State: report.Failed})
		return nil, err
	}
	c.source.Chunks = reader.List()
	d.Sink.Emit(report.Event{Step: "verify", Name: filepath.Base(path), State: report.Done, Note: c.id()})
	return reader, nil
}

func (d *admission) judge(ctx context.Context, c *admitted, path string) (*chunk.Reader, error) {
	if d.options.SkipVerify {
		return d.sum(ctx, c)
	}
	bundles, err := d.bundles(c, path)
	if err != nil {
		return nil, err
	}
	o := sign.Options{
		Store: d.trusted, State: d.state, Now: d.Now(), Path: path, Device: c.file.Device, Unchanged: c.file.Unchanged, Identify: sign.Identify,
		Examine: checkVerified, Locate: sign.Locate(c.file, c.file.Size), OnRead: true, AllowDowngrade: d.options.AllowDowngrade,
		Workers: runtime.GOMAXPROCS(0), Sink: report.Discard, ToolVersion: d.Version,
	}
	verdict, reader, err := sign.Verify(ctx, c.file, c.file.Size, bundles, o)
	if report.CodeOf(err) == report.Downgrade && d.has(*verdict.Solution, verdict.Archive.SHA256) {
		o.AllowDowngrade = true // nothing becomes older by what is there already
		verdict, reader, err = sign.Verify(ctx, c.file, c.file.Size, bundles, o)
	}
	if err != nil {
		return nil, err
	}
	c.source.SHA256, c.source.Signers = verdict.Archive.SHA256, verdict.Signers()
	for _, s := range verdict.Signatures {
		if s.Status == sign.Accepted {
			c.names = append(c.names, s.KeyName)
		}
	}
	return reader, c.name(reader)
}

// checkVerified reads every byte through the verified reader: what is stored is what was examined.
func checkVerified(r io.ReaderAt, size int64) error { return sign.CheckStructure(r, r, size) }

// bundles are found beside the name that was given or beside the file that it leads to.
func (d *admission) bundles(c *admitted, path string) ([]sign.NamedBundle, error) {
	bundles, err := sign.ReadBundles(path, d.options.Bundles)
	if err != nil || len(bundles) > 0 || d.options.Bundles != nil {
		return bundles, err
	}
	return sign.FindBundles(c.source.Path)
}

// sum takes the digests from the archive itself, which nobody vouches for. What was revoked stays refused, and so is
// what pretends to be another archive that was imported before.
func (d *admission) sum(ctx context.Context, c *admitted) (*chunk.Reader, error) {
	sums, err := chunk.Sum(ctx, c.file, c.file.Size, report.Discard)
	if err != nil {
		return nil, err
	}
	if err = c.file.Unchanged(); err != nil {
		return nil, err
	}
	reader, err := chunk.NewReader(c.file, &sums.Chunks)
	if err != nil {
		return nil, err
	}
	c.source.SHA256 = hex.EncodeToString(sums.SHA256[:])
	if err = errors.Join(c.name(reader), checkVerified(reader, reader.Size())); err != nil {
		return nil, err
	}
	if err = d.trusted.CheckArchive(sums.SHA256[:], c.solution()); err != nil {
		return nil, err
	}
	return reader, d.checkHistory(c)
}

// has tells whether exactly this archive is in the store.
func (d *admission) has(solution bundle.Solution, digest string) bool {
	e, err := d.Store.Find(solution.Name, solution.Version)
	return err == nil && e.SHA256 == digest
}

func (c *admitted) name(r *chunk.Reader) error {
	inside, err := sign.Identify(r, r.Size())
	c.source.Name, c.source.Version = inside.Name, inside.Version
	return err
}

func (c *admitted) solution() bundle.Solution {
	return bundle.Solution{Name: c.source.Name, Version: c.source.Version}
}

// notAtImport are the rules that are for the developer, and those on the image, which was examined before. No archive with
// an error gets past the others.
func notAtImport() []string {
	return append(lint.ImageRules(),
		string(lint.GroupKubernetes), string(lint.GroupOperator), string(lint.GroupMonitoring), string(lint.GroupUpgrade))
}

// lint judges the archive by the rules that matter to whoever imports it.
func (d *admission) lint(ctx context.Context, c *admitted, r *chunk.Reader) error {
	opened, err := target.OpenISO(r, r.Size())
	if err != nil {
		return err
	}
	result, err := lint.Run(ctx, opened, lint.Options{Disable: notAtImport()})
	if err != nil {
		return err
	}
	found := result.Findings[:0]
	for _, f := range result.Findings {
		if f.Severity == report.SeverityError {
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		return nil
	}
	report.SortFindings(found)
	err = fmt.Errorf("%s [%s]", found[0], found[0].Rule)
	if more := len(found) - 1; more > 0 {
		err = fmt.Errorf("%w, and %d more", err, more)
	}
	return report.Errorf(report.Findings, "%w", err).WithHint("'%s' shows everything; the vendor has to correct it", report.Run("lint", c.source.Path))
}

// read takes out of the archive what the cluster has to know, and what nginx has to.
func (c *admitted) read(r *chunk.Reader) error {
	a, err := archive.Open(r, r.Size())
	if err != nil {
		return err
	}
	if c.payload, err = render.FromArchive(a); err != nil {
		return err
	}
	data, err := c.payload.Encode()
	if err != nil {
		return err
	}
	digest := sha256.Sum256(data)
	c.source.Payload = "sha256:" + hex.EncodeToString(digest[:])
	c.nginx, err = archive.ReadDocument(a, store.NginxTemplate)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

// again compares with what others have imported since the archives were admitted. The store is locked.
func (d *admission) again(list []*admitted) (err error) {
	if d.state, err = trust.LoadState(d.options.State); err != nil {
		return err
	}
	for _, c := range list {
		if err := d.checkHistory(c); err != nil {
			return fmt.Errorf("%s: %w", c.source.Path, err)
		}
	}
	return nil
}

// checkHistory refuses what is older than what was imported before, or something else under the same version.
func (d *admission) checkHistory(c *admitted) error {
	err := d.state.Check(c.solution(), c.source.SHA256, d.trusted.RevokedKeys())
	if report.CodeOf(err) != report.Downgrade {
		return err
	}
	if d.options.AllowDowngrade || d.has(c.solution(), c.source.SHA256) {
		return nil
	}
	if rule, _, failure := d.trusted.Rule(c.source.Name); failure == nil && rule.Downgrade == "allow" {
		return nil
	}
	return err
}

// remember notes that archives were imported, so that older and other ones are recognized later.
func (d *admission) remember(list []*admitted) error {
	return trust.UpdateState(d.options.State, func(state *trust.State) error {
		for _, c := range list {
			state.Record(c.solution(), c.source.SHA256, c.source.Signers, d.trusted)
		}
		return nil
	})
}
