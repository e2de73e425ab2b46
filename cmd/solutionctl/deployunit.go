package main

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
	"unicode"

	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema/report"
)

// unitTemplate is a unit for systemd. The program gets no right but to read the archives, to write its log and certificates,
// and to use the network: ProcSubset stays open because the length of the queue of connections is read from /proc/sys, and
// AF_NETLINK tells the addresses that the certificate is for.
const unitTemplate = `# To be run once, as root:
#   useradd --system --user-group --home-dir / --no-create-home --shell /usr/sbin/nologin {{.User}}
{{- range .Once}}
#   {{.}}
{{- end}}
[Unit]
Description=Registry of imported Solutions
After=network-online.target local-fs.target remote-fs.target
Wants=network-online.target

[Service]
Type=notify
User={{.User}}
Group={{.User}}
{{- range .Prepare}}
ExecStartPre={{.}}
{{- end}}
ExecStart={{.Command}}
ExecReload=/bin/kill -HUP $MAINPID
Restart=always
RestartSec=1
TimeoutStopSec=40
LimitNOFILE=65536
UMask=0027

CapabilityBoundingSet=
AmbientCapabilities=
NoNewPrivileges=yes
ProtectSystem=strict
{{- if .ReadOnly}}
ReadOnlyPaths={{.ReadOnly}}
{{- end}}
{{- if .ReadWrite}}
ReadWritePaths={{.ReadWrite}}
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

[Install]
WantedBy=multi-user.target
`

// unit is what goes into the template.
type unit struct {
	User                string
	Once, Prepare       []string // commands that root runs: once, and before each start
	Command             string
	ReadOnly, ReadWrite string
}

// printUnit prints a systemd unit that runs serve with these flags.
func (a *app) printUnit(o serveOptions) error {
	for _, address := range []string{o.listen, o.metricsListen} {
		_, port, _ := net.SplitHostPort(address) // it was checked before; there may be none
		if n, err := strconv.Atoi(port); err == nil && n > 0 && n < 1024 {
			return report.Errorf(report.Usage, "port %d needs a privilege, and the unit has none", n).WithHint("choose one above 1023")
		}
	}
	u, err := o.unit()
	if err != nil {
		return err
	}
	if strings.ContainsFunc(u.Command, unicode.IsControl) {
		return report.Errorf(report.Usage, "a unit cannot name a file with a control character")
	}
	a.sink.Close()
	return template.Must(template.New("unit").Parse(unitTemplate)).Execute(a.out, u)
}

// unit makes paths absolute: systemd knows no current directory.
func (o *serveOptions) unit() (*unit, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for _, path := range []*string{&o.store, &o.certificate, &o.key, &o.accessLog} {
		if *path == "" || *path == "-" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return nil, err
		}
	}
	u := &unit{User: store.Group}
	words := []string{program, "deploy", "serve", "--progress", "plain", "--store", o.store, "--listen", o.listen}
	for _, file := range o.archives {
		if file, err = filepath.Abs(file); err != nil {
			return nil, err
		}
		words = append(words, "--archive", file)
	}
	for _, name := range o.names {
		words = append(words, "--tls-name", name)
	}
	for _, flag := range []struct{ name, value string }{
		{"--metrics-listen", o.metricsListen}, {"--access-log", o.accessLog}, {"--tls-cert", o.certificate}, {"--tls-key", o.key},
	} {
		if flag.value != "" {
			words = append(words, flag.name, flag.value)
		}
	}
	if o.mirror {
		words = append(words, "--mirror-origins")
	}
	if o.plain {
		words = append(words, "--plain-http")
	}
	if o.transfers != defaultTransfers {
		words = append(words, "--max-transfers", strconv.Itoa(o.transfers))
	}
	u.Command = unitCommand(words...)
	var writable []string
	if o.store != "" {
		u.ReadOnly = "-" + unitWord(o.store)
		tls := filepath.Join(o.store, authorityDir)
		u.Prepare = append(u.Prepare,
			unitCommand("+/usr/bin/install", "-d", "-m", "0750", "-g", u.User, o.store),
			unitCommand("-+/bin/chgrp", "-R", u.User, filepath.Join(o.store, "archives")), // imported before there was a group
			unitCommand("+/usr/bin/install", "-d", "-m", "0700", tls),
			unitCommand("+/bin/chown", "-R", u.User+":"+u.User, tls))
		writable = append(writable, "-"+unitWord(tls))
	}
	if o.accessLog != "" && o.accessLog != "-" {
		logs := filepath.Dir(o.accessLog)
		u.Once = append(u.Once, "install -d -m 0750 -o "+u.User+" -g "+u.User+" "+shellWord(logs))
		writable = append(writable, "-"+unitWord(logs))
	}
	u.ReadWrite = strings.Join(writable, " ")
	return u, nil
}

func unitCommand(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = strings.ReplaceAll(unitWord(word), "$", "$$")
	}
	return strings.Join(quoted, " ")
}

// unitWord quotes a word as systemd reads it.
func unitWord(word string) string {
	word = strings.ReplaceAll(word, "%", "%%")
	if word == "" || strings.ContainsAny(word, " \"'\\;") {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
	}
	return word
}

// shellWord quotes a word as a shell reads it.
func shellWord(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-=:,") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
