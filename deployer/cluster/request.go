package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	// attemptTimeout ends an attempt that the server does not answer. A server gives up after a minute itself.
	attemptTimeout = 65 * time.Second
	// firstPause is how long to wait before an attempt is repeated; it doubles up to lastPause.
	firstPause, lastPause = 200 * time.Millisecond, 3 * time.Second
	// serverErrors is how often an internal error of the server is tried again: one may pass, as when etcd elects a
	// leader, but most are webhooks that are down and stay so.
	serverErrors = 3
)

// request is one thing that is asked of the API server, however many attempts it takes.
type request struct {
	verb   string // as RBAC calls it
	method string
	path   string
	query  url.Values
	accept string // "" is JSON
	body   []byte
	format string // content type of the body; "" is JSON

	about     string // what the request does, for messages, unless it is about objects
	kind      schema.GroupVersionKind
	resource  schema.GroupVersionResource
	namespace string
	name      string

	write bool // asks the guard first, and counts as a change

	// read, if it is set, reads the answer, once for each attempt, and the answer is not returned. Its error means that the answer broke off.
	read func(io.Reader) error
}

type retryKey struct{}

// WithRetry makes requests with the returned context be tried again for no longer than this where the server does not answer: for
// callers that only read, report the error and read again.
func WithRetry(ctx context.Context, most time.Duration) context.Context {
	return context.WithValue(ctx, retryKey{}, most)
}

func (c *Cluster) retryFor(ctx context.Context) time.Duration {
	if most, limited := ctx.Value(retryKey{}).(time.Duration); limited {
		return min(most, c.retry)
	}
	return c.retry
}

// do sends a request until it has an answer. inDoubt reports whether an earlier attempt was lost, which the server may have executed
// even if the answer to a later attempt is an error.
func (c *Cluster) do(ctx context.Context, r request) (answer []byte, inDoubt bool, err error) {
	started, retry := bootTime(), c.retryFor(ctx)
	var earlier error // of the attempt before
	for attempt := 0; ; attempt++ {
		leave, full := c.enter(ctx, r)
		if full != nil {
			return nil, inDoubt, c.translate(ctx, r, full)
		}
		answer, err = c.guarded(ctx, r)
		leave()
		if unguarded, ok := errors.AsType[lockLost](err); ok {
			if _, unknown := c.token(ctx); unknown != nil { // why the lock was not renewed
				return nil, inDoubt, c.translate(ctx, r, unknown)
			}
			if errors.Is(err, errSilent) && bootTime()-started < retry && Sleep(ctx, firstPause) == nil {
				continue // like an API server that does not answer: it may come back
			}
			return nil, inDoubt, fmt.Errorf("%s: %w", r.what(), unguarded.error)
		}
		if err == nil {
			c.changed.CompareAndSwap(false, r.write)
			return answer, inDoubt, nil
		}
		lost := mayHaveArrived(err)
		inDoubt = inDoubt || lost
		if lost {
			c.changed.CompareAndSwap(false, r.write)
		}
		if earlier != nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
			err = earlier // which has the reason
		}
		pause, again := c.again(err, attempt)
		if !again || bootTime()+pause-started > retry || ctx.Err() != nil {
			return nil, inDoubt, c.translate(ctx, r, err)
		}
		earlier = err
		if Sleep(ctx, pause) != nil {
			return nil, inDoubt, c.translate(ctx, r, err)
		}
	}
}

// lockLost is why a write was not sent.
type lockLost struct{ error }

func (l lockLost) Unwrap() error { return l.error }

