package guide_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/e2e/solution"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/docs/guides"
	"github.com/solutionctl/solutionctl/schema"
)

const consoleNamespace = "solutionctl-console"

// TestConsoleInTheCluster follows the guide on an API server, where pods become ready without running, and runs what they
// would: the command, with the files that are mounted, asked as an Ingress and as the kubelet ask.
func TestConsoleInTheCluster(t *testing.T) {
	shared := testcluster.Shared(t)
	image := importProgram(t, shared)
	steps, err := guides.Steps("console-setup.md")
	if err != nil || len(steps) != 2 {
		t.Fatalf("%+v, %v", steps, err)
	}
	dir := t.TempDir()
	program := testcluster.Program(t, dir)
	testcluster.Certificate(t, dir)
	certificate, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	shell := func(ctx context.Context, script string) {
		t.Helper()
		cmd := exec.CommandContext(ctx, "sh", "-c", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "KUBECONFIG="+shared.Kubeconfig, "SOLUTIONCTL_CONFIG="+os.DevNull, "OUTPUT="+dir, "CERTIFICATE="+certificate, "KEY="+key,
			"PATH="+strings.Join([]string{dir, shared.Bin, os.Getenv("PATH")}, string(filepath.ListSeparator)))
		if out, failure := cmd.CombinedOutput(); failure != nil || bytes.Contains(out, []byte("Warning")) { // such as of what the restricted standard for pods forbids
			t.Errorf("%v\n%s", failure, out)
		}
	}
	t.Cleanup(func() { shell(context.WithoutCancel(t.Context()), "kubectl delete -f console.yaml") })
	shell(t.Context(), guides.Shell(steps)+`
kubectl -n solutionctl-console create secret tls console-tls --cert "$CERTIFICATE" --key "$KEY"
openssl rand -base64 32 | kubectl -n solutionctl-console create secret generic console-keys --from-file session-keys=/dev/stdin
kubectl apply --validate=strict -f console.yaml -f ingress.yaml
kubectl -n solutionctl-console rollout status deployment/console --timeout 2m

# A service has a kubeconfig without credentials, and a user a token.
kubectl config view --raw --minify --output 'jsonpath={.clusters[0].cluster.certificate-authority-data}' | base64 --decode > ca.crt
kubectl --kubeconfig console.kubeconfig config set-cluster site --server "$(kubectl config view --minify --output 'jsonpath={.clusters[0].cluster.server}')" --certificate-authority ca.crt --embed-certs
kubectl --kubeconfig console.kubeconfig config set-context site --cluster site
kubectl --kubeconfig console.kubeconfig config use-context site
kubectl -n solutionctl-console create serviceaccount jane
kubectl --kubeconfig console.kubeconfig --token "$(kubectl -n solutionctl-console create token jane --duration 8h)" auth whoami | grep system:serviceaccount:solutionctl-console:jane`)
	deployment, err := shared.Client().AppsV1().Deployments(consoleNamespace).Get(t.Context(), "console", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	if pod.Containers[0].Image != image {
		t.Errorf("the image is %s, want %s", pod.Containers[0].Image, image)
	}
	run(t, shared, pod, program, certificate)
}

// importProgram makes the Solution of solutionctl itself known, and returns what its image is called.
func importProgram(t *testing.T, c *testcluster.Cluster) string {
	t.Helper()
	connection, err := cluster.Connect(cluster.Options{Kubeconfig: c.Kubeconfig, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	d := deployer.New(deployer.Config{Cluster: connection, Now: time.Now, Version: "1.0.0", Identity: "tester@here"})
	payload := deployertest.Payload(t, schema.ProgramImage, "1.0.0", deployertest.Content{Bare: true, Images: []string{schema.ProgramImage}})
	if err := solution.Record(t.Context(), d, payload); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.RecordUnimport(context.WithoutCancel(t.Context()), deployer.UnimportOptions{ID: "solutionctl-1.0.0"}); err != nil {
			t.Error(err)
		}
	})
	return "registry.solutionctl.invalid/solutionctl-1.0.0/solutionctl:1.0.0@" + payload.Images[0].Digest
}

// run runs the command of a pod on this host, with the files that it would have.
func run(t *testing.T, cluster *testcluster.Cluster, pod corev1.PodSpec, program, certificate string) {
	t.Helper()
	root, container := t.TempDir(), pod.Containers[0]
	mount(t, cluster, pod, root)
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a free port
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err = l.Close(); err != nil {
		t.Fatal(err)
	}
	var args []string
	for _, word := range container.Command[1:] {
		flag, value, _ := strings.Cut(word, "=")
		switch {
		case flag == "--listen":
			word = flag + "=" + address
		case strings.HasPrefix(value, "/"):
			word = flag + "=" + filepath.Join(root, value)
		}
		args = append(args, word)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = []string{"HOME=" + filepath.Join(root, container.Env[0].Value)}
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // its status is of no use here
		if t.Failed() {
			t.Log(output.String())
		}
	})
	trusted, err := os.ReadFile(certificate)
	if err != nil {
		t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(trusted)
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ask := func(host, path string) (status int, location, body string, err error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+path, nil)
		if err != nil {
			return 0, "", "", err
		}
		r.Host = host
		a, err := client.Do(r)
		if err != nil {
			return 0, "", "", err
		}
		defer a.Body.Close() //nolint:errcheck // all is read
		data, err := io.ReadAll(a.Body)
		return a.StatusCode, a.Header.Get("Location"), string(data), err
	}
	probe := container.ReadinessProbe.HTTPGet
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, testcluster.Deadline(time.Minute), true, func(context.Context) (bool, error) {
		status, _, _, failure := ask("10.1.2.3:8443", probe.Path)
		return failure == nil && status < 400, nil
	})
	if err != nil {
		t.Fatalf("it never is ready: %v", err)
	}
	if status, location, _, err := ask("example.com", "/solutions/"); err != nil || status != http.StatusSeeOther || !strings.HasPrefix(location, "/solutions/login") {
		t.Errorf("the first page: %d to %s, %v", status, location, err)
	}
	if status, _, body, err := ask("example.com", "/solutions/login"); err != nil || status != http.StatusOK || !strings.Contains(body, `action="/solutions/`) {
		t.Errorf("logging in: %d, %v\n%s", status, err, body)
	}
	if status, _, _, err := ask("example.com", "/other"); err != nil || status != http.StatusNotFound {
		t.Errorf("what others have on this host: %d, %v", status, err)
	}
	if status, _, _, err := ask("evil.example", "/solutions/"); err != nil || status != http.StatusMisdirectedRequest {
		t.Errorf("another name: %d, %v", status, err)
	}
}

