package cluster

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"
)

// LogOptions select a part of what a container has written.
type LogOptions struct {
	Container string
	Follow    bool      // until the container ends
	Previous  bool      // of the container that ran before, in place of the one that runs
	Since     time.Time // not what is older; zero is everything
	Tail      int       // the last lines; less than 0 is everything
}

// Logs returns the end of what a container has written: at most so many bytes.
func (c *Cluster) Logs(ctx context.Context, namespace, pod, container string, limit int64) ([]byte, error) {
	const lines = 2000
	r, err := c.logRequest(ctx, namespace, pod, LogOptions{Container: container, Tail: lines})
	if err != nil {
		return nil, err
	}
	r.query.Set("limitBytes", strconv.FormatInt(limit, 10))
	log, _, err := c.do(ctx, r)
	return log[:min(int64(len(log)), limit)], err
}

// OpenLogs opens what a container writes, each line behind its time in RFC 3339 and a space. It tries once, and does not count as one
// of the requests that run at the same time: a log that is followed lasts.
func (c *Cluster) OpenLogs(ctx context.Context, namespace, pod string, o LogOptions) (io.ReadCloser, error) {
	r, err := c.logRequest(ctx, namespace, pod, o)
	if err != nil {
		return nil, err
	}
	r.query.Set("timestamps", "true")
	stream, err := c.open(ctx, r)
	if err != nil {
		return nil, c.translate(ctx, r, err)
	}
	return stream, nil
}

func (c *Cluster) logRequest(ctx context.Context, namespace, pod string, o LogOptions) (request, error) {
	r, err := c.request(ctx, "get", http.MethodGet, PodKind, namespace, pod)
	if err != nil {
		return r, err
	}
	r.addSubresource("log")
	r.query.Set("container", o.Container)
	if o.Follow {
		r.query.Set("follow", "true")
	}
	if o.Previous {
		r.query.Set("previous", "true")
	}
	if !o.Since.IsZero() {
		r.query.Set("sinceTime", o.Since.UTC().Format(time.RFC3339))
	}
	if o.Tail >= 0 {
		r.query.Set("tailLines", strconv.Itoa(o.Tail))
	}
	return r, nil
}
