package sign

import (
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// Options say how [Verify] works. Store is needed; all else may be left out.
type Options struct {
	Store *trust.Store
	State *trust.State
	Now   time.Time
	Path  string // how the verdict calls the archive

	// Device: the size is an upper bound, the archive is followed by padding.
	Device bool
	// Unchanged is called after the content was read; see [File.Unchanged].
	Unchanged func() error
	// Identify reads the identity of the archive from its own manifest. Its reader verifies the content, so that
	// nothing of an archive is parsed before it was compared with the signed digests.
	Identify func(r io.ReaderAt, size int64) (Identity, error)
	// Examine is the last check, of the archive's structure. It is given a reader of verified content.
	Examine func(r *chunk.Reader) error
	// Locate names the file of the archive that lies at a range of bytes, for the report on altered ones.
	Locate func(chunk.Range) string

	// OnRead leaves the content to the returned reader instead of reading it all now: a store then has to compare the
	// digest of the whole with the verdict's, too. Signatures without a statement, and signers who contradict each
	// other, are always checked now.
	OnRead bool
	// Full computes the digest of the whole file too, which takes longer. It is computed anyway where it decides anything.
	Full           bool
	AllowDowngrade bool
	Provenance     bool // require a provenance of an allowed signer, and put it into the verdict
	WithProvenance bool // put it into the verdict if there is one
	Workers        int
	Sink           report.Sink
	ToolVersion    string
}

// Verify decides whether an archive may be used. The verdict is never nil and lists the checks. With a nil error, and
// only then, the reader gives access to the archive: exactly the signed bytes.
//
// The order is fixed: form and signature of the bundles, policy, agreement, versions, content, identity, structure.
// Nothing is read from the archive for a bundle with a statement before its signer is known to be allowed. The order of
// the bundles does not matter.
func Verify(ctx context.Context, r io.ReaderAt, size int64, bundles []NamedBundle, o Options) (*Verdict, *chunk.Reader, error) {
	if o.Sink == nil {
		o.Sink = report.Discard
	}
	v := &verification{Options: o, r: r, size: size, verdict: o.verdict(size)}
	reader, err := v.run(ctx, bundles)
	v.verdict.conclude(err)
	if err != nil {
		return v.verdict, nil, err
	}
	return v.verdict, reader, nil
}

// Judge decides by the bundles alone whether an archive may be used, before it is transferred: it makes all checks that
// [Verify] makes before it reads the archive. The list has the digests that the archive must have. The verdict is never
// nil and never reports that the archive was verified.
func Judge(ctx context.Context, bundles []NamedBundle, o Options) (*Verdict, *chunk.List, error) {
	o.Device = true // nothing is known of the size, and nothing can be read
	v := &verification{Options: o, absent: true, verdict: o.verdict(0)}
	_, list, _, err := v.signed(ctx, bundles)
	v.verdict.conclude(err)
	v.verdict.Verified = false
	return v.verdict, list, err
}

// Recheck decides by the signatures of an archive that counted when it was verified whether they still do, for a trust store that was changed
// since. Nothing is read: the identity is that of the archive.
func Recheck(bundles []NamedBundle, inside Identity, o Options) error {
	o.Identify = Identify // has been called
	v := &verification{Options: o, identity: &inside, verdict: o.verdict(0)}
	candidates := v.parse(bundles)
	for _, c := range candidates {
		if c.who, c.err = v.Store.Authenticate(c.bundle, c.bundle.Claimed()); c.err == nil {
			c.err = v.judge(c)
		}
	}
	_, err := v.count(candidates)
	return err
}

// verdict returns one without any checks.
func (o *Options) verdict(size int64) *Verdict {
	return &Verdict{
		Archive: ArchiveInfo{Path: o.Path, Size: size}, ToolVersion: o.ToolVersion,
		Policy: PolicyInfo{File: o.Store.Source().File, SHA256: o.Store.Source().SHA256},
	}
}

type verification struct {
	Options
	absent  bool // there is no archive yet
	r       io.ReaderAt
	size    int64
	verdict *Verdict

	attested []attested            // bundles with a provenance
	sums     *chunk.Sums           // of the whole file, when something has asked for them
	lists    map[int64]*chunk.List // of the whole file, by further chunk sizes
	identity *Identity             // read through the sums
}

// candidate is a well-formed bundle on its way to being accepted.
type candidate struct {
	place    int // in the verdict's signatures
	bundle   *bundle.Bundle
	who      *trust.Identified
	solution bundle.Solution // which it is about
	rule     *trust.Rule
	err      error
}

// signed collects the statements of the signatures that count. Nothing of a statement is compared with the archive yet.
func (v *verification) signed(ctx context.Context, bundles []NamedBundle) (accepted []*candidate, list *chunk.List, digest [sha256.Size]byte, err error) {
	candidates := v.parse(bundles)
	if err = v.sumForPlain(ctx, candidates); err != nil {
		return nil, nil, digest, err
	}
	for _, c := range candidates {
		if c.who, c.err = v.authenticate(c.bundle); c.err == nil {
			c.err = v.judge(c)
		}
	}
	if err = v.settle(ctx, good(candidates)); err != nil {
		return nil, nil, digest, err
	}
	if accepted, err = v.count(candidates); err != nil {
		return nil, nil, digest, err
	}
	list, digest = v.content(accepted)
	v.verdict.Archive.Size, v.verdict.Archive.SHA256 = list.Size, hex.EncodeToString(digest[:])
	if err = v.checkHistory(accepted[0].solution, digest[:]); err != nil { // all agree
		return nil, nil, digest, err
	}
	return accepted, list, digest, v.checkProvenance(accepted[0].rule, digest[:])
}

func (v *verification) run(ctx context.Context, bundles []NamedBundle) (*chunk.Reader, error) {
	accepted, list, digest, err := v.signed(ctx, bundles)
	if err != nil {
		return nil, err
	}
	if err = v.checkContent(ctx, list, digest); err != nil {
		return nil, err
	}
	reader, err := chunk.NewReader(v.r, list)
	if err != nil {
		return nil, err
	}
	if err = v.checkIdentity(reader, accepted); err != nil {
		return nil, err
	}
	return reader, v.examine(reader)
}

// good returns the candidates that have not been rejected.
func good(candidates []*candidate) []*candidate {
	return slices.DeleteFunc(slices.Clone(candidates), func(c *candidate) bool { return c.err != nil })
}

func (v *verification) examine(r *chunk.Reader) error {
	if v.Examine == nil {
		v.verdict.check("structure", Skipped, "")
		return nil
	}
	if err := v.Examine(r); err != nil {
		v.verdict.check("structure", Failed, err.Error())
		return err
	}
	v.verdict.check("structure", Passed, "")
	return nil
}

// parse notes every bundle in the verdict and returns the well-formed ones.
func (v *verification) parse(bundles []NamedBundle) []*candidate {
	var candidates []*candidate
	for i, named := range bundles {
		entry := Signature{File: named.File}
		b, err := (*bundle.Bundle)(nil), named.Problem
		if err == nil {
			b, err = bundle.Parse(named.Data)
		}
		if report.CodeOf(err) == report.NotAllowed && v.isProvenance(i, named.Data) {
			entry.Status, entry.Type = Unchecked, typeProvenance
		} else if err != nil {
			entry.Status = Malformed
			entry.explain(err)
			if report.CodeOf(err) == report.NotAllowed {
				entry.Status = Rejected
			}
		} else {
			entry.Status, entry.Type = Unchecked, "statement"
			if b.Statement() == nil {
				entry.Type = "plain"
			}
			candidates = append(candidates, &candidate{place: i, bundle: b})
		}
		v.verdict.Signatures = append(v.verdict.Signatures, entry)
	}
	return candidates
}

func (s *Signature) explain(err error) {
	s.Code, s.Reason, s.Hint = report.CodeOf(err), err.Error(), strings.Join(report.Hints(err), "; ")
}

// sumForPlain reads the whole file when a signature covers nothing but the digest of the whole.
func (v *verification) sumForPlain(ctx context.Context, candidates []*candidate) error {
	var hashes []crypto.Hash
	for _, c := range candidates {
		if c.bundle.Statement() == nil {
			h, _ := c.bundle.Digest()
			hashes = append(hashes, h)
		}
	}
	if hashes == nil || v.Device {
		return nil
	}
	return v.sum(ctx, v.size, hashes...)
}

func (v *verification) sum(ctx context.Context, size int64, hashes ...crypto.Hash) (err error) {
	v.sums, err = chunk.Sum(ctx, v.r, size, v.sink(), hashes...)
	return err
}

func (v *verification) sink() report.Sink { return report.Named(v.Sink, v.Path) }

func (v *verification) authenticate(b *bundle.Bundle) (*trust.Identified, error) {
	st := b.Statement()
	if st == nil {
		if v.absent {
			return nil, report.Errorf(report.NotAllowed, "only a signature with a statement has the digests of an archive that is not here yet").
				WithHint("ask for one that was made with solutionctl sign, or import the archive on the host: solutionctl deploy import FILE.iso")
		}
		if v.sums == nil {
			return nil, report.Errorf(report.NotAllowed, "a device can be verified only by a signature with a statement, which has the size").
				WithHint("copy the archive to a file, or sign it with solutionctl sign")
		}
		h, _ := b.Digest()
		return v.Store.Authenticate(b, v.sums.Digest(h))
	}
	// The digest that the statement names: content is compared with the chunks of the same statement afterwards, which
	// cover every byte and the size, and so say at least as much.
	digest := st.SHA256()
	who, err := v.Store.Authenticate(b, digest[:])
	if err != nil {
		return nil, err
	}
	signed := st.Predicate.Size
	tooSmall := v.size < signed && (!v.Device || v.size > 0) // the size of a device may be unknown, which is 0
	tooLarge := v.size > signed && !v.Device
	if tooSmall || tooLarge {
		return who, report.Errorf(report.Corrupt, "the archive has %d bytes, %d were signed", v.size, signed).
			WithHint("copy it again: it is incomplete, it was added to, or the signature belongs to another archive")
	}
	return who, nil
}

// judge applies the policy for the Solution that the signature is about: the one that a trusted signer has signed, or
// else the one in the manifest of an archive whose content a trusted signer has signed.
func (v *verification) judge(c *candidate) error {
	if st := c.bundle.Statement(); st != nil {
		c.solution = st.Predicate.Solution
	} else {
		inside, err := v.inside()
		if err != nil {
			return err
		}
		c.solution = inside.Solution
	}
	rule, place, err := v.Store.Rule(c.solution.Name)
	if err == nil && place >= 0 && c.solution.Name == "" { // a rule for every name is still not one for no name
		err = report.Errorf(report.NotAllowed, "the Solution is unknown, so no rule of the policy applies")
	}
	if v.verdict.Solution == nil && c.solution.Name != "" {
		v.describe(c.solution, place)
	}
	if err != nil {
		return err
	}
	c.rule = rule
	return v.Store.Judge(rule, c.who, c.bundle, v.Now)
}

// describe notes in the verdict which Solution this is, and by which rule it is judged.
func (v *verification) describe(solution bundle.Solution, place int) {
	v.verdict.Solution, v.verdict.Policy.Rule = &solution, nil
	if place >= 0 {
		v.verdict.Policy.Rule = &place
	}
}

// inside returns the identity that the archive itself has, read through digests that were computed from it.
func (v *verification) inside() (Identity, error) {
	if v.Identify == nil {
		return Identity{}, nil
	}
	if v.identity == nil {
		reader, err := chunk.NewReader(v.r, &v.sums.Chunks)
		if err != nil {
			return Identity{}, err
		}
		identity, err := v.Identify(reader, reader.Size())
		if err != nil {
			return Identity{}, err
		}
		v.identity = &identity
	}
	return *v.identity, nil
}

// settle keeps the signers whose statements are about this archive. As long as all statements agree, and one of the
// signers is honest, their chunks are as good as the digest of the whole. If they disagree, one of them is wrong or
// lies, and no part of one statement may complete another: the archive is read, and each statement is compared with it.
func (v *verification) settle(ctx context.Context, allowed []*candidate) error {
	first, disagree := (*bundle.Statement)(nil), false
	for _, c := range allowed {
		if st := c.bundle.Statement(); first == nil {
			first = st
		} else if st != nil {
			disagree = disagree || !first.Agrees(st)
		}
	}
	if disagree && v.sums == nil && !v.Device {
		if err := v.sum(ctx, v.size); err != nil {
			return err
		}
	}
	if v.sums == nil && !disagree {
		return nil
	}
	for _, c := range allowed {
		if st := c.bundle.Statement(); st != nil { // others have signed the digest of this very file
			c.err = v.hold(ctx, st)
		}
		if c.err != nil && !judgement(c.err) {
			return c.err
		}
		if c.err == nil && v.Identify == nil && c.solution != allowed[0].solution {
			return report.Errorf(report.Mismatch, "%s and %s have signed different Solutions", allowed[0].who.Names[0], c.who.Names[0])
		}
	}
	v.verdict.Tampered = slices.CompactFunc(v.verdict.Tampered, func(a, b Tampered) bool { return a == b })
	return nil
}

// hold compares every claim of a statement with the archive.
func (v *verification) hold(ctx context.Context, st *bundle.Statement) error {
	if v.absent {
		return report.Errorf(report.Mismatch, "the signers have signed different things").WithHint("send the signatures of one release")
	}
	if v.sums == nil {
		return report.Errorf(report.Mismatch, "the signers of this device have signed different things").
			WithHint("put the signatures of one release beside it, or copy the archive to a file")
	}
	list := &st.Predicate.Chunks
	bad, err := v.differences(ctx, list)
	if err != nil {
		return err
	}
	if len(bad) > 0 || v.sums.SHA256 != st.SHA256() {
		return v.altered(bad, list.Size)
	}
	if v.Identify == nil {
		return nil
	}
	inside, err := v.inside()
	if err != nil {
		return err
	}
	return inside.compare(st)
}

func (v *verification) checkHistory(solution bundle.Solution, digest []byte) error {
	if err := v.Store.CheckArchive(digest, solution); err != nil {
		v.verdict.check("revocation", Failed, err.Error())
		return err
	}
	v.verdict.check("revocation", Passed, "")
	rule, _, err := v.Store.Rule(solution.Name)
	if err != nil {
		return err
	}
	err = v.State.Check(solution, hex.EncodeToString(digest), v.Store.RevokedKeys())
	if report.CodeOf(err) == report.Downgrade && (v.AllowDowngrade || rule.Downgrade == "allow") {
		v.verdict.check("version", Skipped, err.Error())
		return nil
	}
	if err != nil {
		v.verdict.check("version", Failed, err.Error())
		return err
	}
	v.verdict.check("version", Passed, "")
	return nil
}
