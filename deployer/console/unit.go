package console

import (
	"github.com/solutionctl/solutionctl/deployer/host/service"
	"github.com/solutionctl/solutionctl/schema/report"
)

// serviceUser runs the console as a service, and has nothing else. It is the name of its directory below /var/lib, too.
const serviceUser = "solutionctl-console"

// StateDir is the directory that the console can write as a service.
const StateDir = "/var/lib/" + serviceUser

// Unit returns a systemd unit that runs program with these arguments as a user of its own. It can only listen, read
// files that every user can read, and write to [StateDir].
func (o ServeOptions) Unit(program string, arguments []string, secrets ...string) (string, error) {
	if err := o.checkUnattended(); err != nil {
		return "", err
	}
	u := service.Unit{
		Description: "Web console of Solutions", User: serviceUser, State: serviceUser, Listen: []string{o.Listen},
		Command: service.Command(append([]string{program}, arguments...)...),
	}
	for _, file := range secrets {
		if file != "" {
			u.Once = append(u.Once, "chgrp "+serviceUser+" "+report.ShellWord(file)+" && chmod 0640 "+report.ShellWord(file))
		}
	}
	return u.Text()
}

// checkUnattended refuses options that need a user who runs the console.
func (o ServeOptions) checkUnattended() error {
	if o.Links {
		return report.Errorf(report.Usage, "a link grants the permissions of the user who runs the console, and the user of a service has none").
			WithHint("let people log in by themselves: --login token or --login provider")
	}
	return nil
}
