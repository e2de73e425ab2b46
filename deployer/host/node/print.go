package node

import (
	"fmt"
	"path"
	"strings"
)

// reload makes CRI-O read its configuration.
const reload = "systemctl reload crio"

// Salt writes the files as a state of Salt.
func Salt(runtime Runtime, files []File) []byte {
	var b strings.Builder
	b.WriteString(afterwards(runtime))
	for _, file := range files {
		fmt.Fprintf(&b, "%s:\n  file.managed:\n    - makedirs: true\n    - dir_mode: '0755'\n    - mode: '0644'\n    - contents: |\n%s\n", file.Path, Indent(string(file.Content), 8))
	}
	if runtime == CRIO {
		fmt.Fprintf(&b, "%s:\n  cmd.run:\n    - onchanges:\n", reload)
		for _, file := range files {
			fmt.Fprintf(&b, "      - file: %s\n", file.Path)
		}
	}
	return []byte(b.String())
}

// Ansible writes the files as tasks of Ansible.
func Ansible(runtime Runtime, files []File) []byte {
	var b strings.Builder
	b.WriteString(afterwards(runtime))
	for _, file := range files {
		fmt.Fprintf(&b, "- name: Directory of %s\n  ansible.builtin.file:\n    path: %s\n    state: directory\n    mode: '0755'\n", file.Path, path.Dir(file.Path))
		fmt.Fprintf(&b, "- name: Write %s\n  ansible.builtin.copy:\n    dest: %s\n    mode: '0644'\n    content: |\n%s", file.Path, file.Path, Indent(string(file.Content), 6))
		if runtime == CRIO {
			b.WriteString("  register: solutionctl_registries\n")
			fmt.Fprintf(&b, "- name: Make CRI-O read %s\n  ansible.builtin.command: %s\n  when: solutionctl_registries is changed\n", file.Path, reload)
		}
	}
	return []byte(b.String())
}

// afterwards returns a comment with the command that makes a runtime read a changed configuration. Servers and agents have different commands,
// so the user runs it. For CRI-O it returns none: the printed commands include it.
func afterwards(runtime Runtime) string {
	if command := restarts[runtime]; command != "" && runtime != CRIO {
		return "# After a change: " + command + "\n"
	}
	return ""
}

// Indent moves every line that has something in it to the right.
func Indent(text string, n int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			b.WriteString(strings.Repeat(" ", n))
		}
		b.WriteString(line)
	}
	return b.String()
}
