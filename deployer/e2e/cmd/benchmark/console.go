//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
)

const (
	chromium = "/usr/lib/chromium/chromium-headless-shell"
	tabs     = 4                // of one browser that follow: with HTTP/1.1 further ones ask now and then
	pages    = 15               // of a kind that are fetched
	consoles = 5                // started for the first page
	watching = 30 * time.Second // for which requests are counted
)

// measureConsole prints the numbers of the web console on a cluster with many environments.
func measureConsole(ctx context.Context, s settings) (err error) {
	c, err := testcluster.Start(ctx, testcluster.Options{FakeNodes: 3, ReadyAtOnce: true, Progress: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	for _, step := range []string{"prepare", "create environments", "add", "wait"} {
		if _, err = measure(ctx, os.Args[0], "fleet-step", c.Kubeconfig, strconv.Itoa(s.environments), "apart", step); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	fmt.Printf("\n%d environments, %d Solutions in each\n\n| | |\n|---|---|\n", s.environments, solutions)
	visits, err := firstVisits(ctx, c, s.binary, consoles)
	if err != nil {
		return err
	}
	var before, after []float64
	for _, v := range visits {
		before, after = append(before, v.before), append(after, v.after)
	}
	row("RssAnon before and after the first visit", "%.1f MiB, %.1f MiB", median(before), median(after))
	printVisits("first overview of a console", visits)
	// What takes time is measured without the proxy that counts requests: it takes some of the same processors.
	if err = withConsole(ctx, c, s.binary, c.Kubeconfig, (*consoleUnderTest).logIn, (*consoleUnderTest).overview, (*consoleUnderTest).load); err != nil {
		return err
	}
	return withConsole(ctx, c, s.binary, "", (*consoleUnderTest).logIn, (*consoleUnderTest).crowd, (*consoleUnderTest).unwatched)
}

// withConsole measures a console with this kubeconfig; "" is one whose requests are counted.
func withConsole(ctx context.Context, c *testcluster.Cluster, program, kubeconfig string, measured ...func(*consoleUnderTest, context.Context) error) (err error) {
	u, err := startConsole(ctx, c, program, kubeconfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.close()) }()
	for _, one := range measured {
		if err = one(u, ctx); err != nil {
			return err
		}
	}
	return nil
}

// firstVisits measures the first overview of consoles that have just been started.
func firstVisits(ctx context.Context, c *testcluster.Cluster, program string, consoles int) (visits []visit, err error) {
	for range consoles {
		if err = withConsole(ctx, c, program, c.Kubeconfig, func(u *consoleUnderTest, ctx context.Context) error {
			if paused := pause(ctx, 2*time.Second); paused != nil {
				return paused
			}
			before, peak := u.anonymous(), watchMemory(u.command.Process.Pid)
			one, failure := u.visit(ctx, u.link) // it leads to the overview
			one.before, one.after, one.peak = before, u.anonymous(), peak()
			visits = append(visits, one)
			return failure
		}); err != nil {
			return nil, err
		}
	}
	return visits, nil
}

// visit is how long a page without an open tab took: until its first row was there, until all of it was, and of the processor.
type visit struct {
	row, all, processor time.Duration
	before, after       float64 // RssAnon of a console that had just been started, in MiB
	peak                int64   // and at most, in bytes
}

func printVisits(name string, visits []visit) {
	of := func(part func(visit) time.Duration) int64 {
		var all []time.Duration
		for _, v := range visits {
			all = append(all, part(v))
		}
		return median(all).Milliseconds()
	}
	row(name+": first row, last byte, processor", "%d ms, %d ms, %d ms",
		of(func(v visit) time.Duration { return v.row }), of(func(v visit) time.Duration { return v.all }), of(func(v visit) time.Duration { return v.processor }))
}

// firstRow begins the row of the first environment: its name, in a list that has the Solutions, their versions and health.
const firstRow = `<a href="/environments/env-`

// visit fetches the overview, or what leads there.
func (u *consoleUnderTest) visit(ctx context.Context, path string) (v visit, err error) {
	before, started := u.processor(), time.Now()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.origin+path, nil)
	if err != nil {
		return v, err
	}
	r.Header.Set("Accept", "text/html")
	a, err := u.client.Do(r)
	if err != nil {
		return v, err
	}
	var text []byte
	for part := make([]byte, 32<<10); err == nil; {
		var n int
		n, err = a.Body.Read(part)
		if text = append(text, part[:n]...); v.row == 0 && bytes.Contains(text, []byte(firstRow)) {
			v.row = time.Since(started)
		}
	}
	v.all, v.processor = time.Since(started), u.processor()-before
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err = errors.Join(err, a.Body.Close()); err == nil && v.row == 0 {
		err = fmt.Errorf("the overview has no environments: %s", a.Status)
	}
	return v, err
}

// processor is the time that the console has had a processor for.
func (u *consoleUnderTest) processor() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", u.command.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * time.Second / 100 // as the kernel counts for programs
}

