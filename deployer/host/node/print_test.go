package node_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/host/node"
)

// TestPrinted compares the files that Salt and Ansible would write with those of this package.
func TestPrinted(t *testing.T) {
	for _, runtime := range []node.Runtime{node.Containerd, node.CRIO} {
		files, err := node.Files(config(runtime))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		for _, file := range files {
			want[file.Path] = string(file.Content)
		}

		var states map[string]map[string][]map[string]any
		if err := yaml.Unmarshal(node.Salt(runtime, files), &states); err != nil {
			t.Fatal(err)
		}
		salt, commands := map[string]string{}, 0
		for name, state := range states {
			for _, argument := range state["file.managed"] {
				if text, ok := argument["contents"].(string); ok {
					salt[name] = text
				}
			}
			commands += len(state["cmd.run"])
		}
		if diff := cmp.Diff(want, salt); diff != "" {
			t.Errorf("%s, Salt:\n%s", runtime, diff)
		}

		var tasks []map[string]any
		if err := yaml.Unmarshal(node.Ansible(runtime, files), &tasks); err != nil {
			t.Fatal(err)
		}
		ansible := map[string]string{}
		for _, task := range tasks {
			if file, ok := task["ansible.builtin.copy"].(map[string]any); ok {
				ansible[file["dest"].(string)] = file["content"].(string)
			}
			if task["ansible.builtin.command"] != nil {
				commands++
			}
		}
		if diff := cmp.Diff(want, ansible); diff != "" {
			t.Errorf("%s, Ansible:\n%s", runtime, diff)
		}
		if (commands > 0) != (runtime == node.CRIO) {
			t.Errorf("%s is made to read its configuration %d times", runtime, commands)
		}
	}
}
