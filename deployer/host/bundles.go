package host

import (
	"crypto"
	"encoding/hex"

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
