package preload

import (
	"fmt"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/host/node"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Forms in which [Print] writes the work on a node.
const (
	Shell   = "shell"
	Salt    = "salt"
	Ansible = "ansible"
)

// clients are containerd's own client, as each distribution brings it, and the directory of its hosts.toml files.
var clients = map[node.Runtime]struct{ command, hosts string }{
	node.Containerd: {"ctr", node.DefaultCertsDir},
	node.K3s:        {"k3s ctr", "/var/lib/rancher/k3s/agent/etc/containerd/certs.d"},
	node.RKE2:       {"/var/lib/rancher/rke2/bin/ctr --address " + node.Socket(node.RKE2), "/var/lib/rancher/rke2/agent/etc/containerd/certs.d"},
	node.K0s:        {"k0s ctr", "/etc/k0s/certs.d"},
	node.MicroK8s:   {"microk8s ctr", "/var/snap/microk8s/current/args/certs.d"},
}

// Print writes the work on a node without this program: as a script, as a state of Salt or as a task of Ansible. Running it again changes
// nothing, and running the one of another time releases what that one does not have.
func Print(form string, runtime node.Runtime, images []string) []byte {
	script := containerdScript(runtime, images)
	if runtime == node.CRIO {
		script = crioScript(images)
	}
	switch form {
	case Salt:
		return []byte("solutionctl_preload:\n  cmd.run:\n    - name: |\n" + node.Indent(script, 8))
	case Ansible:
		return []byte("- name: Keep the images of Solutions on this node\n  ansible.builtin.shell: |\n" + node.Indent(script, 4))
	}
	return []byte("#!/bin/sh\n" + script)
}

func containerdScript(runtime node.Runtime, images []string) string {
	client := clients[runtime]
	return fmt.Sprintf(`set -eu
images='%[1]s'
ctr() { command %[2]s --namespace k8s.io images "$@"; }
keep() {
  test -n "$(ctr list --quiet "name==\"$1\",labels.\"io.cri-containerd.pinned\"==pinned")" ||
    ctr label "$1" io.cri-containerd.pinned=pinned solutionctl.io/preloaded=true >/dev/null
}
needed=$(for image in $images; do
  tagged=${image%%@*}
  echo "$tagged"
  echo "${tagged%%:*}@${image#*@}"
done)
for name in $(ctr list --quiet 'labels."solutionctl.io/preloaded"==true'); do
  echo "$needed" | grep -qxF "$name" || ctr label "$name" io.cri-containerd.pinned= solutionctl.io/preloaded= >/dev/null
done
for image in $images; do
  tagged=${image%%@*} digest=${image#*@}
  name=${tagged%%:*}@$digest
  test -n "$(ctr list --quiet "name==\"$name\"")" || ctr pull --hosts-dir %[3]s "$name" >/dev/null
  test -n "$(ctr list --quiet "name==\"$tagged\",target.digest==\"$digest\"")" || ctr tag --force "$name" "$tagged" >/dev/null
  keep "$name"
  keep "$tagged"
done
`, strings.Join(images, "\n"), client.command, client.hosts)
}

// crioScript pulls with crictl. CRI-O keeps images by its configuration: all of a repository, because it compares names with or without digest.
func crioScript(images []string) string {
	var names, patterns strings.Builder
	last := ""
	for _, image := range images {
		names.WriteString(image + "\n")
		if repository := image[:strings.LastIndex(image, "/")]; repository != last {
			last = repository
			fmt.Fprintf(&patterns, "  %q,\n", repository+"/*")
		}
	}
	return fmt.Sprintf(`set -eu
images='%s'
for image in $images; do
  crictl inspecti --quiet "$image" >/dev/null 2>&1 || crictl pull --quiet "$image" >/dev/null
  tagged=${image%%@*}
  crictl inspecti "$tagged" 2>/dev/null | grep -qF "${image#*@}" || crictl pull --quiet "$tagged" >/dev/null
  crictl inspecti "$tagged" | grep -qF "${image#*@}" # the tag has the digest of the imported archive
done
file=/etc/crio/crio.conf.d/50-solutionctl-preload.conf
cat >"$file.partial" <<'END'
[crio.image]
pinned_images = [
%s]
END
if cmp -s "$file.partial" "$file"; then
  rm "$file.partial"
else
  mv "$file.partial" "$file"
  systemctl reload crio
fi
`, names.String(), patterns.String())
}

// CheckForm refuses what [Print] cannot write.
func CheckForm(runtime node.Runtime) error {
	if _, known := clients[runtime]; !known && runtime != node.CRIO {
		return report.Errorf(report.Usage, "--print needs --runtime: the lines are for another host").WithHint("choose one of %q", node.Runtimes())
	}
	return nil
}
