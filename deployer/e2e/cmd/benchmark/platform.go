//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/schema"
)

// part is one of ten components of four levels: what it needs, and how long its program works before it listens.
type part struct {
	name  string
	delay time.Duration
	needs []string
}

// parts are in an order in which they can be brought up one after the other.
var parts = []part{
	{"identity", time.Second, nil},
	{"network", 2 * time.Second, nil},
	{"storage", time.Second, nil},
	{"images", time.Second, []string{"identity", "storage"}},
	{"conductor", 2 * time.Second, []string{"network"}},
	{"volumes", time.Second, []string{"storage", "identity"}},
	{"scheduler", 2 * time.Second, []string{"conductor"}},
	{"metering", time.Second, []string{"images", "volumes"}},
	{"compute", 2 * time.Second, []string{"scheduler", "images"}},
	{"dashboard", time.Second, []string{"metering", "volumes"}},
}

// inSequence is the work time of all parts together, critical that of the longest chain.
func inSequence() (sum time.Duration) {
	for _, p := range parts {
		sum += p.delay
	}
	return sum
}

func critical() (longest time.Duration) {
	ends := map[string]time.Duration{}
	for _, p := range parts {
		var start time.Duration
		for _, need := range p.needs {
			start = max(start, ends[need])
		}
		ends[p.name] = start + p.delay
		longest = max(longest, ends[p.name])
	}
	return longest
}

// platform is a node that has what every contestant needs: the archives with everything, imported and served, charts for Helm,
// and directories for kubectl.
type platform struct {
	*testcluster.Cluster
	dir     string
	program string // of solutionctl, as it is released
	tools   string // directory with kubectl and helm, and helmfile where it is measured
}

// path is a file of the bed.
func (p *platform) path(elements ...string) string {
	return filepath.Join(append([]string{p.dir}, elements...)...)
}

// command is a command on the node.
func (p *platform) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(),
		"KUBECONFIG="+p.Kubeconfig, "HOME="+p.path("home"), "XDG_CACHE_HOME=", "XDG_CONFIG_HOME=", "XDG_DATA_HOME=",
		"SOLUTIONCTL_CONFIG="+os.DevNull, "SOLUTIONCTL_PASSWORD=secret", "PATH="+p.tools+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return cmd
}

// run runs a command on the node.
func (p *platform) run(ctx context.Context, name string, args ...string) error {
	if _, err := measureWith(p.command(ctx, name, args...), p.StartOnNode); err != nil {
		return fmt.Errorf("%s %s: %w", filepath.Base(name), strings.Join(args, " "), err)
	}
	return nil
}

func (p *platform) solutionctl(ctx context.Context, args ...string) error {
	return p.run(ctx, p.program, args...)
}

// preparePlatform makes programs, images, charts and archives, and imports them.
func preparePlatform(ctx context.Context, s settings) (p *platform, err error) {
	p = &platform{}
	if p.dir, err = os.MkdirTemp("", "solutionctl-platform-"); err != nil {
		return nil, err
	}
	p.program = s.binary
	defer func() {
		if err != nil {
			err = errors.Join(err, p.end())
		}
	}()
	if !s.alone {
		if p.tools, err = buildRivals(ctx); err != nil {
			return p, err
		}
	}
	if !s.alone && s.helmfile != "" {
		if err = buildHelmfile(ctx, s.helmfile, p.tools); err != nil {
			return p, err
		}
	}
	if err = p.makeProgram(ctx); err == nil {
		err = p.makeSolution(ctx)
	}
	if err != nil {
		return p, err
	}
	if p.Cluster, err = testcluster.Start(ctx, testcluster.Options{Node: true, Audit: auditPolicy, Progress: os.Stderr}); err != nil {
		return p, err
	}
	return p, p.importArchives(ctx)
}

// end removes everything.
func (p *platform) end() (err error) {
	if p.Cluster != nil {
		err = p.Stop()
	}
	return errors.Join(err, os.RemoveAll(p.dir), os.RemoveAll(p.tools))
}

// moduleRoot is the directory of the module of solutionctl.
func moduleRoot(ctx context.Context) (string, error) {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/solutionctl/solutionctl").Output()
	return strings.TrimSpace(string(dir)), err
}

// inModule runs a command in the module of solutionctl.
func inModule(ctx context.Context, name string, args ...string) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "VERSION=1.0.0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(name), err, out)
	}
	return nil
}

