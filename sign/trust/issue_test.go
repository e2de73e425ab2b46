package trust_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/key/keytest"
	"github.com/solutionctl/solutionctl/sign/trust"
)

func TestRevoke(t *testing.T) {
	dir, acme := store(t)
	root := keytest.New(t)
	if got := revoke(t, dir, root, trust.Revocations{Keys: []string{acme.Public().ID()}}); got != 1 {
		t.Errorf("first serial %d", got)
	}
	older := must(os.ReadFile(dir + "/revocations.json"))
	olderSignature := must(os.ReadFile(dir + "/revocations.json.sigstore.json"))
	if got := revoke(t, dir, root, trust.Revocations{MinimumVersions: map[string]string{"x": "1.0.0"}}); got != 2 {
		t.Errorf("second serial %d", got)
	}
	s, err := trust.Load([]string{dir}, nil)
	check(t, err)
	if !slices.Equal(s.RevokedKeys(), []string{acme.Public().ID()}) || !s.List()[0].Revoked {
		t.Error("an earlier revocation is lost")
	}
	state := &trust.State{}
	state.RecordSerials(s)
	if _, err := trust.PrepareRevocations(dir, older, olderSignature, nil); report.CodeOf(err) != report.TrustStore {
		t.Errorf("an older list is taken: %v", err)
	}
	write(t, dir, "revocations.json", older)
	write(t, dir, "revocations.json.sigstore.json", olderSignature)
	if _, err := trust.Load([]string{dir}, state); report.CodeOf(err) != report.TrustStore {
		t.Errorf("an older list is loaded: %v", err)
	}
	check(t, os.Remove(dir+"/revocations.json"))
	if _, err := trust.Load([]string{dir}, state); report.CodeOf(err) != report.TrustStore {
		t.Errorf("the lack of the list is not noticed: %v", err)
	}
	if _, err := trust.Prepare(dir, trust.Revocations{}, keytest.New(t).Public(), nil); report.CodeOf(err) != report.Untrusted {
		t.Errorf("another root key may revoke: %v", err)
	}
}

func TestRevokeRefuses(t *testing.T) {
	dir, _ := store(t)
	root := keytest.New(t)
	revoke(t, dir, root, trust.Revocations{MinimumVersions: map[string]string{"shop": "2.0.0"}})
	before := must(os.ReadFile(dir + "/revocations.json"))
	for name, more := range map[string]trust.Revocations{
		"a version that is none, below a floor": {MinimumVersions: map[string]string{"shop": "9.9"}},
		"a version that is none":                {MinimumVersions: map[string]string{"other": "v1.0.0"}},
		"a name in capitals":                    {MinimumVersions: map[string]string{"Shop": "2.0.0"}},
		"a name with spaces":                    {MinimumVersions: map[string]string{" shop": "2.0.0"}},
		"no name":                               {MinimumVersions: map[string]string{"": "2.0.0"}},
		"a key that is none":                    {Keys: []string{"acme"}},
		"an archive that is none":               {Archives: []string{strings.Repeat("0", 64)}},
	} {
		if _, err := trust.Prepare(dir, more, root.Public(), nil); report.CodeOf(err) != report.Usage || len(report.Hints(err)) == 0 {
			t.Errorf("%s: %v %q", name, err, report.Hints(err))
		}
	}
	if !bytes.Equal(before, must(os.ReadFile(dir+"/revocations.json"))) {
		t.Error("the list was changed")
	}
	_, err := trust.Load([]string{dir}, nil)
	check(t, err)
}

