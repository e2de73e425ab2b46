package sign

import (
	"context"
	"crypto"
	"encoding/hex"
	"fmt"
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
	// Identify reads the identity of the archive from its own manifest. It is given a reader of verified content, so
	// nothing of an archive is interpreted before it is known to be what was signed.
	Identify func(r io.ReaderAt, size int64) (bundle.Solution, error)
	// Examine is the last check, of the archive's structure. It is given a reader of verified content.
	Examine func(r io.ReaderAt, size int64) error
	// Locate names the file of the archive that lies at a range of bytes, for the report on altered ones.
	Locate func(chunk.Range) string

	// OnRead leaves the content to the returned reader instead of reading it all now. A signature without a statement
	// is always checked now.
	OnRead bool
	// Full computes the digest of the whole file too, which takes longer and is implied by the chunks.
	Full           bool
	AllowDowngrade bool
	Workers        int
	Sink           report.Sink
	ToolVersion    string
}

// Verify decides whether an archive may be used. The verdict is never nil and tells what was checked. With a nil
// error, and only then, the reader gives access to the archive: exactly the signed bytes.
//
// The order is fixed: form and signature of the bundles, policy, versions, content, identity, structure. Nothing is read from
// the archive for a bundle with a statement before its signer is known to be allowed.
func Verify(ctx context.Context, r io.ReaderAt, size int64, bundles []NamedBundle, o Options) (*Verdict, *chunk.Reader, error) {
	if o.Sink == nil {
		o.Sink = report.Discard
	}
	v := &verification{Options: o, r: r, size: size, verdict: &Verdict{
		Archive: ArchiveInfo{Path: o.Path, Size: size}, ToolVersion: o.ToolVersion,
		Policy: PolicyInfo{File: o.Store.Source().File, SHA256: o.Store.Source().SHA256},
	}}
	reader, err := v.run(ctx, bundles)
	v.verdict.conclude(err)
	if err != nil {
		return v.verdict, nil, err
	}
	return v.verdict, reader, nil
}

type verification struct {
	Options
	r       io.ReaderAt
	size    int64
	verdict *Verdict
	sums    *chunk.Sums // of the whole file, when a plain signature or Full asks for them
}

// candidate is a well-formed bundle on its way to being accepted.
type candidate struct {
	place  int // in the verdict's signatures
	bundle *bundle.Bundle
	who    *trust.Identified
	err    error
}

func (v *verification) run(ctx context.Context, bundles []NamedBundle) (*chunk.Reader, error) {
	candidates := v.parse(bundles)
	if err := v.sumIfNeeded(ctx, candidates); err != nil {
		return nil, err
	}
	for _, c := range candidates {
		c.who, c.err = v.authenticate(c.bundle)
	}
	solution, err := v.name(candidates)
	if err != nil {
		return nil, err
	}
	accepted, err := v.judge(candidates, solution)
	if err != nil {
		return nil, err
	}
	list, digest := v.content(accepted)
	v.verdict.Archive.Size, v.verdict.Archive.SHA256 = list.Size, hex.EncodeToString(digest)
	if err = v.checkHistory(solution, digest); err != nil {
		return nil, err
	}
	if err = v.checkContent(ctx, list); err != nil {
		return nil, err
	}
	reader, err := chunk.NewReader(v.r, list)
	if err != nil {
		return nil, err
	}
	if err = v.checkIdentity(reader, solution); err != nil {
		return nil, err
	}
	return reader, v.examine(reader)
}

