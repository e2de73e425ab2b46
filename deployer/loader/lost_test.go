package loader

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestInterruptedAtItsEnd: SIGTERM comes when the work is done and its result is not written. Another pod has to write it,
// so this one fails.
func TestInterruptedAtItsEnd(t *testing.T) {
	p, _ := published(t, "db")
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	r := &run{Deployer: deployer.New(deployer.Config{Cluster: p.cluster, Sink: report.Discard, Now: time.Now}), parameters: &schema.LoadParameters{Run: "one"}, publisher: p}
	if err := r.end(ctx, nil); report.CodeOf(err) != report.Interrupted {
		t.Errorf("the pod ends with %v", err)
	}
	progress, _, err := readProgress(t.Context(), p.cluster)
	if err != nil || progress.Phase != schema.LoadInterrupted {
		t.Errorf("%+v, %v", progress, err)
	}
}

// newFollower is a follower of a run, as a launcher has it.
func newFollower(t *testing.T) (*follower, func(answer func(http.ResponseWriter, *http.Request) bool)) {
	t.Helper()
	p, s := published(t, "db")
	d := deployer.New(deployer.Config{Cluster: p.cluster, Sink: report.Discard, Now: time.Now})
	f := &follower{Launcher: &Launcher{Deployer: d}, run: "one", news: make(chan struct{}, 1), shown: map[string]schema.LoadState{}}
	return f, func(answer func(http.ResponseWriter, *http.Request) bool) { s.Answer = answer }
}

// TestFollowerKeepsFailure: the Job cannot be read, and no more is learned about it. News of the progress do not hide that:
// the run would be followed without end.
func TestFollowerKeepsFailure(t *testing.T) {
	f, answer := newFollower(t)
	answer(func(w http.ResponseWriter, r *http.Request) bool {
		refused := strings.Contains(r.URL.Path, "/jobs/")
		if refused {
			w.WriteHeader(http.StatusForbidden)
		}
		return refused
	})
	f.watchJob(t.Context())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.watchProgress(ctx)
	}()
	for {
		<-f.news
		progress, _, err := f.now()
		if progress == nil {
			continue
		}
		if err == nil {
			t.Error("the follower goes on")
		}
		break
	}
	stop()
	<-done
}

// TestFollowerWithoutRecord: the Job and the record of a run are gone, as after a purge: nothing is left to wait for.
func TestFollowerWithoutRecord(t *testing.T) {
	f, answer := newFollower(t)
	answer(nil)
	f.watchJob(t.Context())
	if _, ended, err := f.now(); !ended || err != nil {
		t.Errorf("ended is %t, %v", ended, err)
	}
}
