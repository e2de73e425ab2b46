package sources_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/e2e/sources"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
)

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{FakeNodes: 3, ReadyAtOnce: true})
}

// TestSources takes every source of testdata/sources.yaml from "init" to what runs in a cluster, and back, without an edit. Its images are
// placeholders, and the nodes are fake. Sources that cannot be fetched are skipped, and fail where CI=true.
func TestSources(t *testing.T) {
	t.Parallel()
	testcluster.Long(t, "the scripts init_from_* in cmd/solutionctl")
	list, err := sources.ReadList("testdata/sources.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var fetching sync.Mutex // several sources are in one repository
	bin := buildPrograms(t)
	for _, source := range list {
		t.Run(source.Name, func(t *testing.T) {
			t.Parallel()
			w := &sourceTest{T: t, dir: t.TempDir(), bin: bin, name: source.Name}
			fetching.Lock()
			path, err := source.Fetch(t.Context(), filepath.Join(w.dir, "source"))
			fetching.Unlock()
			if err != nil && os.Getenv("CI") != "true" {
				t.Skipf("not fetched, name a directory of clones with TEST_SOURCES: %v", err)
			} else if err != nil {
				t.Fatal(err)
			}
			w.trust()
			for _, refusal := range source.Refused {
				w.refuses(refusal, path)
			}
			if source.Refused == nil || source.Values != "" {
				archive := w.pack(path, source.Values)
				w.ok("verify", archive)
				if source.Needs == "" {
					w.cluster = testcluster.Borrow(t)
					w.deploy(&source, archive)
				}
			}
		})
	}
}

// buildPrograms builds solutionctl and the program of the placeholder images, and returns their directory.
func buildPrograms(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	testcluster.Program(t, bin)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "placeholder"), "main.go")
	build.Dir, build.Env = "testdata/placeholder", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the placeholder: %v\n%s", err, out)
	}
	return bin
}

// A sourceTest packs and deploys one source.
type sourceTest struct {
	*testing.T
	dir, bin, name string
	cluster        *testcluster.Cluster
}

func (w *sourceTest) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.Context(), filepath.Join(w.bin, "solutionctl"), args...)
	cmd.Dir = w.dir
	path := func(name string) string { return filepath.Join(w.dir, name) }
	cmd.Env = append(os.Environ(),
		"SOLUTIONCTL_PASSWORD=secret", "SOLUTIONCTL_CONFIG="+os.DevNull, "SOLUTIONCTL_TRUST_DIR="+path("trust"), "SOLUTIONCTL_STORE="+path("store"),
		"SOLUTIONCTL_STATE="+path("store/state.json"), "SOLUTIONCTL_SOLUTIONS_FILE="+path("metalk8s/solutions.yaml"),
		"SOLUTIONCTL_NGINX_DIR="+path("conf.d"), "SOLUTIONCTL_MOUNT=never", "SOLUTIONCTL_ENDPOINT=http://127.0.0.1:9")
	if w.cluster != nil {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+w.cluster.Kubeconfig)
	}
	return cmd
}

