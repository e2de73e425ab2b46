package sign

import (
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
)

const verdictSchemaID = "https://solutionctl.io/schema/v1alpha1/output/verdict.schema.json"

// Verdict is the outcome of [Verify] with everything that led to it, good or bad. Its JSON form is described by
// verdict.schema.json of package schema.
type Verdict struct {
	Schema      string           `json:"schema"`
	Verified    bool             `json:"verified"`
	Code        report.Code      `json:"code,omitempty"` // why not
	Exit        int              `json:"exit"`
	Archive     ArchiveInfo      `json:"archive"`
	Solution    *bundle.Solution `json:"solution,omitempty"`
	Signatures  []Signature      `json:"signatures"`
	Policy      PolicyInfo       `json:"policy"`
	Checks      []Check          `json:"checks"`
	Tampered    []Tampered       `json:"tampered,omitempty"`
	ToolVersion string           `json:"toolVersion,omitempty"`
}

// ArchiveInfo names what was verified. The digest is the signed one; it is empty when nothing trusted was signed.
type ArchiveInfo struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"`
}

// Signature is what was found out about one bundle.
type Signature struct {
	File        string      `json:"file"`
	Status      Status      `json:"status"`
	Code        report.Code `json:"code,omitempty"`
	Reason      string      `json:"reason,omitempty"`
	Hint        string      `json:"hint,omitempty"`
	Type        string      `json:"type,omitempty"` // "statement" or "plain"
	KeyName     string      `json:"keyName,omitempty"`
	KeyID       string      `json:"keyID,omitempty"`
	Fingerprint string      `json:"fingerprint,omitempty"`
	Algorithm   string      `json:"algorithm,omitempty"`
	SignedAt    *time.Time  `json:"signedAt,omitempty"`
}

// Status is how far a signature got.
type Status string

// The states of a signature. Only accepted ones count for the threshold.
const (
	Accepted  Status = "accepted"
	Rejected  Status = "rejected"
	Malformed Status = "malformed"
	Unchecked Status = "unchecked" // the verification ended before
)

// PolicyInfo tells which rule was applied. Without a policy file every key of the trust store may sign.
type PolicyInfo struct {
	File   string `json:"file,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	Rule   *int   `json:"rule,omitempty"`
}

// Check is one thing that was looked at.
type Check struct {
	Name   string `json:"name"`
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

// Tampered is a range of bytes that differs from what was signed: From is the first, To the one after the last.
type Tampered struct {
	From int64  `json:"from"`
	To   int64  `json:"to"`
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

// conclude fills in what follows from the error, nil for a good archive.
func (v *Verdict) conclude(err error) {
	v.Schema = verdictSchemaID
	v.Verified = err == nil
	if err != nil {
		v.Code = report.CodeOf(err)
		v.Exit = v.Code.ExitStatus()
	}
	if v.Signatures == nil {
		v.Signatures = []Signature{}
	}
	if v.Checks == nil {
		v.Checks = []Check{}
	}
}
