package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestReadmeCommands pins that scripts run the commands of README.md as they stand there. The last one takes a cluster, and the script of
// deployer/e2e has an archive and an environment of other names.
func TestReadmeCommands(t *testing.T) {
	read := func(file string) string {
		data, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	script, onCluster := read("testdata/script/readme.txtar"), read("deployer/e2e/testdata/script/install.txtar")
	commands := regexp.MustCompile(`(?m)^[$#] (solutionctl [^#\n]*)`).FindAllStringSubmatch(read("README.md"), -1)
	if len(commands) != 4 {
		t.Errorf("%d commands, want the two of a developer and the two of an administrator: %q", len(commands), commands)
	}
	for _, match := range commands {
		command := strings.TrimSpace(match[1])
		if strings.HasPrefix(command, "solutionctl deploy install ") {
			words := regexp.MustCompile(`(?m)^exec solutionctl deploy install \S+\.iso\b.* --key \S+`)
			if !words.MatchString(onCluster) {
				t.Errorf("no script runs %s", command)
			}
			continue
		}
		if !strings.Contains(script, "\nexec "+command+"\n") {
			t.Errorf("testdata/script/readme.txtar does not run: %s", command)
		}
	}
}
