package registry

import (
	"bytes"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

// metrics counts what was answered. Counting takes no lock.
type metrics struct {
	active   atomic.Int64
	damaged  atomic.Uint64
	requests [operations]struct {
		codes   [600]atomic.Uint64 // 0: the connection ended before there was an answer
		bytes   atomic.Uint64
		took    atomic.Int64 // nanoseconds
		buckets [len(bounds) + 1]atomic.Uint64
	}
}

// bounds are the upper bounds of the buckets of durations.
var bounds = [...]time.Duration{
	time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 10 * time.Minute,
}

func (m *metrics) count(o operation, status int, sent int64, took time.Duration, damaged bool) {
	if status < 0 || status >= len(m.requests[o].codes) {
		status = 0
	}
	counters := &m.requests[o]
	counters.codes[status].Add(1)
	counters.bytes.Add(uint64(max(0, sent)))
	counters.took.Add(int64(took))
	bucket := 0
	for bucket < len(bounds) && took > bounds[bucket] {
		bucket++
	}
	counters.buckets[bucket].Add(1)
	if damaged {
		m.damaged.Add(1)
	}
}

// Metrics answers in the text format of Prometheus.
func (g *Registry) Metrics() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var page bytes.Buffer
		g.writeMetrics(&page)
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(page.Bytes()) // the client may be gone
	})
}

func (g *Registry) writeMetrics(page *bytes.Buffer) {
	const prefix = "solutionctl_registry_"
	head := func(name, kind, help string) {
		fmt.Fprintf(page, "# HELP %s%s %s\n# TYPE %[1]s%[2]s %[4]s\n", prefix, name, help, kind)
	}
	gauge := func(name, help string, value int64) {
		head(name, "gauge", help)
		fmt.Fprintf(page, "%s%s %d\n", prefix, name, value)
	}
	m := &g.metrics
	head("requests_total", "counter", "Requests that were answered, by operation and status.")
	for o := range m.requests {
		for code := range m.requests[o].codes {
			if n := m.requests[o].codes[code].Load(); n > 0 {
				fmt.Fprintf(page, "%srequests_total{operation=%q,code=\"%d\"} %d\n", prefix, operation(o), code, n)
			}
		}
	}
	head("sent_bytes_total", "counter", "Bytes of bodies that were sent, by operation.")
	for o := range m.requests {
		fmt.Fprintf(page, "%ssent_bytes_total{operation=%q} %d\n", prefix, operation(o), m.requests[o].bytes.Load())
	}
	head("request_duration_seconds", "histogram", "How long requests took, by operation.")
	for o := range m.requests {
		var count uint64
		series := fmt.Sprintf("%srequest_duration_seconds", prefix)
		for i := range m.requests[o].buckets {
			count += m.requests[o].buckets[i].Load()
			bound := "+Inf"
			if i < len(bounds) {
				bound = fmt.Sprint(bounds[i].Seconds())
			}
			fmt.Fprintf(page, "%s_bucket{operation=%q,le=%q} %d\n", series, operation(o), bound, count)
		}
		fmt.Fprintf(page, "%s_sum{operation=%q} %g\n", series, operation(o), time.Duration(m.requests[o].took.Load()).Seconds())
		fmt.Fprintf(page, "%s_count{operation=%q} %d\n", series, operation(o), count)
	}
	head("damaged_total", "counter", "Answers that ended early because an archive could not be read.")
	fmt.Fprintf(page, "%sdamaged_total %d\n", prefix, m.damaged.Load())
	gauge("active_requests", "Requests that are being answered.", m.active.Load())
	active, waiting := g.transfers.count()
	gauge("active_transfers", "Large blobs that are being sent.", int64(active))
	gauge("queued_transfers", "Large blobs that wait for their turn.", int64(waiting))
	g.mu.RLock()
	archives, images := len(g.content.archives), g.content.images
	g.mu.RUnlock()
	gauge("archives", "Archives that are served.", int64(archives))
	gauge("images", "Images in them.", int64(images))
}
