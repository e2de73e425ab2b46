package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	// MountRoot is the directory below which MetalK8s expects archives to be mounted.
	MountRoot = "/srv/scality"

	archiveFileSystem = "iso9660"
)

// MountPoint returns the directory on which a host mounts an archive.
func MountPoint(id string) string { return MountRoot + "/" + id }

// Mounts manages the mounts of archives on this host, and their lines in /etc/fstab, which mount them again after a reboot.
type Mounts struct {
	root string // goes before the paths of system files; tests set it
}

func (m *Mounts) path(path string) string { return filepath.Join("/", m.root, path) }

func (m *Mounts) fstab() sharedFile {
	return sharedFile{path: m.path("/etc/fstab"), elsewhere: "do without mounts: --mount never"}
}

// Possible returns the reason why archives cannot be mounted here: it takes root and the kernel's driver.
func (m *Mounts) Possible() error {
	if os.Geteuid() != 0 {
		return report.Errorf(report.Forbidden, "only root mounts archives").WithHint("run the command as root, or do without mounts: --mount never")
	}
	if known, err := m.kernelKnows(archiveFileSystem, "isofs"); err != nil || known {
		return err
	}
	return report.Errorf(report.Failure, "the kernel of this host cannot mount archives: it has no driver for %s", archiveFileSystem).
		WithHint("do without mounts, --mount never: '%s' reads archives itself", report.Run("deploy serve"))
}

// kernelKnows reports whether the kernel has a driver for a file system, or can load it for a mount.
func (m *Mounts) kernelKnows(kind, module string) (bool, error) {
	known, err := os.ReadFile(m.path("/proc/filesystems"))
	if err != nil {
		return false, err
	}
	if slices.Contains(strings.Fields(string(known)), kind) {
		return true, nil
	}
	release, err := os.ReadFile(m.path("/proc/sys/kernel/osrelease"))
	if err != nil {
		return false, err
	}
	for _, list := range []string{"modules.dep", "modules.builtin"} {
		modules, err := os.ReadFile(filepath.Join(m.path("/lib/modules"), strings.TrimSpace(string(release)), list))
		if err == nil && bytes.Contains(modules, []byte("/"+module+".ko")) {
			return true, nil
		}
	}
	return false, nil
}

// mount is a line of /proc/self/mountinfo.
type mount struct{ point, kind, source string }

func (m *Mounts) current(point string) (*mount, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var found *mount
	for line := range strings.Lines(string(data)) {
		before, after, _ := strings.Cut(line, " - ")
		fields, of := strings.Fields(before), strings.Fields(after)
		if len(fields) > 4 && len(of) > 1 && unescapeMount(fields[4]) == point {
			found = &mount{point: point, kind: of[0], source: unescapeMount(of[1])} // the last one hides the others
		}
	}
	return found, nil
}

// file returns the device that is mounted, or the file behind a loop device.
func (t *mount) file() string {
	name, loop := strings.CutPrefix(t.source, "/dev/loop")
	if !loop {
		return t.source
	}
	file, err := os.ReadFile("/sys/block/loop" + name + "/loop/backing_file")
	if err != nil {
		return t.source
	}
	return strings.TrimSuffix(string(file), "\n")
}

// Mounted reports whether the archive of an entry is mounted.
func (m *Mounts) Mounted(e Entry) (bool, error) {
	now, err := m.current(MountPoint(e.ID()))
	return now != nil && now.kind == archiveFileSystem && now.file() == e.Path, err
}

