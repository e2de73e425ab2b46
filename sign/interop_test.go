package sign_test

import (
	"bytes"
	"crypto/elliptic"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/key"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// tool returns the path of a program. Without it the test is skipped, except in CI, where it has to be there.
func tool(t *testing.T, path, remedy string) string {
	t.Helper()
	found, err := exec.LookPath(path)
	switch {
	case err == nil:
		return found
	case os.Getenv("CI") == "true":
		t.Fatalf("needs %s: %s", path, remedy)
	default:
		t.Skipf("needs %s: %s", path, remedy)
	}
	return ""
}

func cosign(t *testing.T, version string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return tool(t, filepath.Join(cache, "solutionctl-test", "cosign-"+version, "cosign"), ".ci/install-cosign")
}

// foreign is a directory in which other programs sign and verify, without a network.
type foreign struct {
	t       *testing.T
	dir     string
	archive []byte
}

func newForeign(t *testing.T) *foreign {
	t.Helper()
	f := &foreign{t: t, dir: t.TempDir(), archive: contents}
	f.write("x.iso", f.archive)
	f.write("tr.json", []byte(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`))
	return f
}

func (f *foreign) write(name string, data []byte) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), data, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *foreign) read(name string) []byte {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		f.t.Fatal(err)
	}
	return data
}

// run returns the error of a command, with its output.
func (f *foreign) run(program string, args ...string) error {
	f.t.Helper()
	c := exec.CommandContext(f.t.Context(), program, args...)
	c.Dir = f.dir
	// A proxy that refuses every connection: whatever would use the network fails.
	c.Env = append(os.Environ(), "COSIGN_PASSWORD="+password, "HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1", "HOME="+f.dir)
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return nil
}

func (f *foreign) must(program string, args ...string) {
	f.t.Helper()
	if err := f.run(program, args...); err != nil {
		f.t.Fatal(err)
	}
}

const password = "interop"

// accepted reports whether our Verify accepts a bundle over the archive by the key of a file.
func (f *foreign) accepted(publicKey, bundleFile string) error {
	f.t.Helper()
	public, err := key.ParsePublic(f.read(publicKey))
	if err != nil {
		return err
	}
	_, _, err = sign.Verify(f.t.Context(), bytes.NewReader(f.archive), int64(len(f.archive)),
		[]sign.NamedBundle{{File: bundleFile, Data: f.read(bundleFile)}},
		sign.Options{Store: trust.Keys(map[string]*key.Public{"k": public}), Now: now, Workers: 2})
	return err
}

func (f *foreign) statement() *bundle.Statement {
	f.t.Helper()
	st, err := sign.NewStatement(contentSums(f.t), sign.Claims{Name: "x.iso", Solution: acmeDB, CreatedAt: now})
	if err != nil {
		f.t.Fatal(err)
	}
	return st
}

// ours signs the archive in both forms as statement.json and plain.json; plain only if the key can.
func (f *foreign) ours(signer *key.Signer) {
	f.t.Helper()
	signed, err := bundle.SignStatement(f.t.Context(), signer, f.statement())
	if err != nil {
		f.t.Fatal(err)
	}
	f.write("statement.json", signed)
	if signer.Public().Hash() != 0 {
		var plain []byte
		plain, err = sign.FileBundle(f.t.Context(), bytes.NewReader(f.archive), int64(len(f.archive)), signer, report.Discard)
		if err != nil {
			f.t.Fatal(err)
		}
		f.write("plain.json", plain)
	}
	f.write("k.pub", signer.Public().PEM())
}

func TestCosignVerifiesOurs(t *testing.T) {
	t.Parallel()
	pair, err := key.Generate([]byte(password))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := key.Load(pair.Private, func() ([]byte, error) { return []byte(password), nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v3.1.3", "v2.6.5"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			program, f := cosign(t, version), newForeign(t)
			f.ours(signer)
			verify := func(subcommand, file string, more ...string) error {
				args := []string{subcommand, "--key", "k.pub", "--bundle", file, "--insecure-ignore-tlog"}
				if version == "v2.6.5" {
					args = append(args, "--new-bundle-format", "--trusted-root", "tr.json")
				}
				return f.run(program, append(args, more...)...)
			}
			digest := fmt.Sprintf("%x", sha256.Sum256(f.archive))
			for _, file := range []string{"statement.json", "plain.json"} {
				if err := verify("verify-blob", file, "x.iso"); err != nil {
					t.Errorf("%s: %v", file, err)
				}
				if err := verify("verify-blob", file, "sha256:"+digest); err != nil {
					t.Errorf("%s by digest: %v", file, err)
				}
			}
			if err := verify("verify-blob-attestation", "statement.json", "--type", bundle.PredicateType, "--digest", digest, "--digestAlg", "sha256"); err != nil {
				t.Error(err)
			}
			provenance, err := bundle.Attest(t.Context(), signer, fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[`+
				`{"name":"y.iso","digest":{"sha256":"%x"}},{"name":"x.iso","digest":{"sha256":%q}}],`+
				`"predicateType":"https://slsa.dev/provenance/v1","predicate":{"buildDefinition":{}}}`, sha256.Sum256(nil), digest))
			if err != nil {
				t.Fatal(err)
			}
			f.write("provenance.json", provenance)
			if err := verify("verify-blob-attestation", "provenance.json", "--type", "slsaprovenance1", "x.iso"); err != nil {
				t.Error(err)
			}
			f.write("x.iso", append(bytes.Clone(f.archive), 1))
			if verify("verify-blob-attestation", "provenance.json", "--type", "slsaprovenance1", "x.iso") == nil {
				t.Error("the provenance of another file is accepted")
			}
			for _, file := range []string{"statement.json", "plain.json"} {
				if verify("verify-blob", file, "x.iso") == nil {
					t.Errorf("%s: an altered archive is accepted", file)
				}
			}
		})
	}
}

