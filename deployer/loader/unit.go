package loader

import (
	"fmt"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/host/service"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Unit is a service for systemd by which program starts the loader with the host, after whatever starts the cluster, which it reaches
// with flags. Where that does not answer yet, or something fails, it is tried again. Greenboot judges after the first try: before that it
// would see a run that the end of the last boot interrupted.
func Unit(program, file string, flags ...string) string {
	return fmt.Sprintf(`[Unit]
Description=What this platform has when it has started
After=network-online.target solutionctl-registry.service kubelet.service k3s.service k0scontroller.service microshift.service
Before=greenboot-healthcheck.service
Wants=network-online.target
ConditionPathExists=%[2]s

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=%[1]s
Restart=on-failure
RestartSec=30
TimeoutStartSec=45min

[Install]
WantedBy=multi-user.target
`, command(program, "start", file, flags), service.Word(file))
}

// Timer returns a service for systemd that repairs, and the timer that starts it, as one text for two files. They replace the CronJob on a
// platform that repairs from the host.
func Timer(program, file string, flags ...string) string {
	return fmt.Sprintf(`# /etc/systemd/system/solutionctl-loader-repair.service
[Unit]
Description=Bring back what was changed of what this platform has
After=solutionctl-loader.service
ConditionPathExists=%[2]s

[Service]
Type=oneshot
ExecStart=%[1]s
TimeoutStartSec=45min

# /etc/systemd/system/solutionctl-loader-repair.timer
[Unit]
Description=Bring back what was changed of what this platform has

[Timer]
OnBootSec=15min
OnUnitInactiveSec=30min
AccuracySec=1min

[Install]
WantedBy=timers.target
`, command(program, "repair", file, flags), service.Word(file))
}

func command(program, verb, file string, flags []string) string {
	return service.Command(append([]string{program, "deploy", "loader", verb, "--filename", file, "--progress", "plain"}, flags...)...)
}

// Greenboot is a script for /etc/greenboot/check/required.d: a boot is green when everything that has to be there is ready.
func Greenboot(program, file string, flags ...string) string {
	var more strings.Builder
	for _, flag := range flags {
		more.WriteString(" " + report.ShellWord(flag))
	}
	return fmt.Sprintf(`#!/bin/sh
# What this platform has when it has started is ready, or the boot is red. Where nothing is configured, there is nothing to wait for.
exec %s deploy loader status --wait=5m --if-configured --filename %s --progress plain%s
`, report.ShellWord(program), report.ShellWord(file), more.String())
}
