package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

// upload brings one blob into a repository. It continues at the offset that the registry reports.
type upload struct {
	to   *repository
	blob Blob
	sent func(n int64) // counts bytes on their way; negative ones are sent again

	location string // of the upload; "": there is none
	offset   int64  // of the next byte
	best     int64  // the largest offset so far
	finished bool   // it was to be completed once
}

// run uploads until the registry has the blob, in a bounded number of attempts: a few in a row that yield nothing, or many of a large blob.
func (u *upload) run(ctx context.Context) error {
	lost := 0
	for attempt, total := 0, 0; ; attempt, total = attempt+1, total+1 {
		before := u.best
		err := u.step(ctx)
		if err == nil {
			return nil
		}
		if u.best > before && total < maxResumes {
			attempt = 0
		}
		if failure := u.lostBy(err); failure != nil && lost < maxLost {
			u.to.warn("blob %s: %v; it is sent again from its start", shorten(u.blob.Digest), failure)
			u.location = ""
			lost++
			continue
		}
		if err = u.to.again(ctx, attempt, err, fmt.Sprintf("blob %s of %s", shorten(u.blob.Digest), report.Bytes(u.blob.Size))); err != nil {
			return err
		}
	}
}

// maxLost is how often an upload that its registry has forgotten, or mixed up, is begun again.
const maxLost = 2

// lostBy returns the answer by which the registry does not know the upload, or did not receive the blob; nil for any other error.
func (u *upload) lostBy(err error) *requestError {
	failure, ok := errors.AsType[*requestError](err)
	if ok && u.location != "" && (failure.status == http.StatusNotFound || failure.status == http.StatusBadRequest) {
		return failure
	}
	return nil
}

// step is one attempt: it begins or continues an upload, sends the missing bytes and completes it.
func (u *upload) step(ctx context.Context) error {
	if u.finished { // the answer to the request that completed it may have been lost
		if there, err := u.to.hasBlob(ctx, u.blob.Descriptor); err != nil || there {
			return err
		}
	}
	if u.location != "" {
		u.resume(ctx)
	}
	if u.location == "" {
		if err := u.begin(ctx); err != nil {
			return err
		}
	}
	if u.offset < u.blob.Size {
		if err := u.send(ctx); err != nil {
			return err
		}
	}
	return u.complete(ctx)
}

func (u *upload) begin(ctx context.Context) error {
	a, err := u.to.do(ctx, exchange{method: http.MethodPost, what: "blobs/uploads/", want: []int{http.StatusAccepted}})
	if err != nil {
		return err
	}
	u.rewind(0)
	return u.follow(a.header)
}

// mount links the blob from another repository. Where the registry does not do so, it begins an upload instead, or lets the caller begin one.
func (u *upload) mount(ctx context.Context, from *repository) (mounted bool, err error) {
	u.to.mayReadFrom(from.repo.RepositoryStr())
	what := "blobs/uploads/?mount=" + u.blob.Digest.String() + "&from=" + from.repo.RepositoryStr()
	a, err := u.to.do(ctx, exchange{method: http.MethodPost, what: what, want: []int{
		http.StatusCreated, http.StatusAccepted, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusBadRequest,
	}})
	if err != nil || a.status == http.StatusCreated {
		return err == nil, err
	}
	if a.status == http.StatusAccepted && u.follow(a.header) != nil {
		u.location = ""
	}
	return false, nil
}

// resume asks how much of an interrupted upload has arrived. An answer that does not say so starts it over.
func (u *upload) resume(ctx context.Context) {
	a, err := u.to.do(ctx, exchange{method: http.MethodGet, what: "blobs/uploads/", address: u.location, want: []int{http.StatusNoContent, http.StatusOK}})
	if err != nil {
		u.location = ""
		return
	}
	arrived, ok := parseUploadRange(a.header.Get("Range"))
	if !ok || arrived > u.blob.Size {
		u.location = ""
		return
	}
	u.rewind(arrived)
	if a.header.Get("Location") != "" && u.follow(a.header) != nil {
		u.location = ""
	}
}

// parseUploadRange reads "0-LAST" and returns how many bytes arrived. One byte looks like none, which is sent again.
func parseUploadRange(s string) (arrived int64, ok bool) {
	last, ok := strings.CutPrefix(strings.TrimPrefix(s, "bytes="), "0-")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(last, 10, 64)
	if err != nil || n < 0 {
		return 0, false
	}
	if n == 0 {
		return 0, true
	}
	return n + 1, true
}

