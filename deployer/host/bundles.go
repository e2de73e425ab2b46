package host

import (
	"bytes"
	"crypto"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
)

// bundlesToKeep returns the bundles of the archive with this digest, those of signers that this host does not trust too:
// another host may trust them. The verdict is nil where no signature was verified.
func bundlesToKeep(bundles []sign.NamedBundle, digest string, verdict *sign.Verdict) []store.Bundle {
	var kept []store.Bundle
	for i, b := range bundles {
		if b.Problem != nil || !claims(b.Data, digest) {
			continue
		}
		if verdict == nil {
			kept = append(kept, store.Bundle{Data: b.Data})
			continue
		}
		signature := verdict.Signatures[i] // in the order of the bundles
		if signature.Code != report.Corrupt && signature.Code != report.Mismatch {
			kept = append(kept, store.Bundle{Data: b.Data, Accepted: signature.Status == sign.Accepted})
		}
	}
	return kept
}

// addedBundles returns those of the bundles that another host serves which an import would add to the ones of this host. It reads no archive, so
// that a host which serves bad ones costs nothing.
func (h *Host) addedBundles(o ImportOptions, served []layout.Bundle, e store.Entry) ([]layout.Bundle, error) {
	d, err := h.newAdmission(o)
	if err != nil {
		return nil, err
	}
	var given []store.Bundle
	for _, b := range served {
		if kept, accepted := d.judgeBundle(b.Data, e); kept {
			given = append(given, store.Bundle{Data: b.Data, Accepted: accepted})
		}
	}
	added, err := h.Store.AddedBundles(e, given)
	return slices.DeleteFunc(served, func(b layout.Bundle) bool {
		return !slices.ContainsFunc(added, func(data []byte) bool { return bytes.Equal(data, b.Data) })
	}), err
}

// judgeBundle reports whether a bundle is kept with an archive of the store, and whether it counts. One over a digest of another algorithm is not:
// it may be of any file.
func (d *admission) judgeBundle(data []byte, e store.Entry) (kept, accepted bool) {
	b, err := bundle.Parse(data)
	signature := err == nil
	if !signature {
		b, err = bundle.ParseProvenance(data)
	}
	digest, failure := hex.DecodeString(e.SHA256)
	if errors.Join(err, failure) != nil || !claims(data, e.SHA256) {
		return false, false
	}
	if algorithm, _ := b.Digest(); signature && b.Statement() == nil && algorithm != crypto.SHA256 {
		return false, false
	}
	who, err := d.trusted.Authenticate(b, digest)
	if code := report.CodeOf(err); code == report.Corrupt || code == report.Mismatch {
		return false, false
	}
	rule, _, failure := d.trusted.Rule(e.Name)
	return true, signature && errors.Join(err, failure) == nil && d.trusted.Judge(rule, who, b, d.Now()) == nil
}

// claims reports whether a well-formed bundle is a signature or the provenance of the archive with this digest. One over a digest of another algorithm
// may be.
func claims(data []byte, digest string) bool {
	if made, err := bundle.ParseProvenance(data); err == nil {
		return bundle.IsAbout(made.Provenance(), digest)
	}
	parsed, err := bundle.Parse(data)
	if err != nil {
		return false
	}
	if statement := parsed.Statement(); statement != nil {
		sum := statement.SHA256()
		return hex.EncodeToString(sum[:]) == digest
	}
	algorithm, sum := parsed.Digest()
	return algorithm != crypto.SHA256 || hex.EncodeToString(sum) == digest
}