// Mount mounts the archive of an entry at its [MountPoint]. It writes the line of /etc/fstab first, so that every mount
// survives a reboot. A mount by MetalK8s of the original file is replaced. It reports whether it changed anything.
func (m *Mounts) Mount(ctx context.Context, e Entry) (changed bool, err error) {
	point := MountPoint(e.ID())
	now, err := m.current(point)
	if err != nil {
		return false, err
	}
	switch {
	case now == nil:
	case now.kind == archiveFileSystem && now.file() == e.Path+" (deleted)": // the archive that was replaced by this one
		if err = run(ctx, "umount", point); err != nil {
			return false, busy(point, err)
		}
		now = nil
	case now.kind != archiveFileSystem || now.file() != e.Path && now.file() != e.Original:
		return false, foreignMount(point, now.kind, now.file())
	case now.file() == e.Original && e.Original != e.Path:
		if err = run(ctx, "umount", point); err != nil {
			return false, busy(point, err)
		}
		now = nil
	}
	line := fstabLine{device: e.Path, point: point, kind: archiveFileSystem, options: "ro,nofail,loop"}
	if info, failure := os.Stat(e.Path); failure == nil && info.Mode()&fs.ModeDevice != 0 {
		line.options = "ro,nofail"
	}
	changed, err = m.editFstab(ctx, func(data []byte) ([]byte, error) { return setFstab(data, line) })
	if err != nil || now != nil {
		return changed, err
	}
	if err = os.MkdirAll(point, 0o755); err != nil {
		return changed, err
	}
	if err = run(ctx, "mount", "--fstab", m.fstab().path, point); err != nil {
		undo := context.WithoutCancel(ctx)
		_, failure := m.editFstab(undo, func(data []byte) ([]byte, error) { return dropFstab(data, point), nil })
		err = errors.Join(err, failure, removeIfThere(point))
		return false, report.Errorf(report.Failure, "mount %s: %w", e.ID(), err).
			WithHint("when the cause is removed, run the same command again; --mount never does without")
	}
	return true, nil
}

// Unmount removes the mount of an entry, its line in /etc/fstab and its directory. While a process uses its files, it
// fails with [report.InUse] and names the process.
func (m *Mounts) Unmount(ctx context.Context, e Entry) (changed bool, err error) {
	point := MountPoint(e.ID())
	now, err := m.current(point)
	if err != nil {
		return false, err
	}
	if now != nil {
		if now.kind != archiveFileSystem {
			return false, foreignMount(point, now.kind, now.file())
		}
		if err = run(ctx, "umount", point); err != nil {
			return false, busy(point, err)
		}
	}
	changed, err = m.editFstab(ctx, func(data []byte) ([]byte, error) { return dropFstab(data, point), nil })
	if err != nil {
		return changed || now != nil, err
	}
	return changed || now != nil, removeIfThere(point)
}

func (m *Mounts) editFstab(ctx context.Context, edit func([]byte) ([]byte, error)) (changed bool, err error) {
	file := m.fstab()
	unlock, err := file.lock(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	before, err := file.read()
	if err != nil {
		return false, err
	}
	data, err := edit(before.data)
	if err != nil || bytes.Equal(data, before.data) {
		return false, err
	}
	if err = file.replace(before, data); err != nil {
		return false, err
	}
	m.notifySystemd(ctx)
	return true, nil
}

// notifySystemd makes systemd, which keeps a copy of fstab, read it again. Whatever keeps it from doing so now, it reads it
// at the next boot.
func (m *Mounts) notifySystemd(ctx context.Context) {
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		_ = run(ctx, "systemctl", "daemon-reload")
	}
}

// run runs a program of the system; its error output becomes the error.
func run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil && len(bytes.TrimSpace(out)) > 0 {
		return fmt.Errorf("%s", bytes.TrimSpace(out))
	}
	return err
}

// maxHolders is the number of processes that a message names.
const maxHolders = 5

// busy explains why a mount cannot be taken away.
func busy(point string, err error) error {
	holders := holdersOf(point)
	if len(holders) == 0 {
		return report.Errorf(report.Failure, "unmount %s: %w", point, err)
	}
	names := strings.Join(holders[:min(len(holders), maxHolders)], ", ")
	if more := len(holders) - maxHolders; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return report.Errorf(report.InUse, "unmount %s: files of it are in use by %s", point, names).
		WithHint("end what uses them, then run the same command again")
}

// holdersOf names the processes that keep a mount from being taken away, as "name (pid)".
func holdersOf(point string) []string {
	var holders []string
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	slices.SortFunc(processes, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	for _, process := range processes {
		if !holds(process, point) {
			continue
		}
		name, err := os.ReadFile(process + "/comm")
		if err != nil {
			continue // it has ended
		}
		holders = append(holders, fmt.Sprintf("%s (%s)", bytes.TrimSpace(name), filepath.Base(process)))
	}
	return holders
}

func holds(process, point string) bool {
	links := []string{process + "/cwd", process + "/root", process + "/exe"}
	open, err := os.ReadDir(process + "/fd")
	if err == nil {
		for _, f := range open {
			links = append(links, process+"/fd/"+f.Name())
		}
	}
	for _, link := range links {
		if target, failure := os.Readlink(link); failure == nil && (target == point || strings.HasPrefix(target, point+"/")) {
			return true
		}
	}
	maps, err := os.ReadFile(process + "/maps")
	return err == nil && bytes.Contains(maps, []byte(" "+point+"/"))
}