func TestRevokeReportsChanges(t *testing.T) {
	dir, acme := store(t)
	root := keytest.New(t)
	archive := "sha256:" + strings.Repeat("0", 64)
	more := trust.Revocations{
		Keys: []string{acme.Public().ID()}, Archives: []string{archive}, MinimumVersions: map[string]string{"shop": "2.0.0"},
	}
	next, err := trust.Prepare(dir, more, root.Public(), nil)
	check(t, err)
	want := []string{"revokes archive " + archive, "revokes key " + acme.Public().ID() + " (acme)", "revokes versions of shop below 2.0.0"}
	if !slices.Equal(next.Changes, want) || next.Serial != 1 {
		t.Errorf("serial %d, %q", next.Serial, next.Changes)
	}
	if _, err = os.Stat(dir + "/revocations.json"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("to prepare has changed something: %v", err)
	}
	check(t, next.Issue(t.Context(), root))

	// Revocations stay in the next list, and without additions there is no new list.
	next, err = trust.Prepare(dir, trust.Revocations{MinimumVersions: map[string]string{"shop": "1.0.0"}, Keys: more.Keys}, root.Public(), nil)
	check(t, err)
	if next.Serial != 1 || len(next.Changes) != 0 {
		t.Errorf("serial %d, %q", next.Serial, next.Changes)
	}
	check(t, next.Issue(t.Context(), root))
	next, err = trust.Prepare(dir, trust.Revocations{MinimumVersions: map[string]string{"shop": "2.1.0"}}, root.Public(), nil)
	check(t, err)
	if want := []string{"revokes versions of shop below 2.1.0 (before: 2.0.0)"}; next.Serial != 2 || !slices.Equal(next.Changes, want) {
		t.Errorf("serial %d, %q", next.Serial, next.Changes)
	}
}

// TestRevokeKilled: a process was killed between writing the two files of a list.
func TestRevokeKilled(t *testing.T) {
	dir, acme := store(t)
	root := keytest.New(t)
	revoke(t, dir, root, trust.Revocations{})
	newer := filepath.Join(t.TempDir(), "newer")
	check(t, os.CopyFS(newer, os.DirFS(dir)))
	revoke(t, newer, root, trust.Revocations{Keys: []string{acme.Public().ID()}})
	const list, signature = "/revocations.json", "/revocations.json.sigstore.json"
	write(t, dir, "revocations.json", must(os.ReadFile(newer+list)))
	if _, err := trust.Load([]string{dir}, nil); report.CodeOf(err) != report.TrustStore {
		t.Errorf("a list with the signature of another one: %v", err)
	}
	write(t, dir, ".revocations.json.sigstore.json.partial", must(os.ReadFile(newer+signature)))
	s, err := trust.Load([]string{dir}, nil)
	check(t, err)
	if !s.List()[0].Revoked {
		t.Error("the new list does not count")
	}
	if serial := revoke(t, dir, root, trust.Revocations{MinimumVersions: map[string]string{"x": "1.0.0"}}); serial != 3 {
		t.Errorf("serial %d", serial)
	}
	s, err = trust.Load([]string{dir}, nil)
	check(t, err)
	if !s.List()[0].Revoked {
		t.Error("the list between is lost")
	}
}

// TestRevokeAfterLoss loses the list of a store, with and without its root key: the next list would begin with serial 1 again.
func TestRevokeAfterLoss(t *testing.T) {
	dir, acme := store(t)
	root, state := keytest.New(t), &trust.State{}
	first, err := trust.Prepare(dir, trust.Revocations{Keys: []string{acme.Public().ID()}}, root.Public(), state)
	check(t, err)
	check(t, first.Issue(t.Context(), root))
	first.Record(state)
	more := trust.Revocations{Archives: []string{archiveOne}}
	for _, name := range []string{"revocations.json", "root.pub"} {
		check(t, os.Rename(filepath.Join(dir, name), filepath.Join(dir, "lost-"+name)))
		if _, err = trust.Prepare(dir, more, root.Public(), state); report.CodeOf(err) != report.TrustStore || len(report.Hints(err)) != 1 {
			t.Errorf("without %s: %v %q", name, err, report.Hints(err))
		}
	}
	for _, name := range []string{"revocations.json", "root.pub"} {
		check(t, os.Rename(filepath.Join(dir, "lost-"+name), filepath.Join(dir, name)))
	}
	next, err := trust.Prepare(dir, more, root.Public(), state)
	check(t, err)
	if next.Serial != 2 {
		t.Errorf("serial %d", next.Serial)
	}
}
