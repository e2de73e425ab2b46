package console_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/e2e/dex"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/hostd"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// Jane may do everything, Joe what a test gives him or the group that he is in.
const (
	jane      = "jane@example.com"
	joe       = "joe@example.com"
	operators = "operators"
)

// nowhere is the registry of all images: nothing is pulled where nothing runs.
const nowhere = "http://127.0.0.1:9"

// lifetime is that of the tokens of Dex. The console renews a token 30 seconds before it expires, so that users get new ones every
// five seconds. It would renew less than 30 seconds at each request, and the signatures of Dex would take a fifth of the test's time.
const lifetime = 35 * time.Second

// world is a real cluster whose API server trusts a real Dex, and a console for its users.
type world struct {
	*testcluster.Cluster
	*deployer.Deployer // of an administrator
	dex                *dex.Provider
	origin             string
	address            string // of the origin
	authorities        *x509.CertPool
	options            console.Options
	bin                string // a directory for program
	program            string // the command line; empty until it is needed first
	host               string // a directory: the store, the trust store and the archives of a host

	console atomic.Pointer[console.Console]
	stop    context.CancelFunc
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dex: dex.Start(t, lifetime, dex.User{Address: jane}, dex.User{Address: joe, Groups: []string{operators}}), authorities: x509.NewCertPool(), bin: t.TempDir(), host: t.TempDir()}
	w.Cluster = testcluster.StartFor(t, testcluster.Options{FakeNodes: 1, ReadyAtOnce: true, Authentication: w.dex.Authentication()})
	connected, err := cluster.Connect(cluster.Options{Kubeconfig: w.Kubeconfig, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	w.Deployer = deployer.New(deployer.Config{Cluster: connected, Now: time.Now, Version: "1.0.0", Identity: "admin@here"})
	w.bind(t, "cluster-admin", jane)

	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.console.Load().ServeHTTP(rw, r) }))
	w.address = server.Listener.Addr().String()
	_, port, err := net.SplitHostPort(w.address)
	if err != nil {
		t.Fatal(err)
	}
	// A name of its own: Dex is on this address, too, and cookies know no ports.
	w.origin = "https://console.localhost:" + port
	w.dex.Client(t, w.origin+"/auth/callback")
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	keys, err := session.ParseKeys([]byte(base64.StdEncoding.EncodeToString(key)))
	if err != nil {
		t.Fatal(err)
	}
	w.options = console.Options{
		Connect: func(token session.Token) (*cluster.Cluster, error) {
			return cluster.Connect(cluster.Options{Kubeconfig: w.Kubeconfig, Token: token, Now: time.Now})
		},
		Origin: w.origin, Keys: func() session.Keys { return keys }, Exports: t.TempDir(), Version: "1.0.0-test", Host: "here", Now: time.Now,
		Archives: w.desk(), Uploads: filepath.Join(w.host, "uploads"),
		Provider: &session.Provider{Issuer: w.dex.Issuer, ClientID: dex.ClientID, ClientSecret: dex.ClientSecret, CA: w.dex.CA},
	}
	w.serve(t)
	t.Cleanup(func() { w.end() })
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.CloseClientConnections)
	w.authorities.AddCert(server.Certificate())
	w.authorities.AppendCertsFromPEM(w.dex.CA)
	w.await(t, "the API server accepts the tokens of Dex", func() error { // it fetches their keys some time after its start
		_, err := w.login(t, jane)
		return err
	})
	return w
}

// serve starts a console in place of the one that was there.
func (w *world) serve(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	c, err := console.New(ctx, w.options)
	if err != nil {
		t.Fatal(err)
	}
	w.stop = stop
	w.console.Store(c)
}

// end ends the console, and returns how many operations were interrupted.
func (w *world) end() int {
	w.stop()
	return w.console.Load().Wait()
}