// ok runs a command that must succeed, and returns what it prints.
func (w *sourceTest) ok(args ...string) []byte {
	w.Helper()
	var stdout, stderr bytes.Buffer
	cmd := w.command(args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		w.Fatalf("solutionctl %s: %v\n%s%s", strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes()
}

// trust makes a key, and trusts it.
func (w *sourceTest) trust() {
	w.Helper()
	w.ok("keygen", "vendor")
	w.ok("trust", "add", "vendor", "vendor.pub")
}

// refuses checks that a command refuses the source, and what it prints.
func (w *sourceTest) refuses(refusal sources.Refusal, path string) {
	w.Helper()
	args := []string{"init", "none", "--from", path}
	if refusal.Command == "build" {
		w.initialize("refused", path, "")
		args = []string{"build", "refused", "--sign-key", "vendor.key"}
	}
	out, err := w.command(args...).CombinedOutput()
	if err == nil {
		w.Errorf("%s succeeds, want a refusal", strings.Join(args, " "))
	}
	for _, text := range refusal.Prints {
		if !strings.Contains(string(out), text) {
			w.Errorf("%s does not print %q:\n%s", strings.Join(args, " "), text, out)
		}
	}
}

// pack makes a signed archive of the source, without an edit.
func (w *sourceTest) pack(path, values string) (archive string) {
	w.Helper()
	w.initialize(w.name, path, values)
	w.ok("build", w.name, "--sign-key", "vendor.key")
	archives, err := filepath.Glob(filepath.Join(w.dir, w.name+"-*.iso"))
	if err != nil || len(archives) != 1 {
		w.Fatalf("archives are %v, %v", archives, err)
	}
	return archives[0]
}

// initialize makes a project of the source, and the images that it wants.
func (w *sourceTest) initialize(project, path, values string) {
	w.Helper()
	flags := []string{"--from", path}
	if values != "" {
		if err := os.WriteFile(filepath.Join(w.dir, "values.yaml"), []byte(values), 0o644); err != nil {
			w.Fatal(err)
		}
		flags = append(flags, "--values", "values.yaml")
	}
	var found struct{ Images []string }
	w.decode(w.ok(slices.Concat([]string{"init", "images-of/" + project, "-o", "json"}, flags)...), &found)
	layout := "layout-" + project
	if err := sources.WriteImages(filepath.Join(w.dir, layout), filepath.Join(w.bin, "placeholder"), found.Images); err != nil {
		w.Fatal(err)
	}
	w.Logf("%s", w.ok(slices.Concat([]string{"init", project, "--images", "oci:" + layout}, flags)...))
}

func (w *sourceTest) decode(data []byte, value any) {
	w.Helper()
	if err := json.Unmarshal(data, value); err != nil {
		w.Fatalf("%v in %s", err, data)
	}
}

// deploy takes an archive to where all of it runs, and removes it again.
func (w *sourceTest) deploy(source *sources.Source, archive string) {
	w.Helper()
	w.createVolumes()
	before := w.objects()
	environment, wait := w.name+"-env", source.Unready == ""
	w.ok("deploy", "import", archive)
	w.approved(wait, "activate", w.name)
	w.ok("deploy", "env", "create", environment)
	w.approved(wait, "add", environment, w.name)
	created := slices.DeleteFunc(w.objects(), func(object string) bool { return slices.Contains(before, object) })
	w.Logf("%d objects: %s", len(created), strings.Join(created, ", "))
	if !slices.ContainsFunc(created, func(object string) bool { return strings.HasPrefix(object, "Pod ") }) {
		w.Error("no pod runs")
	}
	w.ok("deploy", "plan", "add", environment, w.name, "--exit-status")
	if source.Changes == "" {
		w.ok("deploy", "plan", "activate", w.name, "--exit-status")
	}
	if !wait { // no program answers for the webhooks
		w.kubectl("", "delete", "validatingwebhookconfigurations,mutatingwebhookconfigurations", "--all")
	}
	w.ok("deploy", "uninstall", w.name, "--env", environment, "--delete-env", "--delete-data", "--yes")
	for _, object := range w.objects() {
		namespace, isNamespace := strings.CutPrefix(object, "Namespace /")
		switch {
		case slices.Contains(before, object):
		case slices.ContainsFunc(source.Leaves, func(role string) bool { return strings.HasSuffix(object, ":"+role) }):
			w.kubectl("", "delete", "clusterrole", strings.TrimPrefix(object, "ClusterRole /"))
		case !isNamespace:
			w.Errorf("%s is left", object)
		case !slices.Contains([]string{"metalk8s-solutions", "solutionctl-system"}, namespace): // it is kept for the sake of data
			w.kubectl("", "delete", "namespace", namespace)
		}
	}
}

// createVolumes creates volumes for the claims of a source: the cluster has no provisioner.
func (w *sourceTest) createVolumes() {
	w.Helper()
	var list strings.Builder
	list.WriteString("{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: " + w.name + `, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}, provisioner: kubernetes.io/no-provisioner}` + "\n")
	for i := range volumes {
		fmt.Fprintf(&list, "---\n{apiVersion: v1, kind: PersistentVolume, metadata: {name: %s-%d}, spec: {storageClassName: %s, capacity: {storage: 1Ti}, "+
			"accessModes: [ReadWriteOnce, ReadWriteMany, ReadOnlyMany], hostPath: {path: /nowhere}}}\n", w.name, i, w.name)
	}
	w.kubectl(list.String(), "apply", "--filename", "-")
	w.Cleanup(func() {
		if !w.Failed() {
			w.kubectl(list.String(), "delete", "--wait=false", "--filename", "-")
		}
	})
}

const (
	volumes = 12              // how many claims a source can have
	timeout = 3 * time.Minute // for all objects to become ready, on fake nodes
)

// approved runs a verb with the approval of all powers that its plan shows.
func (w *sourceTest) approved(wait bool, args ...string) {
	w.Helper()
	var planned schema.Operation
	w.decode(w.ok(slices.Concat([]string{"deploy", "plan"}, args, []string{"-o", "json"})...), &planned)
	for _, power := range planned.Unapproved() {
		args = append(args, "--allow", plan.Allowance(power))
	}
	if !wait {
		args = append(args, "--no-wait")
	}
	w.ok(slices.Concat([]string{"deploy"}, args, []string{"--timeout", timeout.String()})...)
}

// objects lists what a Solution can leave behind.
func (w *sourceTest) objects() []string {
	w.Helper()
	const kinds = "namespaces,customresourcedefinitions,clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations," +
		"apiservices,priorityclasses,storageclasses,ingressclasses,csidrivers,persistentvolumes,deployments,daemonsets,statefulsets,jobs,cronjobs,pods,services"
	list := w.kubectl("", "get", kinds, "--all-namespaces", `--output=jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}`)
	return strings.Split(strings.TrimSpace(list), "\n")
}

// kubectl runs a command with a document as its input, also while a test ends.
func (w *sourceTest) kubectl(input string, args ...string) string {
	w.Helper()
	cmd := exec.Command(filepath.Join(w.cluster.Bin, "kubectl"), append([]string{"--kubeconfig", w.cluster.Kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Errorf("%v: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}
