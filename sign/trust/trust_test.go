package trust_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/key"
	"github.com/solutionctl/solutionctl/sign/key/keytest"
	"github.com/solutionctl/solutionctl/sign/trust"
)

const header = "apiVersion: solutionctl.io/v1alpha1\nkind: VerificationPolicy\ndefault: reject\n"

// signFile signs a small file without a statement.
func signFile(tb testing.TB, signer *key.Signer, data []byte) []byte {
	tb.Helper()
	h := signer.Public().Hash().New()
	h.Write(data)
	signed, err := bundle.SignDigest(tb.Context(), signer, h.Sum(nil))
	if err != nil {
		tb.Fatal(err)
	}
	return signed
}

// store writes a trust directory with one key, "acme".
func store(tb testing.TB) (dir string, acme *key.Signer) {
	tb.Helper()
	dir, acme = filepath.Join(tb.TempDir(), "trust"), keytest.New(tb)
	write(tb, dir, "keys/acme.pub", acme.Public().PEM())
	return dir, acme
}

func write(tb testing.TB, dir, name string, data []byte) {
	tb.Helper()
	name = filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		tb.Fatal(err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// site is a trust store that a test spoils.
type site struct {
	t   *testing.T
	dir string
}

func (s *site) write(name string, data []byte) {
	s.t.Helper()
	write(s.t, s.dir, name, data)
}

func (s *site) check(err error) {
	s.t.Helper()
	check(s.t, err)
}

func TestLoadRefuses(t *testing.T) {
	acme := keytest.New(t)
	der, err := x509.MarshalPKIXPublicKey(must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader)).Public())
	check(t, err)
	weak := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	rule := func(s string) string { return header + "rules: [" + s + "]\n" }
	for _, test := range []struct {
		name   string
		change func(s *site)
		says   string
	}{
		{"world-writable directory", func(s *site) { s.check(os.Chmod(s.dir, 0o777)) }, "lets others write"},
		{"group-writable key directory", func(s *site) { s.check(os.Chmod(s.dir+"/keys", 0o775)) }, "lets others write"},
		{"world-writable key", func(s *site) { s.check(os.Chmod(s.dir+"/keys/acme.pub", 0o646)) }, "lets others write"},
		{"foreign owner", func(s *site) {
			if os.Geteuid() != 0 {
				s.t.Skip("needs root to give a file away")
			}
			s.check(os.Chown(s.dir+"/keys/acme.pub", 12345, 12345))
		}, "belongs to user 12345"},
		{"key is a link that leads outside", func(s *site) {
			s.check(os.WriteFile(filepath.Dir(s.dir)+"/evil.pub", acme.Public().PEM(), 0o644))
			s.check(os.Symlink("../../evil.pub", s.dir+"/keys/evil.pub"))
		}, "evil.pub"},
		{"key directory is a link that leads outside", func(s *site) {
			s.check(os.Rename(s.dir+"/keys", filepath.Dir(s.dir)+"/elsewhere"))
			s.check(os.Symlink(filepath.Dir(s.dir)+"/elsewhere", s.dir+"/keys"))
		}, "keys"},
		{"policy is a link to nothing", func(s *site) { s.check(os.Symlink("nothing.yaml", s.dir+"/policy.yaml")) }, "link to nothing"},
		{"key directory is a link to nothing", func(s *site) {
			s.check(os.RemoveAll(s.dir + "/keys"))
			s.check(os.Symlink("nothing", s.dir+"/keys"))
		}, "link to nothing"},
		{"root key is a link to nothing", func(s *site) { s.check(os.Symlink("nothing.pub", s.dir+"/root.pub")) }, "link to nothing"},
		{"revocations are a link to nothing", func(s *site) {
			revoke(s.t, s.dir, keytest.New(s.t), trust.Revocations{})
			s.check(os.Rename(s.dir+"/revocations.json", s.dir+"/moved.json"))
			s.check(os.Symlink("revocations.jsn", s.dir+"/revocations.json"))
		}, "link to nothing"},
		{"the store is a link to nothing", func(s *site) {
			s.check(os.RemoveAll(s.dir))
			s.check(os.Symlink("nothing", s.dir))
		}, "link to nothing"},
		{"what the store is in is a link to nothing", func(s *site) {
			s.check(os.RemoveAll(filepath.Dir(s.dir)))
			s.check(os.Symlink("nothing", filepath.Dir(s.dir)))
		}, "link to nothing"},
		{"policy under a name that is not read", func(s *site) { s.write("policy.yml", []byte(header)) }, "want policy.yaml"},
		{"policy in capitals", func(s *site) { s.write("Policy.yaml", []byte(header)) }, "want policy.yaml"},
		{"key is a directory", func(s *site) { s.check(os.Mkdir(s.dir+"/keys/x.pub", 0o755)) }, "not a regular file"},
		{"key is a FIFO", func(s *site) { mkfifo(s.t, s.dir+"/keys/x.pub") }, "not a regular file"},
		{"weak key", func(s *site) { s.write("keys/x.pub", weak) }, "ecdsa-p224 is not accepted"},
		{"two keys in a file", func(s *site) {
			s.write("keys/x.pub", bytes.Repeat(acme.Public().PEM(), 2))
		}, "exactly one"},
		{"private key", func(s *site) {
			s.write("keys/x.pub", []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"))
		}, "private key"},
		{"name that is none", func(s *site) { s.write("keys/a b.pub", acme.Public().PEM()) }, "not a valid name"},
		{"oversized key", func(s *site) { s.write("keys/x.pub", make([]byte, 1<<20+1)) }, "larger than"},
		{"root without document", func(s *site) { s.check(os.MkdirAll(s.dir+"/roots/pki", 0o755)) }, "trusted_root.json"},
		{"root that is none", func(s *site) { s.write("roots/pki/trusted_root.json", []byte("{}")) }, "trusted root"},
		{"policy: unknown field", policy(header + "rules: []\nx: 1\n"), `line 5: unknown field "x"`},
		{"policy: unknown field of a rule", policy(header + "rules:\n- solutions: [x]\n  singers: [{key: acme}]\n"), `line 6: unknown field "singers"`},
		{"policy: unknown field of a signer", policy(rule("{solutions: [x], signers: [{kye: acme}]}")), `unknown field "kye"`},
		{"policy: another type", policy(header + "rules: none\n"), "policy.yaml: line 4: cannot unmarshal"},
		{"policy: duplicate field", policy(header + "rules: []\ndefault: reject\n"), "stands on line 3 already"},
		{"policy: nothing but directives", policy(strings.Repeat("%TAG !a! tag:x,2000:\n", 5000) + "---\n" + header + "rules: []\n"), "more than 150000 keys"},
		{"policy: two documents", policy(header + "rules: []\n---\n{}\n"), "more than one document"},
		{"policy: empty", policy(""), "the file is empty"},
		{"policy: comments only", policy("# nothing yet\n"), "the file is empty"},
		{"policy: other kind", policy("apiVersion: v1\nkind: Policy\ndefault: reject\n"), "want solutionctl.io/v1alpha1"},
		{"policy: no default", policy("apiVersion: solutionctl.io/v1alpha1\nkind: VerificationPolicy\n"), `want "reject"`},
		{"policy: accepts by default", policy(strings.Replace(header, "reject", "accept", 1)), `want "reject"`},
		{"policy: missing key", policy(rule("{solutions: [x], signers: [{key: other}]}")), `no key "other"`},
		{"policy: missing root", policy(rule("{solutions: [x], signers: [{root: pki, identity: a@b}]}")), `no root "pki"`},
		{"policy: root without identity", policy(rule("{solutions: [x], signers: [{root: pki}]}")), "root and identity"},
		{"policy: key and root", policy(rule("{solutions: [x], signers: [{key: acme, root: pki, identity: a@b}]}")), "either key"},
		{"policy: no signers", policy(rule("{solutions: [x], signers: []}")), "at least one"},
		{"policy: bad pattern", policy(rule("{solutions: ['['], signers: [{key: acme}]}")), "not a name or pattern"},
		{"policy: threshold too high", policy(rule("{solutions: [x], signers: [{key: acme}], threshold: 2}")), "threshold"},
		{"policy: threshold negative", policy(rule("{solutions: [x], signers: [{key: acme}], threshold: -1}")), "threshold"},
		{"policy: threshold met by one key only", func(s *site) {
			data, err := os.ReadFile(s.dir + "/keys/acme.pub")
			s.check(err)
			s.write("keys/alias.pub", data)
			policy(rule("{solutions: [x], signers: [{key: acme}, {key: alias}], threshold: 2}"))(s)
		}, "only 1 different"},
		{"policy: downgrade", policy(rule("{solutions: [x], signers: [{key: acme}], downgrade: maybe}")), "downgrade"},
		{"policy: notAfter", policy(rule("{solutions: [x], signers: [{key: acme, notAfter: soon}]}")), "neither a day"},
		{"revocations without root key", func(s *site) { s.write("revocations.json", []byte("{}")) }, "root.pub"},
		{"revocations without signature", func(s *site) {
			revoke(s.t, s.dir, keytest.New(s.t), trust.Revocations{})
			s.check(os.Remove(s.dir + "/revocations.json.sigstore.json"))
		}, "revocations.json.sigstore.json"},
		{"revocations altered", func(s *site) {
			revoke(s.t, s.dir, keytest.New(s.t), trust.Revocations{Archives: []string{"sha256:" + strings.Repeat("0", 64)}})
			data, err := os.ReadFile(s.dir + "/revocations.json")
			s.check(err)
			s.write("revocations.json", bytes.Replace(data, []byte("0000"), []byte("1111"), 1))
		}, "digest"},
		{"revocations signed by another key", func(s *site) {
			revoke(s.t, s.dir, keytest.New(s.t), trust.Revocations{})
			data, err := os.ReadFile(s.dir + "/revocations.json")
			s.check(err)
			s.write("revocations.json.sigstore.json", signFile(s.t, acme, data))
		}, "verify signature"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, _ := store(t)
			test.change(&site{t: t, dir: dir})
			_, err := trust.Load([]string{dir}, nil)
			if report.CodeOf(err) != report.TrustStore || report.TrustStore.ExitStatus() != 4 || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want report.TrustStore and %q", err, test.says)
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func policy(text string) func(*site) {
	return func(s *site) { s.write("policy.yaml", []byte(text)) }
}

func revoke(t *testing.T, dir string, root *key.Signer, r trust.Revocations) int64 {
	t.Helper()
	next, err := trust.Prepare(dir, r, root.Public(), nil)
	check(t, err)
	check(t, next.Issue(t.Context(), root))
	return next.Serial
}

func TestLoadOrder(t *testing.T) {
	first, acme := store(t)
	second, _ := store(t)
	vendor := keytest.New(t)
	write(t, second, "keys/vendor.pub", vendor.Public().PEM())
	write(t, second, "policy.yaml", []byte(header+"allowOverride: true\nrules: []\n"))
	s, err := trust.Load([]string{first, second, filepath.Join(first, "none")}, nil)
	check(t, err)
	var got []string
	for _, k := range s.List() {
		got = append(got, k.Name+" "+k.Key.ID())
	}
	want := []string{"acme " + acme.Public().ID(), "vendor " + vendor.Public().ID()}
	if !slices.Equal(got, want) {
		t.Errorf("keys = %q, want %q", got, want)
	}
	if got := s.Source().File; got != filepath.Join(second, "policy.yaml") {
		t.Errorf("policy of %q", got)
	}
}

func TestLinksInsideTheStore(t *testing.T) {
	dir, _ := store(t)
	check(t, os.Symlink("acme.pub", filepath.Join(dir, "keys", "current.pub")))
	if _, err := trust.Load([]string{dir}, nil); err != nil {
		t.Error(err)
	}
}

func TestCheckOverride(t *testing.T) {
	for text, want := range map[string]report.Code{
		"": "", header + "allowOverride: true\n": "", header + "allowOverride: false\n": report.Refused, header: report.Refused,
	} {
		dir, _ := store(t)
		if text != "" {
			write(t, dir, "policy.yaml", []byte(text))
		}
		s, err := trust.Load([]string{dir}, nil)
		check(t, err)
		if err := s.CheckOverride(); report.CodeOf(err) != want {
			t.Errorf("policy %q: %v, want %q", text, err, want)
		}
	}
	if report.Refused.ExitStatus() != 6 {
		t.Error("a refused override does not exit with 6")
	}
}

// TestWithKeys replaces the keys of a store and nothing else.
func TestWithKeys(t *testing.T) {
	stranger := keytest.New(t)
	keys := map[string]*key.Public{"stranger": stranger.Public()}
	for text, want := range map[string]report.Code{
		"": "", header + "allowOverride: true\n": report.NotAllowed, header + "allowOverride: false\n": report.Refused, header: report.Refused,
		header + "allowOverride: true\nrules: [{solutions: ['*'], signers: [{key: acme}]}]\n": "",
	} {
		dir, acme := store(t)
		if text != "" {
			write(t, dir, "policy.yaml", []byte(text))
		}
		revoke(t, dir, keytest.New(t), trust.Revocations{Keys: []string{acme.Public().ID()}})
		s, err := trust.Load([]string{dir}, nil)
		check(t, err)
		other, err := s.WithKeys(keys)
		if err == nil {
			_, _, err = other.Rule("shop")
		}
		if report.CodeOf(err) != want {
			t.Errorf("policy %q: %v, want %q", text, err, want)
		}
		if err == nil && (len(other.List()) != 1 || other.List()[0].Name != "stranger" || !slices.Equal(other.RevokedKeys(), s.RevokedKeys())) {
			t.Errorf("policy %q: keys %v, revoked %v", text, other.List(), other.RevokedKeys())
		}
		if names := s.List(); len(names) != 1 || names[0].Name != "acme" {
			t.Errorf("the store itself has changed: %v", names)
		}
	}

	// The threshold stays, and so does the end of a key that the rule lists, under whatever name it comes.
	dir, acme := store(t)
	write(t, dir, "keys/b.pub", keytest.New(t).Public().PEM())
	write(t, dir, "policy.yaml", []byte(header+"allowOverride: true\nrules: [{solutions: [shop], signers: [{key: acme, notAfter: 2021-01-01}, {key: b}], threshold: 2}]\n"))
	s, err := trust.Load([]string{dir}, nil)
	check(t, err)
	keys["acme-again"] = acme.Public()
	other, err := s.WithKeys(keys)
	check(t, err)
	rule, place, err := other.Rule("shop")
	check(t, err)
	if place != 0 || rule.Required() != 2 || len(rule.Signers) != 2 || rule.Signers[0].Key != "acme-again" || rule.Signers[0].NotAfter.Year() != 2021 ||
		rule.Signers[1].Key != "stranger" || !rule.Signers[1].NotAfter.IsZero() {
		t.Errorf("rule %d: %+v", place, rule)
	}
}

func TestAddAndRemove(t *testing.T) {
	dir, acme := store(t)
	root, next, mallory := keytest.New(t), keytest.New(t), keytest.New(t)
	file := next.Public().PEM()
	for _, test := range []struct {
		name string
		add  func() error
		code report.Code
	}{
		{"bad name", func() error { _, err := trust.Add(dir, "../x", file, nil); return err }, report.Usage},
		{"other key under a used name", func() error { _, err := trust.Add(dir, "acme", file, nil); return err }, report.Usage},
		{"endorsed by an unknown key", func() error {
			_, err := trust.Add(dir, "next", file, &trust.Endorsement{By: "nobody", Bundle: signFile(t, acme, file)})
			return err
		}, report.Untrusted},
		{"endorsed by another key than it says", func() error {
			_, err := trust.Add(dir, "next", file, &trust.Endorsement{By: "acme", Bundle: signFile(t, mallory, file)})
			return err
		}, report.Untrusted},
		{"endorsement of another file", func() error {
			_, err := trust.Add(dir, "next", file, &trust.Endorsement{By: "acme", Bundle: signFile(t, acme, mallory.Public().PEM())})
			return err
		}, report.Untrusted},
		{"endorsed", func() error {
			_, err := trust.Add(dir, "next", file, &trust.Endorsement{By: "acme", Bundle: signFile(t, acme, file)})
			return err
		}, ""},
		{"a key that the policy waits for", func() error {
			write(t, dir, "policy.yaml", []byte(header+"rules: [{solutions: [x], signers: [{key: later}]}]\n"))
			if _, err := trust.Load([]string{dir}, nil); report.CodeOf(err) != report.TrustStore {
				t.Errorf("a policy that names a missing key: %v", err)
			}
			_, err := trust.Add(dir, "later", root.Public().PEM(), nil)
			return err
		}, ""},
		{"again", func() error { _, err := trust.Add(dir, "next", file, nil); return err }, ""},
		{"remove a key that is not there", func() error { return trust.Remove(dir, "nobody") }, report.Usage},
		{"remove a key that the policy names", func() error {
			write(t, dir, "policy.yaml", []byte(header+"rules: [{solutions: [x], signers: [{key: acme}]}]\n"))
			return trust.Remove(dir, "acme")
		}, report.Usage},
		{"remove", func() error { return trust.Remove(dir, "next") }, ""},
		{"endorsed by a revoked key", func() error {
			revoke(t, dir, root, trust.Revocations{Keys: []string{acme.Public().ID()}})
			_, err := trust.Add(dir, "next", file, &trust.Endorsement{By: "acme", Bundle: signFile(t, acme, file)})
			return err
		}, report.Revoked},
	} {
		if err := test.add(); report.CodeOf(err) != test.code {
			t.Errorf("%s: %v, want code %q", test.name, err, test.code)
		}
	}
}

func TestExportAndImport(t *testing.T) {
	dir, acme := store(t)
	root := keytest.New(t)
	write(t, dir, "policy.yaml", []byte(header+"rules: [{solutions: ['*'], signers: [{key: acme}]}]\n"))
	revoke(t, dir, root, trust.Revocations{MinimumVersions: map[string]string{"x": "1.0.0"}})
	old := export(t, dir)
	if !bytes.Equal(old, export(t, dir)) {
		t.Error("the same store gives different bytes")
	}
	site := filepath.Join(t.TempDir(), "etc", "trust")
	check(t, importStore(site, old, trust.ImportOptions{}))
	if !bytes.Equal(export(t, site), old) {
		t.Error("the imported store is another one")
	}
	revoke(t, dir, root, trust.Revocations{MinimumVersions: map[string]string{"x": "1.1.0"}})
	newer := export(t, dir)
	mallory := keytest.New(t)
	for _, test := range []struct {
		name string
		data []byte
		by   *trust.Endorsement
		code report.Code
	}{
		{"unendorsed", newer, nil, report.Untrusted},
		{"endorsed by another key", newer, &trust.Endorsement{By: "acme", Bundle: signFile(t, mallory, newer)}, report.Untrusted},
		{"endorsed by a key", newer, &trust.Endorsement{By: "acme", Bundle: signFile(t, acme, newer)}, ""},
		{"endorsed by the root key", newer, &trust.Endorsement{By: "root", Bundle: signFile(t, root, newer)}, ""},
		{"older revocations", old, &trust.Endorsement{By: "acme", Bundle: signFile(t, acme, old)}, report.TrustStore},
		{"not an export", []byte("x"), &trust.Endorsement{By: "acme", Bundle: signFile(t, acme, []byte("x"))}, report.Invalid},
	} {
		if err := importStore(site, test.data, trust.ImportOptions{Endorsed: test.by}); report.CodeOf(err) != test.code {
			t.Errorf("%s: %v, want code %q", test.name, err, test.code)
		}
	}
	if !bytes.Equal(export(t, site), newer) {
		t.Error("a refused import has changed the store")
	}
}

// TestImportKilled: a process was killed while it replaced a store.
func TestImportKilled(t *testing.T) {
	dir, acme := store(t)
	data := export(t, dir)
	check(t, os.Rename(dir, dir+".old"))
	vendor, _ := store(t)
	if _, err := trust.Load([]string{dir, vendor}, nil); report.CodeOf(err) != report.TrustStore || len(report.Hints(err)) == 0 {
		t.Errorf("the next store is taken for the one that is missing: %v", err)
	}
	if err := importStore(dir, data, trust.ImportOptions{}); report.CodeOf(err) != report.Untrusted {
		t.Errorf("somebody may replace the store because a replacement was killed: %v", err)
	}
	check(t, os.Rename(dir, dir+".old"))
	check(t, importStore(dir, data, trust.ImportOptions{Endorsed: &trust.Endorsement{By: "acme", Bundle: signFile(t, acme, data)}}))
	if _, err := os.Stat(dir + ".old"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left: %v", err)
	}
}

// importStore prepares an import and does it.
func importStore(dir string, data []byte, o trust.ImportOptions) error {
	transfer, err := trust.PrepareImport(dir, data, o)
	if err != nil {
		return err
	}
	return transfer.Apply()
}

func export(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	check(t, trust.Export(dir, &b))
	return b.Bytes()
}

func FuzzParsePolicy(f *testing.F) {
	f.Add([]byte(header + "rules: [{solutions: [acme-*], signers: [{key: acme, notAfter: 2028-01-01}], threshold: 1}]\n"))
	f.Add([]byte(header + "rules: [{solutions: ['*'], signers: [{root: pki, identity: a@b, issuer: c}], requireTimestamp: true}]\n"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := trust.ParsePolicy("policy.yaml", data)
		if err != nil {
			if report.CodeOf(err) != report.TrustStore {
				t.Errorf("code of %v", err)
			}
			return
		}
		for _, r := range p.Rules {
			if len(r.Signers) == 0 || len(r.Solutions) == 0 || r.Required() < 1 || r.Required() > len(r.Signers) {
				t.Errorf("rule %+v", r)
			}
		}
	})
}

func FuzzParseRevocations(f *testing.F) {
	list, err := (&trust.Revocations{Serial: 1, MinimumVersions: map[string]string{"x": "1.0.0"}}).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(list)
	f.Add([]byte(`{"serial":1,"Serial":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := trust.ParseRevocations(data)
		if err != nil {
			return
		}
		again, err := r.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := trust.ParseRevocations(again); err != nil {
			t.Errorf("what was printed cannot be read: %v", err)
		}
	})
}

func ExampleParsePolicy() {
	p, err := trust.ParsePolicy("policy.yaml", []byte(`
apiVersion: solutionctl.io/v1alpha1
kind: VerificationPolicy
default: reject
rules:
- solutions: ["acme-*"]
  signers: [{key: acme-release, notAfter: 2028-01-01}, {key: acme-security}]
  threshold: 2
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Rules[0].Required(), p.Rules[0].Signers[0].NotAfter.Format(time.RFC3339))
	// Output: 2 2028-01-01T23:59:59Z
}
