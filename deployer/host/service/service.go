// Package service is what a program has to do with whoever runs it as a service: a unit that gives it no right that it does
// not need, news of how it is, and files that somebody else renews while it runs.
package service

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"text/template"
	"unicode"

	"github.com/solutionctl/solutionctl/schema/report"
)

// unitTemplate is a unit for systemd. The program gets no right but to read, to write where the unit says, and to use the
// network: ProcSubset stays open because the length of the queue of connections is read from /proc/sys, and AF_NETLINK tells
// the addresses that a certificate is for.
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
TimeoutStartSec=5min
{{- else}}
ExecReload=/bin/kill -HUP $MAINPID
Restart=always
RestartSec=1
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
	Every               string   // a time span: a timer starts it, and it ends; "" is a service that goes on
	Capabilities        string   // that it may have; "" is none
	Once, Prepare       []string // commands that root runs: once, and before each start
	Command             string
	ReadOnly, ReadWrite string
	State               string   // a directory of its own below /var/lib
	Listen              []string // addresses; "" is none
}

// Timer returns the file of the timer that starts the unit. It has the same name.
func (u Unit) Timer() (string, error) { return render("timer", timerTemplate, u) }

// Text returns the file of the unit.
func (u Unit) Text() (string, error) {
	for _, address := range u.Listen {
		_, port, _ := net.SplitHostPort(address) // whoever listens has checked it
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

// Notifier tells the service manager how the program is.
type Notifier struct {
	Socket string // "": nobody has to be told
	Sink   report.Sink
}

// Ready tells that the program answers.
func (n Notifier) Ready() { n.tell("READY=1") }

// Stopping tells that it ends.
func (n Notifier) Stopping() { n.tell("STOPPING=1") }

func (n Notifier) tell(state string) {
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
