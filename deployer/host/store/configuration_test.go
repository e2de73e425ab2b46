//go:build unix

package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const flatForm = `apiVersion: solutions.metalk8s.scality.com/v1alpha1
kind: SolutionsConfiguration
archives:
  - /srv/archives/other-1.0.0.iso
active:
  other: latest
`

const olderForm = `apiVersion: solutions.metalk8s.scality.com/v1alpha1
kind: SolutionsConfiguration
solutions:
  # ours
  - name: demo
    archives:
      - /srv/demo-1.9.0.iso
      - /srv/demo-1.10.0.iso
`

func entryAt(path, original string) Entry {
	return Entry{Path: path, StoredArchive: schema.StoredArchive{Original: original, Name: "demo", Version: "1.0.0"}}
}

// identifyByName takes the version out of the name of an archive.
func identifyByName(path string) (*schema.Solution, error) {
	name, version, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".iso"), "-")
	s := &schema.Solution{}
	s.Metadata.Name, s.Spec.Version = name, version
	return s, nil
}

func configurationOf(t *testing.T, text string) *Configuration {
	t.Helper()
	c := &Configuration{Path: filepath.Join(t.TempDir(), "metalk8s", "solutions.yaml"), Identify: identifyByName}
	if text != "" {
		if err := errors.Join(os.Mkdir(filepath.Dir(c.Path), 0o755), os.WriteFile(c.Path, []byte(text), 0o640)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func list(e Entry) func(*schema.SolutionsConfiguration) {
	return func(c *schema.SolutionsConfiguration) { ListArchive(c, e) }
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestEdit(t *testing.T) {
	const header = "apiVersion: solutions.metalk8s.scality.com/v1alpha1\nkind: SolutionsConfiguration\n"
	demo := entryAt("/store/demo-1.0.0.iso", "/root/demo.iso")
	for _, test := range []struct {
		name, before string
		edit         func(*schema.SolutionsConfiguration)
		after        string
		notes        []string
		left         []string
	}{
		{"no file", "", list(demo), header + "archives:\n  - /store/demo-1.0.0.iso\nactive: {}\n", nil, nil},
		{"added", flatForm, list(demo), strings.Replace(flatForm, "active:", "  - /store/demo-1.0.0.iso\nactive:", 1), nil, nil},
		{
			"in place of the original", strings.ReplaceAll(flatForm, "active:", "  - /root/demo.iso\n  - /srv/z.iso\n  - /store/demo-1.0.0.iso\nactive:"), list(demo),
			strings.Replace(flatForm, "active:", "  - /store/demo-1.0.0.iso\n  - /srv/z.iso\nactive:", 1), nil, nil,
		},
		{"there already", "# ours\n" + flatForm, list(entryAt("/srv/archives/other-1.0.0.iso", "")), "# ours\n" + flatForm, nil, nil},
		{"comments", flatForm + "  # until May\n", list(demo), strings.Replace(flatForm, "active:", "  - /store/demo-1.0.0.iso\nactive:", 1), []string{"the comments in"}, nil},
		{
			"removed", flatForm, func(c *schema.SolutionsConfiguration) { UnlistArchive(c, entryAt("/srv/archives/other-1.0.0.iso", "")) },
			header + "archives: []\nactive:\n  other: latest\n", nil, nil,
		},
		{
			"older form", olderForm, list(demo),
			header + "archives:\n  - /srv/demo-1.9.0.iso\n  - /srv/demo-1.10.0.iso\n  - /store/demo-1.0.0.iso\nactive:\n  demo: 1.10.0\n",
			[]string{"1.10.0 is active", "older form"},
			[]string{"solutions.yaml.older-form"},
		},
		{"older form, nothing to do", olderForm, func(*schema.SolutionsConfiguration) {}, olderForm, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := configurationOf(t, test.before)
			edited, err := c.Edit(t.Context(), test.edit)
			if err != nil {
				t.Fatal(err)
			}
			if got := read(t, c.Path); got != test.after {
				t.Errorf("got\n%swant\n%s", got, test.after)
			}
			if edited.Changed != (test.before != test.after) {
				t.Errorf("changed: %v", edited.Changed)
			}
			if len(edited.Notes) != len(test.notes) {
				t.Fatalf("notes: %q", edited.Notes)
			}
			for i, note := range test.notes {
				if !strings.Contains(edited.Notes[i], note) {
					t.Errorf("note %q, want %q in it", edited.Notes[i], note)
				}
			}
			if got, want := files(t, filepath.Dir(c.Path)), append([]string{"solutions.yaml"}, test.left...); !slices.Equal(got, want) {
				t.Errorf("files %q, want %q", got, want)
			}
			for _, name := range test.left {
				if got := read(t, filepath.Join(filepath.Dir(c.Path), name)); got != test.before {
					t.Errorf("%s is not what the file was:\n%s", name, got)
				}
			}
			info, err := os.Stat(c.Path)
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]fs.FileMode{false: 0o640, true: 0o644}[test.before == ""]; info.Mode().Perm() != want {
				t.Errorf("mode %v, want %v", info.Mode(), want)
			}
		})
	}
}

func TestEditKeepsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("giving files away needs root")
	}
	c := configurationOf(t, flatForm)
	if err := os.Chown(c.Path, 12, 34); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Edit(t.Context(), list(entryAt("/store/demo-1.0.0.iso", ""))); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t); owner.Uid != 12 || owner.Gid != 34 {
		t.Errorf("belongs to %d:%d", owner.Uid, owner.Gid)
	}
}

