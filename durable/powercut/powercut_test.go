//go:build linux

package powercut

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPlay finds each mistake that a shell can make when it replaces a file, and none when it makes none.
func TestPlay(t *testing.T) {
	for _, test := range []struct {
		name, script       string
		torn, lost, broken bool // the file is neither old nor new; success, but old; the pair is mixed
	}{
		{"all right", "echo new >.p; sync .p; mv .p f; sync .", false, false, false},
		{"written in place", "echo new >f; sync f", true, false, false},
		{"content not synced", "echo new >.p; mv .p f; sync .", true, true, false},
		{"name not synced", "echo new >.p; sync .p; mv .p f", false, true, false},
		{"removed first", "echo new >.p; sync .p; rm f; mv .p f; sync .", true, false, false},
		{"in a directory that is not synced", "mkdir d; echo new >d/.p; sync d/.p; mv d/.p d/f; sync d; echo new >.p; sync .p; mv .p f; sync .", false, false, false},
		{"a pair", "echo new >.p; sync .p; echo new >.q; sync .q; mv .p f; mv .q g; sync .", false, false, true},
		{"nothing", "true", false, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"f", "g"} {
				if err = os.WriteFile(filepath.Join(dir, name), []byte("old\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-ec", test.script)
			cmd.Dir = dir
			var torn, lost, broken bool
			status, err := Play(t.Context(), cmd, dir, func(d Disk) {
				torn = torn || d.Files["f"] != "old\n" && d.Files["f"] != "new\n"
				lost = lost || d.Before == "" && d.Files["f"] != "new\n"
				broken = broken || d.Files["f"] != d.Files["g"] && test.name == "a pair"
			})
			if err != nil || status.ExitStatus() != 0 {
				t.Fatal(status, err)
			}
			if torn != test.torn || lost != test.lost || broken != test.broken {
				t.Errorf("torn %v, lost %v, broken %v; want %v, %v, %v", torn, lost, broken, test.torn, test.lost, test.broken)
			}
		})
	}
}
