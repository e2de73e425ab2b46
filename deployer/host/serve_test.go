package host

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/host/service"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestServeOptionsCheck(t *testing.T) {
	good := ServeOptions{Listen: "127.0.0.1:0", MaxTransfers: DefaultTransfers}
	for _, test := range []struct {
		name   string
		change func(o *ServeOptions)
		text   string // in the error; "" for none
	}{
		{"good", func(*ServeOptions) {}, ""},
		{"no port", func(o *ServeOptions) { o.Listen = "10.0.0.1" }, "--listen"},
		{"no port for metrics", func(o *ServeOptions) { o.MetricsListen = "10.0.0.1" }, "--metrics-listen"},
		{"a certificate without its key", func(o *ServeOptions) { o.Certificate = "a.crt" }, "go together"},
		{"encrypted and not", func(o *ServeOptions) { o.Certificate, o.Key, o.PlainHTTP = "a.crt", "a.key", true }, "contradict"},
		{"no transfers", func(o *ServeOptions) { o.MaxTransfers = 0 }, "nothing could be pulled"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := good
			test.change(&o)
			err := o.Check()
			if (err == nil) != (test.text == "") || err != nil && !strings.Contains(err.Error(), test.text) {
				t.Errorf("%v, want %q", err, test.text)
			}
		})
	}
}

func TestUnit(t *testing.T) {
	o := ServeOptions{Store: "/srv/a store", Listen: ":5000", AccessLog: "/var/log/x/access.log", MaxTransfers: 3, Names: []string{"10%"}, MirrorOrigins: true}
	unit, err := o.Unit("/usr/bin/solutionctl")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`ExecStart=/usr/bin/solutionctl deploy serve --progress plain --store "/srv/a store" --listen :5000 --tls-name 10%% --access-log /var/log/x/access.log --mirror-origins --max-transfers 3`,
		`ReadOnlyPaths=-"/srv/a store"`,
		`ReadWritePaths=-"/srv/a store/tls" -/var/log/x`,
		`#   install -d -m 0750 -o solutionctl -g solutionctl /var/log/x`,
	} {
		if !strings.Contains(unit, line+"\n") {
			t.Errorf("%s\nis not in\n%s", line, unit)
		}
	}
	for name, wrong := range map[string]ServeOptions{"a privileged port": {Listen: ":443"}, "a line of its own": {Listen: ":5000", Names: []string{"a\nUser=root"}}} {
		if _, err = wrong.Unit("/usr/bin/solutionctl"); report.CodeOf(err) != report.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestServe serves an import on the loopback interface, notifies the service manager, reloads on request, and stops in
// order.
func TestServe(t *testing.T) {
	w := newWorld(t)
	if _, err := w.do(w.archive("1.0.0")); err != nil {
		t.Fatal(err)
	}
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: w.path("notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close() //nolint:errcheck // nothing was written
	alive := 0
	states := func() string {
		for {
			buffer := make([]byte, 100)
			n, failure := manager.Read(buffer)
			if failure != nil {
				t.Fatal(failure)
			}
			if state := string(buffer[:n]); state != "WATCHDOG=1" {
				return state
			}
			alive++
		}
	}
	hangups := make(chan os.Signal)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	events := &report.Recorder{}
	go func() {
		ended <- Serve(ctx, ServeOptions{
			Store: w.path("store"), Listen: "127.0.0.1:0", MaxTransfers: DefaultTransfers, AccessLog: w.path("access.log"), Output: io.Discard, Errors: io.Discard,
			Hangup: hangups, Manager: service.Notifier{Socket: w.path("notify"), Watchdog: 40 * time.Millisecond, Sink: events}, Sink: events, Now: w.Now,
		})
	}()
	if got := states(); got != "READY=1" {
		t.Errorf("the service manager received %q", got)
	}
	hangups <- syscall.SIGHUP
	hangups <- syscall.SIGHUP // the first one is over when it is taken
	var url string
	for _, e := range events.Events() {
		if e.Step == "listen" {
			url = e.Name
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close() != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", url, answer.Status)
	}
	for before := alive; alive == before; { // it gives signs of life
		buffer := make([]byte, 100)
		if n, failure := manager.Read(buffer); failure != nil || string(buffer[:n]) != "WATCHDOG=1" {
			t.Fatalf("the service manager received %q, %v", buffer[:n], failure)
		}
		alive++
	}
	stop()
	if got := states(); got != "STOPPING=1" {
		t.Errorf("the service manager received %q", got)
	}
	if err = <-ended; err != nil {
		t.Error(err)
	}
}

// TestServeRefuses fails before anything listens.
func TestServeRefuses(t *testing.T) {
	w := newWorld(t)
	w.write(w.path("none.iso"), []byte("no archive"))
	for name, o := range map[string]ServeOptions{
		"no place for an authority": {Listen: ":0"},
		"no certificate":            {Listen: ":0", Certificate: w.path("a.crt"), Key: w.path("a.key")},
		"no archive":                {Listen: "127.0.0.1:0", Archives: []string{w.path("none.iso")}},
		"no directory for the log":  {Listen: "127.0.0.1:0", AccessLog: w.path("nowhere/access.log")},
	} {
		o.Sink, o.Now, o.Errors, o.MaxTransfers = report.Discard, w.Now, io.Discard, 1
		if err := Serve(t.Context(), o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
