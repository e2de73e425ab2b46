package sign

import (
	"context"
	"errors"
	"time"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
)

const verdictSchemaID = "https://solutionctl.io/schema/v1alpha1/output/verdict.schema.json"

// Verdict is the outcome of [Verify] with everything that led to it, good or bad. Only "verified": true with exit status 0
// means that the archive may be used. `solutionctl verify` prints it.
type Verdict struct {
	Schema     string           `json:"schema" schema:"const=https://solutionctl.io/schema/v1alpha1/output/verdict.schema.json"`
	Verified   bool             `json:"verified"`
	Code       report.Code      `json:"code,omitempty"` // why not
	Exit       int              `json:"exit" schema:"minimum=0 maximum=130"`
	Archive    ArchiveInfo      `json:"archive"`
	Solution   *bundle.Solution `json:"solution,omitempty"`
	Signatures []Signature      `json:"signatures"`
	Policy     PolicyInfo       `json:"policy"`
	Checks     []Check          `json:"checks"`
	Tampered   []Tampered       `json:"tampered,omitempty"`
	// Provenance is how the archive was made, if this was asked for: the statement of a signer that the policy allows.
	Provenance  *schema.ProvenanceStatement `json:"provenance,omitempty"`
	ToolVersion string                      `json:"toolVersion,omitempty"`
}

// ArchiveInfo names the archive that was verified.
type ArchiveInfo struct {
	Path   string `json:"path"`
	Size   int64  `json:"size" schema:"minimum=0"`
	SHA256 string `json:"sha256,omitempty" schema:"sha256"` // the signed digest; empty without one in a trusted signature

	Artifact string `json:"artifact,omitempty"`                   // the digest in the registry that the archive was read from
	Fetched  int64  `json:"fetched,omitempty" schema:"minimum=0"` // bytes that were read from there
}

// Signature is the judgement on one bundle.
type Signature struct {
	File        string      `json:"file"`
	Status      Status      `json:"status"`
	Code        report.Code `json:"code,omitempty"`
	Reason      string      `json:"reason,omitempty"`
	Hint        string      `json:"hint,omitempty"`
	Type        string      `json:"type,omitempty" schema:"enum=statement|plain|provenance"`
	KeyName     string      `json:"keyName,omitempty"`
	KeyID       string      `json:"keyID,omitempty"`
	Fingerprint string      `json:"fingerprint,omitempty"`
	Algorithm   string      `json:"algorithm,omitempty"`
	SignedAt    *time.Time  `json:"signedAt,omitempty"`
}

// Status is the outcome for a signature.
type Status string

// The states of a signature. Only accepted ones count for the threshold.
const (
	Accepted  Status = "accepted"
	Attested  Status = "attested" // a provenance that an allowed signer has signed; it releases nothing
	Rejected  Status = "rejected"
	Malformed Status = "malformed"
	Unchecked Status = "unchecked" // the verification ended before
)

// PolicyInfo names the rule that was applied. Without a policy file every key of the trust store may sign.
type PolicyInfo struct {
	File   string `json:"file,omitempty"`
	SHA256 string `json:"sha256,omitempty" schema:"sha256"`
	Rule   *int   `json:"rule,omitempty" schema:"minimum=0"` // its place in the file, counted from 0
}

// Check is one check of a [Verdict].
type Check struct {
	Name   string `json:"name" schema:"enum=signature|revocation|version|provenance|content|identity|structure"`
	Result Result `json:"result"`
	Detail string `json:"detail,omitempty"`
}

// Result is the outcome of a check.
type Result string

// The results. A check is deferred when the reader does it at each read.
const (
	Passed   Result = "passed"
	Failed   Result = "failed"
	Deferred Result = "deferred"
	Skipped  Result = "skipped"
)

// Tampered is a range of bytes that differs from those that were signed.
type Tampered struct {
	From int64  `json:"from" schema:"minimum=0"` // the first byte
	To   int64  `json:"to" schema:"minimum=1"`   // the byte after the last one
	File string `json:"file,omitempty"`
}

// Signers returns the IDs of the signers whose signatures were accepted, each once.
func (v *Verdict) Signers() []string {
	var ids []string
	seen := map[string]bool{}
	for _, s := range v.Signatures {
		if s.Status == Accepted && !seen[s.KeyID] {
			seen[s.KeyID] = true
			ids = append(ids, s.KeyID)
		}
	}
	return ids
}

func (v *Verdict) check(name string, result Result, detail string) {
	v.Checks = append(v.Checks, Check{Name: name, Result: result, Detail: detail})
}

// conclude sets the fields that follow from the error, nil for a good archive.
func (v *Verdict) conclude(err error) {
	v.Schema = verdictSchemaID
	v.Verified = err == nil
	if err != nil {
		v.Code = report.CodeOf(err)
		if errors.Is(err, context.Canceled) && (v.Code == report.Failure || v.Code == report.Unavailable) {
			v.Code = report.Cancelled
		}
		v.Exit = v.Code.ExitStatus()
	}
	if v.Signatures == nil {
		v.Signatures = []Signature{}
	}
	if v.Checks == nil {
		v.Checks = []Check{}
	}
}