// buildHelmfile builds a version of Helmfile in its own module, with the versions of everything that it wants.
func buildHelmfile(ctx context.Context, version, to string) error {
	module := "github.com/helmfile/helmfile"
	download := exec.CommandContext(ctx, "go", "mod", "download", module+"@"+version)
	download.Dir = os.TempDir() // outside of any module
	if out, err := download.CombinedOutput(); err != nil {
		return fmt.Errorf("get Helmfile: %w: %s", err, out)
	}
	cache, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE").Output()
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", to+"/", ".")
	build.Dir = filepath.Join(strings.TrimSpace(string(cache)), filepath.FromSlash(module)+"@"+version)
	build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off"), os.Stderr
	return build.Run()
}

// makeProgram makes the archive that brings solutionctl as an image.
func (p *platform) makeProgram(ctx context.Context) error {
	system := "linux/" + runtime.GOARCH
	if err := inModule(ctx, "go", "run", "./cmd/image", p.path("image"), system+"="+p.program); err != nil {
		return fmt.Errorf("make the image of solutionctl: %w", err)
	}
	return inModule(ctx, p.program, "build", "cmd/image", "--version", "1.0.0", "--platform", system, "--to", p.dir+"/",
		"--image", "solutionctl=oci:"+p.path("image")+":solutionctl")
}

// origin is the reference of an image outside of the archive, and served the one by which the node gets it.
func origin(p part) string { return "platform.example.com/" + p.name + ":1.0.0" }

func served(p part) string { return schema.RegistryHostOwn + "/platform-1.0.0/" + p.name + ":1.0.0" }

// makeSolution writes images, charts, the project with them and what its rivals read, and builds the archive.
func (p *platform) makeSolution(ctx context.Context) error {
	for _, dir := range []string{"project/charts", "helm", "kustomize", "home"} {
		if err := os.MkdirAll(p.path(dir), 0o755); err != nil {
			return err
		}
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", p.path("part"),
		"github.com/solutionctl/solutionctl/deployer/e2e/cmd/benchmark/part")
	build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the program of the components: %w", err)
	}
	program, err := os.ReadFile(p.path("part"))
	if err != nil {
		return err
	}
	for i, one := range parts {
		err := errors.Join(
			writeImage(p.path("project", one.name+".tar"), one.name, program),
			p.writeChart(one),
			p.writeDirectory(i, one),
		)
		if err != nil {
			return fmt.Errorf("component %s: %w", one.name, err)
		}
	}
	if err := errors.Join(
		os.WriteFile(p.path("project", "solution.yaml"), []byte(solutionOf(parts)), 0o644),
		os.WriteFile(p.path("helmfile.yaml"), []byte(p.helmfile()), 0o644),
	); err != nil {
		return err
	}
	return inModule(ctx, p.program, "build", p.path("project"), "--to", p.dir+"/")
}

// solutionOf is the project: each part is a chart with an image of its own.
func solutionOf(parts []part) string {
	var images, components strings.Builder
	for _, one := range parts {
		fmt.Fprintf(&images, "    - {name: %s, source: \"docker-archive:%s.tar\", origin: %q}\n", one.name, one.name, origin(one))
		needs := make([]string, len(one.needs))
		for i, need := range one.needs {
			needs[i] = "{component: " + need + "}"
		}
		fmt.Fprintf(&components, "    - {name: %s, chart: charts/%s.tgz, dependsOn: [%s]}\n", one.name, one.name, strings.Join(needs, ", "))
	}
	return fmt.Sprintf(`apiVersion: solutionctl.io/v1alpha1
kind: SolutionBuild
metadata: {name: platform}
spec:
  version: 1.0.0
  images:
%s  components:
%s`, images.String(), components.String())
}

// objects returns the objects of a part, where image and patient may be placeholders of a template.
func (one part) objects(image, patient string) string {
	args := append([]string{one.delay.String()}, one.needs...)
	return fmt.Sprintf(`apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: %[1]s}
data: {delay: %[2]q}
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec:
  selector: {app: %[1]s}
  ports: [{name: any, port: 80, targetPort: 8080}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      serviceAccountName: %[1]s
      automountServiceAccountToken: false
      containers:
        - name: part
          image: %[3]s
          command: [/part]
          args: [%[4]s]
          env: [{name: PATIENT, value: "%[5]s"}]
          envFrom: [{configMapRef: {name: %[1]s}}]
          ports: [{containerPort: 8080}]
          resources: {requests: {cpu: 1m, memory: 8Mi}}
          readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
          securityContext: {runAsNonRoot: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}
`, one.name, one.delay, image, strings.Join(args, ", "), patient)
}

