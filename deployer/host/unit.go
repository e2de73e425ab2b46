package host

import (
	"net"
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

// unit holds the values of the template.
type unit struct {
	User                string
	Once, Prepare       []string // commands that root runs: once, and before each start
	Command             string
	ReadOnly, ReadWrite string
}

// Unit returns a systemd unit that runs serve with these options as program does. It gives no right but those that are needed.
func (o ServeOptions) Unit(program string) (string, error) {
	for _, address := range []string{o.Listen, o.MetricsListen} {
		_, port, _ := net.SplitHostPort(address) // it was checked before; there may be none
		if n, err := strconv.Atoi(port); err == nil && n > 0 && n < 1024 {
			return "", report.Errorf(report.Usage, "port %d needs a privilege, and the unit has none", n).WithHint("choose one above 1023")
		}
	}
	u, err := o.unit(program)
	if err != nil {
		return "", err
	}
	if strings.ContainsFunc(u.Command, unicode.IsControl) {
		return "", report.Errorf(report.Usage, "a unit cannot name a file with a control character")
	}
	var text strings.Builder
	err = template.Must(template.New("unit").Parse(unitTemplate)).Execute(&text, u)
	return text.String(), err
}

// unit makes paths absolute: systemd knows no current directory.
func (o *ServeOptions) unit(program string) (_ *unit, err error) {
	for _, path := range []*string{&o.Store, &o.Certificate, &o.Key, &o.AccessLog} {
		if *path == "" || *path == AccessLogOutput {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return nil, err
		}
	}
	u := &unit{User: store.Group}
	words := []string{program, "deploy", "serve", "--progress", "plain", "--store", o.Store, "--listen", o.Listen}
	for _, file := range o.Archives {
		if file, err = filepath.Abs(file); err != nil {
			return nil, err
		}
		words = append(words, "--archive", file)
	}
	for _, name := range o.Names {
		words = append(words, "--tls-name", name)
	}
	for _, flag := range []struct{ name, value string }{
		{"--metrics-listen", o.MetricsListen}, {"--access-log", o.AccessLog}, {"--tls-cert", o.Certificate}, {"--tls-key", o.Key},
	} {
		if flag.value != "" {
			words = append(words, flag.name, flag.value)
		}
	}
	if o.MirrorOrigins {
		words = append(words, "--mirror-origins")
	}
	if o.PlainHTTP {
		words = append(words, "--plain-http")
	}
	if o.MaxTransfers != DefaultTransfers {
		words = append(words, "--max-transfers", strconv.Itoa(o.MaxTransfers))
	}
	u.Command = unitCommand(words...)
	var writable []string
	if o.Store != "" {
		u.ReadOnly = "-" + unitWord(o.Store)
		tls := filepath.Join(o.Store, authorityDir)
		u.Prepare = append(u.Prepare,
			unitCommand("+/usr/bin/install", "-d", "-m", "0750", "-g", u.User, o.Store),
			unitCommand("-+/bin/chgrp", "-R", u.User, filepath.Join(o.Store, "archives")), // imported before there was a group
			unitCommand("+/usr/bin/install", "-d", "-m", "0700", tls),
			unitCommand("+/bin/chown", "-R", u.User+":"+u.User, tls))
		writable = append(writable, "-"+unitWord(tls))
	}
	if o.AccessLog != "" && o.AccessLog != AccessLogOutput {
		logs := filepath.Dir(o.AccessLog)
		u.Once = append(u.Once, "install -d -m 0750 -o "+u.User+" -g "+u.User+" "+report.ShellWord(logs))
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
