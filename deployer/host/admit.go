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
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/delta"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/kube/powers"
	"github.com/solutionctl/solutionctl/lint"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// admission decides which archives may be imported, and records the imported ones.
type admission struct {
	*Host
	options ImportOptions
	state   *trust.State
	trusted *trust.Store
}

func (h *Host) newAdmission(o ImportOptions) (*admission, error) {
	d := &admission{Host: h, options: o}
	return d, d.load()
}

// load reads the history of imports and the trust store.
func (d *admission) load() (err error) {
	if d.state, err = trust.LoadState(d.options.State); err != nil {
		return err
	}
	d.trusted, err = d.options.Trusted()
	if err == nil && d.options.SkipVerify {
		err = d.trusted.CheckOverride()
	}
	return err
}

// admitted is an archive that may be imported. Everything in it was read through its trusted digests.
type admitted struct {
	name     string             // by which it was named
	expect   string             // its digest; "" for any
	bundles  []sign.NamedBundle // nil: they are looked for
	size     int64
	device   bool
	made     *delta.Made  // by a delta; nil for an archive that is there as a whole
	files    *media.Image // the files that were opened
	closers  []io.Closer
	source   store.Source
	verdict  *sign.Verdict        // nil where no signature was checked
	facts    *schema.ArchiveFacts // without the provenance, which the verdict has
	findings []report.Finding
	payload  *render.Payload
	powers   *schema.Powers // its powers in a cluster
	nginx    []byte         // nil: the archive has no such file
	names    []string
}

func (c *admitted) id() string { return c.source.ID() }

func (c *admitted) close() {
	for _, closer := range c.closers {
		_ = closer.Close() // opened for reading
	}
}