// writeChart packs the chart of a part, for us and for Helm.
func (p *platform) writeChart(one part) error {
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	err := pack(compressed, map[string]string{
		one.name + "/Chart.yaml":         "apiVersion: v2\nname: " + one.name + "\nversion: 1.0.0\n",
		one.name + "/values.yaml":        "image: " + origin(one) + "\n",
		one.name + "/templates/all.yaml": one.objects("{{ .Values.image }}", "no"),
	}, 0o644)
	if err = errors.Join(err, compressed.Close()); err != nil {
		return err
	}
	return os.WriteFile(p.path("project", "charts", one.name+".tgz"), packed.Bytes(), 0o644)
}

// writeDirectory writes directories of manifests, as MicroShift reads them: one with a program that ends when it does not find what it
// needs, one with a patient one.
func (p *platform) writeDirectory(i int, one part) error {
	var err error
	for _, patient := range []string{"no", "yes"} {
		dir := p.path("kustomize", patient, fmt.Sprintf("%03d-%s", i, one.name))
		err = errors.Join(err, os.MkdirAll(dir, 0o755),
			os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("resources: [all.yaml]\n"), 0o644),
			os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(one.objects(served(one), patient)), 0o644))
	}
	return err
}

// helmfile returns the input of Helmfile.
func (p *platform) helmfile() string {
	var text strings.Builder
	text.WriteString("helmDefaults: {wait: true, timeout: 300}\nreleases:\n")
	for _, one := range parts {
		fmt.Fprintf(&text, "  - {name: %s, chart: %s, needs: [%s], values: [{image: %q}]}\n",
			one.name, p.path("project", "charts", one.name+".tgz"), strings.Join(one.needs, ", "), served(one))
	}
	return text.String()
}

// writeImage writes what 'docker save' writes of an image with a program and a file that no other image has.
func writeImage(file, title string, program []byte) error {
	var packed bytes.Buffer
	if err := pack(&packed, map[string]string{"part": string(program), "name": title}, 0o755); err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil })
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config.User = "linux", runtime.GOARCH, "65532:65532"
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return err
	}
	reference, err := name.NewTag(title + ":1.0.0")
	if err != nil {
		return err
	}
	return tarball.WriteToFile(file, reference, image)
}

// pack writes files into a tar archive.
func pack(w io.Writer, files map[string]string, mode int64) error {
	archive := tar.NewWriter(w)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: file, Mode: mode, Size: int64(len(files[file]))}); err != nil {
			return err
		}
		if _, err := io.WriteString(archive, files[file]); err != nil {
			return err
		}
	}
	return archive.Close()
}

// importArchives does what an administrator does before anything is deployed. The registry serves until the cluster ends.
func (p *platform) importArchives(ctx context.Context) error {
	archives := []string{"platform-1.0.0.iso", "solutionctl-1.0.0.iso"}
	steps := [][]string{{"keygen", "acme"}}
	for _, archive := range archives {
		steps = append(steps, []string{"sign", "--key", "acme.key", archive})
	}
	address := p.NodeAddress() + ":5000"
	steps = append(steps, []string{"trust", "add", "acme", "acme.pub"},
		append([]string{"deploy", "import", "--endpoint", "https://" + address}, archives...))
	for _, step := range steps {
		if err := p.solutionctl(ctx, step...); err != nil {
			return err
		}
	}
	registry := p.command(ctx, p.program, "deploy", "serve")
	if err := p.StartOnNode(registry); err != nil {
		return err
	}
	go func() { _ = registry.Wait() }() // it ends with the node, which cannot end before its process is waited for
	if err := until(ctx, func() error {
		conn, err := p.DialNode(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}); err != nil {
		return fmt.Errorf("wait for the registry: %w", err)
	}
	for _, step := range [][]string{{"deploy", "node", "config"}, {"deploy", "activate", "platform"}} {
		if err := p.solutionctl(ctx, step...); err != nil {
			return err
		}
	}
	return nil
}

// until asks until there is no error any more, for a minute.
func until(ctx context.Context, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for tick := time.Tick(20 * time.Millisecond); ; {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick:
		}
	}
}
