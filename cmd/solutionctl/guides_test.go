package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/solutionctl/solutionctl/docs/guides"
)

// onCluster are the guides whose commands need a cluster: the tests of deployer/e2e run them.
var onCluster = []string{"console-setup.md", "install.md", "loader.md", "metalk8s.md", "operate.md", "rights.md", "site-monitoring.md", "upgrade.md"}

// toolsOf are the programs that the reader of a guide has, beside those of each Unix system.
var toolsOf = map[string][]struct{ file, remedy string }{
	"monitoring.md": {{"promtool", "apt-get install prometheus"}},
	"signing.md":    {{filepath.Join(cosignDirectory(), "cosign"), ".ci/install-cosign"}, {"jq", "apt-get install jq"}, {"openssl", "apt-get install openssl"}},
	"verifying.md":  {{filepath.Join(cosignDirectory(), "cosign"), ".ci/install-cosign"}, {"jq", "apt-get install jq"}, {"openssl", "apt-get install openssl"}},
}

func cosignDirectory() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "solutionctl-test", "cosign-v3.1.3")
}

// timestamps lets openssl answer as an authority for timestamps (RFC 3161) that is configured in a directory.
func timestamps(dir string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		cmd := exec.CommandContext(r.Context(), "openssl", "ts", "-reply", "-config", "tsa.cnf", "-queryfile", "/dev/stdin")
		cmd.Dir, cmd.Stdin = dir, r.Body
		reply, err := cmd.Output()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(reply) // the client notices when it is cut
	}
}

// TestGuides does what the guides say, in a shell, and compares what is printed with what they show.
func TestGuides(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("guides are for a Unix shell")
	}
	names, err := guides.Names()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		steps, err := guides.Steps(name)
		if err != nil {
			t.Error(err)
		}
		if len(steps) == 0 || slices.Contains(onCluster, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if (name == "own-registry.md" || name == "several-hosts.md") && runtime.GOOS != "linux" {
				t.Skip("archives are imported on the hosts of a cluster")
			}
			for _, tool := range toolsOf[name] {
				if _, err := exec.LookPath(tool.file); err != nil && os.Getenv("CI") != "true" {
					t.Skipf("%s is missing: %s", tool.file, tool.remedy)
				}
			}
			followGuide(t, name, steps)
		})
	}
}

// before makes what the reader of a guide has.
var before = map[string]string{
	"building.md": `
export SOLUTIONCTL_PASSWORD=secret TAG=0.2.0
solutionctl keygen acme-release
solutionctl init acme-db --output json >made.json
solutionctl build acme-db --to made.iso
solutionctl inspect made.iso --image acme-db-operator --to docker-archive:operator.tar
rm -r acme-db made.*
git init --quiet
git -c user.name=Acme -c user.email=release@acme.example commit --quiet --allow-empty --message release
`,
	"signing.md": `
export SOLUTIONCTL_PASSWORD=secret COSIGN_PASSWORD=secret KEY=acme-release.key
solutionctl init acme-x
solutionctl build acme-x --to x.iso
solutionctl keygen root
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out root.pem -days 3650 -subj "/O=Acme/CN=root"
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout tsa.key -out tsa.csr -subj "/O=Acme/CN=TSA"
cat >tsa.ext <<'extensions'
basicConstraints=critical,CA:false
keyUsage=critical,digitalSignature
extendedKeyUsage=critical,timeStamping
extensions
openssl x509 -req -in tsa.csr -CA root.pem -CAkey ca.key -CAcreateserial -days 3000 -extfile tsa.ext -out tsa.pem
cat tsa.pem root.pem >tsachain.pem
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout leaf.key -out leaf.csr -subj "/O=Acme/CN=release"
cat >leaf.ext <<'extensions'
basicConstraints=critical,CA:false
keyUsage=critical,digitalSignature
extendedKeyUsage=codeSigning
subjectAltName=email:release@acme.example
extensions
openssl x509 -req -in leaf.csr -CA root.pem -CAkey ca.key -CAcreateserial -days 3000 -extfile leaf.ext -out leaf.pem
echo 01 >serial
cat >tsa.cnf <<'configuration'
[tsa]
default_tsa = default
[default]
serial = ./serial
signer_cert = ./tsa.pem
certs = ./root.pem
signer_key = ./tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
ess_cert_id_alg = sha256
configuration
`,
	"verifying.md": `
export SOLUTIONCTL_PASSWORD=secret SOLUTIONCTL_NO_CLUSTER=true SOLUTIONCTL_MOUNT=never SOLUTIONCTL_STORE=$HOME/store SOLUTIONCTL_STATE=$HOME/state.json SOLUTIONCTL_TRUST_DIR=$HOME/trust
export SOLUTIONCTL_SOLUTIONS_FILE=$HOME/solutions.yaml SOLUTIONCTL_NGINX_DIR=$HOME/nginx
mkdir vendor first plain
cd vendor
for key in acme-release acme-2024 acme-2028 root; do solutionctl keygen $key; done
solutionctl init acme-x
solutionctl build acme-x --version 1.0.0 --to x.iso --sign-key acme-release.key --provenance
solutionctl push x.iso oci://$REGISTRY/shelf/x:1.0.0
solutionctl trust add acme-2024 acme-2024.pub
for key in acme-release acme-2028; do solutionctl trust add --trust-dir ../first/trust $key $key.pub; done
cat >../first/trust/policy.yaml <<'policy'
apiVersion: solutionctl.io/v1alpha1
kind: VerificationPolicy
default: reject
rules: [{solutions: ["acme-*"], signers: [{key: acme-release}, {key: acme-2028}]}]
policy
cp acme-release.pub x.iso* ..
for host in .. ../first; do cp root.pub $host/trust; done
cp x.iso ../plain
solutionctl sign --format message --key acme-release.key ../plain/x.iso
mkdir revoked
cp root.pub revoked
for version in 0.1.0 0.2.0; do solutionctl trust revoke --trust-dir revoked --root-key root.key --minimum-version acme-x=$version; done
cp revoked/rev* ..
SOLUTIONCTL_STATE=first.json solutionctl trust import --trust-dir ../first/trust revoked/revocations.json
solutionctl trust export --trust-dir ../first/trust >../trust.tar
cd ..
`,
}

func followGuide(t *testing.T, name string, steps []guides.Step) {
	t.Helper()
	home, output := t.TempDir(), t.TempDir()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "set -eu\n"+before[name]+guides.Shell(steps))
	cmd.Dir = home
	first, err := unusedAddress() // of the first of several hosts
	if err != nil {
		t.Fatal(err)
	}
	authority := httptest.NewServer(timestamps(home))
	defer authority.Close()
	site := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)))) // of the guide about the site's own
	defer site.Close()
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":"+cosignDirectory(), "TSA="+authority.URL, "REGISTRY="+strings.TrimPrefix(site.URL, "http://"), "FIRST="+first, "HOME="+home, "OUTPUT="+output, "SOLUTIONCTL_CONFIG="+os.DevNull)
	out, failure := cmd.CombinedOutput()
	for i, step := range steps {
		printed, err := os.ReadFile(filepath.Join(output, fmt.Sprintf("%d.out", i)))
		if step.File != "" {
			continue
		}
		if err != nil {
			break // the commands before it failed
		}
		t.Logf("line %d:\n%s%s", step.Line, step.Script, printed)
		if line, missing := step.Missing(string(printed)); missing && failure == nil {
			t.Errorf("line %d: this is not printed: %s", step.Line, line)
		}
	}
	if failure != nil {
		t.Fatalf("%v, after what the last line shows: %s", failure, strings.TrimSpace(string(out)))
	}
}
