package trust

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/sign/key"
)

// change is one difference between two stores, in words. The lines say more.
type change struct {
	addsKey bool
	text    string
	lines   []string
}

// changes lists the differences of another store.
func (p *snapshot) changes(next *snapshot) (texts []string) {
	for _, c := range fileChanges(p.files, next.files) {
		texts = append(append(texts, c.text), c.lines...)
	}
	texts = append(texts, next.store.changes(p.list.with(p.local), next.list.with(next.local))...)
	if next.listed != nil && p.list.Serial != next.list.Serial {
		texts = append(texts, fmt.Sprintf("sets %s with serial %d", revocationsFile, next.list.Serial))
	}
	return texts
}

func fileChanges(before, after map[string][]byte) (list []change) {
	for _, name := range sortedNames(before, after) {
		if c := fileChange(name, before[name], after[name]); c.text != "" {
			list = append(list, c)
		}
	}
	return list
}

// fileChange has no text when nothing changes. A nil file is not there.
func fileChange(name string, before, after []byte) change {
	var c change
	what := describeFile(name)
	switch {
	case before == nil && after == nil, before != nil && after != nil && (string(before) == string(after) || sameKey(before, after)):
		return c
	case before == nil:
		c.text, c.addsKey = "adds "+what+describeContent(name, after), isKeyFile(name)
	case after == nil:
		c.text = "removes " + what + describeContent(name, before)
	case name == policyFile:
		c.text = "changes " + what
	default:
		c.text = "replaces " + what + describeContent(name, before) + " by" + describeContent(name, after)
	}
	if name == policyFile {
		c.lines = lineDifferences(name, string(before), string(after))
	}
	return c
}

func sortedNames(files ...map[string][]byte) []string {
	all := map[string]bool{}
	for _, m := range files {
		for name := range m {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func isKeyFile(name string) bool { return path.Dir(name) == keysDir }

func describeFile(name string) string {
	switch {
	case isKeyFile(name):
		return "key " + strings.TrimSuffix(path.Base(name), keySuffix)
	case name == rootKeyFile:
		return "the root key"
	case strings.HasPrefix(name, rootsDir+"/"):
		return "root " + path.Base(path.Dir(name))
	default:
		return name
	}
}

// describeContent is the fingerprint of a key, and the digest of another authority.
func describeContent(name string, content []byte) string {
	switch k, err := key.ParsePublic(content); {
	case name == policyFile:
		return ""
	case err == nil:
		return "  " + k.Algorithm() + "  " + k.Fingerprint()
	default:
		return fmt.Sprintf("  sha256:%x", sha256.Sum256(content))
	}
}

func sameKey(a, b []byte) bool {
	one, err := key.ParsePublic(a)
	if err != nil {
		return false
	}
	other, err := key.ParsePublic(b)
	return err == nil && one.Equal(other)
}

// lineDifferences are the lines that a file loses and gets, without those that are the same at both ends.
func lineDifferences(name, before, after string) (list []string) {
	old, now := splitLines(before), splitLines(after)
	for len(old) > 0 && len(now) > 0 && old[0] == now[0] {
		old, now = old[1:], now[1:]
	}
	for len(old) > 0 && len(now) > 0 && old[len(old)-1] == now[len(now)-1] {
		old, now = old[:len(old)-1], now[:len(now)-1]
	}
	for _, line := range old {
		list = append(list, name+": - "+line)
	}
	for _, line := range now {
		list = append(list, name+": + "+line)
	}
	return list
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
