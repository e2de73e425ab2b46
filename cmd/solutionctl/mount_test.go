//go:build linux && amd64

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestMountedImport imports an archive on a host that can mount it: in a user-mode Linux, whose isofs and loop devices are
// those of any Linux. The paths are the ones that a host has, and so are fstab(5) and mount(8).
func TestMountedImport(t *testing.T) {
	if _, err := exec.LookPath("linux.uml"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("linux.uml is not installed (apt-get install user-mode-linux)")
		}
		t.Skip("linux.uml is not installed (apt-get install user-mode-linux)")
	}
	dir := signedDemo(t)
	sections := boot(t, dir)
	const header = "apiVersion: solutions.metalk8s.scality.com/v1alpha1\nkind: SolutionsConfiguration\n"
	const unasked = "note: /etc/metalk8s/solutions.yaml does not list demo as active, and the cluster was not asked. If it is active there, MetalK8s would " +
		"delete its CRDs: before MetalK8s runs, import it again with access to the cluster, or run on this host: solutionctl deploy activate demo VERSION\n"
	const fstab = "# ours\nnone /mnt tmpfs noauto 0 0\n"
	files := sumsOf(t, filepath.Join(dir, "demo-0.1.0.iso"))
	for name, want := range map[string]string{
		"import": "demo-0.1.0: imported, 140 KiB copied to /var/lib/solutionctl/archives/demo-0.1.0.iso\n  signed by acme\n" +
			"  mounted at /srv/scality/demo-0.1.0\n" + unasked + "note: MetalK8s' nginx serves the images after: salt-call state.sls metalk8s.repo.installed\nexit 0\n",
		"before":        "/srv/scality/demo-0.1.0 iso9660\n",
		"again":         "demo-0.1.0: imported before\n  signed by acme\n  mounted at /srv/scality/demo-0.1.0\n" + unasked + "exit 0\n",
		"fstab":         fstab + "/var/lib/solutionctl/archives/demo-0.1.0.iso /srv/scality/demo-0.1.0 iso9660 ro,nofail,loop 0 0\n",
		"configuration": header + "archives:\n  - /var/lib/solutionctl/archives/demo-0.1.0.iso\nactive: {}\n",
		"nginx":         "demo-0.1.0-registry-config.inc\n3\n",
		"mount":         "/srv/scality/demo-0.1.0 iso9660\n/var/lib/solutionctl/archives/demo-0.1.0.iso\n",
		"files":         files,
		"reboot":        files,
		"busy": "solutionctl: error: unmount /srv/scality/demo-0.1.0: files of it are in use by mount.sh (1)\n" +
			"solutionctl: hint: end what uses them, then run the same command again\nexit 6\n",
		"unimport": "demo-0.1.0: removed, 140 KiB freed\nexit 0\n",
		"left":     fstab + "/srv/scality\n/var/lib/metalk8s/repositories\n/var/lib/metalk8s/repositories/conf.d\n" + header + "archives: []\nactive: {}\n",
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, sections[name]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// signedDemo returns a directory with a new project's archive, its signature and key, and the program.
func signedDemo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "solutionctl")
	if err := os.Link(self, program); err != nil {
		data, err := os.ReadFile(self)
		if err = errors.Join(err, os.WriteFile(program, data, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "demo"}, {"build", "demo"}, {"keygen", "acme"}, {"sign", "--key", "acme.key", "demo-0.1.0.iso"}} {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "SOLUTIONCTL_PASSWORD=secret", "SOLUTIONCTL_CONFIG="+os.DevNull)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("solutionctl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	return dir
}

// boot runs testdata/mount.sh and returns the sections of what it printed.
func boot(t *testing.T, dir string) map[string]string {
	t.Helper()
	script, err := filepath.Abs("testdata/mount.sh")
	if err != nil {
		t.Fatal(err)
	}
	linux, err := filepath.Abs("../../.ci/uml")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // it must not hang
	defer cancel()
	cmd := exec.CommandContext(ctx, linux, "mem=512M", "rootfstype=hostfs", "rootflags=/", "ro", "init="+script, "testdir="+dir,
		"quiet", "con=null", "con0=null,fd:1", "con1=null", "ssl=null")
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	text := strings.ReplaceAll(string(out), "\r", "")
	sections, name := map[string]string{}, ""
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(line, "== "); ok {
			name = strings.TrimSpace(title)
			sections[name] = ""
		} else if name != "" {
			sections[name] += line
		}
	}
	if _, complete := sections["end"]; !complete {
		t.Fatalf("linux.uml ended early: %v\n%s", err, text)
	}
	return sections
}

// sumsOf returns the files of an archive as sha256sum prints them.
func sumsOf(t *testing.T, name string) string {
	t.Helper()
	a, file, err := openArchive(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // read only
	var lines []string
	err = fs.WalkDir(a, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(a, name)
		sum := sha256.Sum256(data)
		lines = append(lines, fmt.Sprintf("./%s\n%s  ./%s\n", name, hex.EncodeToString(sum[:]), name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines) // by name, which goes first for that
	var text strings.Builder
	for _, line := range lines {
		_, sum, _ := strings.Cut(line, "\n")
		text.WriteString(sum)
	}
	return text.String()
}
