package registry

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/solutionctl/solutionctl/deployer/metrics"
)

// counters count answers. Counting takes no lock.
type counters struct {
	active   atomic.Int64
	damaged  atomic.Uint64
	aborted  atomic.Uint64
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

// count counts an exchange that is over.
func (c *counters) count(x *exchange, took time.Duration) {
	status := x.w.status
	of := &c.requests[x.route.operation]
	if status < 0 || status >= len(of.codes) {
		status = 0
	}
	of.codes[status].Add(1)
	of.bytes.Add(uint64(max(0, x.w.bytes)))
	of.took.Add(int64(took))
	bucket := 0
	for bucket < len(bounds) && took > bounds[bucket] {
		bucket++
	}
	of.buckets[bucket].Add(1)
	if x.damaged {
		c.damaged.Add(1)
	}
	if x.aborted {
		c.aborted.Add(1)
	}
}

// WriteMetrics writes the numbers and durations of answers by status, and the served archives. Labels have values of
// this program only, never those of a request.
func (g *Registry) WriteMetrics(page *metrics.Page) {
	const prefix = "solutionctl_registry_"
	gauge := func(name, help string, value int) { page.Family(prefix+name, metrics.Gauge, help).Add(float64(value)) }
	c := &g.counters
	family := page.Family(prefix+"requests_total", metrics.Counter, "Requests that were answered, by operation and status; code 0 is none.")
	for o := range c.requests {
		for code := range c.requests[o].codes {
			if n := c.requests[o].codes[code].Load(); n > 0 {
				family.Add(float64(n), "operation", operation(o).String(), "code", strconv.Itoa(code))
			}
		}
	}
	family = page.Family(prefix+"sent_bytes_total", metrics.Counter, "Bytes of bodies that were sent, by operation.")
	for o := range c.requests {
		family.Add(float64(c.requests[o].bytes.Load()), "operation", operation(o).String())
	}
	family = page.Family(prefix+"request_duration_seconds", metrics.Histogram, "How long requests took, by operation.")
	for o := range c.requests {
		counts := make([]uint64, len(c.requests[o].buckets))
		for i := range counts {
			counts[i] = c.requests[o].buckets[i].Load()
		}
		family.Histogram(boundSeconds(), counts, time.Duration(c.requests[o].took.Load()).Seconds(), "operation", operation(o).String())
	}
	page.Family(prefix+"damaged_total", metrics.Counter, "Answers that ended early because an archive could not be read.").Add(float64(c.damaged.Load()))
	page.Family(prefix+"transfers_aborted_total", metrics.Counter, "Large blobs of which a client has not got all, because it left, was too slow, or the archive could not be read.").
		Add(float64(c.aborted.Load()))
	gauge("active_requests", "Requests that are being answered.", int(c.active.Load()))
	active, waiting := g.transfers.count()
	gauge("active_transfers", "Large blobs that are being sent.", active)
	gauge("queued_transfers", "Large blobs that wait for their turn.", waiting)
	g.mu.RLock()
	archives, images := len(g.content.archives), g.content.images
	g.mu.RUnlock()
	gauge("archives", "Archives that are served.", archives)
	gauge("images", "Images in them.", images)
}

func boundSeconds() []float64 {
	seconds := make([]float64, len(bounds))
	for i, bound := range bounds {
		seconds[i] = bound.Seconds()
	}
	return seconds
}
