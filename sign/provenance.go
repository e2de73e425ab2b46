package sign

import (
	"cmp"
	"fmt"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// typeProvenance is the type of a bundle that has the provenance of an archive.
const typeProvenance = "provenance"

// ProvenanceSigner stands in the name of the bundle with the provenance, see [BundleName].
const ProvenanceSigner = "provenance"

// ProvenanceName is the path of the statement of an archive's provenance before it is signed.
func ProvenanceName(archive string) string { return archive + ".provenance.json" }

// attested is a well-formed bundle with a provenance, and its place in the verdict's signatures.
type attested struct {
	place  int
	bundle *bundle.Bundle
}

// isProvenance keeps a bundle that has a provenance, and not a signature of the archive.
func (v *verification) isProvenance(place int, data []byte) bool {
	b, err := bundle.ParseProvenance(data)
	if err == nil {
		v.attested = append(v.attested, attested{place, b})
	}
	return err == nil
}

// checkProvenance judges every provenance by the rule of the Solution, as a signature is: a signer that the rule allows must have signed it, about
// the archive with this digest. One is enough, whatever the threshold is: it releases nothing.
func (v *verification) checkProvenance(rule *trust.Rule, digest []byte) error {
	var first error
	for _, a := range v.attested {
		c := candidate{place: a.place, bundle: a.bundle}
		if c.who, c.err = v.Store.Authenticate(a.bundle, digest); c.err == nil {
			c.err = v.Store.Judge(rule, c.who, a.bundle, v.Now)
		}
		entry := &v.verdict.Signatures[a.place]
		c.note(entry)
		if c.err != nil {
			first = cmp.Or(first, fmt.Errorf("provenance %s: %w", entry.File, c.err))
			continue
		}
		entry.Status = Attested
		if (v.Provenance || v.WithProvenance) && v.verdict.Provenance == nil {
			v.verdict.Provenance = a.bundle.Provenance()
		}
	}
	if !v.Provenance {
		return nil
	}
	if v.verdict.Provenance != nil {
		v.verdict.check("provenance", Passed, "")
		return nil
	}
	if first == nil {
		first = report.Errorf(report.Unsigned, "the archive has no provenance").
			WithHint("ask the vendor for it: solutionctl build --provenance --sign-key KEY writes it")
	}
	v.verdict.check("provenance", Failed, first.Error())
	return first
}
