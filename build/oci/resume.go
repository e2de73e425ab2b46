package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	maxAttempts     = 5   // of one request, and connections in a row that yield no byte
	maxResumes      = 100 // of one blob
	maxUnresponsive = 2   // of a request that gets no answer at all, or only its beginning
	maxBackoff      = 30 * time.Second
	noticeable      = 5 * time.Second // a pause that is reported
)

var (
	errShortBody = errors.New("the registry sent less than it should")
	errNoByte    = errors.New("no byte")
)

// backoff returns the pause after an attempt: the one that the registry requests, else twice as long each time.
func backoff(attempt int, retryAfter string) time.Duration {
	if seconds, err := strconv.Atoi(retryAfter); err == nil && seconds >= 0 {
		return min(time.Duration(seconds)*time.Second, maxBackoff)
	}
	return min(250*time.Millisecond<<min(attempt, 10), maxBackoff)
}

// openBlob streams a blob from offset to before end. The first connection is made here, so that a missing blob is an error of Open.
func (c *remoteContent) openBlob(ctx context.Context, d Descriptor, offset, end int64) (io.ReadCloser, error) {
	b := &remoteBlob{ctx: ctx, content: c, d: d, offset: offset, end: end}
	if offset >= end {
		return b, nil
	}
	return b, b.connect()
}

// remoteBlob reads a blob and continues where it stopped when a connection breaks.
type remoteBlob struct {
	ctx     context.Context
	content *remoteContent
	d       Descriptor
	offset  int64 // of the next byte
	end     int64 // offset behind the last byte that is wanted

	body     io.ReadCloser // nil: not connected
	endpoint *endpoint     // that served last
	etag     string        // of its answer
	failures int           // connections in a row without a byte
	resumes  int
}

// Read implements [io.Reader].
func (b *remoteBlob) Read(p []byte) (int, error) {
	for {
		if b.offset >= b.end {
			return 0, io.EOF
		}
		if b.body == nil {
			if err := b.connect(); err != nil {
				return 0, err
			}
		}
		n, err := b.body.Read(p[:min(int64(len(p)), b.end-b.offset)])
		b.offset += int64(n)
		if n > 0 {
			b.failures = 0
		}
		if err != nil && b.offset < b.end {
			b.disconnect()
			if err = b.mayResume(err); err != nil {
				return n, err
			}
		}
		if n > 0 || len(p) == 0 {
			return n, nil
		}
	}
}

// mayResume decides whether to connect again after err, and waits before it allows it.
func (b *remoteBlob) mayResume(err error) error {
	if b.ctx.Err() != nil {
		return b.ctx.Err()
	}
	b.failures++
	b.resumes++
	if b.failures < maxAttempts && b.resumes < maxResumes {
		return b.content.r.wait(b.ctx, backoff(b.failures-1, ""))
	}
	return report.Errorf(report.Unavailable, "%s: blob %s: stopped after %d of %d bytes: %w", b.endpoint, shorten(b.d.Digest), b.offset, b.d.Size, withoutURL(err)).
		WithHint("run the command again, or name a mirror with --mirror %s=HOST", b.endpoint.registry())
}

// connect asks for the rest of the blob until an endpoint sends it.
func (b *remoteBlob) connect() error {
	for {
		err := b.content.each(b.ctx, b.connectTo)
		if !errors.Is(err, errShortBody) {
			return err
		}
		if err = b.mayResume(err); err != nil {
			return err
		}
	}
}

func (b *remoteBlob) connectTo(e *endpoint) error {
	if e != b.endpoint {
		b.endpoint, b.etag = e, ""
	}
	header := http.Header{"Accept-Encoding": {"identity"}} // otherwise offsets would count the bytes of another coding
	if b.offset > 0 || b.end < b.d.Size {
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", b.offset, b.end-1)) // some registries refuse an open end
		if b.etag != "" {
			header.Set("If-Range", b.etag)
		}
	}
	resp, err := e.request(b.ctx, http.MethodGet, "blobs/"+b.d.Digest.String(), header)
	if err != nil {
		return err
	}
	if err := b.accept(resp); err != nil {
		_ = resp.Body.Close() // the answer is of no use
		return inContext(fmt.Sprintf("%s: blob %s", e, shorten(b.d.Digest)), err)
	}
	b.body = resp.Body
	if etag := resp.Header.Get("ETag"); strings.HasPrefix(etag, `"`) {
		b.etag = etag
	}
	return nil
}

// accept checks that the body of the answer starts at the offset and has the size in the manifest. A server that
// ignores Range sends the blob from its start: the known part is skipped.
func (b *remoteBlob) accept(resp *http.Response) error {
	if resp.StatusCode == http.StatusPartialContent {
		start, total, ok := parseContentRange(resp.Header.Get("Content-Range"))
		if !ok || start != b.offset || total >= 0 && total != b.d.Size {
			return report.Errorf(report.Corrupt, "the registry answered with the range %q, want bytes from %d of %d", resp.Header.Get("Content-Range"), b.offset, b.d.Size)
		}
		return nil
	}
	if resp.ContentLength >= 0 && resp.ContentLength != b.d.Size {
		return report.Errorf(report.Corrupt, "it has %d bytes, in its manifest %d", resp.ContentLength, b.d.Size)
	}
	if _, err := io.CopyN(io.Discard, resp.Body, b.offset); err != nil {
		return fmt.Errorf("%w: it cannot continue, and broke off before byte %d: %w", errShortBody, b.offset, withoutURL(err))
	}
	return nil
}

// parseContentRange reads "bytes START-END/TOTAL"; total is -1 when it is "*".
func parseContentRange(s string) (start, total int64, ok bool) {
	rest, ok := strings.CutPrefix(s, "bytes ")
	if !ok {
		return 0, 0, false
	}
	span, size, ok := strings.Cut(rest, "/")
	first, _, ok2 := strings.Cut(span, "-")
	if !ok || !ok2 {
		return 0, 0, false
	}
	start, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	if size == "*" {
		return start, -1, true
	}
	total, err = strconv.ParseInt(size, 10, 64)
	return start, total, err == nil
}

func (b *remoteBlob) disconnect() {
	if b.body != nil {
		_ = b.body.Close() // the bytes that were read are valid
		b.body = nil
	}
}

// Close implements [io.Closer].
func (b *remoteBlob) Close() error {
	b.disconnect()
	return nil
}

// watching ends an answer of which no byte arrives for a while, whether it is a blob, a manifest, a token or an error.
type watching struct {
	http.RoundTripper
	idle time.Duration
}

func (w watching) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	resp, err := w.RoundTripper.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = watch(resp.Body, w.idle, cancel)
	return resp, nil
}

// watched is a body that is closed when no byte arrives for a while.
type watched struct {
	body   io.ReadCloser
	idle   time.Duration
	timer  *time.Timer
	cancel context.CancelFunc
}

// watch returns a body whose request is cancelled by cancel when a read takes longer than idle.
func watch(body io.ReadCloser, idle time.Duration, cancel context.CancelFunc) *watched {
	w := &watched{body: body, idle: idle, cancel: cancel}
	w.timer = time.AfterFunc(idle, cancel)
	w.timer.Stop()
	return w
}

func (w *watched) Read(p []byte) (int, error) {
	w.timer.Reset(w.idle)
	n, err := w.body.Read(p)
	if !w.timer.Stop() && err != nil {
		err = fmt.Errorf("%w for %v", errNoByte, w.idle)
	}
	return n, err
}

func (w *watched) Close() error {
	w.timer.Stop()
	w.cancel()
	return w.body.Close()
}
