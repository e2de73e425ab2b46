//go:build linux

package store

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/solutionctl/solutionctl/schema/report"
)

func demoLine() fstabLine {
	return fstabLine{device: "/var/lib/a b#/demo-1.0.0.iso", point: "/srv/scality/demo-1.0.0", kind: "iso9660", options: "ro,nofail,loop"}
}

const demoText = `/var/lib/a\040b\043/demo-1.0.0.iso /srv/scality/demo-1.0.0 iso9660 ro,nofail,loop 0 0` + "\n"

func TestFstab(t *testing.T) {
	const others = "# comment\n\nUUID=1  / ext4\tdefaults 0 1\n/x.iso /srv/scality/demo-1.0.0-rc1 iso9660 ro 0 0\n"
	for _, test := range []struct{ name, before, after, removed string }{
		{"no file", "", demoText, ""},
		{"added", others, others + demoText, others},
		{"no end of line", "/dev/sda1 / ext4", "/dev/sda1 / ext4\n" + demoText, "/dev/sda1 / ext4\n"},
		{"there already", demoText + others, demoText + others, others},
		{"as MetalK8s writes it", "/root/demo.iso\t\t/srv/scality/demo-1.0.0\tiso9660\tro,nofail\t0 0\n" + others, demoText + others, others},
		{"twice", demoText + others + demoText, demoText + others, others},
		{"in a comment", "# " + demoText, "# " + demoText + demoText, "# " + demoText},
	} {
		t.Run(test.name, func(t *testing.T) {
			after, err := setFstab([]byte(test.before), demoLine())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.after, string(after)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.removed, string(dropFstab(after, demoLine().point))); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("used for something else", func(t *testing.T) {
		before := []byte("/dev/sdb1 /srv/scality/demo-1.0.0 xfs defaults 0 0\n")
		if _, err := setFstab(before, demoLine()); report.CodeOf(err) != report.Conflict {
			t.Errorf("got %v", err)
		}
		if got := dropFstab(before, demoLine().point); string(got) != string(before) {
			t.Errorf("dropped: %q", got)
		}
	})
}

func FuzzFstab(f *testing.F) {
	for _, seed := range []string{"", demoText, "# a\n\nx y z", "a b iso9660\r\n", "\x00 \\ \n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, before string) {
		after, err := setFstab([]byte(before), demoLine())
		if err != nil {
			return
		}
		again, err := setFstab(after, demoLine())
		if err != nil || string(again) != string(after) {
			t.Errorf("a second time it changes: %q, %v", again, err)
		}
		if got, want := dropFstab(after, demoLine().point), dropFstab([]byte(before), demoLine().point); strings.TrimSuffix(string(got), "\n") != strings.TrimSuffix(string(want), "\n") {
			t.Errorf("other lines are %q, they were %q", got, want)
		}
	})
}

func TestMountEscapes(t *testing.T) {
	for _, path := range []string{"/a", "/a b", `/a\040b`, "/tab\there", "/new\nline", "/#1", `/\\`} {
		if got := unescapeMount(escapeMount(path)); got != path {
			t.Errorf("%q comes back as %q", path, got)
		}
		if len(strings.Fields(escapeMount(path))) != 1 {
			t.Errorf("%q is %q", path, escapeMount(path))
		}
	}
}

func TestKernelKnows(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  bool
	}{
		{"built in", map[string]string{"proc/filesystems": "nodev\tsysfs\n\tiso9660\n"}, true},
		{"not at all", map[string]string{"proc/filesystems": "\text4\n", "proc/sys/kernel/osrelease": "6.1.0\n"}, false},
		{"module", map[string]string{
			"proc/filesystems": "\text4\n", "proc/sys/kernel/osrelease": "6.1.0\n",
			"lib/modules/6.1.0/modules.dep": "kernel/fs/isofs/isofs.ko.xz: kernel/drivers/cdrom/cdrom.ko.xz\n",
		}, true},
		{"module of another kernel", map[string]string{
			"proc/filesystems": "\text4\n", "proc/sys/kernel/osrelease": "6.1.0\n",
			"lib/modules/6.2.0/modules.dep": "kernel/fs/isofs/isofs.ko:\n",
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range test.files {
				path := filepath.Join(root, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			m := &Mounts{root: root}
			if got, err := m.kernelKnows("iso9660", "isofs"); err != nil || got != test.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// TestHolders keeps a mount in use in each way a process can.
func TestHolders(t *testing.T) {
	needMounts(t)
	dir := mounted(t, "none", "tmpfs", 0, "")
	err := run(t.Context(), "umount", filepath.Join(dir, "..")) // not mounted is fine
	if err == nil || report.CodeOf(busy("/nowhere", err)) != report.Failure {
		t.Errorf("got %v", err)
	}
	f, err := os.Create(filepath.Join(dir, "open"))
	if err != nil {
		t.Fatal(err)
	}
	if err = f.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	me := "(" + strconv.Itoa(os.Getpid()) + ")"
	failed := func(how string) {
		t.Helper()
		failure := run(t.Context(), "umount", dir)
		if failure == nil {
			t.Fatalf("%s: it was unmounted", how)
		}
		if failure = busy(dir, failure); report.CodeOf(failure) != report.InUse || !strings.Contains(failure.Error(), me) {
			t.Errorf("%s: got %v", how, failure)
		}
	}
	failed("open file")
	memory, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	failed("file in memory")
	if err = unix.Munmap(memory); err != nil {
		t.Fatal(err)
	}
	t.Run("working directory", func(t *testing.T) {
		t.Chdir(dir)
		failed("working directory")
	})
	if len(holdersOf(dir)) != 0 {
		t.Errorf("holders are left: %q", holdersOf(dir))
	}
}

func TestNginxInclude(t *testing.T) {
	const template = "location = \"/v2/{{ repository }}/a/manifests/1\" {\n    alias {{registry_root}}/a/1/;\n}\n"
	n := &Nginx{Dir: filepath.Join(t.TempDir(), "conf.d")}
	name := filepath.Join(n.Dir, "demo-1.0.0-registry-config.inc")
	const want = "location = \"/v2/demo-1.0.0/a/manifests/1\" {\n    alias /srv/scality/demo-1.0.0/images/a/1/;\n}\n"
	for i, changes := range []bool{true, false} {
		changed, err := n.Include(t.Context(), "demo-1.0.0", []byte(template))
		if err != nil || changed != changes {
			t.Fatalf("time %d: changed %v, %v", i, changed, err)
		}
		if diff := cmp.Diff(want, read(t, name)); diff != "" {
			t.Error(diff)
		}
	}
	for _, bad := range []string{"{{ secret }}", "{% include '/etc/shadow' %}", "{# #}", "{{ repository | upper }}"} {
		_, err := n.Include(t.Context(), "demo-1.0.0", []byte("#\n"+bad))
		if report.CodeOf(err) != report.Invalid || !strings.Contains(err.Error(), NginxTemplate+":2:") {
			t.Errorf("%s: got %v", bad, err)
		}
	}
	for i, changes := range []bool{true, false} {
		if changed, err := n.Exclude("demo-1.0.0"); err != nil || changed != changes {
			t.Errorf("time %d: changed %v, %v", i, changed, err)
		}
	}
	if left := files(t, n.Dir); left != nil {
		t.Errorf("left %q", left)
	}
}
