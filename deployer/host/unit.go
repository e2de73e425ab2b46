package host

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/host/service"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema/report"
)

// watchdog is half of what containerd waits for a TLS handshake: the kernel accepts connections for a server that is stopped.
const watchdog = "5"

// Unit returns a systemd unit that runs serve with these options as program does. It gives no right but those that are needed.
func (o ServeOptions) Unit(program string) (string, error) {
	u, err := o.unit(program)
	if err != nil {
		return "", err
	}
	return u.Text()
}

// unit makes paths absolute: systemd knows no current directory.
func (o *ServeOptions) unit(program string) (_ *service.Unit, err error) {
	for _, path := range []*string{&o.Store, &o.Certificate, &o.Key, &o.AccessLog} {
		if *path == "" || *path == accessLogOutput {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return nil, err
		}
	}
	u := &service.Unit{Description: "Registry of imported Solutions", User: store.Group, Listen: []string{o.Listen, o.MetricsListen}, Watchdog: watchdog}
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
	u.Command = service.Command(words...)
	var writable []string
	if o.Store != "" {
		u.ReadOnly = "-" + service.Word(o.Store)
		tls := filepath.Join(o.Store, authorityDir)
		u.Prepare = append(u.Prepare,
			service.Command("+/usr/bin/install", "-d", "-m", "0750", "-g", u.User, o.Store),
			service.Command("-+/bin/chgrp", "-R", u.User, filepath.Join(o.Store, "archives")), // imported before there was a group
			service.Command("+/usr/bin/install", "-d", "-m", "0700", tls),
			service.Command("+/bin/chown", "-R", u.User+":"+u.User, tls))
		writable = append(writable, "-"+service.Word(tls))
	}
	if o.AccessLog != "" && o.AccessLog != accessLogOutput {
		logs := filepath.Dir(o.AccessLog)
		u.Once = append(u.Once, "install -d -m 0750 -o "+u.User+" -g "+u.User+" "+report.ShellWord(logs))
		writable = append(writable, "-"+service.Word(logs))
	}
	u.ReadWrite = strings.Join(writable, " ")
	return u, nil
}
