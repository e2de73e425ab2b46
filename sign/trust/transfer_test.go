package trust_test

import (
	"archive/tar"
	"bytes"
	"encoding/hex"
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

// attack is a host with keys a and b and a root key, and an exported store of an attacker.
type attack struct {
	*testing.T
	host, other       string
	beside            []string // directories that are read after the host's
	a, b, root, enemy *key.Signer
}

const (
	archiveOne = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	archiveTwo = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
	threshold  = "rules: [{solutions: [shop], signers: [{key: a}, {key: b}], threshold: 2}]\n"
)

func newAttack(t *testing.T) *attack {
	t.Helper()
	w := &attack{t, filepath.Join(t.TempDir(), "trust"), filepath.Join(t.TempDir(), "other"), nil, keytest.New(t), keytest.New(t), keytest.New(t), keytest.New(t)}
	write(t, w.host, "keys/a.pub", w.a.Public().PEM())
	write(t, w.host, "keys/b.pub", w.b.Public().PEM())
	write(t, w.other, "keys/a.pub", w.a.Public().PEM())
	return w
}

func (w *attack) put(dir, name string, data []byte) { write(w.T, dir, name, data) }

func (w *attack) endorsed(by string, signer *key.Signer) trust.ImportOptions {
	w.Helper()
	data := export(w.T, w.other)
	return trust.ImportOptions{Endorsed: &trust.Endorsement{
		By: by, Bundle: signFile(w.T, signer, data), Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Beside: w.beside,
	}}
}

func (w *attack) files(dir string) map[string]string {
	w.Helper()
	files := map[string]string{}
	check(w.T, fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files[name] = string(must(os.ReadFile(filepath.Join(dir, name))))
		}
		return err
	}))
	return files
}