// TestBackupIsKept makes sure that a second conversion does not write over the first one's backup.
func TestBackupIsKept(t *testing.T) {
	c := configurationOf(t, olderForm)
	for range 2 {
		if _, err := c.Edit(t.Context(), list(entryAt("/store/demo-1.0.0.iso", ""))); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(c.Path, []byte(olderForm+"# again\n"), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{c.Path + backupSuffix: olderForm, c.Path + backupSuffix + ".1": olderForm + "# again\n"} {
		if got := read(t, name); got != want {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

func TestBadConfiguration(t *testing.T) {
	demo := list(entryAt("/store/demo-1.0.0.iso", ""))
	for _, test := range []struct {
		name  string
		spoil func(t *testing.T, path string) error
		code  report.Code
		hint  string
	}{
		{"corrupt", func(_ *testing.T, path string) error { return os.WriteFile(path, []byte("archives: [\n"), 0o600) }, report.Invalid, ""},
		{"unknown field", func(_ *testing.T, path string) error {
			return os.WriteFile(path, []byte(flatForm+"archive: x\n"), 0o600)
		}, report.Invalid, "archives"},
		{"symbolic link", func(_ *testing.T, path string) error {
			return errors.Join(os.Rename(path, path+".real"), os.Symlink(path+".real", path))
		}, report.Refused, "--solutions-file"},
		{"directory", func(_ *testing.T, path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) }, report.Usage, ""},
		{"FIFO", func(_ *testing.T, path string) error {
			return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600))
		}, report.Usage, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := configurationOf(t, flatForm)
			if err := test.spoil(t, c.Path); err != nil {
				t.Fatal(err)
			}
			before := files(t, filepath.Dir(c.Path))
			_, err := c.Edit(t.Context(), demo)
			for name, err := range map[string]error{"edit": err, "check": c.Check()} {
				hints := strings.Join(report.Hints(err), " ")
				if report.CodeOf(err) != test.code || !strings.Contains(err.Error(), c.Path) || !strings.Contains(hints, test.hint) {
					t.Errorf("%s: %v, hints %q", name, err, hints)
				}
			}
			if after := files(t, filepath.Dir(c.Path)); !slices.Equal(after, before) {
				t.Errorf("files %q, before %q", after, before)
			}
		})
	}
}

func TestOlderFormWithoutArchive(t *testing.T) {
	c := configurationOf(t, olderForm)
	c.Identify = func(path string) (*schema.Solution, error) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	_, err := c.Edit(t.Context(), list(entryAt("/store/demo-1.0.0.iso", "")))
	for name, err := range map[string]error{"edit": err, "check": c.Check()} {
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), c.Path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := read(t, c.Path); got != olderForm {
		t.Errorf("the file was changed:\n%s", got)
	}
}

// TestEditFails makes each step fail: the file is as it was, and nothing else is left but a backup.
func TestEditFails(t *testing.T) {
	var steps []string
	c := configurationOf(t, olderForm)
	c.step = func(step string) error { steps = append(steps, step); return nil }
	if _, err := c.Edit(t.Context(), list(entryAt("/store/demo-1.0.0.iso", ""))); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"create solutions.yaml" + backupSuffix, "publish solutions.yaml" + backupSuffix, "create solutions.yaml", "publish solutions.yaml",
	}
	if !slices.Equal(steps, want) {
		t.Fatalf("steps %q, want %q", steps, want)
	}
	for i, step := range steps {
		t.Run(step, func(t *testing.T) {
			c := configurationOf(t, olderForm)
			count := 0
			c.step = func(string) error {
				if count++; count == i+1 {
					return syscall.ENOSPC
				}
				return nil
			}
			if _, err := c.Edit(t.Context(), list(entryAt("/store/demo-1.0.0.iso", ""))); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("got %v", err)
			}
			if got := read(t, c.Path); got != olderForm {
				t.Errorf("the file is\n%s", got)
			}
			for _, name := range files(t, filepath.Dir(c.Path)) {
				if name != "solutions.yaml" && name != "solutions.yaml"+backupSuffix {
					t.Errorf("left %s", name)
				}
			}
		})
	}
}

