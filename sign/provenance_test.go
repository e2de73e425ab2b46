package sign_test

import (
	"crypto/elliptic"
	"encoding/json"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/key"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// provenance is a statement of how archives with these digests were made.
func provenance(digests ...string) *schema.ProvenanceStatement {
	s := &schema.ProvenanceStatement{Type: schema.StatementType, PredicateType: schema.ProvenanceType}
	for _, digest := range digests {
		s.Subject = append(s.Subject, schema.ResourceDescriptor{Name: "x.iso", Digest: map[string]string{"sha256": digest}})
	}
	s.Predicate.BuildDefinition = schema.ProvenanceDefinition{
		BuildType: schema.ArchiveBuildType, ExternalParameters: map[string]any{"version": "1.2.0"},
		ResolvedDependencies: []schema.ResourceDescriptor{{Name: "image ui:1.2.0", URI: "oci://ghcr.io/acme/ui:1.2.0", Digest: map[string]string{"sha256": digests[0]}}},
	}
	s.Predicate.RunDetails.Builder.ID = schema.ArchiveBuilderID
	return s
}

// attest adds a provenance, signed.
func (w *world) attest(signer *key.Signer, s *schema.ProvenanceStatement) {
	w.t.Helper()
	payload, err := bundle.MarshalProvenance(s)
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := bundle.Attest(w.t.Context(), signer, payload)
	if err != nil {
		w.t.Fatal(err)
	}
	w.bundles = append(w.bundles, sign.NamedBundle{File: "x.iso.provenance.sigstore.json", Data: data})
}

// TestProvenance requires a provenance: it has to be signed by a signer of the policy, about this archive.
func TestProvenance(t *testing.T) {
	wanted := func(change func(w *world)) func(w *world) {
		return func(w *world) {
			w.options.Provenance = true
			change(w)
		}
	}
	genuine := func(w *world) *schema.ProvenanceStatement { return provenance(hexSum(w.data)) }
	runCases(t, []verifyCase{
		{"signed by the signer of the archive", wanted(func(w *world) { w.attest(w.acme, genuine(w)) }), "", 0},
		{"signed by another signer of the rule", wanted(func(w *world) {
			w.policy = "rules: [{solutions: [acme-db], signers: [{key: acme}, {key: second}]}]\n"
			w.attest(w.second, genuine(w))
		}), "", 0},
		{"of several archives", wanted(func(w *world) { w.attest(w.acme, provenance(hexSum(nil), hexSum(w.data))) }), "", 0},
		{"a good one beside a bad one", wanted(func(w *world) {
			w.attest(w.mallory, genuine(w))
			w.attest(w.acme, genuine(w))
		}), "", 0},
		{"a policy that accepts no plain signatures", wanted(func(w *world) {
			w.policy = "rules: [{solutions: [acme-db], signers: [{key: acme}], acceptPlain: false}]\n"
			w.attest(w.acme, genuine(w))
		}), "", 0},
		{"none", wanted(func(*world) {}), report.Unsigned, 4},
		{"about another archive", wanted(func(w *world) { w.attest(w.acme, provenance(hexSum(nil))) }), report.Mismatch, 5},
		{"signed by a key that is not trusted", wanted(func(w *world) { w.attest(w.mallory, genuine(w)) }), report.Untrusted, 4},
		{"signed by a key that the rule does not name", wanted(func(w *world) {
			w.policy = "rules: [{solutions: [acme-db], signers: [{key: acme}]}]\n"
			w.attest(w.second, genuine(w))
		}), report.NotAllowed, 4},
		{"signed by a revoked key", wanted(func(w *world) {
			w.policy = "rules: [{solutions: [acme-db], signers: [{key: acme}, {key: second}]}]\n"
			w.revoked = &trust.Revocations{Keys: []string{w.second.Public().ID()}}
			w.attest(w.second, genuine(w))
		}), report.Revoked, 6},
		{"signed by an expired key", wanted(func(w *world) {
			w.policy = "rules: [{solutions: [acme-db], signers: [{key: acme}, {key: second, notAfter: 2027-02-28}]}]\n"
			w.attest(w.second, genuine(w))
		}), report.Expired, 6},
		{"of another kind of statement", wanted(func(w *world) {
			w.attest(w.acme, genuine(w))
			other := genuine(w)
			other.PredicateType = "https://spdx.dev/Document"
			payload, err := json.Marshal(other)
			if err == nil {
				w.bundles[1].Data, err = bundle.Attest(w.t.Context(), w.acme, payload)
			}
			if err != nil {
				w.t.Fatal(err)
			}
		}), report.Unsigned, 4},
		{"altered", wanted(func(w *world) {
			w.attest(w.acme, genuine(w))
			b := decode(w.t, w.bundles[1].Data)
			payload, err := bundle.MarshalProvenance(provenance(hexSum(w.data), hexSum(nil)))
			if err != nil {
				w.t.Fatal(err)
			}
			at(b, "dsseEnvelope")["payload"] = payload
			w.bundles[1].Data = encode(w.t, b)
		}), report.Corrupt, 5},
		{"not asked for, about another archive", func(w *world) { w.attest(w.acme, provenance(hexSum(nil))) }, "", 0},
		{"not asked for, of another key", func(w *world) { w.attest(w.mallory, genuine(w)) }, "", 0},
		{"in place of a signature", func(w *world) {
			w.bundles = nil
			w.attest(w.acme, genuine(w))
		}, report.Unsigned, 4},
		{"in place of the second signature", func(w *world) {
			w.policy = "rules: [{solutions: [acme-db], signers: [{key: acme}, {key: second}], threshold: 2}]\n"
			w.attest(w.second, genuine(w))
		}, report.Threshold, 4},
	})
}

// TestProvenanceInVerdict pins what a verdict shows of a provenance, and that it counts as no signature.
func TestProvenanceInVerdict(t *testing.T) {
	w := newWorld(t)
	w.options.Provenance = true
	w.attest(w.second, provenance(hexSum(w.data)))
	w.attest(newSigner(t, elliptic.P256()), provenance(hexSum(w.data)))
	verdict, _, err := w.verify()
	if err != nil {
		t.Fatal(err)
	}
	var states []sign.Status
	for _, s := range verdict.Signatures {
		states = append(states, s.Status)
	}
	if want := []sign.Status{sign.Accepted, sign.Attested, sign.Rejected}; len(states) != 3 || states[0] != want[0] || states[1] != want[1] || states[2] != want[2] {
		t.Errorf("signatures are %v, want %v", states, want)
	}
	if verdict.Signatures[1].Type != "provenance" || verdict.Signatures[1].KeyName != "second" {
		t.Errorf("%+v", verdict.Signatures[1])
	}
	if len(verdict.Signers()) != 1 {
		t.Errorf("signers are %v, want the one of the archive", verdict.Signers())
	}
	if verdict.Provenance == nil || verdict.Provenance.Predicate.BuildDefinition.ExternalParameters["version"] != "1.2.0" {
		t.Errorf("provenance %+v", verdict.Provenance)
	}
}