// rewind goes to an offset, from which bytes are sent next.
func (u *upload) rewind(offset int64) {
	u.sent(offset - u.offset)
	u.offset, u.best = offset, max(u.best, offset)
}

// follow takes the address of the upload from the header of an answer. It stays on the registry, with the protocol that was chosen for it.
func (u *upload) follow(header http.Header) error {
	const what = "blobs/uploads/"
	location, err := url.Parse(header.Get("Location"))
	if err != nil || header.Get("Location") == "" {
		return u.to.failure(exchange{what: what}, errors.New("the registry does not say where to upload"), nil)
	}
	base := u.to.base()
	next := base.ResolveReference(location)
	if next.Host != base.Host {
		return u.to.failure(exchange{what: what}, errElsewhere, nil)
	}
	next.Scheme, next.User = base.Scheme, nil
	u.location = next.String()
	return nil
}

// send uploads the rest of the blob in one request. It fails with the last byte of content that does not have the digest, so that this is never completed.
func (u *upload) send(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	content, err := u.blob.Open(ctx, 0)
	if err != nil {
		return err
	}
	verified := VerifyReader(content, u.blob.Descriptor)
	// The digest is of the whole blob: what arrived before is read again, and not sent.
	if _, err = io.CopyN(io.Discard, verified, u.offset); err != nil {
		_ = content.Close() // only read
		return err
	}
	body := &sentBody{reader: verified, content: content, sent: u.sent, cancel: cancel, idle: u.to.c.idle}
	body.timer = time.AfterFunc(body.idle, cancel)
	defer body.timer.Stop()
	header := http.Header{"Content-Type": {"application/octet-stream"}}
	if u.offset > 0 {
		header.Set("Content-Range", fmt.Sprintf("%d-%d", u.offset, u.blob.Size-1))
	}
	x := exchange{method: http.MethodPatch, what: "blobs/uploads/", address: u.location, header: header, want: []int{http.StatusAccepted, http.StatusCreated, http.StatusNoContent}}
	resp, err := u.to.once(ctx, x, body, u.blob.Size-u.offset)
	sent := body.finish()
	if failure := body.failure(); failure != nil {
		return failure // of the archive: nothing is repeated
	}
	u.offset += sent
	if err != nil {
		u.best = max(u.best, u.offset)
		return err
	}
	_ = resp.Body.Close() // there is nothing in it
	if u.offset != u.blob.Size {
		return u.to.failure(x, errors.New("the registry answered before it had the blob"), nil)
	}
	u.best = u.offset
	return u.follow(resp.Header)
}

// complete gives the blob its digest, which the registry compares.
func (u *upload) complete(ctx context.Context) error {
	address, err := url.Parse(u.location)
	if err != nil {
		return err
	}
	query := address.Query()
	query.Set("digest", u.blob.Digest.String())
	address.RawQuery = query.Encode()
	u.finished = true
	_, err = u.to.do(ctx, exchange{method: http.MethodPut, what: "blobs/uploads/", address: address.String(), want: []int{http.StatusCreated}})
	return err
}

// sentBody is the body of an upload. It cannot be sent twice: an attempt of the transport to do so fails, and the upload is resumed.
type sentBody struct {
	reader  io.Reader
	content io.Closer
	sent    func(int64)
	cancel  context.CancelFunc
	idle    time.Duration
	timer   *time.Timer

	mu     sync.Mutex
	n      int64
	closed bool
	err    error
}

var errSentOnce = errors.New("the registry asked for the bytes again")

func (b *sentBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, errSentOnce
	}
	b.timer.Reset(b.idle)
	n, err := b.reader.Read(p)
	b.n += int64(n)
	b.sent(int64(n))
	if err != nil {
		b.timer.Stop() // the registry may take its time now
		if !errors.Is(err, io.EOF) {
			b.err = err
		}
	}
	return n, err
}

// Close implements [io.Closer].
func (b *sentBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	return b.content.Close()
}

// finish ends reading and returns how many bytes were read.
func (b *sentBody) finish() int64 {
	_ = b.Close() // only read
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.n
}

// failure is that of the content, which no attempt mends.
func (b *sentBody) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if errors.Is(b.err, context.Canceled) { // of the request
		return nil
	}
	return b.err
}
