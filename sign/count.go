package sign

import (
	"fmt"
	"slices"

	"github.com/solutionctl/solutionctl/schema/report"
)

// count notes the outcome of each signature, and returns those that count if there are enough.
func (v *verification) count(candidates []*candidate) ([]*candidate, error) {
	for _, c := range candidates {
		c.note(&v.verdict.Signatures[c.place])
	}
	accepted := good(candidates)
	signers := countSigners(accepted)
	required := 1
	if len(accepted) > 0 {
		required = accepted[0].rule.Required()
		if _, place, err := v.Store.Rule(accepted[0].solution.Name); err == nil {
			v.describe(accepted[0].solution, place)
		}
	}
	if err := v.explain(candidates, required, signers); err != nil {
		v.verdict.check("signature", Failed, err.Error())
		return nil, err
	}
	v.verdict.Tampered = nil // from a signature that does not count
	v.verdict.check("signature", Passed, fmt.Sprintf("%d of %d required signers", signers, required))
	return accepted, nil
}

// countSigners counts the different signers: the most signatures of which no two share a name or a key. The holder of a key, and everyone who has
// the certificate of the key, can make a second signature out of the first one. A further signature never lowers the number unless its
// certificate joins several names that the policy lists.
func countSigners(accepted []*candidate) int {
	type signer struct{ names, keys []string }
	var signers []signer
	for _, c := range accepted {
		s := signer{slices.Clone(c.who.Names), []string{c.who.KeyID}}
		signers = slices.DeleteFunc(signers, func(other signer) bool {
			same := slices.ContainsFunc(other.names, func(name string) bool { return slices.Contains(s.names, name) })
			if same {
				s.names, s.keys = append(s.names, other.names...), append(s.keys, other.keys...)
			}
			return same
		})
		signers = append(signers, s)
	}
	holders := map[string]int{} // of each key, a signer who counts
	var assign func(i int, tried map[string]bool) bool
	assign = func(i int, tried map[string]bool) bool {
		for _, key := range signers[i].keys {
			if tried[key] {
				continue
			}
			tried[key] = true
			if other, taken := holders[key]; !taken || assign(other, tried) {
				holders[key] = i
				return true
			}
		}
		return false
	}
	for i := range signers {
		assign(i, map[string]bool{})
	}
	return len(holders)
}

func (c *candidate) note(s *Signature) {
	s.Status = Accepted
	if c.err != nil {
		s.Status = Rejected
		s.explain(c.err)
	}
	if c.who != nil {
		s.KeyName, s.KeyID = c.who.Names[0], c.who.KeyID
		s.Fingerprint, s.Algorithm = c.who.Fingerprint, c.who.Algorithm
		if at := c.who.SignedAt; !at.IsZero() {
			s.SignedAt = &at
		}
	}
}

// precedence orders the reasons for rejection: the more checks a signature has passed, the more informative is its failure.
var precedence = []report.Code{
	report.Revoked, report.Expired, report.NotAllowed, report.Corrupt, report.Mismatch, report.WeakKey,
	report.Untrusted, report.BadBundle,
}

// judgement reports whether an error is a verdict on a signature, and not a failure to reach one.
func judgement(err error) bool { return slices.Contains(precedence, report.CodeOf(err)) }

// explain returns nil when there are enough signers, and otherwise the most informative reason.
func (v *verification) explain(candidates []*candidate, required, signers int) error {
	if len(v.verdict.Signatures) == len(v.attested) {
		return report.Errorf(report.Unsigned, "there is no signature beside the archive").
			WithHint("put the .sigstore.json file of the release beside it, or name it with --bundle")
	}
	if signers >= required {
		return nil
	}
	for _, c := range candidates {
		if c.err != nil && !judgement(c.err) {
			return c.err
		}
	}
	reason := v.furthestRejected()
	if signers > 0 {
		err := report.Errorf(report.Threshold, "%d of %d required signers have signed", signers, required)
		if reason != nil {
			return err.WithHint("%s: %s", reason.File, reason.Reason)
		}
		return err.WithHint("put the signatures of the other signers beside the archive")
	}
	if reason == nil {
		return report.Errorf(report.Untrusted, "no signature was accepted")
	}
	return report.Errorf(reason.Code, "%s: %s", reason.File, reason.Reason).WithHint("%s", reason.Hint)
}

// furthestRejected is the rejected signature that got furthest.
func (v *verification) furthestRejected() *Signature {
	for _, code := range precedence {
		for i := range v.verdict.Signatures {
			if s := &v.verdict.Signatures[i]; s.Code == code {
				return s
			}
		}
	}
	return nil
}