// all admits archives, each version once. Older versions come first: an import that ends between two of them can be repeated.
func (d *admission) all(ctx context.Context) (_ []*admitted, err error) {
	var list []*admitted
	defer func() {
		if err != nil {
			for _, c := range list {
				c.close()
			}
		}
	}()
	for n := range len(d.options.Archives) + len(d.options.Opened) {
		c, err := d.open(ctx, n)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
		if err = d.admit(ctx, c); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		for _, other := range list[:len(list)-1] {
			if other.id() == c.id() {
				return nil, report.Errorf(report.Usage, "%s and %s both hold %s", other.source.Path, c.name, c.id()).WithHint("import one of them")
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *admitted) int { return schema.CompareVersions(a.source.Version, b.source.Version) })
	return list, nil
}

// open opens one of the archives: first those that are named, then those that are open.
func (d *admission) open(ctx context.Context, n int) (*admitted, error) {
	c, err := d.openFile(ctx, n)
	if err == nil && n < len(d.options.Expect) {
		c.expect = d.options.Expect[n]
	}
	return c, err
}

func (d *admission) openFile(ctx context.Context, n int) (_ *admitted, err error) {
	if n >= len(d.options.Archives) {
		given := d.options.Opened[n-len(d.options.Archives)]
		// The name is not one by which the file can be found: it must not be mistaken for a path on this host.
		name := filepath.Base(given.Name)
		c := &admitted{name: name, bundles: append([]sign.NamedBundle{}, given.Bundles...), source: store.Source{Path: name}}
		image, failure := media.Opened(given.File, name)
		return c, d.take(ctx, c, image, failure)
	}
	c := &admitted{name: d.options.Archives[n]}
	if err = media.RefuseRegistry(c.name); err != nil {
		return nil, err
	}
	if c.source.Path, err = filepath.Abs(c.name); err == nil {
		c.source.Path, err = filepath.EvalSymlinks(c.source.Path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = report.As(report.NotFound, err)
	case err == nil:
		image, failure := media.OpenNoFollow(c.source.Path, d.options.More...)
		if failure == nil {
			c.closers = append(c.closers, image)
		}
		err = d.take(ctx, c, image, failure)
	}
	if err != nil {
		c.close()
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	return c, nil
}

// take makes the opened files, or the archive that they make, the content of the archive.
func (d *admission) take(ctx context.Context, c *admitted, image *media.Image, err error) error {
	if err != nil {
		return err
	}
	c.files, c.size, c.device = image, image.Size, image.Device
	c.source.Content, c.source.File = image, image.File()
	if !delta.IsDelta(image) {
		return nil
	}
	return d.rebuild(ctx, c)
}

// admit fails for an archive that must not be imported. c keeps the results up to the failure.
func (d *admission) admit(ctx context.Context, c *admitted) error {
	reader, err := d.verify(ctx, c)
	if err == nil && c.expect != "" && c.expect != c.source.SHA256 {
		err = report.Errorf(report.Conflict, "the archive is not the one that was examined").WithHint("examine it again")
	}
	if err == nil {
		err = d.lint(ctx, c, reader)
	}
	if err == nil {
		err = c.read(reader)
	}
	if err == nil {
		err = d.judgePowers(ctx, c)
	}
	if reader != nil && err != nil {
		// An unreadable file would otherwise look like a fault of the vendor.
		err = cmp.Or(unreadable(reader, c.name), err)
	}
	return d.explain(ctx, c, err)
}

func unreadable(r *chunk.Reader, path string) error { return damaged(r.Failure(), path) }

// damaged adds the hint to an error about bytes that differ from what was signed.
func damaged(err error, path string) error {
	if report.CodeOf(err) != report.Corrupt || len(report.Hints(err)) > 0 {
		return err
	}
	return report.As(report.Corrupt, err).
		WithHint("the archive was changed while it was read, or the copy is damaged: copy it again; '%s' lists what differs", report.Run("verify", path))
}

// verify finds out who vouches for the archive. Its content is compared later, when it is read into the store.
func (d *admission) verify(ctx context.Context, c *admitted) (*chunk.Reader, error) {
	name := filepath.Base(c.name)
	d.Sink.Emit(report.Event{Step: "verify", Name: name, State: report.Started})
	reader, err := d.judge(ctx, c)
	if err != nil {
		d.Sink.Emit(report.Event{Step: "verify", Name: name, State: report.Failed})
		return nil, err
	}
	c.source.Chunks = reader.List()
	d.Sink.Emit(report.Event{Step: "verify", Name: name, State: report.Done, Note: c.id()})
	return reader, nil
}

func (d *admission) judge(ctx context.Context, c *admitted) (*chunk.Reader, error) {
	bundles, err := d.bundles(c)
	if err != nil {
		return nil, err
	}
	if d.options.SkipVerify {
		reader, failure := d.sum(ctx, c)
		c.source.Bundles = bundlesToKeep(bundles, c.source.SHA256, nil)
		return reader, failure
	}
	o := d.signOptions(c.name)
	o.Device, o.Unchanged, o.Locate = c.device, c.files.Unchanged, sign.Locate(ctx, c.source.Content, c.size)
	o.Identify, o.Examine = sign.Identify, c.examine
	verdict, reader, err := sign.Verify(ctx, c.source.Content, c.size, bundles, o)
	c.verdict = verdict
	if report.CodeOf(err) == report.Downgrade && d.has(*verdict.Solution, verdict.Archive.SHA256) {
		o.AllowDowngrade = true // archives of the store do not make anything older
		verdict, reader, err = sign.Verify(ctx, c.source.Content, c.size, bundles, o)
		c.verdict = verdict
	}
	if err != nil {
		return nil, damaged(err, c.name)
	}
	c.source.SHA256, c.source.Signers, c.names = verdict.Archive.SHA256, verdict.Signers(), signersOf(verdict)
	c.source.Bundles = bundlesToKeep(bundles, c.source.SHA256, verdict)
	return reader, c.identify(reader)
}

func (d *admission) signOptions(path string) sign.Options {
	return sign.Options{
		Store: d.trusted, State: d.state, Now: d.Now(), Path: path, OnRead: true, WithProvenance: true, AllowDowngrade: d.options.AllowDowngrade,
		Workers: runtime.GOMAXPROCS(0), Sink: report.Discard, ToolVersion: d.Version,
	}
}

// signersOf are the names of those whose signatures count.
func signersOf(v *sign.Verdict) []string {
	names := []string{}
	for _, s := range v.Signatures {
		if s.Status == sign.Accepted {
			names = append(names, s.KeyName)
		}
	}
	return names
}

// examine reads every byte through the verified reader, or leaves it to the store to confirm it, so that the stored bytes are the examined ones.
func (c *admitted) examine(r *chunk.Reader) error {
	c.source.Zeros = chunk.NewZeros(r)
	return sign.CheckStructure(r, c.source.Zeros, r.Size(), runtime.GOMAXPROCS(0))
}

// bundles are found beside the name that was given or beside the file that it leads to.
func (d *admission) bundles(c *admitted) ([]sign.NamedBundle, error) {
	if c.bundles != nil {
		return c.bundles, nil
	}
	bundles, err := sign.ReadBundles(c.name, d.options.Bundles, d.options.More...)
	if err != nil || len(bundles) > 0 || d.options.Bundles != nil {
		return bundles, err
	}
	return sign.FindBundles(c.source.Path, d.options.More...)
}

// sum computes the digests of an unsigned archive. A revoked archive is still refused, and so is one with the name of
// another imported archive.
func (d *admission) sum(ctx context.Context, c *admitted) (*chunk.Reader, error) {
	sums, err := chunk.Sum(ctx, c.source.Content, c.size, report.Discard)
	if err != nil {
		return nil, err
	}
	if err = c.files.Unchanged(); err != nil {
		return nil, err
	}
	reader, err := chunk.NewReader(c.source.Content, &sums.Chunks)
	if err != nil {
		return nil, err
	}
	c.source.SHA256 = hex.EncodeToString(sums.SHA256[:])
	if c.made != nil {
		if err = c.made.CheckDigest(c.source.SHA256); err != nil {
			return nil, err
		}
	}
	if err = c.identify(reader); err == nil {
		err = c.examine(reader)
	}
	if err != nil {
		return nil, err
	}
	if err = checkBlobs(ctx, c.source.Content, c.size); err != nil {
		return nil, err
	}
	if err = d.checkRevoked(c); err != nil {
		return nil, err
	}
	return reader, d.checkHistory(c)
}

// checkBlobs compares the content of images with their digests, where no signature covers it: a damaged copy would be
// noticed by the first node that pulls it, and then keep the intact archive out of the store.
func checkBlobs(ctx context.Context, r io.ReaderAt, size int64) error {
	opened, err := target.OpenISO(r, size)
	if err != nil {
		return err
	}
	only := lint.Options{Enable: []string{"SOL104"}, Deep: true}
	for _, group := range lint.Groups() {
		only.Disable = append(only.Disable, string(group))
	}
	result, err := lint.Run(ctx, opened, only)
	if err != nil || len(result.Findings) == 0 {
		return err
	}
	return report.Errorf(report.Corrupt, "%s", result.Findings[0]).WithHint("copy the archive again from its source")
}

// has reports whether exactly this archive is in the store.
func (d *admission) has(solution bundle.Solution, digest string) bool {
	e, err := d.Store.Find(solution.Name, solution.Version)
	return err == nil && e.SHA256 == digest
}

func (c *admitted) identify(r *chunk.Reader) error {
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

// neverDeployed are rules for the developer whose errors end each deployment of the archive.
var neverDeployed = []string{"SOL311", "SOL411", "SOL419"}

// lint checks the archive by the rules that matter for an import.
func (d *admission) lint(ctx context.Context, c *admitted, r *chunk.Reader) error {
	opened, err := target.OpenISO(r, r.Size())
	if err != nil {
		return err
	}
	result, err := lint.Run(ctx, opened, lint.Options{Disable: notAtImport(), Enable: neverDeployed})
	if err != nil {
		return err
	}
	report.SortFindings(result.Findings)
	var found []report.Finding
	for i, f := range result.Findings {
		switch {
		case f.Severity != report.SeverityError:
		case slices.Contains(neverDeployed, f.Rule):
			result.Findings[i].Severity = report.SeverityWarning
			d.Sink.Emit(report.Event{Step: "lint", Name: c.source.Path, State: report.Warning, Note: fmt.Sprintf("it can never be deployed: %s [%s]", f, f.Rule)})
		default:
			found = append(found, f)
		}
	}
	c.findings = result.Findings
	if len(found) == 0 {
		return nil
	}
	err = fmt.Errorf("%s [%s]", found[0], found[0].Rule)
	if more := len(found) - 1; more > 0 {
		err = fmt.Errorf("%w, and %d more", err, more)
	}
	return report.As(report.Findings, err).WithHint("'%s' shows everything; the vendor has to correct it", report.Run("lint", c.source.Path))
}

// judgePowers refuses an archive with powers that no approval allows.
func (d *admission) judgePowers(ctx context.Context, c *admitted) (err error) {
	if c.powers, err = render.PowersIn(ctx, c.payload, cmp.Or(d.options.Environment, render.UnknownEnvironment), d.Now()); err != nil {
		return err
	}
	refused := slices.DeleteFunc(slices.Clone(c.powers.Powers), func(p schema.Power) bool { return p.Need != schema.NeedRefused })
	if len(refused) == 0 {
		return d.checkMaximum(c)
	}
	return report.Errorf(report.Refused, "the archive has powers that no approval allows:\n  %s", strings.Join(powers.Summarize(refused), "\n  ")).
		WithHint("ask the vendor for an archive without it")
}

// checkMaximum refuses an archive that can do more than the policy of this host lets its Solution do, or of which that is unknown.
func (d *admission) checkMaximum(c *admitted) error {
	rule, at, err := d.trusted.Rule(c.payload.Solution.Metadata.Name)
	if err != nil { // there is none, and the archive was let in without
		return nil
	}
	if rule.Maximum != nil && len(c.powers.Unjudged) > 0 {
		return report.Errorf(report.Refused, "rules[%d].maximum of the policy limits Solution %s, and parts of the archive cannot be judged without a cluster:\n  %s",
			at, c.payload.Solution.Metadata.Name, strings.Join(c.powers.Unjudged, "\n  ")).
			WithHint("ask the vendor for an archive whose charts can be rendered without a cluster and without values of a site")
	}
	exceeding := rule.Exceeding(c.powers.Powers)
	if len(exceeding) == 0 {
		return nil
	}
	var names []string
	for _, p := range exceeding {
		if !slices.Contains(names, string(p.Name)) {
			names = append(names, string(p.Name))
		}
	}
	return report.Errorf(report.Refused, "the archive can do more than rules[%d].maximum of the policy lets Solution %s do:\n  %s", at,
		c.payload.Solution.Metadata.Name, strings.Join(powers.Summarize(exceeding), "\n  ")).
		WithHint("if the Solution may have it, add to maximum of the rule: %s", strings.Join(names, ", "))
}

// read reads the parts of the archive for the cluster's records and for nginx.
func (c *admitted) read(r *chunk.Reader) error {
	a, err := archive.Open(r, r.Size())
	if err != nil {
		return err
	}
	if c.payload, err = render.FromArchive(a); err != nil {
		return err
	}
	c.facts = newFacts(c.source.Name, c.source.Version)
	addStatements(c.facts, a)
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
