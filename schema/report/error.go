package report

import (
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Code is the stable identity of a kind of failure. Scripts may compare it; it never changes once released.
type Code string

// The codes. [Codes] lists them with their exit status and meaning.
const (
	Failure     Code = "failed"      // anything that no other code describes
	Unavailable Code = "unavailable" // a registry, daemon or API server did not answer
	NoSpace     Code = "no-space"
	Usage       Code = "usage"
	Findings    Code = "findings"
	Changes     Code = "changes"
	Affected    Code = "affected" // an image has a package that was asked for
	// Irreproducible means that two builds of one project differ.
	Irreproducible Code = "not-reproducible"
	Unsigned       Code = "unsigned"
	Untrusted      Code = "untrusted"
	NotAllowed     Code = "not-allowed"
	Threshold      Code = "threshold"
	WeakKey        Code = "weak-key"
	TrustStore     Code = "trust-store"
	Invalid        Code = "invalid"
	Corrupt        Code = "corrupt"
	Mismatch       Code = "mismatch"
	BadBundle      Code = "bundle"
	Revoked        Code = "revoked"
	Expired        Code = "expired"
	Downgrade      Code = "downgrade"
	Replaced       Code = "replaced"
	Refused        Code = "refused"
	// NotFound means that the command line names something that does not exist.
	NotFound Code = "not-found"
	// Forbidden means that the API server knows the user and does not allow it to them.
	Forbidden Code = "forbidden"
	// Unauthenticated means that the API server does not accept the caller's credentials; the remedy is to log in again.
	Unauthenticated Code = "unauthenticated"
	NotImported     Code = "not-imported"
	InUse           Code = "in-use"
	DataLoss        Code = "data-loss"
	Conflict        Code = "conflict"
	Locked          Code = "locked"
	Timeout         Code = "timeout"
	Interrupted     Code = "interrupted"
	Cancelled       Code = "cancelled"
)

// CodeInfo describes a code: its meaning and its exit status.
type CodeInfo struct {
	Code       Code   `json:"code"`
	ExitStatus int    `json:"exitStatus"`
	Meaning    string `json:"meaning"`
}

// codes is the one table of codes and exit statuses; the command line and its documentation are rendered from it.
var codes = []CodeInfo{
	{Failure, 1, "unexpected failure (input/output, network, API)"},
	{Unavailable, 1, "a registry, daemon or API server did not answer"},
	{NoSpace, 1, "no space is left on the device"},
	{Forbidden, 1, "the cluster does not allow this to the user"},
	{Unauthenticated, 1, "the cluster does not know the user: their certificate or token is not valid, or no longer"},
	{Usage, 2, "the command line is wrong"},
	{NotFound, 2, "what the command line names does not exist"},
	{Findings, 3, "lint found errors, or doctor found problems"},
	{Changes, 3, "there are differences or pending changes"},
	{Affected, 3, "an image has a package that was asked for"},
	{Irreproducible, 3, "two builds of the same project differ"},
	{Unsigned, 4, "there is no signature beside the archive"},
	{Untrusted, 4, "no signature was made by a key or certificate that is trusted"},
	{NotAllowed, 4, "the signer is trusted, but the policy does not accept its signature for this Solution"},
	{Threshold, 4, "fewer distinct signers than the policy asks for"},
	{WeakKey, 4, "a key is too weak or of a kind that is not supported"},
	{TrustStore, 4, "the trust store or its policy is malformed or not protected from others"},
	{Invalid, 5, "a document or archive is not valid"},
	{Corrupt, 5, "data is damaged: it does not have the digest, size or structure it must have"},
	{Mismatch, 5, "the signature is good but belongs to something else: another file, size, name or version"},
	{BadBundle, 5, "a signature bundle is malformed"},
	{Revoked, 6, "the archive, the version or the key was revoked"},
	{Expired, 6, "the signature or the key has expired"},
	{Downgrade, 6, "the version is older than what was imported before"},
	{Replaced, 6, "this version was imported before with other content"},
	{Refused, 6, "refused by the policy"},
	{NotImported, 6, "the version was not imported"},
	{InUse, 6, "something still uses what is to be removed"},
	{DataLoss, 6, "data would be lost"},
	{Conflict, 7, "the object or one of its fields belongs to another owner"},
	{Locked, 7, "another operation is running; nothing was changed"},
	{Timeout, 8, "what was deployed did not become ready in time"},
	{Interrupted, 9, "interrupted; running the same command again finishes the work"},
	{Cancelled, 130, "interrupted before anything was changed"},
}

// Codes returns every code, ordered by exit status.
func Codes() []CodeInfo { return append([]CodeInfo(nil), codes...) }

// Info returns the row of the table for this code; a code that is not in the table has exit status 1.
func (c Code) Info() CodeInfo {
	for _, info := range codes {
		if info.Code == c {
			return info
		}
	}
	return CodeInfo{Code: c, ExitStatus: 1}
}

// ExitStatus is the status with which the program exits for this code.
func (c Code) ExitStatus() int { return c.Info().ExitStatus }

// Error is a failure with a stable code and, where a remedy is known, a hint: one sentence with the next command to run or
// the thing to change.
type Error struct {
	Code     Code
	Hint     string
	Remedies Remedies // the remedies in the hint
	Err      error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error of the given code without a hint; the format is that of [fmt.Errorf], %w included.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// As returns err with another code. The hints of err stay.
func As(code Code, err error) *Error { return &Error{Code: code, Err: err} }

// WithoutHints returns the code and the text of err.
func WithoutHints(err error) *Error { return As(CodeOf(err), errors.New(err.Error())) }

// WithHint sets the hint and returns the error. Each [Remedy] among the arguments is also recorded in Remedies.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint, e.Remedies = fmt.Sprintf(format, args...), nil
	for _, arg := range args {
		switch remedy := arg.(type) {
		case Remedy:
			e.Remedies = append(e.Remedies, remedy)
		case Remedies:
			e.Remedies = append(e.Remedies, remedy...)
		}
	}
	return e
}

// CodeOf returns the outermost code that err carries, Failure when it carries none, and "" when err is nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Failure
}

// Hints returns the hints that err and the errors it wraps carry, outermost first, each once.
func Hints(err error) []string {
	var hints []string
	for e := range within(err) {
		if e.Hint != "" && !slices.Contains(hints, e.Hint) {
			hints = append(hints, e.Hint)
		}
	}
	return hints
}

// RemediesOf returns the remedies that err and the errors it wraps carry, outermost first, each once and about all that any of them
// is about.
func RemediesOf(err error) Remedies {
	var list Remedies
	for e := range within(err) {
		for _, r := range e.Remedies {
			at := slices.IndexFunc(list, func(known Remedy) bool { return known.String() == r.String() })
			if at < 0 {
				list = append(list, r)
			} else {
				list[at] = list[at].and(r)
			}
		}
	}
	return list
}

// within are err and the errors that it wraps, outermost first, as far as they are an [Error].
func within(err error) iter.Seq[*Error] {
	return func(yield func(*Error) bool) { visit(err, yield) }
}

func visit(err error, yield func(*Error) bool) bool {
	if e, ok := err.(*Error); ok && !yield(e) { //nolint:errorlint // every level of the chain is visited in turn
		return false
	}
	switch wrapped := err.(type) { //nolint:errorlint // every level of the chain is visited in turn
	case interface{ Unwrap() error }:
		return visit(wrapped.Unwrap(), yield)
	case interface{ Unwrap() []error }:
		for _, w := range wrapped.Unwrap() {
			if !visit(w, yield) {
				return false
			}
		}
	}
	return true
}
