package build_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestMain lets the test binary be the process that a test kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv("BUILD_TEST_PROJECT"); dir != "" {
		if err := buildInChild(dir, os.Getenv("BUILD_TEST_TO"), strings.Fields(os.Getenv("BUILD_TEST_IMAGES"))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(report.CodeOf(err).ExitStatus())
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func buildInChild(dir, to string, images []string) error {
	ctx := context.Background()
	project, err := build.Load(dir, build.Overrides{Images: images})
	if err != nil {
		return err
	}
	resolver := oci.NewResolver(oci.Options{BaseDir: dir})
	plan, err := build.NewPlan(ctx, project, resolver, build.Options{})
	if err != nil {
		return err
	}
	_, err = plan.Write(ctx, to, build.WriteOptions{Jobs: 1})
	return err
}

// stall passes a number of bytes of blobs and then holds every answer until the request ends.
type stall struct {
	budget  atomic.Int64
	reached chan struct{}
	once    sync.Once
}

func newStall(budget int64) *stall {
	s := &stall{reached: make(chan struct{})}
	s.budget.Store(budget)
	return s
}

func (s *stall) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "/blobs/") || r.Method != http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(&stalledWriter{w, r, s}, r)
	})
}

type stalledWriter struct {
	http.ResponseWriter
	r *http.Request
	s *stall
}

func (w *stalledWriter) Write(b []byte) (int, error) {
	if left := w.s.budget.Add(-int64(len(b))); left < 0 {
		n, _ := w.ResponseWriter.Write(b[:max(0, int64(len(b))+left)])
		w.ResponseWriter.(http.Flusher).Flush()
		w.s.once.Do(func() { close(w.s.reached) })
		<-w.r.Context().Done()
		return n, w.r.Context().Err()
	}
	return w.ResponseWriter.Write(b)
}

// A build that is killed at any point leaves only a partial file, and the same command finishes it without reading the
// complete parts again.
func TestKilledBuildIsCompleted(t *testing.T) {
	const layer = 256 << 10
	dir := newProject(t, layer)
	for _, budget := range []int64{0, 5000, layer / 2, layer + 10, 2*layer + 100, 3 * layer} {
		t.Run(fmt.Sprint(budget), func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "demo.iso")
			held := newStall(budget)
			images := pushImages(t, dir, held.wrap)
			child := startChild(t, dir, to, images)
			<-held.reached
			check(t, child.Process.Kill())
			_ = child.Wait() // it was killed
			if got := names(t, filepath.Dir(to)); got != "[]" && got != "[- demo.iso.partial]" {
				t.Fatalf("the directory holds %s, want at most the partial file", got)
			}

			held.budget.Store(1 << 40)
			plan, err := tryPlan(t, t.Context(), dir, build.Overrides{Images: images}, build.Options{})
			check(t, err)
			result, err := plan.Write(t.Context(), to, build.WriteOptions{})
			check(t, err)
			if budget > 2*layer && result.BytesResumed < layer {
				t.Errorf("%d bytes were kept of the %d that had been sent", result.BytesResumed, budget)
			}
			if got := names(t, filepath.Dir(to)); got != "[- demo.iso]" {
				t.Errorf("the directory holds %s, want the archive only", got)
			}
			f, err := os.Open(to)
			check(t, err)
			defer func() { check(t, f.Close()) }()
			check(t, plan.Verify(t.Context(), f, plan.Size()))
		})
	}
}

func startChild(t *testing.T, dir, to string, images []string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	check(t, err)
	child := exec.Command(self)
	child.Env = append(os.Environ(), "BUILD_TEST_PROJECT="+dir, "BUILD_TEST_TO="+to, "BUILD_TEST_IMAGES="+strings.Join(images, " "))
	child.Stderr = os.Stderr
	check(t, child.Start())
	return child
}

// A registry that drops each connection in the middle of a layer does not stop a build.
func TestDroppedConnections(t *testing.T) {
	dir := newProject(t, 512<<10)
	var served atomic.Int64
	images := pushImages(t, dir, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.URL.Path, "/blobs/") {
				next.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(&droppingWriter{ResponseWriter: w, left: 300 << 10, served: &served}, r)
		})
	})
	plan, err := tryPlan(t, t.Context(), dir, build.Overrides{Images: images}, build.Options{})
	check(t, err)
	to := filepath.Join(t.TempDir(), "demo.iso")
	_, err = plan.Write(t.Context(), to, build.WriteOptions{})
	check(t, err)
	if total := served.Load(); total > plan.Size()*11/10 {
		t.Errorf("%d bytes were sent for an archive of %d: transfers were not resumed", total, plan.Size())
	}
}

// droppingWriter ends the connection after some bytes.
type droppingWriter struct {
	http.ResponseWriter
	left   int
	served *atomic.Int64
}

func (w *droppingWriter) Write(b []byte) (int, error) {
	if len(b) > w.left {
		b = b[:w.left]
	}
	n, err := w.ResponseWriter.Write(b)
	w.left -= n
	w.served.Add(int64(n))
	if w.left == 0 {
		w.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

func TestNoSpaceLeft(t *testing.T) {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("needs root, to mount a small file system")
		}
		t.Skip("needs root, to mount a small file system")
	}
	small := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", small).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", small).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	plan := planOf(t, newProject(t, 128<<10), build.Options{})
	to := filepath.Join(small, "demo.iso")
	var events report.Recorder
	_, err := plan.Write(t.Context(), to, build.WriteOptions{Sink: &events})
	if report.CodeOf(err) != report.NoSpace || len(report.Hints(err)) == 0 || len(events.Events()) > 0 {
		t.Fatalf("got %v (%s) after %v, want %s with a hint, before anything is written", err, report.CodeOf(err), events.Events(), report.NoSpace)
	}
	out, err := exec.Command("mount", "-o", "remount,size=10m", small).CombinedOutput()
	if err != nil {
		t.Fatalf("remount: %v: %s", err, out)
	}
	_, err = plan.Write(t.Context(), to, build.WriteOptions{})
	check(t, err)
	f, err := os.Open(to)
	check(t, err)
	defer func() { check(t, f.Close()) }()
	check(t, plan.Verify(t.Context(), f, plan.Size()))
}
