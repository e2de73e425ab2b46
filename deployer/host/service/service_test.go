package service_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/host/service"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestCommand(t *testing.T) {
	got := service.Command("/usr/bin/x", "", "a b", `"`, `\`, "$HOME", "10%", "a;b")
	if want := `/usr/bin/x "" "a b" "\"" "\\" $$HOME 10%% "a;b"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestUnit(t *testing.T) {
	good := service.Unit{Description: "A test", User: "tester", Command: "/bin/true", State: "tester", Listen: []string{":8443", ""}}
	text, err := good.Text()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"Description=A test", "User=tester", "StateDirectory=tester", "CapabilityBoundingSet=", "NoNewPrivileges=yes", "ProtectSystem=strict"} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
	timed := service.Unit{Description: "A test", User: "root", Command: "/bin/true", Capabilities: "CAP_DAC_OVERRIDE", Every: "5min"}
	text, err = timed.Text()
	if err != nil || !strings.HasPrefix(text, "[Unit]\n") || !strings.Contains(text, "\nType=oneshot\n") || !strings.Contains(text, "\nCapabilityBoundingSet=CAP_DAC_OVERRIDE\n") ||
		strings.Contains(text, "Restart=") || strings.Contains(text, "[Install]") {
		t.Errorf("what a timer starts: %v\n%s", err, text)
	}
	if text, err = timed.Timer(); err != nil || !strings.Contains(text, "\nOnUnitInactiveSec=5min\n") || !strings.Contains(text, "\nWantedBy=timers.target\n") {
		t.Errorf("the timer: %v\n%s", err, text)
	}
	privileged, injected, comment := good, good, good
	privileged.Listen = []string{":443"}
	injected.Command = "/bin/true\nUser=root"
	comment.Once = []string{"x\nUser=root"}
	for _, wrong := range []service.Unit{privileged, injected, comment} {
		if text, err := wrong.Text(); report.CodeOf(err) != report.Usage || text != "" {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

// TestRenewed replaces a file as people, Kubernetes and broken disks do.
func TestRenewed(t *testing.T) {
	dir, events := t.TempDir(), &report.Recorder{}
	file := filepath.Join(dir, "file")
	write := func(text string) {
		t.Helper()
		next := filepath.Join(dir, "next")
		if err := errors.Join(os.WriteFile(next, []byte(text), 0o600), os.Rename(next, file)); err != nil {
			t.Fatal(err)
		}
	}
	reads := 0
	read := func() (string, error) {
		reads++
		data, err := os.ReadFile(file)
		if strings.HasPrefix(string(data), "bad") {
			return "", errors.New("it is bad")
		}
		return string(data), err
	}
	if _, err := service.Read(events, "read", read, file); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a file that is missing at the start: %v", err)
	}
	write("one")
	r, err := service.Read(events, "read", read, file)
	if err != nil {
		t.Fatal(err)
	}
	want := func(text string, failures int) {
		t.Helper()
		if got := r.Current(); got != text {
			t.Errorf("%q, want %q", got, text)
		}
		if failed := len(events.Events()); failed != failures {
			t.Errorf("%d failures were reported, want %d", failed, failures)
		}
	}
	reads = 0
	want("one", 0)
	want("one", 0)
	if reads != 0 {
		t.Error("it is read again without a reason")
	}
	write("two")
	want("two", 0)
	write("bad")
	want("two", 1)
	want("two", 1) // it is reported once
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	want("two", 2)
	write("three")
	want("three", 2)
	reads = 0
	r.Again()
	if reads != 1 {
		t.Error("it is not read again though somebody asks for it")
	}
}

func TestNotifier(t *testing.T) {
	socket, events := filepath.Join(t.TempDir(), "socket"), &report.Recorder{}
	service.Notifier{Sink: events}.Ready()
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	service.Notifier{Socket: socket, Sink: events}.Stopping()
	buffer := make([]byte, 100)
	if n, err := manager.Read(buffer); err != nil || string(buffer[:n]) != "STOPPING=1" {
		t.Errorf("%q, %v", buffer[:n], err)
	}
	if err := manager.Close(); err != nil || len(events.Events()) > 0 {
		t.Errorf("%v, %v", err, events.Events())
	}
	service.Notifier{Socket: socket, Sink: events}.Ready()
	if len(events.Events()) != 1 {
		t.Error("no warning that the manager cannot be reached")
	}
}
