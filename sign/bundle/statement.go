package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/Masterminds/semver/v3"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/chunk"
	"github.com/solutionctl/solutionctl/sign/strictjson"
)

// PredicateType identifies statements about archives. A change of their meaning needs a new one.
const PredicateType = "https://solutionctl.io/archive/v1"

// PayloadType is the type of every payload that is signed or accepted in an envelope.
const PayloadType = "application/vnd.in-toto+json"

const (
	statementV1 = "https://in-toto.io/Statement/v1"
	statementV0 = "https://in-toto.io/Statement/v0.1" // written by `cosign attest-blob --predicate`
)

// Statement is an in-toto statement about an archive. Its JSON form is the payload that is signed.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Predicate `json:"predicate"`
}

// Subject names the archive: its file name at the time of signing and the digest of the whole file.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// Predicate holds the identity of the archive and the digests of its pieces.
type Predicate struct {
	Solution       Solution   `json:"solution"`
	Size           int64      `json:"size"`
	CreatedAt      time.Time  `json:"createdAt"`
	Expires        *time.Time `json:"expires,omitempty"`
	ManifestDigest string     `json:"manifestDigest,omitempty"`
	Chunks         chunk.List `json:"chunks"`
}

// Solution is the identity of an archive, equal to the one in its manifest.
type Solution struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

func (s Solution) String() string { return s.Name + " " + s.Version }

// NewStatement returns the statement about the file called name with the given sums. Fields of the predicate that
// follow from the sums are set.
func NewStatement(name string, sums *chunk.Sums, p Predicate) (*Statement, error) {
	p.Size, p.Chunks = sums.Chunks.Size, sums.Chunks
	s := &Statement{
		Type: statementV1, PredicateType: PredicateType, Predicate: p,
		Subject: []Subject{{Name: name, Digest: map[string]string{"sha256": hex.EncodeToString(sums.SHA256[:])}}},
	}
	if err := s.validate(); err != nil {
		return nil, report.As(report.Usage, err)
	}
	return s, nil
}

// SHA256 is the digest of the whole file.
func (s *Statement) SHA256() [sha256.Size]byte {
	digest, _ := hex.DecodeString(s.Subject[0].Digest["sha256"]) // validate has decoded it before
	return [sha256.Size]byte(digest)
}

// Agrees reports whether both statements say the same of the archive. Each signer chooses the name of the file, the time
// and the expiry for himself; everything else counts, whatever is added to a statement.
func (s *Statement) Agrees(other *Statement) bool {
	mine, errMine := s.claims()
	others, errOthers := other.claims()
	return errMine == nil && errOthers == nil && bytes.Equal(mine, others)
}

func (s *Statement) claims() ([]byte, error) {
	c := *s
	c.Type, c.Subject = "", []Subject{{Digest: s.Subject[0].Digest}}
	c.Predicate.CreatedAt, c.Predicate.Expires = time.Time{}, nil
	return c.Marshal()
}

// Marshal returns the payload to sign.
func (s *Statement) Marshal() ([]byte, error) { return json.Marshal(s) }

// ParseStatement reads a payload. Unknown and duplicate fields are errors; so is everything that two readers could
// take for different things. A well-formed statement of another predicate type has the code report.NotAllowed: a
// signer who attests, say, that a scan has failed does not release anything.
func ParseStatement(payload []byte) (*Statement, error) {
	var head struct {
		Type          string          `json:"_type"`
		Subject       json.RawMessage `json:"subject"`
		PredicateType string          `json:"predicateType"`
		Predicate     json.RawMessage `json:"predicate"`
	}
	if err := strictjson.Decode(payload, &head); err != nil {
		return nil, report.Errorf(report.BadBundle, "statement: %w", err)
	}
	if head.Type != statementV1 && head.Type != statementV0 {
		return nil, report.Errorf(report.BadBundle, "statement: type %q, want %q", head.Type, statementV1)
	}
	if head.PredicateType != PredicateType {
		return nil, report.Errorf(report.NotAllowed, "the signature is for a statement of type %q, want %q",
			head.PredicateType, PredicateType).WithHint("sign the archive with solutionctl sign")
	}
	var s Statement
	if err := strictjson.Decode(payload, &s); err != nil {
		return nil, report.Errorf(report.BadBundle, "statement: %w", err)
	}
	s.Predicate.Chunks.Size = s.Predicate.Size
	if err := s.validate(); err != nil {
		return nil, report.Errorf(report.BadBundle, "statement: %w", err)
	}
	return &s, nil
}

func (s *Statement) validate() error {
	if len(s.Subject) != 1 {
		return report.Errorf(report.BadBundle, "%d subjects, want exactly one", len(s.Subject))
	}
	subject := s.Subject[0]
	if err := checkName(subject.Name); err != nil {
		return err
	}
	digest, ok := subject.Digest["sha256"]
	if raw, err := hex.DecodeString(digest); !ok || len(subject.Digest) != 1 || err != nil || len(raw) != sha256.Size ||
		digest != strings.ToLower(digest) {
		return report.Errorf(report.BadBundle, "subject digest %v, want exactly one sha256 in lower-case hexadecimal", subject.Digest)
	}
	p := s.Predicate
	if p.Solution.Name == "" || strings.ContainsFunc(p.Solution.Name, hidden) {
		return report.Errorf(report.BadBundle, "Solution name %q", p.Solution.Name)
	}
	if _, err := semver.StrictNewVersion(p.Solution.Version); err != nil {
		return report.Errorf(report.BadBundle, "version %q of Solution %s is not a semantic version", p.Solution.Version, p.Solution.Name)
	}
	return p.Chunks.Validate()
}

// checkName refuses file names that would show or do something else when they are printed, or when they are fed to
// sha256sum: names with directories, control characters, or marks that change the direction of text.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || len(name) > 255 || !utf8.ValidString(name) ||
		strings.ContainsAny(name, `/\`) || strings.ContainsFunc(name, hidden) {
		return report.Errorf(report.BadBundle,
			"file name %q, want 1 to 255 bytes of UTF-8 without slashes, control or direction characters", name)
	}
	return nil
}

func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}
