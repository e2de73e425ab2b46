package console_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console"
	"github.com/solutionctl/solutionctl/deployer/hostd"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ending is a host on which the token of the user ends during the first import, and during the first unimport.
type ending struct {
	*hostd.Desk
	end    func(token string)
	tokens []string
}

func (e *ending) Import(ctx context.Context, token string, a hostd.Archive, sink report.Sink) (*schema.ImportReport, error) {
	if e.tokens = append(e.tokens, token); len(e.tokens) == 1 {
		sink = endingSink{sink, sync.OnceFunc(func() { e.end(token) })}
	}
	return e.Desk.Import(ctx, token, a, sink)
}

func (e *ending) Unimport(ctx context.Context, token string, v hostd.Version, sink report.Sink) (*schema.UnimportReport, error) {
	if e.tokens = append(e.tokens, token); len(e.tokens) == 3 {
		e.end(token)
	}
	return e.Desk.Unimport(ctx, token, v, sink)
}

// endingSink calls end with each event.
type endingSink struct {
	report.Sink
	end func()
}

func (s endingSink) Emit(e report.Event) {
	s.end()
	s.Sink.Emit(e)
}

// TestTokenEndsMeanwhile: the work on the host begins with a token that was just renewed, and is finished with another one.
func TestTokenEndsMeanwhile(t *testing.T) {
	s := startSite(t)
	clock := &clock{}
	p := startProvider(t, clock.now)
	e := &ending{Desk: s.desk}
	s.bench = startOn(t, s.api, func(o *console.Options) {
		s.options(o)
		o.Provider, o.Now, o.Archives = p.client(), clock.now, e
	})
	e.end = func(token string) {
		s.deny(token)
		clock.advance(time.Minute)
	}
	b := s.browser(t)
	b.leads(b.get(p.visit(b.get("/auth/start"))), "/")
	b.get("/")
	login := s.lastToken()
	path := s.vendor.Archive(t, "1.0.0", 0)
	data := read(t, path)
	at := b.beginUpload(path, len(data)).Header.Get("Location")
	b.piece(at, 0, data)
	page := strings.Replace(at, "/uploads/", "/import/", 1)
	b.get(page)
	b.get(page + "/events")
	clock.advance(9 * time.Minute) // the token is still valid
	b.ends(b.post(page))
	clock.advance(time.Minute)
	b.ends(b.post("/solutions/demo/unimport?version=1.0.0", "confirm", "demo-1.0.0"))
	if got := slices.Compact(slices.Sorted(slices.Values(append(e.tokens, login)))); len(e.tokens) != 4 || len(got) != 5 {
		t.Errorf("%d tokens, %d of them with the one of the login are different", len(e.tokens), len(got))
	}
}