// mount writes what the volumes of a pod have below a directory.
func mount(t *testing.T, cluster *testcluster.Cluster, pod corev1.PodSpec, root string) {
	t.Helper()
	at := map[string]string{}
	for _, m := range pod.Containers[0].VolumeMounts {
		at[m.Name] = filepath.Join(root, m.MountPath)
	}
	client := cluster.Client().CoreV1()
	for _, v := range pod.Volumes {
		files := map[string][]byte{}
		switch {
		case v.Secret != nil:
			secret, err := client.Secrets(consoleNamespace).Get(t.Context(), v.Secret.SecretName, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			files = secret.Data
		case v.ConfigMap != nil:
			document, err := client.ConfigMaps(consoleNamespace).Get(t.Context(), v.ConfigMap.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range document.Data {
				// Here the API server has no name, and files lie below a directory.
				text = strings.NewReplacer("https://kubernetes.default.svc", cluster.Host, "/etc/console/", filepath.Join(root, "etc/console")+"/").Replace(text)
				files[name] = []byte(text)
			}
		}
		if err := os.MkdirAll(at[v.Name], 0o700); err != nil {
			t.Fatal(err)
		}
		for name, data := range files {
			if err := os.WriteFile(filepath.Join(at[v.Name], name), data, 0o600); err != nil {
				t.Fatal(fmt.Errorf("%s: %w", name, err))
			}
		}
	}
}
