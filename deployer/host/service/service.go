// Package service integrates a program with its service manager: a unit with minimal privileges, notifications of its
// state, and files that another program renews while it runs.
package service

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"text/template"
	"time"
	"unicode"

	"github.com/solutionctl/solutionctl/schema/report"
)

// unitTemplate is a unit for systemd. The program can only read, write where the unit allows it, and use the network.
// ProcSubset stays open because the length of the queue of connections is in /proc/sys, and AF_NETLINK provides the
// addresses for a certificate.
const unitTemplate = `{{if ne .User "root" -}}
# To be run once, as root:
#   useradd --system --user-group --home-dir / --no-create-home --shell /usr/sbin/nologin {{.User}}
{{- range .Once}}
#   {{.}}
{{- end}}
{{end -}}
[Unit]
Description={{.Description}}
After=network-online.target local-fs.target remote-fs.target
Wants=network-online.target

[Service]
Type={{if .Every}}oneshot{{else}}notify{{end}}
User={{.User}}
Group={{.User}}
{{- range .Prepare}}
ExecStartPre={{.}}
{{- end}}
ExecStart={{.Command}}
{{- if .Every}}
TimeoutStartSec={{or .Limit "5min"}}
{{- else}}
ExecReload=/bin/kill -HUP $MAINPID
Restart=always
RestartSec=1
{{- if .Watchdog}}
WatchdogSec={{.Watchdog}}
WatchdogSignal=SIGKILL
{{- end}}
TimeoutStopSec=40
LimitNOFILE=65536
{{- end}}
UMask=0027

CapabilityBoundingSet={{.Capabilities}}
AmbientCapabilities=
NoNewPrivileges=yes
ProtectSystem=strict
{{- if .ReadOnly}}
ReadOnlyPaths={{.ReadOnly}}
{{- end}}
{{- if .ReadWrite}}
ReadWritePaths={{.ReadWrite}}
{{- end}}
{{- if .State}}
StateDirectory={{.State}}
StateDirectoryMode=0700
{{- end}}
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RemoveIPC=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
{{- if not .Every}}

[Install]
WantedBy=multi-user.target
{{- end}}
`

const timerTemplate = `[Unit]
Description={{.Description}}

[Timer]
OnActiveSec=10s
OnUnitInactiveSec={{.Every}}
AccuracySec=10s

[Install]
WantedBy=timers.target
`

// Unit is a service of systemd that runs as a user of its own, or as root with next to no rights.
type Unit struct {
	Description         string
	User                string
	Every               string   // a time span: a timer starts it, and it ends; "" for a continuous service
	Limit               string   // a time span that a run of Every may take; "" is five minutes
	Capabilities        string   // that it may have; "" is none
	Once, Prepare       []string // commands that root runs: once, and before each start
	Command             string
	ReadOnly, ReadWrite string
	State               string   // a directory of its own below /var/lib
	Listen              []string // addresses; "" is none
	Watchdog            string   // a time span: without a sign of life for so long it is killed and started again; "" is never
}

// Timer returns the file of the timer that starts the unit. It has the same name.
func (u Unit) Timer() (string, error) { return render("timer", timerTemplate, u) }

// Text returns the file of the unit.
func (u Unit) Text() (string, error) {
	for _, address := range u.Listen {
		_, port, _ := net.SplitHostPort(address) // the listener has checked it
		if n, err := strconv.Atoi(port); err == nil && n > 0 && n < 1024 {
			return "", report.Errorf(report.Usage, "port %d needs a privilege, and the unit has none", n).WithHint("choose one above 1023")
		}
	}
	if strings.ContainsFunc(u.Command+strings.Join(u.Once, ""), unicode.IsControl) {
		return "", report.Errorf(report.Usage, "a unit cannot name a file with a control character")
	}
	return render("unit", unitTemplate, u)
}

func render(name, text string, u Unit) (string, error) {
	var b strings.Builder
	err := template.Must(template.New(name).Parse(text)).Execute(&b, u)
	return b.String(), err
}

// Command is a line that runs a program with arguments as systemd reads it.
func Command(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = strings.ReplaceAll(Word(word), "$", "$$")
	}
	return strings.Join(quoted, " ")
}

// Word quotes a word as systemd reads it.
func Word(word string) string {
	word = strings.ReplaceAll(word, "%", "%%")
	if word == "" || strings.ContainsAny(word, " \"'\\;") {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
	}
	return word
}

// Notifier reports the state of the program to the service manager.
type Notifier struct {
	Socket   string        // "": no notifications
	Watchdog time.Duration // the manager kills the program after so long without a sign of life; 0 is never
	Sink     report.Sink
}

// NotifierOf returns the notifier that the service manager asks for in the environment.
func NotifierOf(getenv func(string) string, sink report.Sink) Notifier {
	microseconds, _ := strconv.Atoi(getenv("WATCHDOG_USEC")) // it is not set where there is no watchdog
	return Notifier{Socket: getenv("NOTIFY_SOCKET"), Watchdog: time.Duration(microseconds) * time.Microsecond, Sink: sink}
}

// KeepAlive gives signs of life until stop is called.
func (n Notifier) KeepAlive() (stop func()) {
	if n.Watchdog <= 0 {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(n.Watchdog / 4)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				n.send("WATCHDOG=1")
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// Ready reports that the program answers requests.
func (n Notifier) Ready() { n.send("READY=1") }

// Stopping reports that the program is stopping.
func (n Notifier) Stopping() { n.send("STOPPING=1") }

func (n Notifier) send(state string) {
	if n.Socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.Socket, Net: "unixgram"})
	if err == nil {
		_, err = conn.Write([]byte(state))
		err = errors.Join(err, conn.Close())
	}
	if err != nil {
		n.Sink.Emit(report.Event{Step: "notify systemd", State: report.Failed, Note: err.Error()})
	}
}