// TestCosignWithOtherKeys pins which keys cosign verifies without further options.
func TestCosignWithOtherKeys(t *testing.T) {
	t.Parallel()
	program := cosign(t, "v3.1.3")
	for _, test := range []struct {
		curve elliptic.Curve
		good  bool
	}{{elliptic.P256(), true}, {elliptic.P384(), false}, {elliptic.P521(), false}} {
		f := newForeign(t)
		f.ours(newSigner(t, test.curve))
		err := f.run(program, "verify-blob", "--key", "k.pub", "--bundle", "plain.json", "--insecure-ignore-tlog", "x.iso")
		if (err == nil) != test.good {
			t.Errorf("%s: %v; the guide says otherwise", test.curve.Params().Name, err)
		}
		if err := f.accepted("k.pub", "plain.json"); err != nil {
			t.Errorf("%s: %v", test.curve.Params().Name, err)
		}
	}
}

func TestOursVerifiesCosign(t *testing.T) {
	t.Parallel()
	payload, err := newForeign(t).statement().Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		version string
		plain   []string
	}{
		{"v3.1.3", []string{"--signing-config", "sc.json", "--trusted-root", "tr.json"}},
		{"v2.6.5", []string{"--new-bundle-format", "--tlog-upload=false"}},
	} {
		t.Run(test.version, func(t *testing.T) {
			t.Parallel()
			program, f := cosign(t, test.version), newForeign(t)
			f.must(program, "generate-key-pair")
			if test.version == "v3.1.3" {
				f.must(program, "signing-config", "create", "--out", "sc.json")
			}
			f.must(program, append([]string{"sign-blob", "--yes", "--key", "cosign.key", "--bundle", "plain.json", "x.iso"}, test.plain...)...)
			if err := f.accepted("cosign.pub", "plain.json"); err != nil {
				t.Error(err)
			}
			f.write("st.json", payload)
			if test.version == "v3.1.3" { // the other one cannot sign a statement that was made before
				f.must(program, append([]string{"attest-blob", "--yes", "--key", "cosign.key", "--statement", "st.json", "--bundle", "st.bundle"}, test.plain...)...)
				if err := f.accepted("cosign.pub", "st.bundle"); err != nil {
					t.Error(err)
				}
			}
			// cosign's key in our hands
			signer, err := key.Load(f.read("cosign.key"), func() ([]byte, error) { return []byte(password), nil })
			if err != nil {
				t.Fatal(err)
			}
			f.ours(signer)
			if err := f.accepted("cosign.pub", "statement.json"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCosignSignsWithOurKey proves that cosign reads the output of keygen.
func TestCosignSignsWithOurKey(t *testing.T) {
	t.Parallel()
	program, f := cosign(t, "v3.1.3"), newForeign(t)
	pair, err := key.Generate([]byte(password))
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.Write(filepath.Join(f.dir, "ours")); err != nil {
		t.Fatal(err)
	}
	f.must(program, "signing-config", "create", "--out", "sc.json")
	f.must(program, "sign-blob", "--yes", "--key", "ours.key", "--signing-config", "sc.json", "--trusted-root", "tr.json", "--bundle", "b.json", "x.iso")
	if err := f.accepted("ours.pub", "b.json"); err != nil {
		t.Error(err)
	}
}

// TestOpenSSLVerifiesOurs runs the commands of the guide for verification with nothing but openssl and sha256sum.
func TestOpenSSLVerifiesOurs(t *testing.T) {
	for _, name := range []string{"openssl", "jq", "sha256sum"} {
		tool(t, name, "apt-get install openssl jq coreutils")
	}
	f := newForeign(t)
	f.ours(newSigner(t, elliptic.P256()))
	f.write("verify.sh", []byte(`set -eu
jq -r .dsseEnvelope.payload statement.json | base64 -d > p
jq -r '.dsseEnvelope.signatures[0].sig' statement.json | base64 -d > s
(printf 'DSSEv1 28 application/vnd.in-toto+json %d ' $(stat -c %s p); cat p) | openssl dgst -sha256 -verify k.pub -signature s
jq -r '.subject[]|"\(.digest.sha256)  \(.name)"' p | sha256sum -c
jq -r .messageSignature.signature plain.json | base64 -d > s
openssl dgst -sha256 -verify k.pub -signature s x.iso
`))
	f.must("sh", "verify.sh")
	f.write("x.iso", append(bytes.Clone(f.archive), 1))
	if f.run("sh", "verify.sh") == nil {
		t.Error("an altered archive is accepted")
	}
}

// TestTimestampByOpenSSL lets openssl be the timestamp authority.
func TestTimestampByOpenSSL(t *testing.T) {
	t.Parallel()
	tool(t, "openssl", "apt-get install openssl")
	program, f := cosign(t, "v3.1.3"), newForeign(t)
	signer := newSigner(t, elliptic.P256())
	f.ours(signer)
	f.write("ts.cnf", []byte(timestampConfig))
	f.write("tsa.ext", []byte("basicConstraints=critical,CA:false\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=critical,timeStamping\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"))
	f.write("stamp.sh", []byte(`set -eu
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 3650 -subj "/O=Acme/CN=TSA root" 2>/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout tsa.key -out tsa.csr -subj "/O=Acme/CN=TSA" 2>/dev/null
openssl x509 -req -in tsa.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 3000 -extfile tsa.ext -out tsa.pem 2>/dev/null
cat tsa.pem ca.pem > chain.pem
echo 01 > serial
openssl ts -query -data sig.bin -sha256 -cert -out q.tsq 2>/dev/null
openssl ts -reply -config ts.cnf -queryfile q.tsq -out r.tsr 2>/dev/null
`))
	f.write("sig.bin", parse(t, f.read("statement.json")).Signature())
	f.must("sh", "stamp.sh")
	f.must(program, "trusted-root", "create", "--tsa", "url=https://tsa.example,certificate-chain=chain.pem", "--out", "trusted_root.json")

	stamped, err := bundle.AddTimestamp(f.read("statement.json"), f.read("r.tsr"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = bundle.AddTimestamp(f.read("plain.json"), f.read("r.tsr")); report.CodeOf(err) != report.Usage {
		t.Errorf("a timestamp of another signature is attached: %v", err)
	}
	f.write("stamped.json", stamped)
	f.must(program, "verify-blob", "--key", "k.pub", "--bundle", "stamped.json", "--insecure-ignore-tlog",
		"--use-signed-timestamps", "--trusted-root", "trusted_root.json", "x.iso")

	// A token over other bytes: the stamp of one signature on another one.
	other := decode(t, f.read("plain.json"))
	at(other, "verificationMaterial")["timestampVerificationData"] = at(decode(t, stamped), "verificationMaterial")["timestampVerificationData"]
	dir := t.TempDir()
	writeFiles(t, dir, map[string][]byte{
		"keys/acme.pub": signer.Public().PEM(), "roots/tsa/trusted_root.json": f.read("trusted_root.json"),
		"policy.yaml": []byte(policyHead + "rules: [{solutions: ['*'], signers: [{key: acme, notAfter: 2099-01-01}], acceptPlain: true, requireTimestamp: true}]\n"),
	})
	store, err := trust.Load([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		bundle []byte
		code   report.Code
	}{
		{"stamped", stamped, ""},
		{"not stamped", f.read("statement.json"), report.NotAllowed},
		{"token over other bytes", encode(t, other), report.NotAllowed},
	} {
		o := sign.Options{Store: store, Now: now, Workers: 2, Identify: identifyAcme}
		verdict, _, err := sign.Verify(t.Context(), bytes.NewReader(f.archive), int64(len(f.archive)),
			[]sign.NamedBundle{{File: "b", Data: test.bundle}}, o)
		if report.CodeOf(err) != test.code {
			t.Errorf("%s: %v, want code %q", test.name, err, test.code)
		}
		if err == nil && verdict.Signatures[0].SignedAt == nil {
			t.Errorf("%s: the verdict does not tell the time", test.name)
		}
	}
}

const timestampConfig = `[tsa]
default_tsa = c
[c]
dir = .
serial = ./serial
signer_cert = ./tsa.pem
certs = ./ca.pem
signer_key = ./tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
accuracy = secs:1
ess_cert_id_chain = no
ess_cert_id_alg = sha256
`

// TestCompanyCertificates verifies a bundle that carries a certificate of a company's own authority.
func TestCompanyCertificates(t *testing.T) {
	tool(t, "openssl", "apt-get install openssl")
	program, f := cosign(t, "v3.1.3"), newForeign(t)
	f.write("leaf.ext", []byte("basicConstraints=critical,CA:false\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=codeSigning\nsubjectAltName=email:release@acme.example\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"))
	f.write("ca.sh", []byte(`set -eu
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 3650 -subj "/O=Acme/CN=root" 2>/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout leaf.key -out leaf.csr -subj "/O=Acme/CN=release" 2>/dev/null
openssl x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 3000 -extfile leaf.ext -out leaf.pem 2>/dev/null
`))
	f.must("sh", "ca.sh")
	f.must(program, "trusted-root", "create", "--fulcio", "url=https://pki.example,certificate-chain=ca.pem", "--out", "trusted_root.json")
	signer, err := key.Load(f.read("leaf.key"), nil)
	if err != nil {
		t.Fatal(err)
	}
	f.ours(signer)
	certified, err := bundle.SetCertificate(f.read("statement.json"), f.read("leaf.pem"))
	if err != nil {
		t.Fatal(err)
	}
	f.write("c.json", certified)
	f.must(program, "verify-blob", "--bundle", "c.json", "--trusted-root", "trusted_root.json", "--insecure-ignore-tlog", "--insecure-ignore-sct",
		"--certificate-identity", "release@acme.example", "--certificate-oidc-issuer-regexp", ".*", "x.iso")
	for identity, want := range map[string]report.Code{"release@acme.example": "", "mallory@acme.example": report.Untrusted} {
		dir := t.TempDir()
		writeFiles(t, dir, map[string][]byte{
			"roots/pki/trusted_root.json": f.read("trusted_root.json"),
			"policy.yaml":                 []byte(policyHead + "rules: [{solutions: ['*'], signers: [{root: pki, identity: " + identity + "}]}]\n"),
		})
		store, err := trust.Load([]string{dir}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = sign.Verify(t.Context(), bytes.NewReader(f.archive), int64(len(f.archive)),
			[]sign.NamedBundle{{File: "c.json", Data: certified}}, sign.Options{Store: store, Now: now, Workers: 2})
		if report.CodeOf(err) != want {
			t.Errorf("%s: %v, want code %q", identity, err, want)
		}
	}
}

func parse(t *testing.T, data []byte) *bundle.Bundle {
	t.Helper()
	b, err := bundle.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