// consoleUnderTest is a console for its own user.
type consoleUnderTest struct {
	cluster  *testcluster.Cluster
	command  *exec.Cmd
	dir      string
	requests atomic.Int64 // to the API server
	proxy    *http.Server // which counts them; nil without
	origin   string
	link     string // which works once
	client   *http.Client
}

func row(name, format string, args ...any) { fmt.Printf("| "+name+" | "+format+" |\n", args...) }

func startConsole(ctx context.Context, c *testcluster.Cluster, program, kubeconfig string) (u *consoleUnderTest, err error) {
	u = &consoleUnderTest{cluster: c}
	if u.dir, err = os.MkdirTemp("", "solutionctl-console-"); err != nil {
		return nil, err
	}
	if kubeconfig == "" {
		if kubeconfig, err = u.count(ctx); err != nil {
			return nil, err
		}
	}
	u.command = exec.CommandContext(ctx, program, "deploy", "ui", "--kubeconfig", kubeconfig, "--store", filepath.Join(u.dir, "store"), "--listen", "127.0.0.1:0", "--progress", "plain")
	u.command.Env = append(os.Environ(), "HOME="+u.dir, "XDG_CACHE_HOME="+u.dir, "SOLUTIONCTL_CONFIG="+os.DevNull)
	u.command.Stderr = os.Stderr
	out, err := u.command.StdoutPipe()
	if err == nil {
		err = u.command.Start()
	}
	if err != nil {
		return nil, err
	}
	link, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the console prints no link: %w", err)
	}
	at, err := url.Parse(strings.TrimSpace(link))
	if err != nil {
		return nil, err
	}
	u.origin = at.Scheme + "://" + at.Host
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+at.Port())
	}
	u.client = &http.Client{Jar: jar, Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 10}}
	u.link = strings.TrimPrefix(at.String(), u.origin)
	return u, nil
}

// count stands before the API server, and returns a kubeconfig that leads there.
func (u *consoleUnderTest) count(ctx context.Context) (kubeconfig string, err error) {
	config, err := u.cluster.Config()
	if err != nil {
		return "", err
	}
	config.QPS = -1
	transport, err := rest.TransportFor(config)
	if err != nil {
		return "", err
	}
	target, err := url.Parse(u.cluster.Host)
	if err != nil {
		return "", err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	forward := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1}
	u.proxy = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.requests.Add(1)
		forward.ServeHTTP(w, r)
	})}
	go u.proxy.Serve(l) //nolint:errcheck // it ends with the measurement
	kubeconfig = filepath.Join(u.dir, "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "http://%s"}}],
"contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}]}`, l.Addr())
	return kubeconfig, os.WriteFile(kubeconfig, []byte(text), 0o600)
}

func (u *consoleUnderTest) close() error {
	err := u.command.Process.Signal(syscall.SIGTERM)
	_ = u.command.Wait() // how it ends is not measured
	if u.proxy != nil {
		err = errors.Join(err, u.proxy.Close())
	}
	return errors.Join(err, os.RemoveAll(u.dir))
}

// get fetches a page.
func (u *consoleUnderTest) get(ctx context.Context, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.origin+path, nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("Accept", "text/html")
	a, err := u.client.Do(r)
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(a.Body)
	if err = errors.Join(err, a.Body.Close()); err == nil && a.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, a.Status)
	}
	return string(data), err
}

func (u *consoleUnderTest) anonymous() float64 {
	return float64(anonymous(u.command.Process.Pid)) / (1 << 20)
}