// bind gives a role of the cluster to a user.
func (w *world) bind(t *testing.T, role, user string) {
	t.Helper()
	_, err := w.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbac.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role + "-" + user[:4]},
		RoleRef:    rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbac.Subject{{APIGroup: rbac.GroupName, Kind: "User", Name: "oidc:" + user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// imported makes versions of a Solution known to the cluster.
func (w *world) imported(t *testing.T, solution string, versions ...string) {
	t.Helper()
	w.importedWith(t, deployertest.Content{Scale: true}, solution, versions...)
}

// importedWith is imported with something in the archives.
func (w *world) importedWith(t *testing.T, content deployertest.Content, solution string, versions ...string) {
	t.Helper()
	for _, version := range versions {
		_, err := w.RecordImport(t.Context(), records.ImportRecord{
			Payload: deployertest.Payload(t, solution, version, content), Path: "/srv/" + solution + "-" + version + ".iso",
			SHA256: strings.Repeat("a", 64), Size: 4096,
			Registry: &schema.ClusterRegistry{Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn, Endpoints: []string{nowhere}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// await asks until there is no error.
func (w *world) await(t *testing.T, what string, ask func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(testcluster.Deadline(time.Minute)); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err = ask(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// client is a program with cookies that knows where the console is.
func (w *world) client(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, Timeout: testcluster.Deadline(30 * time.Second), Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: w.authorities, ServerName: "example.com"}, // as certificates of package httptest have it
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "console.localhost:") {
				address = w.address
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}}
}

// login logs a user in as a browser does without a script.
func (w *world) login(t *testing.T, user string) (*http.Client, error) {
	t.Helper()
	c := w.client(t)
	form, err := read(c.Get(w.origin + "/auth/start"))
	if err != nil {
		return nil, err
	}
	in, err := read(c.PostForm(form.Request.URL.String(), url.Values{"login": {user}, "password": {dex.Password}}))
	if err != nil {
		return nil, err
	}
	if in.StatusCode != http.StatusOK || in.Request.URL.String() != w.origin+"/" {
		return nil, errors.New(in.Status + " at " + in.Request.URL.Path)
	}
	return c, nil
}

// answer is an answer whose body was read to its end and is not needed.
type answer struct{ *http.Response }

func read(r *http.Response, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	_, err = io.Copy(io.Discard, r.Body)
	return answer{r}, errors.Join(err, r.Body.Close())
}

// desk is the host, for those who log in.
func (w *world) desk() *hostd.Desk {
	places := host.Places{Store: filepath.Join(w.host, "store"), Configuration: filepath.Join(w.host, "solutions.yaml"), Nginx: filepath.Join(w.host, "nginx")}
	return &hostd.Desk{
		Open: func() (*host.Host, error) { return host.Open(places) },
		Connect: func(token string) (*cluster.Cluster, error) {
			return cluster.Connect(cluster.Options{Kubeconfig: w.Kubeconfig, Token: func(context.Context) (string, error) { return token, nil }, Now: time.Now})
		},
		Options: host.ImportOptions{
			State: filepath.Join(w.host, "state.json"), Mount: host.MountNever, RegistryMode: schema.RegistryOwn, Endpoints: []string{nowhere},
			Trusted: func() (*trust.Store, error) {
				return trust.Load([]string{filepath.Join(w.host, "trust")}, &trust.State{})
			},
		},
		Version: "1.0.0-test", Host: "here", Now: time.Now,
	}
}

// clocks is the definition of the applications of a Solution.
const clocks = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clocks.NAME.example.com}
spec:
  group: NAME.example.com
  scope: Namespaced
  names: {kind: Clock, listKind: ClockList, plural: clocks, singular: clock}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
      schema:
        openAPIV3Schema:
          description: A clock.
          type: object
          required: [spec]
          properties:
            apiVersion: {type: string}
            kind: {type: string}
            metadata: {type: object}
            spec:
              description: What it should be.
              type: object
              properties:
                hands: {type: integer, description: How many hands it has.}
                replicas: {type: integer, description: How many run.}
            status:
              description: What was observed.
              type: object
              properties:
                replicas: {type: integer, description: How many are ready.}
`

// pack makes and signs archives of a Solution, as its vendor does.
func (w *world) pack(t *testing.T, solution string, versions ...string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(w.host, "trust")); err != nil {
		w.run(t, "keygen", "acme")
		w.run(t, "trust", "add", "acme", "acme.pub")
	}
	w.run(t, "init", solution)
	project := filepath.Join(w.host, solution)
	deploy := filepath.Join(project, "operator", "deploy")
	role, err := os.ReadFile(filepath.Join(deploy, "role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	definitions := filepath.Join(deploy, "crds")
	if err = errors.Join(
		os.RemoveAll(filepath.Join(project, "monitoring")), os.RemoveAll(definitions), os.Mkdir(definitions, 0o755),
		os.WriteFile(filepath.Join(definitions, "clocks_crd.yaml"), []byte(strings.ReplaceAll(clocks, "NAME", solution)), 0o600),
		os.WriteFile(filepath.Join(deploy, "role.yaml"), bytes.ReplaceAll(role, []byte(solution+"s"), []byte("clocks")), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	for _, version := range versions {
		w.run(t, "build", solution, "--version", version, "--to", "archives/", "--sign-key", "acme.key")
	}
}

// archive returns the archive that pack has made.
func (w *world) archive(solution, version string) string {
	return filepath.Join(w.host, "archives", solution+"-"+version+".iso")
}

// command runs a command of deploy as an administrator.
func (w *world) command(t *testing.T, arguments ...string) string {
	t.Helper()
	return w.run(t, append([]string{"deploy"}, arguments...)...)
}

// run runs the program on the host.
func (w *world) run(t *testing.T, arguments ...string) string {
	t.Helper()
	run := exec.CommandContext(t.Context(), w.programFile(t), arguments...)
	run.Env, run.Dir = w.environ(), w.host
	var complaints bytes.Buffer
	run.Stderr = &complaints
	out, err := run.Output()
	if err != nil {
		t.Fatalf("solutionctl %s: %v\n%s%s", strings.Join(arguments, " "), err, out, &complaints)
	}
	return string(out)
}

// environ returns the environment variables of the program.
func (w *world) environ() []string {
	environ := append(os.Environ(), "KUBECONFIG="+w.Kubeconfig, "SOLUTIONCTL_CONFIG="+os.DevNull, "SOLUTIONCTL_PASSWORD=secret", "SOLUTIONCTL_MOUNT=never", "SOLUTIONCTL_REGISTRY_MODE=own", "SOLUTIONCTL_ENDPOINT="+nowhere)
	for variable, file := range map[string]string{"STORE": "store", "TRUST_DIR": "trust", "STATE": "state.json", "SOLUTIONS_FILE": "solutions.yaml", "NGINX_DIR": "nginx"} {
		environ = append(environ, "SOLUTIONCTL_"+variable+"="+filepath.Join(w.host, file))
	}
	return environ
}

// programFile is the program.
func (w *world) programFile(t *testing.T) string {
	t.Helper()
	if w.program == "" {
		w.program = testcluster.Program(t, w.bin)
	}
	return w.program
}

// logsIn logs a user in by mouse.
func (b *browser) logsIn(w *world, user string) {
	b.Helper()
	for again := true; again; again = !b.entered(w.origin) {
		b.goes(w.origin + "/")
		b.press("link", "Log in with your organisation")
		b.fill("email address", user)
		b.fill("Password", dex.Password)
		b.press("button", "Login")
	}
	b.find("heading", "Solutions and environments")
}