// TestReleaseKeyAddsKeysOnly lets one release key try to change more of a host's store.
func TestReleaseKeyAddsKeysOnly(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(w *attack)
		by      string // a where it is empty
		code    report.Code
		changes []string // the beginning of each
	}{
		"nothing":     {func(*attack) {}, "", "", nil},
		"another key": {func(w *attack) { w.put(w.other, "keys/c.pub", w.enemy.Public().PEM()) }, "", "", []string{"adds key c  ecdsa-p256  SHA256:"}},
		"another root key": {func(w *attack) {
			w.put(w.host, "root.pub", w.root.Public().PEM())
			w.put(w.other, "root.pub", w.enemy.Public().PEM())
		}, "", report.Refused, nil},
		"a root key where there is none": {func(w *attack) { w.put(w.other, "root.pub", w.enemy.Public().PEM()) }, "", report.Refused, nil},
		"another policy": {func(w *attack) {
			w.put(w.host, "policy.yaml", []byte(header+threshold))
			w.put(w.other, "policy.yaml", []byte(header+"rules: [{solutions: [shop], signers: [{key: a}]}]\n"))
		}, "", report.Refused, nil},
		"a policy where there is none": {func(w *attack) {
			w.put(w.other, "policy.yaml", []byte(header+"rules: [{solutions: [shop], signers: [{key: a}]}]\n"))
		}, "", report.Refused, nil},
		"no policy, root key and list": {func(w *attack) {
			w.put(w.host, "policy.yaml", []byte(header+threshold))
			revoke(w.T, w.host, w.root, trust.Revocations{Archives: []string{archiveOne}})
		}, "", "", nil},
		"another key under a name in use": {func(w *attack) { w.put(w.other, "keys/b.pub", w.enemy.Public().PEM()) }, "", report.Refused, nil},
		"another key under a name of another directory": {func(w *attack) {
			beside := w.TempDir()
			w.put(beside, "keys/c.pub", w.b.Public().PEM())
			w.beside = []string{beside}
			w.put(w.other, "keys/c.pub", w.enemy.Public().PEM())
		}, "", report.Refused, nil},
		"a key of another directory": {func(w *attack) {
			w.host, w.beside = w.TempDir(), []string{w.host}
		}, "", "", []string{"adds key a  ecdsa-p256  SHA256:"}},
		"a policy where only another directory has keys": {func(w *attack) {
			w.host, w.beside = w.TempDir(), []string{w.host}
			w.put(w.other, "policy.yaml", []byte(header+"allowOverride: true\nrules: [{solutions: ['*'], signers: [{key: a}]}]\n"))
		}, "", report.Refused, nil},
		"another authority": {func(w *attack) {
			w.put(w.other, "roots/tsa/trusted_root.json", []byte(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`))
		}, "", report.Refused, nil},
		"revocations without a signature": {func(w *attack) {
			w.put(w.other, "revocations.local.json", []byte(`{"apiVersion":"solutionctl.io/v1alpha1","kind":"LocalRevocations","archives":["`+archiveOne+`"]}`))
		}, "", report.Refused, nil},
		"a newer list of the root key": {func(w *attack) {
			revoke(w.T, w.host, w.root, trust.Revocations{Archives: []string{archiveOne}})
			w.put(w.other, "root.pub", w.root.Public().PEM())
			revoke(w.T, w.other, w.root, trust.Revocations{Archives: []string{archiveTwo}})
			revoke(w.T, w.other, w.root, trust.Revocations{MinimumVersions: map[string]string{"shop": "1.0.0"}})
		}, "", "", []string{"revokes archive " + archiveTwo, "revokes versions of shop below 1.0.0", "sets revocations.json with serial 2"}},
		"a key past its end": {func(w *attack) {
			w.put(w.host, "policy.yaml", []byte(header+"rules: [{solutions: [shop], signers: [{key: a, notAfter: 2021-01-01}, {key: b}]}]\n"))
			w.put(w.other, "keys/c.pub", w.enemy.Public().PEM())
		}, "", report.Expired, nil},
		"a key past one of its ends": {func(w *attack) {
			w.put(w.host, "policy.yaml", []byte(header+"rules: [{solutions: [shop], signers: [{key: a, notAfter: 2021-01-01}]}, {solutions: [db], signers: [{key: a}]}]\n"))
		}, "", "", nil},
		"a key that the policy does not list": {func(w *attack) {
			w.put(w.host, "policy.yaml", []byte(header+"rules: [{solutions: [shop], signers: [{key: b}]}]\n"))
		}, "", report.NotAllowed, nil},
		"a revoked key": {func(w *attack) {
			revoke(w.T, w.host, w.root, trust.Revocations{Keys: []string{w.a.Public().ID()}})
		}, "", report.Revoked, nil},
		"no such key": {func(*attack) {}, "zz", report.Untrusted, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAttack(t)
			test.prepare(w)
			before := w.files(w.host)
			by := test.by
			if by == "" {
				by = "a"
			}
			transfer, err := trust.PrepareImport(w.host, export(t, w.other), w.endorsed(by, w.a))
			if report.CodeOf(err) != test.code {
				t.Fatalf("%v, want code %q", err, test.code)
			}
			if err == nil {
				if !slices.EqualFunc(transfer.Changes, test.changes, strings.HasPrefix) {
					t.Errorf("changes %q, want %q", transfer.Changes, test.changes)
				}
				check(t, transfer.Apply())
			}
			after := w.files(w.host)
			for file, content := range before {
				if after[file] != content && !strings.HasPrefix(file, "revocations.") {
					t.Errorf("%s is another one", file)
				}
			}
			if _, err = trust.Load([]string{w.host}, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNothingIsTakenBack imports stores and lists that revoke less.
func TestNothingIsTakenBack(t *testing.T) {
	revoked := func(w *attack) bool {
		w.Helper()
		s, err := trust.Load([]string{w.host}, nil)
		check(w.T, err)
		return slices.Contains(s.RevokedKeys(), w.b.Public().ID())
	}
	for name, test := range map[string]struct {
		other func(w *attack)
		o     func(w *attack) trust.ImportOptions
	}{
		"replaced by a store without root key": {func(*attack) {}, func(*attack) trust.ImportOptions { return trust.ImportOptions{Replace: true} }},
		"replaced by one of another root key": {func(w *attack) {
			revoke(w.T, w.other, w.enemy, trust.Revocations{Archives: []string{archiveTwo}})
		}, func(*attack) trust.ImportOptions { return trust.ImportOptions{Replace: true} }},
		"replaced by the root key": {func(*attack) {}, func(w *attack) trust.ImportOptions { return w.endorsed("root", w.root) }},
		"a newer list that lacks it": {func(w *attack) {
			w.put(w.other, "root.pub", w.root.Public().PEM())
			revoke(w.T, w.other, w.root, trust.Revocations{Archives: []string{archiveOne}})
			revoke(w.T, w.other, w.root, trust.Revocations{Archives: []string{archiveTwo}})
		}, func(w *attack) trust.ImportOptions { return w.endorsed("a", w.a) }},
		"another list with the same serial": {func(w *attack) {
			revoke(w.T, w.other, w.root, trust.Revocations{Archives: []string{archiveOne}})
		}, func(*attack) trust.ImportOptions { return trust.ImportOptions{Replace: true} }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAttack(t)
			revoke(t, w.host, w.root, trust.Revocations{Keys: []string{w.b.Public().ID()}})
			test.other(w)
			check(t, importStore(w.host, export(t, w.other), test.o(w)))
			if !revoked(w) {
				t.Errorf("key b is trusted again: %v", w.files(w.host))
			}
			// It goes from host to host.
			third := filepath.Join(t.TempDir(), "third")
			check(t, importStore(third, export(t, w.host), trust.ImportOptions{}))
			w.host = third
			if !revoked(w) {
				t.Error("key b is trusted on the next host")
			}
		})
	}
}

// TestListsAreUnited imports the lists of two machines with the root key.
func TestListsAreUnited(t *testing.T) {
	w := newAttack(t)
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	for _, dir := range []string{w.host, one, two} {
		w.put(dir, "root.pub", w.root.Public().PEM())
	}
	revoke(t, one, w.root, trust.Revocations{Archives: []string{archiveOne}})
	revoke(t, two, w.root, trust.Revocations{MinimumVersions: map[string]string{"other": "1.0.0"}})
	take := func(dir string) *trust.Transfer {
		t.Helper()
		transfer, err := trust.PrepareRevocations(w.host, must(os.ReadFile(dir+"/revocations.json")), must(os.ReadFile(dir+"/revocations.json.sigstore.json")), nil)
		check(t, err)
		check(t, transfer.Apply())
		return transfer
	}
	take(one)
	same := take(two)
	if !slices.ContainsFunc(same.Notes, func(note string) bool { return strings.Contains(note, "used in two places") }) {
		t.Errorf("notes %q", same.Notes)
	}
	revoke(t, two, w.root, trust.Revocations{MinimumVersions: map[string]string{"other": "1.1.0"}})
	newer := take(two)
	if want := []string{"revokes versions of other below 1.1.0 (before: 1.0.0)", "sets revocations.json with serial 2"}; !slices.Equal(newer.Changes, want) {
		t.Errorf("changes %q, want %q", newer.Changes, want)
	}
	s, err := trust.Load([]string{w.host}, nil)
	check(t, err)
	if !s.RevokesArchives() {
		t.Error("the archive is not revoked any more")
	}
	// The next list that is issued there has all of it.
	draft, err := trust.Prepare(w.host, trust.Revocations{}, w.root.Public(), nil)
	check(t, err)
	if want := []string{"revokes archive " + archiveOne}; draft.Serial != 3 || !slices.Equal(draft.Changes, want) {
		t.Errorf("serial %d, %q", draft.Serial, draft.Changes)
	}
	check(t, draft.Issue(t.Context(), w.root))
	take(w.host)
	if _, err := os.Stat(w.host + "/revocations.local.json"); err == nil {
		t.Error("what the list says is kept beside it")
	}
}

// TestPreparedTogether prepares changes of which each knows nothing of the other. The second one is refused, and loses nothing.
func TestPreparedTogether(t *testing.T) {
	w := newAttack(t)
	w.put(w.host, "root.pub", w.root.Public().PEM())
	w.put(w.other, "root.pub", w.root.Public().PEM())
	revoke(t, w.other, w.root, trust.Revocations{Archives: []string{archiveOne}})
	revoke(t, w.other, w.root, trust.Revocations{Archives: []string{archiveOne}, MinimumVersions: map[string]string{"shop": "1.0.0"}})
	list, signature := must(os.ReadFile(w.other+"/revocations.json")), must(os.ReadFile(w.other+"/revocations.json.sigstore.json"))

	first, err := trust.Prepare(w.host, trust.Revocations{Archives: []string{archiveTwo}}, w.root.Public(), nil)
	check(t, err)
	second, err := trust.Prepare(w.host, trust.Revocations{Keys: []string{w.b.Public().ID()}}, w.root.Public(), nil)
	check(t, err)
	third, err := trust.PrepareRevocations(w.host, list, signature, nil)
	check(t, err)
	fourth, err := trust.PrepareImport(w.host, export(t, w.other), trust.ImportOptions{Replace: true})
	check(t, err)
	check(t, first.Issue(t.Context(), w.root))
	if err = second.Issue(t.Context(), w.root); report.CodeOf(err) != report.Conflict {
		t.Errorf("another list: %v", err)
	}
	check(t, third.Apply()) // unites with whatever is there
	if err = fourth.Apply(); report.CodeOf(err) != report.Conflict {
		t.Errorf("a store: %v", err)
	}
	s, err := trust.Load([]string{w.host}, nil)
	check(t, err)
	for _, digest := range []string{archiveOne, archiveTwo} {
		raw := must(hex.DecodeString(strings.TrimPrefix(digest, "sha256:")))
		if err := s.CheckArchive(raw, bundle.Solution{Name: "shop", Version: "2.0.0"}); report.CodeOf(err) != report.Revoked {
			t.Errorf("%s: %v", digest, err)
		}
	}
}

// TestReplace prints each change, and refuses when the store has changed since.
func TestReplace(t *testing.T) {
	w := newAttack(t)
	w.put(w.host, "policy.yaml", []byte(header+threshold))
	w.put(w.host, "root.pub", w.root.Public().PEM())
	w.put(w.other, "policy.yaml", []byte(header+"rules: [{solutions: [shop], signers: [{key: a}]}]\n"))
	w.put(w.other, "root.pub", w.enemy.Public().PEM())
	data := export(t, w.other)
	transfer, err := trust.PrepareImport(w.host, data, trust.ImportOptions{Replace: true})
	check(t, err)
	want := []string{
		"removes key b  ecdsa-p256  SHA256:", "changes policy.yaml", "policy.yaml: - rules: [{solutions: [shop], signers: [{key: a}, {key: b}], threshold: 2}]",
		"policy.yaml: + rules: [{solutions: [shop], signers: [{key: a}]}]", "replaces the root key  ecdsa-p256  SHA256:",
	}
	if !slices.EqualFunc(transfer.Changes, want, strings.HasPrefix) {
		t.Errorf("changes %q", transfer.Changes)
	}
	w.put(w.host, "keys/c.pub", w.root.Public().PEM())
	if err = transfer.Apply(); report.CodeOf(err) != report.Conflict {
		t.Errorf("a store that has changed meanwhile: %v", err)
	}
	check(t, importStore(w.host, data, trust.ImportOptions{Replace: true}))
	if !bytes.Equal(export(t, w.host), data) {
		t.Error("the store is not the exported one")
	}
	again, err := trust.PrepareImport(w.host, data, trust.ImportOptions{Replace: true})
	check(t, err)
	if len(again.Changes) != 0 {
		t.Errorf("again: %q", again.Changes)
	}
}

// TestImportOlderThanSeen: a store cannot be set up again with a list that is older than one that the host has seen.
func TestImportOlderThanSeen(t *testing.T) {
	w := newAttack(t)
	revoke(t, w.other, w.root, trust.Revocations{Archives: []string{archiveOne}})
	state := &trust.State{Serials: map[string]int64{w.root.Public().ID(): 2}}
	fresh := filepath.Join(t.TempDir(), "fresh")
	if _, err := trust.PrepareImport(fresh, export(t, w.other), trust.ImportOptions{State: state}); report.CodeOf(err) != report.TrustStore {
		t.Errorf("%v", err)
	}
	if err := importStore(fresh, export(t, w.other), w.endorsed("a", w.a)); report.CodeOf(err) != report.Untrusted {
		t.Errorf("an endorsement that nothing can prove: %v", err)
	}
}

// TestMalformedExport: files that are not exports are refused.
func TestMalformedExport(t *testing.T) {
	w := newAttack(t)
	pack := func(names ...string) []byte {
		var b bytes.Buffer
		archive := tar.NewWriter(&b)
		for i, name := range names {
			content := w.a.Public().PEM()
			if i > 0 {
				content = w.enemy.Public().PEM()
			}
			check(t, archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Format: tar.FormatUSTAR}))
			must(archive.Write(content))
		}
		check(t, archive.Close())
		return b.Bytes()
	}
	for name, data := range map[string][]byte{
		"one name twice": pack("keys/a.pub", "keys/a.pub"), "empty": pack(), "no bytes": nil, "outside": pack("../a.pub"), "not canonical": pack("keys//a.pub"),
	} {
		if _, err := trust.PrepareImport(w.host, data, trust.ImportOptions{Replace: true}); report.CodeOf(err) != report.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	empty := t.TempDir()
	if err := trust.Export(empty, &bytes.Buffer{}); report.CodeOf(err) != report.Usage {
		t.Errorf("an empty store is exported: %v", err)
	}
}

// TestLocalRevocations reads an administrator's file beside the signed list, or without one.
func TestLocalRevocations(t *testing.T) {
	const head = `{"apiVersion":"solutionctl.io/v1alpha1","kind":"LocalRevocations"`
	for text, want := range map[string]report.Code{
		head + `,"archives":["` + archiveOne + `"]}`: "",
		head + `}`: "",
		head + `,"archives":["` + archiveOne[:20] + `"]}`:                          report.TrustStore,
		head + `,"archive":["` + archiveOne + `"]}`:                                report.TrustStore,
		head + `,"serial":1}`:                                                      report.TrustStore,
		`{"apiVersion":"solutionctl.io/v1alpha1","kind":"Revocations","serial":1}`: report.TrustStore,
		``: report.TrustStore,
	} {
		dir, _ := store(t)
		write(t, dir, "revocations.local.json", []byte(text))
		s, err := trust.Load([]string{dir}, nil)
		if report.CodeOf(err) != want {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if err == nil && s.RevokesArchives() != strings.Contains(text, "archives") {
			t.Errorf("%s: archives are revoked: %v", text, s.RevokesArchives())
		}
	}
	dir, _ := store(t)
	write(t, dir, "Revocations.local.json", []byte(head+"}"))
	if _, err := trust.Load([]string{dir}, nil); report.CodeOf(err) != report.TrustStore {
		t.Errorf("a name that is not read: %v", err)
	}
}