func (v *verification) examine(r *chunk.Reader) error {
	if v.Examine == nil {
		v.verdict.check("structure", Skipped, "")
		return nil
	}
	if err := v.Examine(r, r.Size()); err != nil {
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
		b, err := bundle.Parse(named.Data)
		if err != nil {
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

// sumIfNeeded reads the whole file when a signature covers nothing but the digest of the whole.
func (v *verification) sumIfNeeded(ctx context.Context, candidates []*candidate) error {
	needed, extra := v.Full, []crypto.Hash(nil)
	for _, c := range candidates {
		if c.bundle.Statement() == nil {
			h, _ := c.bundle.Digest()
			needed, extra = true, append(extra, h)
		}
	}
	if !needed || len(candidates) == 0 || v.Device {
		return nil
	}
	var err error
	v.sums, err = chunk.Sum(ctx, v.r, v.size, v.sink(), extra...)
	return err
}

func (v *verification) sink() report.Sink { return named{v.Sink, v.Path} }

// named puts the name of the archive on events that do not know it.
type named struct {
	report.Sink
	name string
}

func (n named) Emit(e report.Event) {
	e.Name = n.name
	n.Sink.Emit(e)
}

func (v *verification) authenticate(b *bundle.Bundle) (*trust.Identified, error) {
	st := b.Statement()
	if st == nil {
		if v.sums == nil {
			return nil, report.Errorf(report.NotAllowed, "a device can be verified by a signature with a statement only, which tells the size").
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
	if v.sums != nil && v.sums.SHA256 != digest {
		return who, v.altered(st.Predicate.Chunks.Compare(&v.sums.Chunks), st.Predicate.Size)
	}
	return who, nil
}

// name finds out which Solution this is: from what a trusted signer has signed, or else from the manifest of an
// archive whose content a trusted signer has signed.
func (v *verification) name(candidates []*candidate) (bundle.Solution, error) {
	plain := false
	for _, c := range candidates {
		if c.err != nil {
			continue
		}
		if st := c.bundle.Statement(); st != nil {
			v.verdict.Solution = &st.Predicate.Solution
			return st.Predicate.Solution, nil
		}
		plain = true
	}
	if !plain || v.Identify == nil {
		return bundle.Solution{}, nil
	}
	reader, err := chunk.NewReader(v.r, &v.sums.Chunks)
	if err != nil {
		return bundle.Solution{}, err
	}
	solution, err := v.Identify(reader, reader.Size())
	if err == nil {
		v.verdict.Solution = &solution
	}
	return solution, err
}

// judge applies the policy and the threshold.
func (v *verification) judge(candidates []*candidate, solution bundle.Solution) ([]*candidate, error) {
	rule, place, err := v.Store.Rule(solution.Name)
	if err == nil && place >= 0 {
		v.verdict.Policy.Rule = &place
		if solution.Name == "" { // a rule for every name is still not one for no name
			err = report.Errorf(report.NotAllowed, "nothing tells which Solution this is, so no rule of the policy applies")
		}
	}
	var accepted []*candidate
	signers := map[string]bool{}
	for _, c := range candidates {
		if c.err == nil {
			c.err = err
		}
		if c.err == nil {
			c.err = v.Store.Judge(rule, c.who, c.bundle, v.Now)
		}
		if c.err == nil && len(accepted) > 0 {
			c.err = agree(accepted, c)
		}
		c.note(&v.verdict.Signatures[c.place])
		if c.err == nil {
			accepted = append(accepted, c)
			signers[c.who.ID] = true
		}
	}
	if err := v.explain(candidates, rule, len(signers)); err != nil {
		v.verdict.check("signature", Failed, err.Error())
		return nil, err
	}
	v.verdict.check("signature", Passed, fmt.Sprintf("%d of %d required signers", len(signers), rule.Required()))
	return accepted, nil
}

// agree refuses signers of one archive who have signed different things.
func agree(accepted []*candidate, c *candidate) error {
	st := c.bundle.Statement()
	if st == nil {
		return nil // signed the digest of this very file
	}
	for _, other := range accepted {
		if first := other.bundle.Statement(); first != nil {
			if first.SHA256() != st.SHA256() || first.Predicate.Size != st.Predicate.Size || first.Predicate.Solution != st.Predicate.Solution {
				return report.Errorf(report.Mismatch, "%s and %s have signed different archives", other.who.Names[0], c.who.Names[0])
			}
		}
	}
	return nil
}

func (c *candidate) note(s *Signature) {
	s.Status = Accepted
	if c.err != nil {
		s.Status = Rejected
		s.explain(c.err)
	}
	if c.who != nil {
		s.KeyName, s.KeyID = c.who.Names[0], c.who.ID
		s.Fingerprint, s.Algorithm = c.who.Fingerprint, c.who.Algorithm
		if at := c.who.SignedAt; !at.IsZero() {
			s.SignedAt = &at
		}
	}
}

// telling orders reasons for rejection: the further a signature got, the more its failure tells.
var telling = []report.Code{
	report.Revoked, report.Expired, report.NotAllowed, report.Corrupt, report.Mismatch, report.WeakKey,
	report.Untrusted, report.BadBundle,
}

// explain returns nil when there are enough signers, and otherwise the most telling reason.
func (v *verification) explain(candidates []*candidate, rule *trust.Rule, signers int) error {
	if len(v.verdict.Signatures) == 0 {
		return report.Errorf(report.Unsigned, "there is no signature beside the archive").
			WithHint("put the .sigstore.json file of the release beside it, or name it with --bundle")
	}
	if rule != nil && signers >= rule.Required() {
		return nil
	}
	if signers > 0 {
		return report.Errorf(report.Threshold, "%d of %d required signers have signed", signers, rule.Required()).
			WithHint("put the signatures of the other signers beside the archive")
	}
	for _, c := range candidates {
		if c.err != nil && !slices.Contains(telling, report.CodeOf(c.err)) {
			return c.err // not a judgement but a failure
		}
	}
	for _, code := range telling {
		for i := range v.verdict.Signatures {
			if s := &v.verdict.Signatures[i]; s.Code == code {
				return report.Errorf(code, "%s: %s", s.File, s.Reason).WithHint("%s", s.Hint)
			}
		}
	}
	return report.Errorf(report.Untrusted, "no signature was accepted")
}

// content returns the list to check the archive with, and the digest of the whole.
func (v *verification) content(accepted []*candidate) (*chunk.List, []byte) {
	for _, c := range accepted {
		if st := c.bundle.Statement(); st != nil {
			digest := st.SHA256()
			return &st.Predicate.Chunks, digest[:]
		}
	}
	return &v.sums.Chunks, v.sums.SHA256[:]
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

func (v *verification) checkContent(ctx context.Context, list *chunk.List) error {
	if v.OnRead && v.sums == nil {
		v.verdict.check("content", Deferred, "checked at each read")
		return nil
	}
	bad, err := v.differences(ctx, list)
	if err == nil && v.Unchanged != nil {
		err = v.Unchanged()
	}
	if err != nil {
		return err
	}
	if len(bad) > 0 {
		err := v.altered(bad, list.Size)
		v.verdict.check("content", Failed, err.Error())
		return err
	}
	v.verdict.check("content", Passed, fmt.Sprintf("%d bytes", list.Size))
	return nil
}

// altered notes which parts of the archive are not what was signed.
func (v *verification) altered(bad []chunk.Range, size int64) error {
	v.verdict.Tampered = nil
	for _, place := range bad {
		entry := Tampered{From: place.From, To: place.To}
		if v.Locate != nil {
			entry.File = v.Locate(place)
		}
		v.verdict.Tampered = append(v.verdict.Tampered, entry)
	}
	return describe(bad, size)
}

// differences compares with the digests that were computed already, or reads the file with all workers.
func (v *verification) differences(ctx context.Context, list *chunk.List) ([]chunk.Range, error) {
	if v.sums != nil && v.sums.Chunks.ChunkSize == list.ChunkSize {
		return list.Compare(&v.sums.Chunks), nil
	}
	return chunk.Verify(ctx, v.r, list, v.Workers, v.sink())
}

func describe(bad []chunk.Range, size int64) error {
	if len(bad) == 0 {
		return report.Errorf(report.Mismatch, "the statement contradicts itself: its chunks are those of the archive, its digest is not").
			WithHint("sign the archive again")
	}
	if len(bad) == 1 && bad[0].Len() == size && size > chunk.DefaultSize {
		return report.Errorf(report.Mismatch, "no part of the archive is what was signed").
			WithHint("the signature belongs to another archive")
	}
	more := ""
	if len(bad) > 1 {
		more = fmt.Sprintf(" and %d further ranges", len(bad)-1)
	}
	return report.Errorf(report.Corrupt, "bytes %d to %d%s differ from what was signed", bad[0].From, bad[0].To-1, more).
		WithHint("copy the archive again from its source, and verify that copy")
}

func (v *verification) checkIdentity(r *chunk.Reader, signed bundle.Solution) error {
	if v.Identify == nil {
		v.verdict.check("identity", Skipped, "")
		return nil
	}
	inside, err := v.Identify(r, r.Size())
	if err == nil && inside != signed {
		err = report.Errorf(report.Mismatch, "%s was signed, but the manifest in the archive says %s", signed, inside).
			WithHint("the vendor has to sign the archive with the name and version of its manifest")
	}
	if err != nil {
		v.verdict.check("identity", Failed, err.Error())
		return err
	}
	v.verdict.check("identity", Passed, signed.String())
	return nil
}
