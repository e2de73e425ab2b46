package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// systemRoot is a directory with just enough of a system for packages to be installed into it: a shell, and stand-ins for the programs
// that their scripts call, which write down how they were called.
type systemRoot struct {
	t   *testing.T
	dir string
}

func newSystemRoot(t *testing.T) systemRoot {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root changes its root directory")
	}
	r := systemRoot{t, t.TempDir()}
	if err := os.Chmod(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.copyProgram("/bin/sh")
	for _, program := range []string{"systemctl", "systemd-sysusers", "systemd-tmpfiles"} {
		writeFile(t, r.path("usr/bin/"+program), "#!/bin/sh\necho "+program+" \"$@\" >>/calls\n", 0o755)
	}
	writeFile(t, r.path("run/systemd/system/x"), "", 0o644)
	writeFile(t, r.path("var/lib/solutionctl/archives/x.iso"), "an archive", 0o640)
	writeFile(t, r.path("etc/solutionctl/trust/x.pub"), "a key", 0o644)
	writeFile(t, r.path("dev/null"), "", 0o666)
	return r
}

func (r systemRoot) path(name string) string { return filepath.Join(r.dir, name) }

var library = regexp.MustCompile(`/\S+\.so\S*`)

// copyProgram copies a program with the libraries that it is linked with.
func (r systemRoot) copyProgram(program string) {
	r.t.Helper()
	out, err := exec.CommandContext(r.t.Context(), "ldd", program).Output()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, file := range append(library.FindAllString(string(out), -1), program) {
		data, err := os.ReadFile(file)
		if err != nil {
			r.t.Fatal(err)
		}
		writeFile(r.t, r.path(file), string(data), 0o755)
	}
}

// run runs a command outside, and returns what it printed.
func (r systemRoot) run(words ...string) string {
	r.t.Helper()
	out, err := exec.CommandContext(r.t.Context(), words[0], words[1:]...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("%q: %v\n%s", words, err, out)
	}
	return string(out)
}

// calls returns how the stand-ins were called since the last time.
func (r systemRoot) calls() string {
	r.t.Helper()
	data, err := os.ReadFile(r.path("calls"))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	if err = os.RemoveAll(r.path("calls")); err != nil {
		r.t.Fatal(err)
	}
	return string(data)
}

// serve starts the installed program, as systemd would, and returns a function that reports whether it still runs.
func (r systemRoot) serve() (running func() bool) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), r.path("usr/bin/solutionctl"))
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed
		close(ended)
	}()
	return func() bool {
		select {
		case <-ended:
			return false
		default:
			return true
		}
	}
}

func (r systemRoot) keeps(when string) {
	r.t.Helper()
	for _, name := range []string{"var/lib/solutionctl/archives/x.iso", "etc/solutionctl/trust/x.pub"} {
		if _, err := os.Stat(r.path(name)); err != nil {
			r.t.Errorf("%s: %v", when, err)
		}
	}
}

// TestPackages installs a package, upgrades it while its program runs, removes it and, with dpkg, purges it.
func TestPackages(t *testing.T) {
	program := nfpm(t)
	const try = "systemctl try-restart solutionctl-registry.service solutionctl-host.service solutionctl-console.service\n"
	input := newInput(t)
	old, next := makeRelease(t, program, input, "0.1.0"), makeRelease(t, program, input, "0.2.0")
	for _, manager := range []struct {
		name, remedy, suffix    string
		install, upgrade, erase []string
		purge                   []string
	}{
		{
			"dpkg", "", ".deb",
			[]string{"dpkg", "--force-depends", "--root", "@", "--install"},
			[]string{"dpkg", "--root", "@", "--install"},
			[]string{"dpkg", "--root", "@", "--remove", name},
			[]string{"dpkg", "--root", "@", "--purge", name},
		},
		{
			"rpm", "apt-get install rpm", ".rpm",
			[]string{"rpm", "--root", "@", "--nodeps", "--install"},
			[]string{"rpm", "--root", "@", "--nodeps", "--upgrade"},
			[]string{"rpm", "--root", "@", "--nodeps", "--erase", name},
			nil,
		},
	} {
		t.Run(manager.name, func(t *testing.T) {
			tool(t, manager.name, manager.remedy)
			r := newSystemRoot(t)
			for _, file := range []string{"status", "available"} {
				writeFile(t, r.path("var/lib/dpkg/"+file), "", 0o644)
			}
			at := func(words []string, release string) []string {
				var command []string
				for _, word := range words {
					command = append(command, strings.Replace(word, "@", r.dir, 1))
				}
				if release != "" {
					packages, err := filepath.Glob(filepath.Join(release, "*"+manager.suffix))
					if err != nil || len(packages) != 1 {
						t.Fatalf("%q, %v", packages, err)
					}
					command = append(command, packages[0])
				}
				return command
			}
			r.run(at(manager.install, old)...)
			calls := r.calls()
			if want := "systemd-sysusers solutionctl.conf\nsystemd-tmpfiles --create solutionctl.conf\nsystemctl daemon-reload\n" + try; calls != want {
				t.Errorf("after the installation:\n%s", calls)
			}
			running := r.serve()
			r.run(at(manager.upgrade, next)...)
			if calls = r.calls(); !strings.Contains(calls, try) || strings.Contains(calls, "disable") {
				t.Errorf("after the upgrade:\n%s", calls)
			}
			if !running() {
				t.Error("the program that ran has ended before it was restarted")
			}
			r.keeps("after the upgrade")
			r.run(at(manager.erase, "")...)
			if calls = r.calls(); !strings.Contains(calls, "systemctl disable --now solutionctl-host.socket") || strings.Contains(calls, "try-restart") {
				t.Errorf("after the removal:\n%s", calls)
			}
			if _, err := os.Stat(r.path("usr/bin/solutionctl")); !os.IsNotExist(err) {
				t.Errorf("after the removal: the program: %v", err)
			}
			r.keeps("after the removal")
			if manager.purge != nil {
				if out := r.run(at(manager.purge, "")...); !strings.Contains(out, "/var/lib/solutionctl was kept") {
					t.Errorf("the purge prints %s", out)
				}
				r.keeps("after the purge")
			}
		})
	}
}

// TestLintian lets lintian judge the deb.
func TestLintian(t *testing.T) {
	program := nfpm(t)
	dir := makeRelease(t, program, newInput(t), "0.1.0")
	tool(t, "lintian", "apt-get install lintian")
	cmd := exec.CommandContext(t.Context(), "lintian", "--allow-root", "--fail-on", "error,warning", "--suppress-tags", "bad-whatis-entry,manpage-has-errors-from-man",
		filepath.Join(dir, "solutionctl_0.1.0_amd64.deb"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
