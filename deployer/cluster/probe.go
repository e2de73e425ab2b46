package cluster

import (
	"context"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Probe describes the API server itself: version, latency, clock and certificates.
type Probe struct {
	Version string        // such as "v1.36.3"
	Latency time.Duration // of the quickest of a few answers
	// Skew is the lead of its clock over ours, in whole seconds.
	Skew time.Duration
	// ServerUntil and UserUntil are the ends of the certificates of the API server and of the user; zero without one.
	ServerUntil, UserUntil time.Time
}

// Probe asks the API server a few times who it is.
func (c *Cluster) Probe(ctx context.Context) (*Probe, error) {
	version, err := c.Version(ctx)
	if err != nil {
		return nil, err
	}
	p := &Probe{Version: version, UserUntil: c.certificateUntil()}
	r := request{verb: "get", method: http.MethodGet, path: "/version", about: "read the version of the API server"}
	const times = 5
	for i := range times {
		began, now := bootTime(), c.options.Now()
		response, err := c.send(ctx, r)
		if err != nil {
			return nil, c.translate(ctx, r, err)
		}
		_ = response.Body.Close() // it was only read
		if took := bootTime() - began; i == 0 || took < p.Latency {
			p.Latency = took
			p.Skew = skew(response.Header.Get("Date"), now.Add(took/2))
		}
		if response.TLS != nil && len(response.TLS.PeerCertificates) > 0 {
			p.ServerUntil = response.TLS.PeerCertificates[0].NotAfter
		}
	}
	return p, nil
}

// Ping asks the API server once whether it is there, and fails when it does not answer.
func (c *Cluster) Ping(ctx context.Context) error {
	r := request{verb: "get", method: http.MethodGet, path: "/version", about: "read the version of the API server"}
	response, err := c.send(ctx, r)
	if err != nil {
		return c.translate(ctx, r, err)
	}
	return response.Body.Close()
}

// skew compares the clock of a server, which has a resolution of one second, with ours. It returns 0 for an invalid date.
func skew(date string, now time.Time) time.Duration {
	theirs, err := http.ParseTime(date)
	if err != nil {
		return 0
	}
	return theirs.Sub(now.Truncate(time.Second))
}

// Held is a lock that a process holds.
type Held struct {
	Name   string
	Person string // user@host
	Since  time.Time
	// Promised is until when the holder keeps it without another sign of life, on the holder's clock: the last sign of life of a
	// process of this host that has ended.
	Promised time.Time
}

// Locks returns the locks that are held, see [Cluster.Lock].
func (c *Cluster) Locks(ctx context.Context) ([]Held, error) {
	var held []Held
	for lease, err := range c.List(ctx, LeaseKind, SystemNamespace, metav1.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		if holder(lease) != "" {
			h := Held{Name: lease.GetName(), Person: person(lease), Since: timeIn(lease, "acquireTime"), Promised: timeIn(lease, "renewTime")}
			if !hasEnded(process(lease)) {
				h.Promised = h.Promised.Add(promise(lease))
			}
			held = append(held, h)
		}
	}
	return held, nil
}

func timeIn(lease *unstructured.Unstructured, field string) time.Time {
	text, _ := specOf(lease)[field].(string)
	t, _ := time.Parse(time.RFC3339Nano, text) // an invalid time counts as long ago
	return t
}