func TestForeignWriter(t *testing.T) {
	c := configurationOf(t, flatForm)
	foreign := strings.Replace(flatForm, "latest", "1.0.0", 1)
	_, err := c.Edit(t.Context(), func(configuration *schema.SolutionsConfiguration) {
		if err := os.WriteFile(c.Path, []byte(foreign), 0o640); err != nil {
			t.Error(err)
		}
		ListArchive(configuration, entryAt("/store/demo-1.0.0.iso", ""))
	})
	if report.CodeOf(err) != report.Conflict {
		t.Errorf("got %v", err)
	}
	if got := read(t, c.Path); got != foreign {
		t.Errorf("the other's change is lost:\n%s", got)
	}
}

// TestForeignWriterLate: what another program writes while the new file is written is not lost.
func TestForeignWriterLate(t *testing.T) {
	for _, at := range []string{"create solutions.yaml", "publish solutions.yaml"} {
		t.Run(at, func(t *testing.T) {
			c := configurationOf(t, flatForm)
			foreign := strings.Replace(flatForm, "latest", "1.0.0", 1)
			c.step = func(step string) error {
				if step == at {
					return os.WriteFile(c.Path, []byte(foreign), 0o640)
				}
				return nil
			}
			_, err := c.Edit(t.Context(), list(entryAt("/store/demo-1.0.0.iso", "")))
			if got := read(t, c.Path); report.CodeOf(err) != report.Conflict || got != foreign {
				t.Errorf("%v; the file is\n%s", err, got)
			}
			if left := files(t, filepath.Dir(c.Path)); !slices.Equal(left, []string{"solutions.yaml"}) {
				t.Errorf("files %q", left)
			}
		})
	}
}

func TestEditsAtOnce(t *testing.T) {
	c := configurationOf(t, flatForm)
	var wait sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		wait.Go(func() {
			mine := *c
			if _, err := mine.Edit(t.Context(), list(entryAt("/store/"+name, ""))); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	after, err := c.Load()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(after.Archives)
	if want := []string{"/srv/archives/other-1.0.0.iso", "/store/a", "/store/b", "/store/c", "/store/d", "/store/e"}; !slices.Equal(after.Archives, want) {
		t.Errorf("got %q", after.Archives)
	}
}