// pause waits while the benchmark counts.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// logIn follows the link.
func (u *consoleUnderTest) logIn(ctx context.Context) error {
	_, err := u.get(ctx, u.link)
	return err
}

// overview fetches the first page: once with a read of the cluster, and once while another browser watches and keeps its result fresh.
func (u *consoleUnderTest) overview(ctx context.Context) error {
	fetch := func(name string, apart time.Duration) error {
		var visits []visit
		for range pages {
			if err := pause(ctx, apart); err != nil {
				return err
			}
			one, err := u.visit(ctx, "/")
			if err != nil {
				return err
			}
			visits = append(visits, one)
		}
		printVisits(name, visits)
		return nil
	}
	if err := fetch("overview, unwatched: the cluster is read", 1200*time.Millisecond); err != nil {
		return err
	}
	stream, err := u.watch(ctx)
	if err != nil {
		return err
	}
	defer stream.close()
	return fetch("overview while another tab is open", 100*time.Millisecond)
}

// stream is a tab that is open.
type stream struct {
	events chan string
	body   io.Closer
}

func (s *stream) close() { _ = s.body.Close() }

var feedIn = regexp.MustCompile(`/events\?seen=[^"&]+`)

// watch opens the overview, and stays.
func (u *consoleUnderTest) watch(ctx context.Context) (*stream, error) {
	text, err := u.get(ctx, "/")
	if err != nil {
		return nil, err
	}
	path := feedIn.FindString(text)
	if path == "" {
		return nil, errors.New("the overview names no stream")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.origin+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/event-stream")
	a, err := u.client.Do(r) //nolint:bodyclose // the stream is closed by who watches
	if err != nil {
		return nil, err
	}
	if a.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: %s", path, a.Status), a.Body.Close())
	}
	s := &stream{events: make(chan string, 100), body: a.Body}
	go func() {
		defer close(s.events)
		for lines := bufio.NewScanner(a.Body); lines.Scan(); {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				select {
				case s.events <- name:
				default: // this one is not followed
				}
			}
		}
	}()
	return s, nil
}

// crowd measures the cost of many tabs, and how soon they show a change.
func (u *consoleUnderTest) crowd(ctx context.Context) error {
	var open []*stream
	defer func() {
		for _, s := range open {
			s.close()
		}
	}()
	for range tabs {
		s, err := u.watch(ctx)
		if err != nil {
			return err
		}
		open = append(open, s)
	}
	if err := pause(ctx, 5*time.Second); err != nil { // the work of their pages has ended
		return err
	}
	before := u.requests.Load()
	if err := pause(ctx, watching); err != nil {
		return err
	}
	row(fmt.Sprintf("API requests with %d tabs", tabs), "%.1f /s", float64(u.requests.Load()-before)/watching.Seconds())
	row(fmt.Sprintf("RssAnon with %d tabs", tabs), "%.1f MiB", u.anonymous())

	last := open[len(open)-1]
	var took []time.Duration
	for i := range 7 {
		for len(last.events) > 0 {
			<-last.events
		}
		started := time.Now()
		_, err := u.cluster.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("news-%d", i), Labels: map[string]string{metalk8s.EnvironmentLabel: "news"},
		}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		select {
		case _, ok := <-last.events:
			if !ok {
				return errors.New("the stream ended")
			}
			took = append(took, time.Since(started))
		case <-time.After(time.Minute):
			return errors.New("no tab shows a change")
		}
		if err = pause(ctx, time.Second/3); err != nil { // at another moment between two looks
			return err
		}
	}
	slices.Sort(took)
	row("another tab shows a change", "%.1f s, at most %.1f s", took[len(took)/2].Seconds(), took[len(took)-1].Seconds())
	return nil
}

// unwatched counts requests when every tab is closed.
func (u *consoleUnderTest) unwatched(ctx context.Context) error {
	if err := pause(ctx, 10*time.Second); err != nil {
		return err
	}
	before := u.requests.Load()
	if err := pause(ctx, watching); err != nil {
		return err
	}
	row("API requests without an open tab", "%.1f /s", float64(u.requests.Load()-before)/watching.Seconds())
	return nil
}
