package hostd

import (
	"strings"
	"text/template"

	"github.com/solutionctl/solutionctl/deployer/host/service"
)

// socketTemplate is the socket of the service, which systemd makes for the group of the console.
const socketTemplate = `[Unit]
Description=Import of Solutions for the console

[Socket]
ListenStream={{.Socket}}
SocketUser=root
SocketGroup={{.Group}}
SocketMode=0660
DirectoryMode=0755

[Install]
WantedBy=sockets.target
`

// serviceTemplate is the service. It runs as root, because only root can change the store, MetalK8s' configuration and
// their owners; it keeps only the capabilities for that. The network stays open: the API server decides what the user
// can do, and gets the record of imports. Memory is bounded, because archives are not trusted. Directories are
// protected, so the writable ones have to exist before it starts. Mounts of a protected service are invisible to other
// processes: where archives are to be mounted, the protection is left out.
const serviceTemplate = `[Unit]
Description=Import of Solutions for the console
Requires={{.Name}}.socket
After=network-online.target local-fs.target
Wants=network-online.target

[Service]
{{- if not .Mounts}}
ExecStartPre=+{{.Make}}
{{- end}}
ExecStart={{.Command}}
Restart=on-failure
RestartSec=1
TimeoutStopSec=60
UMask=0027
MemoryMax=1G
TasksMax=256
LimitNOFILE=4096

CapabilityBoundingSet=CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER{{if .Mounts}} CAP_SYS_ADMIN{{end}}
AmbientCapabilities=
NoNewPrivileges=yes
{{- if not .Mounts}}
ProtectSystem=strict
ReadWritePaths={{.ReadWrite}}
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectControlGroups=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
{{- end}}
ProtectClock=yes
ProtectHostname=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
`

// UnitName is that of the service and of its socket.
const UnitName = "solutionctl-host"

// Units describe the service for systemd.
type Units struct {
	Socket    string   // path
	Group     string   // the group that can connect
	Command   []string // the program with its arguments
	ReadWrite []string // directories that it changes, and that are made where they are missing
	Optional  []string // directories that it changes where there are any
	Mounts    bool     // it mounts archives
}

// Files returns the units: the socket first, then the service.
func (u Units) Files() (socket, unit string, err error) {
	var writable []string
	for _, path := range u.ReadWrite {
		writable = append(writable, service.Word(path))
	}
	for _, path := range u.Optional {
		writable = append(writable, "-"+service.Word(path))
	}
	values := map[string]any{
		"Name": UnitName, "Socket": strings.ReplaceAll(u.Socket, "%", "%%"), "Group": u.Group, "Command": service.Command(u.Command...),
		"Make": service.Command(append([]string{"/bin/mkdir", "-p", "--"}, u.ReadWrite...)...), "ReadWrite": strings.Join(writable, " "), "Mounts": u.Mounts,
	}
	var texts [2]strings.Builder
	for i, text := range []string{socketTemplate, serviceTemplate} {
		if err = template.Must(template.New("").Parse(text)).Execute(&texts[i], values); err != nil {
			return "", "", err
		}
	}
	return texts[0].String(), texts[1].String(), nil
}
