package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/strictjson"
)

// Bounds of a provenance; one of an archive of this program has a few hundred dependencies.
const (
	maxSubjects     = 1000
	maxDependencies = 100_000
)

// ParseProvenance reads a bundle that has the provenance of archives, which [Parse] refuses: it releases nothing. All its errors have the code
// report.BadBundle, except that a statement of a foreign type has report.NotAllowed. Fields that SLSA does not define are ignored, as in-toto wants.
func ParseProvenance(data []byte) (*Bundle, error) {
	b, err := parse(data)
	if err != nil {
		return nil, err
	}
	envelope := b.entity.GetDsseEnvelope()
	if envelope == nil {
		return nil, report.Errorf(report.NotAllowed, "the signature is one of a file, not of a provenance")
	}
	if err = checkEnvelope(envelope); err != nil {
		return nil, err
	}
	b.provenance, err = ParseProvenanceStatement(envelope.GetPayload())
	return b, err
}

// ParseProvenanceStatement reads the statement of a provenance, as it is signed.
func ParseProvenanceStatement(payload []byte) (*schema.ProvenanceStatement, error) {
	if len(payload) > MaxSize {
		return nil, report.Errorf(report.BadBundle, "the provenance is larger than %d bytes", MaxSize)
	}
	if err := strictjson.Check(payload); err != nil {
		return nil, report.Errorf(report.BadBundle, "provenance: %w", err)
	}
	var s schema.ProvenanceStatement
	var head struct {
		PredicateType string `json:"predicateType"`
	}
	if err := json.Unmarshal(payload, &head); err != nil {
		return nil, report.Errorf(report.BadBundle, "provenance: %w", err)
	}
	if head.PredicateType != schema.ProvenanceType {
		return nil, report.Errorf(report.NotAllowed, "the statement is of type %.200q, want %q", head.PredicateType, schema.ProvenanceType)
	}
	if err := json.Unmarshal(payload, &s); err != nil {
		return nil, report.Errorf(report.BadBundle, "provenance: %w", err)
	}
	if err := checkProvenance(&s); err != nil {
		return nil, report.Errorf(report.BadBundle, "provenance: %w", err)
	}
	return &s, nil
}

// MarshalProvenance returns the payload to sign: the same bytes for the same statement, which [ParseProvenanceStatement] reads.
func MarshalProvenance(s *schema.ProvenanceStatement) ([]byte, error) {
	payload, err := json.Marshal(s)
	if err == nil {
		_, err = ParseProvenanceStatement(payload)
	}
	return payload, err
}

func checkProvenance(s *schema.ProvenanceStatement) error {
	if s.Type != statementV1 && s.Type != statementV0 {
		return report.Errorf(report.BadBundle, "type %.200q, want %q", s.Type, statementV1)
	}
	if n := len(s.Subject); n == 0 || n > maxSubjects {
		return report.Errorf(report.BadBundle, "%d subjects, want 1 to %d", n, maxSubjects)
	}
	for _, subject := range s.Subject {
		if err := checkName(subject.Name); err != nil {
			return err
		}
		if sum, err := hex.DecodeString(subject.Digest["sha256"]); err != nil || len(sum) != sha256.Size {
			return report.Errorf(report.BadBundle, "subject %q has no SHA-256 digest", subject.Name)
		}
	}
	if n := len(s.Predicate.BuildDefinition.ResolvedDependencies); n > maxDependencies {
		return report.Errorf(report.BadBundle, "%d dependencies, want at most %d", n, maxDependencies)
	}
	if s.Predicate.BuildDefinition.BuildType == "" || s.Predicate.RunDetails.Builder.ID == "" {
		return report.Errorf(report.BadBundle, "it names no buildType, or no builder")
	}
	return nil
}

// Provenance returns the statement of a bundle that [ParseProvenance] has read; nil for other bundles.
func (b *Bundle) Provenance() *schema.ProvenanceStatement { return b.provenance }

// IsAbout reports whether a provenance is about the archive with a SHA-256 digest in hexadecimal.
func IsAbout(s *schema.ProvenanceStatement, digest string) bool {
	return slices.ContainsFunc(s.Subject, func(r schema.ResourceDescriptor) bool { return r.Digest["sha256"] == digest })
}
