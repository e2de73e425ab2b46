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

// signerOf distinguishes the signers of the bundles of an archive.
type signerOf struct{ name, keyID string }

// bundlesToKeep returns the bundles of the archive with this digest, those of signers that this host does not trust too:
// another host may trust them. The verdict is nil where no signature was verified. Anyone can make further copies of a signature, so that one of
// each signer counts as accepted.
func bundlesToKeep(bundles []sign.NamedBundle, digest string, verdict *sign.Verdict) []store.Bundle {
	var kept []store.Bundle
	signers := map[signerOf]bool{}
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
			signer := signerOf{signature.KeyName, signature.KeyID}
			accepted := signature.Status == sign.Accepted && !signers[signer]
			signers[signer] = signers[signer] || accepted
			kept = append(kept, store.Bundle{Data: b.Data, Accepted: accepted})
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
	signers := map[signerOf]bool{{}: true} // the empty one does not count
	for _, b := range served {
		if kept, signer := d.judgeBundle(b.Data, e); kept {
			given = append(given, store.Bundle{Data: b.Data, Accepted: !signers[signer]})
			signers[signer] = true
		}
	}
	added, err := h.Store.AddedBundles(e, given)
	return slices.DeleteFunc(served, func(b layout.Bundle) bool {
		return !slices.ContainsFunc(added, func(data []byte) bool { return bytes.Equal(data, b.Data) })
	}), err
}

// judgeBundle reports whether a bundle is kept with an archive of the store, and its signer if it counts. One over a digest of another algorithm is not:
// it may be of any file.
func (d *admission) judgeBundle(data []byte, e store.Entry) (kept bool, signer signerOf) {
	b, err := bundle.Parse(data)
	signature := err == nil
	if !signature {
		b, err = bundle.ParseProvenance(data)
	}
	digest, failure := hex.DecodeString(e.SHA256)
	if errors.Join(err, failure) != nil || !claims(data, e.SHA256) {
		return false, signer
	}
	if algorithm, _ := b.Digest(); signature && b.Statement() == nil && algorithm != crypto.SHA256 {
		return false, signer
	}
	who, err := d.trusted.Authenticate(b, digest)
	if code := report.CodeOf(err); code == report.Corrupt || code == report.Mismatch {
		return false, signer
	}
	rule, _, failure := d.trusted.Rule(e.Name)
	if signature && errors.Join(err, failure) == nil && d.trusted.Judge(rule, who, b, d.Now()) == nil {
		signer = signerOf{who.Names[0], who.KeyID}
	}
	return true, signer
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
