package oci

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/solutionctl/solutionctl/schema/report"
)

// requestError is a failed request: the status of the answer, or the error before there was one.
type requestError struct {
	status     int
	retryAfter string
	err        error
}

func (e *requestError) Error() string {
	if seconds, err := strconv.Atoi(e.retryAfter); err == nil && seconds > 0 {
		return fmt.Sprintf("%v, to be asked again after %v", e.err, time.Duration(seconds)*time.Second)
	}
	return e.err.Error()
}

func (e *requestError) Unwrap() error { return e.err }

// attempts is how often such a request is made. A registry that does not answer is waited for long enough each time.
func (e *requestError) attempts() int {
	if errors.Is(e.err, errUnresponsive) || errors.Is(e.err, errNoByte) {
		return maxUnresponsive
	}
	return maxAttempts
}

// errUnresponsive is the failure of a registry that takes a connection and sends nothing.
var errUnresponsive = errors.New("it takes connections and does not answer")

// isUnresponsive reports that a request, or one of several that were made for it, ended without an answer in time.
func isUnresponsive(err error) bool {
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return false
	}
	failure, ok := errors.AsType[net.Error](err) // of the first of several requests
	return ok && failure.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

func (e *requestError) temporary() bool {
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](e.err); untrusted || errors.Is(e.err, http.ErrSchemeMismatch) || errors.Is(e.err, errPlainHTTP) {
		return false
	}
	switch e.status {
	case 0, http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// newRequestError returns what a failed request is known by: the status, the message, when to ask again.
func newRequestError(err error, resp *http.Response) *requestError {
	failed := &requestError{err: withoutURL(err)}
	if isUnresponsive(err) {
		failed.err = errUnresponsive
	}
	if resp != nil {
		failed.retryAfter = resp.Header.Get("Retry-After")
	}
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		failed.status = answer.StatusCode
		failed.err = errors.New(describe(answer))
	}
	return failed
}

// failure describes a failed request without anything secret: registries redirect to addresses that are credentials.
func (e *endpoint) failure(what string, err error, resp *http.Response) error {
	if coded, ok := errors.AsType[*report.Error](err); ok {
		return coded // without the address that was asked
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	what, _, _ = strings.Cut(strings.TrimPrefix(what, ofRegistry), "?")
	failed := newRequestError(err, resp)
	host := e.registry()
	switch failed.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return report.Errorf(report.Unavailable, "%s: %s: %w", e, what, failed).
			WithHint("log in with `docker login %s` or `podman login %[1]s`; some registries also answer so when the image does not exist", host)
	case http.StatusNotFound:
		return report.Errorf(report.Invalid, "%s: %s: %w", e, what, failed).WithHint("check the name of the image")
	case http.StatusTooManyRequests:
		return report.Errorf(report.Unavailable, "%s: %s: %w", e, what, failed).
			WithHint("log in with `docker login %s` to get a higher limit%s", host, e.orMirror())
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](failed.err); untrusted {
		return report.Errorf(report.Unavailable, "%s: %s: %w", e, what, failed).WithHint("%s", e.certificateHint(failed.err))
	}
	if errors.Is(err, http.ErrSchemeMismatch) && !errors.Is(failed, errUnresponsive) {
		return report.Errorf(report.Unavailable, "%s: %s: %w", e, what, failed).
			WithHint("%s speaks plain HTTP, which everyone on the network can read and change; if you trust the network, add --plain-http %[1]s", host)
	}
	if errors.Is(err, errPlainHTTP) {
		return report.Errorf(report.Unavailable, "%s: %s: it does not answer with TLS, and plain HTTP was not asked for", e, what).
			WithHint("check that %s can be reached from here; if it speaks plain HTTP and you trust the network, add --plain-http %[1]s", host)
	}
	if errors.Is(failed, errUnresponsive) {
		return report.Errorf(report.Unavailable, "%s: %s: %w", e, what, failed).
			WithHint("check that %s is a registry and what lies between it and here%s", host, e.orMirror())
	}
	if failed.status != 0 {
		return report.Errorf(report.Unavailable, "%s: %s: %w", e, what, failed).
			WithHint("%s can be reached and answers so: try again later%s", host, e.orMirror())
	}
	return report.Errorf(report.Unavailable, "%s: %s: %w", e, what, failed).
		WithHint("check that %s can be reached from here%s", host, e.orMirror())
}

// orMirror ends a hint with the other remedy, where the command has it.
func (e *endpoint) orMirror() string {
	if e.r.o.NoMirrors {
		return ""
	}
	return fmt.Sprintf(", or name a mirror with --mirror %s=HOST", e.registry())
}

// certificateHint returns the remedy for a certificate that is not trusted.
func (e *endpoint) certificateHint(err error) string {
	host := e.registry()
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return fmt.Sprintf("the certificate of %s has to be renewed there; check the clock of this host as well", host)
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Sprintf("ask for the registry by a name that its certificate has, or have one made for %s", host)
	}
	hint := fmt.Sprintf("add the authority that signed the certificate of %s to those that this system trusts", host)
	if dirs := e.r.o.CertsDirs; len(dirs) > 0 {
		hint += ", or write its certificate to " + filepath.Join(dirs[len(dirs)-1], host, "ca.crt")
	}
	return hint
}

// describe puts an answer of a registry into one line.
func describe(answer *transport.Error) string {
	text := fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	if len(answer.Errors) > 0 && answer.Errors[0].Message != "" {
		text += fmt.Sprintf(" (%.200s)", strings.Join(strings.Fields(answer.Errors[0].Message), " "))
	}
	return text
}

// withoutURL removes the address from the error of an HTTP request.
func withoutURL(err error) error {
	var failed *url.Error
	for errors.As(err, &failed) {
		err = failed.Err
	}
	return err
}