// enter waits until there is room for an attempt; leave makes room again. What keeps a lock never waits for others.
func (c *Cluster) enter(ctx context.Context, r request) (leave func(), err error) {
	if r.resource.Group == LeaseKind.Group {
		return func() {}, nil
	}
	select {
	case c.slots <- struct{}{}:
		return func() { <-c.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// guarded makes an attempt, a write only while its locks are held.
func (c *Cluster) guarded(ctx context.Context, r request) ([]byte, error) {
	if r.write {
		if lost := check(ctx); lost != nil {
			return nil, lockLost{lost}
		}
	}
	return c.attempt(ctx, r)
}

// attempt sends a request once and reads the whole answer.
func (c *Cluster) attempt(ctx context.Context, r request) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, attemptTimeout, errNoAnswer)
	defer cancel()
	body, err := c.open(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // it was only read
	var answer []byte
	if r.read != nil {
		err = r.read(body)
	} else {
		answer, err = io.ReadAll(body)
	}
	if err != nil {
		return nil, lostAnswer{err}
	}
	return answer, nil
}

// open sends a request once and returns the answer's body, if the server accepts it.
func (c *Cluster) open(ctx context.Context, r request) (io.ReadCloser, error) {
	response, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// send sends a request once and returns the answer, if the server accepts it.
func (c *Cluster) send(ctx context.Context, r request) (*http.Response, error) {
	if c.limit != nil {
		if err := c.limit.Wait(ctx); err != nil {
			return nil, err
		}
	}
	address := *c.base
	address.Path = c.base.Path + r.path
	address.RawQuery = r.query.Encode()
	request, err := http.NewRequestWithContext(ctx, r.method, address.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Accept-Encoding", "identity") // compression costs the API server more than it saves a network that it is next to
	if r.accept != "" {
		request.Header.Set("Accept", r.accept)
	}
	if len(r.body) > 0 {
		request.Header.Set("Content-Type", "application/json")
		if r.format != "" {
			request.Header.Set("Content-Type", r.format)
		}
	}
	token, err := c.token(ctx)
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := c.client.Do(request)
	if err != nil {
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, errNoAnswer):
			err = cause
		case cause != nil:
			return nil, err // the caller waits no longer; the server may be well
		}
		c.noticeAbsence(err)
		return nil, err
	}
	c.noticePresence()
	if !isProxied(r.path) {
		c.warn(r, response)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		defer func() { _ = response.Body.Close() }() // it was only read
		return nil, refusal(r, response)
	}
	return response, nil
}

// errNoAnswer ends an attempt that had a connection and got no answer on it.
var errNoAnswer = fmt.Errorf("no answer within %s", attemptTimeout)

// lostAnswer is an answer that broke off: the server has done what it was asked.
type lostAnswer struct{ error }

func (l lostAnswer) Unwrap() error { return l.error }

// refusal returns the error that a response carries: the API server's own, or what a proxy in front of it made up.
func refusal(r request, response *http.Response) error {
	const enough = 1 << 20
	text, err := io.ReadAll(io.LimitReader(response.Body, enough))
	if err != nil {
		text = nil // the status line has the most important part
	}
	var status metav1.Status
	if raw, ok := fromProtobuf(text); ok {
		err = status.Unmarshal(raw)
		status.Kind = "Status"
	} else {
		err = json.Unmarshal(text, &status)
	}
	if err == nil && status.Kind == "Status" && status.Status == metav1.StatusFailure {
		if status.Code == 0 {
			status.Code = int32(response.StatusCode) //nolint:gosec // three digits
		}
		return withRetryAfter(&apierrors.StatusError{ErrStatus: status}, response)
	}
	resource := schema.GroupResource{Group: r.resource.Group, Resource: r.resource.Resource}
	return withRetryAfter(apierrors.NewGenericServerResponse(response.StatusCode, r.verb, resource, r.name, string(text), 0, true), response)
}

// withRetryAfter adds the Retry-After header to an error without a time to wait.
func withRetryAfter(err *apierrors.StatusError, response *http.Response) error {
	seconds, ok := retryAfter(response.Header.Get("Retry-After"))
	if !ok {
		return err
	}
	if err.ErrStatus.Details == nil {
		err.ErrStatus.Details = &metav1.StatusDetails{}
	}
	if err.ErrStatus.Details.RetryAfterSeconds == 0 {
		err.ErrStatus.Details.RetryAfterSeconds = seconds
	}
	return err
}

func retryAfter(header string) (int32, bool) {
	var seconds int32
	_, err := fmt.Sscanf(header, "%d", &seconds)
	return seconds, err == nil && seconds > 0
}

// again decides whether to send a request again, and when. Whatever this package sends may be sent twice: reads and
// dry runs change nothing, updates, patches and deletions name the state that they start from, applying is idempotent,
// and Create reads the object when an attempt was lost.
func (c *Cluster) again(err error, attempt int) (pause time.Duration, again bool) {
	pause = min(firstPause<<min(attempt, 10), lastPause)
	status, refused := errors.AsType[*apierrors.StatusError](err)
	if !refused {
		return pause, c.answered.Load() && !isPermanent(err)
	}
	if details := status.ErrStatus.Details; details != nil {
		pause = max(pause, time.Duration(details.RetryAfterSeconds)*time.Second)
	}
	switch status.ErrStatus.Code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable:
		return pause, true
	case http.StatusInternalServerError, http.StatusGatewayTimeout:
		return pause, attempt < serverErrors && !isNoPatch(err)
	default:
		return 0, false
	}
}

// isPermanent reports whether a failure to reach the API server stays when the request is repeated.
func isPermanent(err error) bool {
	if resolver, ok := errors.AsType[*net.DNSError](err); ok && resolver.IsNotFound {
		return true
	}
	return is[x509.UnknownAuthorityError](err) || is[x509.HostnameError](err) || is[x509.CertificateInvalidError](err) || is[tls.RecordHeaderError](err) ||
		is[tls.AlertError](err) || is[*tls.CertificateVerificationError](err) || errors.Is(err, errNoToken) || errors.Is(err, context.Canceled)
}

// is reports whether an error is one of a type, or wraps one.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// mayHaveArrived reports whether the server may have carried out a request that failed without an answer.
func mayHaveArrived(err error) bool {
	if _, refused := errors.AsType[*apierrors.StatusError](err); refused {
		return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsInternalError(err)
	}
	if operation, ok := errors.AsType[*net.OpError](err); ok && operation.Op == "dial" {
		return false
	}
	return !isPermanent(err) || errors.Is(err, context.Canceled)
}

// noticeAbsence reports once that the server cannot be reached.
func (c *Cluster) noticeAbsence(err error) {
	if !c.answered.Load() || errors.Is(err, context.Canceled) || isPermanent(err) {
		return // the error reports it
	}
	if !c.absent.Swap(true) {
		c.options.Sink.Emit(report.Event{
			Step: "API server", Name: c.base.Host, State: report.Started, Note: "it does not answer: " + unreachable(err),
		})
	}
}

func (c *Cluster) noticePresence() {
	c.answered.Store(true)
	if c.absent.Swap(false) {
		c.options.Sink.Emit(report.Event{Step: "API server", Name: c.base.Host, State: report.Done, Note: "it answers again"})
	}
}

// warn passes the warnings of the API server on, in its own words, quoted: each once, whatever objects it is about.
func (c *Cluster) warn(r request, response *http.Response) {
	warnings, _ := utilnet.ParseWarningHeaders(response.Header["Warning"]) // invalid warnings are ignored
	for _, warning := range warnings {
		if _, known := c.warned.LoadOrStore(particulars.ReplaceAllLiteralString(warning.Text, ""), true); !known {
			text := strings.ToValidUTF8(warning.Text[:min(len(warning.Text), maxWarning)], "")
			c.options.Sink.Emit(report.Event{
				Step: "API server", Name: c.base.Host, State: report.Warning, Note: fmt.Sprintf("%s: it remarks %q", r.what(), text),
			})
		}
	}
}

// maxWarning is the length of a warning that is shown, in bytes; admission webhooks write what they like.
const maxWarning = 500

// particulars are the names and numbers in a warning that differ from object to object.
var particulars = lazyregexp.New(`"[^"]*"|[0-9]+`)

// Sleep waits for a while, or returns the error of the context.
func Sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
