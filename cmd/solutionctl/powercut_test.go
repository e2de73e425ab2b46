//go:build linux

package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/durable/powercut"
	"github.com/solutionctl/solutionctl/sign/key/keytest"
	"github.com/solutionctl/solutionctl/sign/trust"
)

const archiveOfZeros = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

// TestPowerCut cuts the power at every step of every command that writes files. What is found afterwards is, for each file, what
// was there before or what the command writes, and after success only the latter.
func TestPowerCut(t *testing.T) {
	signedDemo := []string{"init demo", "keygen acme", "trust add acme acme.pub", "build demo --sign-key acme.key"}
	const containerd = `#mkdir -p node/etc/containerd; printf '[plugins."io.containerd.cri.v1.images".registry]\nconfig_path = "/etc/containerd/certs.d"\n' >node/etc/containerd/config.toml`
	const saved = `#tar -cf layer.tar files; ` +
		`printf '{"os":"linux","architecture":"amd64","config":{"Entrypoint":["/a"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' $(sha256sum <layer.tar | cut -c1-64) >config.json; ` +
		`echo '[{"Config":"config.json","RepoTags":["base:1"],"Layers":["layer.tar"]}]' >manifest.json; tar -cf image.tar config.json manifest.json layer.tar`
	layers := []string{
		"init demo", "#mkdir files; head -c 200000 /dev/urandom >files/a", saved, "build demo --add-image base:1=docker-archive:image.tar",
		"#echo >>files/a", saved, "build demo --version 0.2.0 --add-image base:1=docker-archive:image.tar",
	}
	for _, test := range []struct {
		name   string
		before []string // commands; # begins the arguments of the shell
		cut    string
		judge  func(t *testing.T, d powercut.Disk) error // more than that each file is old or new
	}{
		{"keygen", nil, "keygen acme", pairOfKeys},
		{"trust add", []string{"keygen acme"}, "trust add acme acme.pub", nil},
		{"trust add, to others", []string{"keygen acme", "keygen b", "trust add acme acme.pub"}, "trust add b b.pub", nil},
		{"trust remove", []string{"keygen acme", "trust add acme acme.pub"}, "trust remove acme", nil},
		{
			"trust revoke",
			[]string{"keygen acme", "keygen root", "trust add acme acme.pub"},
			"trust revoke --root-key root.key --minimum-version shop=1.0.0", revocationsOpen,
		},
		{
			"trust revoke, again", []string{
				"keygen acme", "keygen root", "trust add acme acme.pub", "trust revoke --root-key root.key --minimum-version shop=1.0.0",
			}, "trust revoke --root-key root.key --minimum-version shop=2.0.0", revocationsOpen,
		},
		{
			"trust import of revocations", []string{
				"keygen acme", "keygen root", "trust add acme acme.pub", "trust revoke --root-key root.key --minimum-version shop=1.0.0",
				"#cp -r trust vendor", "trust --trust-dir vendor revoke --root-key root.key --minimum-version shop=2.0.0",
			}, "trust import vendor/revocations.json", revocationsOpen,
		},
		{
			"trust import of revocations that lack one", []string{
				"keygen acme", "keygen root", "trust add acme acme.pub", "trust revoke --root-key root.key --archive " + archiveOfZeros,
				"#mkdir vendor; cp trust/root.pub vendor", "trust --trust-dir vendor --state vendor.json revoke --root-key root.key --minimum-version shop=1.0.0",
				"trust --trust-dir vendor --state vendor.json revoke --root-key root.key --minimum-version shop=2.0.0",
			}, "trust import vendor/revocations.json", archiveRevoked,
		},
		{
			"trust import of revocations that have it again", []string{
				"keygen acme", "keygen root", "trust add acme acme.pub", "trust revoke --root-key root.key --archive " + archiveOfZeros,
				"#mkdir vendor; cp trust/root.pub vendor", "trust --trust-dir vendor --state vendor.json revoke --root-key root.key --minimum-version shop=1.0.0",
				"trust import vendor/revocations.json", "trust --trust-dir vendor --state vendor.json revoke --root-key root.key --archive " + archiveOfZeros,
			}, "trust import vendor/revocations.json", archiveRevoked,
		},
		{
			"trust import of a store", []string{
				"keygen acme", "keygen b", "trust add acme acme.pub", "trust --trust-dir vendor add b b.pub", "#solutionctl trust --trust-dir vendor export >vendor.tar",
				"sign --format message --key acme.key vendor.tar",
			}, "trust import --endorsed-by acme vendor.tar", nil,
		},
		{"init", nil, "init demo", nil},
		{"build", []string{"init demo"}, "build demo --sha256sum", nil},
		{"build, signed", []string{"init demo", "keygen acme"}, "build demo --sign-key acme.key", nil},
		{
			"deploy affected",
			[]string{"init demo", "build demo", "deploy import --insecure-skip-verify demo-0.1.0.iso"},
			"deploy affected pkg:npm/lodash", nil,
		},
		{"delta create", []string{"init demo", "build demo", "build demo --version 0.2.0"}, "delta create demo-0.1.0.iso demo-0.2.0.iso", nil},
		{
			"delta apply",
			[]string{"init demo", "build demo", "build demo --version 0.2.0", "delta create demo-0.1.0.iso demo-0.2.0.iso", "#mv demo-0.2.0.iso new.iso"},
			"delta apply demo-0.1.0.iso demo-0.2.0.delta", nil,
		},
		{"delta create, with a patch", layers, "delta create demo-0.1.0.iso demo-0.2.0.iso", nil},
		{
			"delta apply, with a patch", append(slices.Clone(layers), "delta create demo-0.1.0.iso demo-0.2.0.iso", "#grep -q patches/ demo-0.2.0.delta; mv demo-0.2.0.iso new.iso"),
			"delta apply demo-0.1.0.iso demo-0.2.0.delta", nil,
		},
		{
			"deploy import of a delta with a patch", append(slices.Clone(layers), "delta create demo-0.1.0.iso demo-0.2.0.iso",
				"deploy import --insecure-skip-verify demo-0.1.0.iso"),
			"deploy import --insecure-skip-verify demo-0.2.0.delta", recordsMatch,
		},
		{"split", []string{"init demo", "#mkdir demo/sbom; head -c 5000000 /dev/urandom >demo/sbom/operator.json", "build demo"}, "split demo-0.1.0.iso --size 4MiB", nil},
		{"sign", []string{"init demo", "build demo", "keygen acme"}, "sign --key acme.key demo-0.1.0.iso", nil},
		{"sign, again", []string{"init demo", "build demo", "keygen acme", "sign --key acme.key demo-0.1.0.iso"}, "sign --key acme.key demo-0.1.0.iso", nil},
		{"node config", []string{containerd}, "deploy node config --root node --node worker-1 --runtime containerd --endpoint http://10.0.0.9:5000", nil},
		{
			"node config, again", []string{
				containerd, "deploy node config --root node --node worker-1 --runtime containerd --endpoint http://10.0.0.9:5000",
			}, "deploy node config --root node --node worker-1 --runtime containerd --endpoint http://10.0.0.8:5000", nil,
		},
		{"deploy import", []string{"init demo", "build demo"}, "deploy import --insecure-skip-verify demo-0.1.0.iso", recordsMatch},
		{
			"deploy import of a pre-release, again", []string{
				"init demo", "build demo --version 1.0.0-rc.1", "deploy import --insecure-skip-verify demo-1.0.0-rc.1.iso",
				"#echo '# another' >>demo/operator/deploy/role.yaml", "build demo --version 1.0.0-rc.1",
			}, "deploy import --insecure-skip-verify demo-1.0.0-rc.1.iso", recordsMatch,
		},
		{
			"deploy unimport",
			[]string{"init demo", "build demo", "deploy import --insecure-skip-verify demo-0.1.0.iso"},
			"deploy unimport demo 0.1.0", recordsMatch,
		},
		{"deploy import, signed", signedDemo, "deploy import demo-0.1.0.iso", bundlesPresent},
		{
			"deploy import, with the signature of the site", append(slices.Clip(signedDemo),
				"deploy import demo-0.1.0.iso", "keygen site", "sign --key site.key --as site demo-0.1.0.iso",
			), "deploy import demo-0.1.0.iso", bundlesPresent,
		},
		{
			"deploy import of a damaged archive, with the signature of the site", append(slices.Clip(signedDemo),
				"deploy import demo-0.1.0.iso", "keygen site", "sign --key site.key --as site demo-0.1.0.iso",
				"#chmod u+w store/archives/demo-0.1.0.iso; truncate -s 65536 store/archives/demo-0.1.0.iso",
			), "deploy import demo-0.1.0.iso", bundlesPresent,
		},
		{
			"deploy import of a signed pre-release, again", append(slices.Clip(signedDemo),
				"build demo --version 1.0.0-rc.1 --sign-key acme.key", "deploy import demo-1.0.0-rc.1.iso",
				"#echo '# another' >>demo/operator/deploy/role.yaml", "build demo --version 1.0.0-rc.1 --sign-key acme.key",
			), "deploy import demo-1.0.0-rc.1.iso", bundlesPresent,
		},
		{
			"deploy unimport, signed", append(slices.Clip(signedDemo), "deploy import demo-0.1.0.iso"),
			"deploy unimport demo 0.1.0", bundlesPresent,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			cache := t.TempDir()
			command := func(line string) *exec.Cmd {
				cmd := exec.CommandContext(t.Context(), "solutionctl", strings.Fields(line)...)
				if script, ok := strings.CutPrefix(line, "#"); ok {
					cmd = exec.CommandContext(t.Context(), "sh", "-ec", script)
				}
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "HOME="+cache, "XDG_CACHE_HOME="+cache, "SOLUTIONCTL_CONFIG="+os.DevNull, "SOLUTIONCTL_PASSWORD=correct horse",
					"SOLUTIONCTL_TRUST_DIR="+filepath.Join(dir, "trust"), "SOLUTIONCTL_STATE="+filepath.Join(dir, "state.json"),
					"SOLUTIONCTL_STORE="+filepath.Join(dir, "store"), "SOLUTIONCTL_SOLUTIONS_FILE="+filepath.Join(dir, "solutions.yaml"),
					"SOLUTIONCTL_NGINX_DIR="+filepath.Join(dir, "conf.d"), "SOLUTIONCTL_MOUNT=never", "SOLUTIONCTL_NO_CLUSTER=true")
				return cmd
			}
			for _, line := range test.before {
				if name, ok := strings.CutPrefix(line, "keygen "); ok { // without a password, which costs time at each use
					if err = keytest.Write(filepath.Join(dir, name)); err != nil {
						t.Fatal(err)
					}
					continue
				}
				if out, failure := command(line).CombinedOutput(); failure != nil {
					t.Fatalf("%s: %v\n%s", line, failure, out)
				}
			}
			output, err := os.Create(filepath.Join(cache, "output"))
			if err != nil {
				t.Fatal(err)
			}
			defer output.Close() //nolint:errcheck // read by its name
			cmd := command(test.cut)
			cmd.Stdout, cmd.Stderr = output, output
			var disks []powercut.Disk
			seen := map[string]bool{}
			var before, after map[string]string
			status, err := powercut.Play(t.Context(), cmd, dir, func(d powercut.Disk) {
				if before == nil {
					before = d.Files
				}
				after = d.Files // at last, with everything that was written
				if key := fmt.Sprint(d); !seen[key] {
					seen[key] = true
					disks = append(disks, d)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if text, err := os.ReadFile(output.Name()); err != nil || status.ExitStatus() != 0 {
				t.Fatalf("%v\n%s", err, text)
			}
			if maps.Equal(before, after) {
				t.Fatal("the command writes nothing")
			}
			for _, d := range disks {
				problem := oldOrNew(d, before, after)
				if problem == nil && test.judge != nil {
					problem = test.judge(t, d)
				}
				if problem != nil {
					t.Fatalf("power cut before %q: %v", d.Before, problem)
				}
			}
		})
	}
}

func oldOrNew(d powercut.Disk, before, after map[string]string) error {
	for _, expected := range []map[string]string{before, after} {
		for path := range expected {
			got, found := d.Files[path]
			old, isOld := before[path]
			want, isNew := after[path]
			switch {
			case found && isNew && got == want, !found && !isNew:
			case d.Before == "":
				return fmt.Errorf("the command has succeeded, but %s is not what it wrote: %.40q", path, got)
			case found && isOld && got == old, !found && !isOld:
			default:
				return fmt.Errorf("%s is neither old nor new: there %v, %d bytes %.40q", path, found, len(got), got)
			}
		}
	}
	return nil
}

func pairOfKeys(_ *testing.T, d powercut.Disk) error {
	if d.Files["acme.pub"] != "" && d.Files["acme.key"] == "" {
		return fmt.Errorf("a public key without its private one")
	}
	return nil
}

// recordsMatch fails when a record of the store is not that of the archive beside it, nor is the one that is to take its place.
func recordsMatch(_ *testing.T, d powercut.Disk) error {
	for path, record := range d.Files {
		id, isRecord := strings.CutSuffix(path, ".json")
		if !isRecord || !strings.HasPrefix(path, "store/archives/") || strings.HasSuffix(path, ".sigstore.json") {
			continue
		}
		digest := fmt.Sprintf("%x", sha256.Sum256([]byte(d.Files[id+".iso"])))
		if !strings.Contains(record, digest) && !strings.Contains(d.Files[path+".next"], digest) {
			return fmt.Errorf("%s is not the record of the archive", path)
		}
	}
	return nil
}

// bundlesPresent fails when an archive of the store lacks its signature, or a signature is not the one of its name.
func bundlesPresent(t *testing.T, d powercut.Disk) error {
	t.Helper()
	bundles := map[string]bool{} // the beginnings of their names, with the digest of the archive
	for path, content := range d.Files {
		name, isBundle := strings.CutSuffix(path, ".sigstore.json")
		if !isBundle || !strings.HasPrefix(path, "store/archives/demo-") {
			continue
		}
		archive, digest, _ := strings.Cut(name, ".iso.")
		of, own, _ := strings.Cut(digest, "-")
		if !strings.HasPrefix(fmt.Sprintf("%x", sha256.Sum256([]byte(content))), own) {
			return fmt.Errorf("%s has other content", path)
		}
		bundles[archive+" "+of] = true
	}
	for path, record := range d.Files {
		id, isRecord := strings.CutSuffix(path, ".json")
		if !isRecord || !strings.HasPrefix(path, "store/archives/demo-") || strings.HasSuffix(path, ".sigstore.json") {
			continue
		}
		for _, written := range []string{record, d.Files[path+".next"]} {
			_, digest, found := strings.Cut(written, `"sha256": "`)
			if found && digest[:64] == fmt.Sprintf("%x", sha256.Sum256([]byte(d.Files[id+".iso"]))) && !bundles[id+" "+digest[:16]] {
				return fmt.Errorf("%s has no signature", id)
			}
		}
	}
	return nil
}

// revocationsOpen fails when a list is not the one that its signature is for.
func revocationsOpen(t *testing.T, d powercut.Disk) error {
	t.Helper()
	_, err := openTrust(t, d)
	return err
}

// archiveRevoked fails when the archive is not revoked any more that was before.
func archiveRevoked(t *testing.T, d powercut.Disk) error {
	t.Helper()
	store, err := openTrust(t, d)
	if err == nil && !store.RevokesArchives() {
		err = errors.New("the archive is not revoked any more")
	}
	return err
}

// openTrust returns the trust store that is on a disk.
func openTrust(t *testing.T, d powercut.Disk) (*trust.Store, error) {
	t.Helper()
	dir := t.TempDir()
	for path, content := range d.Files {
		name := filepath.Join(dir, filepath.FromSlash(path))
		var err error
		if strings.HasSuffix(path, "/") {
			err = os.MkdirAll(name, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(name), 0o755); err == nil {
			err = os.WriteFile(name, []byte(content), 0o644)
		}
		if err != nil {
			return nil, err
		}
	}
	return trust.Load([]string{filepath.Join(dir, "trust")}, nil)
}
