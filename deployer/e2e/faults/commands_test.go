//go:build linux

package faults

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unchanging are the commands that change neither a cluster nor what a host keeps for it. Some write files that their user names.
const unchanging = `
affected
build
completion
config
delta apply
delta create
deploy alerts
deploy app fields
deploy app get
deploy app list
deploy compatibility
deploy components
deploy diff
deploy doctor
deploy env list
deploy env show
deploy events
deploy history
deploy loader logs
deploy loader plan
deploy loader print
deploy loader status
deploy logs
deploy monitoring show
deploy open
deploy plan activate
deploy plan add
deploy plan apply
deploy plan deactivate
deploy plan downgrade
deploy plan remove
deploy plan repair
deploy plan rollback
deploy plan upgrade
deploy registry list
deploy roles
deploy search
deploy status
deploy support-bundle
deploy values
diff
init
inspect
keygen
lint
pull
push
schema
sign
split
trust export
trust list
verify
version
`

// TestEveryCommandIsClassified compares the reference, which has every command, with those that are killed, those that LeftOut explains, and
// those that change nothing.
func TestEveryCommandIsClassified(t *testing.T) {
	pages, err := filepath.Glob("../../../docs/reference/solutionctl_*.md")
	if err != nil || len(pages) < 100 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	commands := map[string]bool{}
	for _, page := range pages {
		name := strings.TrimSuffix(page, ".md")
		if slices.ContainsFunc(pages, func(other string) bool { return strings.HasPrefix(other, name+"_") }) {
			continue // it has commands below it
		}
		_, name, _ = strings.Cut(filepath.Base(name), "_")
		name = strings.ReplaceAll(name, "_", " ")
		commands[strings.Replace(name, "deploy host ", "deploy ", 1)] = true // the same commands
	}
	classes := map[string][]string{}
	classify := func(class, command string) {
		if !commands[command] {
			t.Errorf("%s: the reference has no command %q", class, command)
		}
		if !slices.Contains(classes[command], class) {
			classes[command] = append(classes[command], class)
		}
	}
	for _, verb := range Verbs {
		if verb.inPod { // the command of a pod is not for users
			continue
		}
		words := len(verb.Args)
		for words > 1 && !commands[strings.Join(verb.Args[:words], " ")] {
			words--
		}
		classify("killed", strings.Join(verb.Args[:words], " "))
	}
	for _, left := range LeftOut {
		classify("left out", left.Command)
	}
	for command := range strings.Lines(strings.TrimSpace(unchanging) + "\n") {
		classify("unchanging", strings.TrimSpace(command))
	}
	for _, command := range slices.Sorted(maps.Keys(commands)) {
		if found := classes[command]; len(found) != 1 {
			t.Errorf("%s is listed as %q: list it once, in Verbs, in LeftOut, or here as unchanging", command, found)
		}
	}
}
