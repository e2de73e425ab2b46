package live

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

// liveness checks for all followed feeds of a user whether the API server answers: a watch does not notice that it hangs, and the next read may
// be far away. It finds out, too, whether the user's token is still accepted.
type liveness struct {
	mu      sync.Mutex
	feeds   []*Feed // that browsers follow
	stop    context.CancelFunc
	joins   chan struct{} // has something when another feed has come
	answers chan struct{} // has something when the API server has answered another request of the user
}

func (p *liveness) join(f *Feed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.feeds = append(p.feeds, f)
	if len(p.feeds) > 1 {
		signal(p.joins)
		return
	}
	var ctx context.Context
	ctx, p.stop = context.WithCancel(f.Context)
	p.joins, p.answers = make(chan struct{}, 1), make(chan struct{}, 1)
	go p.check(ctx, f, p.joins, p.answers)
}

func (p *liveness) leave(f *Feed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.feeds = slices.DeleteFunc(p.feeds, func(one *Feed) bool { return one == f })
	if len(p.feeds) == 0 {
		p.stop()
	}
}

// answered notes that the API server has answered a request of the user, and accepted the token.
func (p *liveness) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.feeds) > 0 {
		signal(p.answers)
	}
}

// signal makes a channel with room for one value have one.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// check checks again and again until ctx ends. From is any feed of the user.
func (p *liveness) check(ctx context.Context, from *Feed, joins, answers <-chan struct{}) {
	for pause := pingInterval; ; pause = min(2*pause, maxPing) {
		counted := answers
		err := from.ping(ctx)
		if ctx.Err() != nil {
			return
		}
		p.mu.Lock()
		feeds := slices.Clone(p.feeds)
		p.mu.Unlock()
		for _, f := range feeds {
			f.answer(err)
		}
		if err != nil && report.CodeOf(err) != report.Unauthenticated {
			pause, counted = pingInterval/2, nil // only an answer to a check ends the absence
		}
		pause = await(ctx, from, pause, joins, counted)
	}
}

// await waits for this time after the last answer of the API server, or until another feed has come. It returns the pause.
func await(ctx context.Context, from *Feed, pause time.Duration, joins, answers <-chan struct{}) time.Duration {
	for due := from.After(pause); ; {
		select {
		case <-ctx.Done():
			return pause
		case <-joins:
			return pingInterval / 2
		case <-due:
			return pause
		case <-answers:
			due = from.After(pause)
		}
	}
}

// permissions has the permissions of a user, as far as they were asked for: a watch continues without permission, so that
// a user who has lost one is found by asking.
type permissions struct {
	mu    sync.Mutex
	known map[string]permitted // by namespace; "" is the permission for everything
}

// permitted is a digest of permissions.
type permitted struct {
	digest       string    // "" when they are not known
	since, asked time.Time // when it was first and last the same
}

// everything is the digest of the permissions of an administrator.
const everything = "everything"

// maxReviews bounds the namespaces whose permissions are asked for; to read the cluster again takes about as much.
const maxReviews = 8

// unchanged reports whether the user had the same permissions in these namespaces since a time. Answers that are not older than
// a check are used again, for the other feeds of the user.
func (p *permissions) unchanged(ctx context.Context, from Source, namespaces []string, since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if all, known := p.known[""]; !known || all.digest != "" {
		all = p.ask(from, "", func() (string, error) {
			may, err := from.Cluster.MayDoAll(ctx)
			if !may {
				return "", err
			}
			return everything, nil
		})
		if all.digest != "" {
			return !all.since.After(since)
		}
	} // a user who becomes an administrator has more permissions in each namespace
	if len(namespaces) == 0 || len(namespaces) > maxReviews {
		return false
	}
	same := true
	for _, namespace := range namespaces { // all of them: the next time, each answer is compared with this one
		here := p.ask(from, namespace, func() (string, error) { return from.Cluster.PermissionsIn(ctx, namespace) })
		same = same && here.digest != "" && !here.since.After(since)
	}
	return same
}

// ask asks for permissions, unless that was just done.
func (p *permissions) ask(from Source, namespace string, ask func() (string, error)) permitted {
	now := from.Now()
	last, known := p.known[namespace]
	if known && now.Sub(last.asked) < quiet/2 {
		return last
	}
	digest, err := ask()
	if err != nil {
		digest = ""
	}
	next := permitted{digest: digest, since: now, asked: now}
	if digest == last.digest && known {
		next.since = last.since
	}
	if p.known == nil {
		p.known = map[string]permitted{}
	}
	p.known[namespace] = next
	return next
}
