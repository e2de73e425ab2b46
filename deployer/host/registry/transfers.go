package registry

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// transfers limits how many large blobs are sent at the same time, to all clients and to each, and how long a client
// may take. A client is an address: requests from many nodes behind one address wait for each other, and delay no other
// address.
type transfers struct {
	limit, share int   // for all clients, and for each
	rate         int64 // bytes per second
	now          func() time.Time

	mu      sync.Mutex
	active  int
	clients map[netip.Prefix]int // active ones; no entry for none
	waiting []*turn              // in the order in which they came
}

// turn is a transfer that waits.
type turn struct {
	client netip.Prefix
	begin  chan struct{} // closed when it may begin
}

func newTransfers(limit int, rate int64, now func() time.Time) *transfers {
	return &transfers{limit: limit, share: max(1, limit/4), rate: rate, now: now, clients: map[netip.Prefix]int{}}
}

// clientOf is the unit of a limit: an IPv4 address, or the IPv6 prefix from which one host can choose addresses.
func clientOf(remote string) netip.Prefix {
	address, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{} // all without an address, as in tests without a connection, are one client
	}
	ip := address.Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	prefix, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}

// enter waits for a turn, which ends with leave. It reports false when ctx ended first.
func (t *transfers) enter(ctx context.Context, client netip.Prefix) bool {
	own := &turn{client, make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, own)
	t.admit()
	t.mu.Unlock()
	select {
	case <-own.begin:
		return true
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-own.begin: // at the same moment
		t.end(client)
	default:
		t.waiting = slices.DeleteFunc(t.waiting, func(w *turn) bool { return w == own })
	}
	return false
}

func (t *transfers) leave(client netip.Prefix) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(client)
}

// end releases a turn, also that of a waiting client.
func (t *transfers) end(client netip.Prefix) {
	t.active--
	if t.clients[client]--; t.clients[client] == 0 {
		delete(t.clients, client)
	}
	t.admit()
}

// admit lets those begin who came first and may.
func (t *transfers) admit() {
	t.waiting = slices.DeleteFunc(t.waiting, func(w *turn) bool {
		if t.active >= t.limit || t.clients[w.client] >= t.share {
			return false
		}
		t.active++
		t.clients[w.client]++
		close(w.begin)
		return true
	})
}

// count returns how many are sent and how many wait.
func (t *transfers) count() (active, waiting int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.active, len(t.waiting)
}

// grace is added to the time that the bytes may take.
const grace = 30 * time.Second

// pace gives the client as long as it may take for a number of bytes.
func (t *transfers) pace(w http.ResponseWriter, size int64) {
	deadline := t.now().Add(grace + time.Duration(float64(size)/float64(t.rate)*float64(time.Second)))
	// A writer that knows no deadlines, as in tests without a connection, waits for ever.
	_ = http.NewResponseController(w).SetWriteDeadline(deadline)
}
