package trust

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/key"
	"github.com/solutionctl/solutionctl/sign/key/keytest"
)

// guarded writes a store with a key, and with a policy that lets it sign one Solution.
func guarded(t *testing.T) (dir string, files map[string][]byte) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "trust")
	files = map[string][]byte{
		"keys/acme.pub": keytest.New(t).Public().PEM(),
		policyFile:      []byte("apiVersion: solutionctl.io/v1alpha1\nkind: VerificationPolicy\ndefault: reject\nrules: [{solutions: [shop], signers: [{key: acme}]}]\n"),
	}
	must(t, install(dir, files, nil))
	return dir, files
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestExchangedWhileRead exchanges a store behind its keys: the policy of the removed directory is missing, which does not mean that there is
// none.
func TestExchangedWhileRead(t *testing.T) {
	dir, files := guarded(t)
	s, reads := (*Store)(nil), 0
	_, err := retry(func() (*Store, error) {
		d, err := openDirectory(dir)
		must(t, err)
		s = &Store{keys: map[string]*key.Public{}}
		must(t, s.loadKeys(d))
		if reads++; reads == 1 {
			must(t, install(dir, files, nil))
		}
		return s, d.finish(s.loadPolicy(d))
	})
	if err != nil || reads != 2 || s.policy == nil {
		t.Errorf("%v, %d reads, policy %v", err, reads, s.policy)
	}
}

// TestExchangedAgainAndAgain gives up on a store that is exchanged during each reading.
func TestExchangedAgainAndAgain(t *testing.T) {
	dir, files := guarded(t)
	reads := 0
	_, err := retry(func() (*Store, error) {
		reads++
		d, err := openDirectory(dir)
		must(t, err)
		must(t, install(dir, files, nil))
		return nil, d.finish(nil)
	})
	if report.CodeOf(err) != report.Conflict || reads != attempts {
		t.Errorf("%v after %d reads", err, reads)
	}
}

// TestLoadBesideExchanges loads a store as often as another process exchanges it.
func TestLoadBesideExchanges(t *testing.T) {
	dir, files := guarded(t)
	done := make(chan error)
	go func() {
		var err error
		for n := 0; n < 25 && err == nil; n++ {
			err = install(dir, files, nil)
		}
		done <- err
	}()
	for {
		store, err := Load([]string{dir}, nil)
		if err == nil && (store.policy == nil || store.keys["acme"] == nil) {
			t.Error("the store was loaded without its policy or its key")
		} else if err != nil && report.CodeOf(err) != report.Conflict {
			t.Error(err)
		}
		select {
		case err := <-done:
			must(t, err)
			return
		default:
		}
	}
}

// exchanging is a writer that exchanges a store before it takes the first bytes.
type exchanging struct {
	bytes.Buffer
	exchange func()
}

func (w *exchanging) Write(data []byte) (int, error) {
	w.exchange()
	w.exchange = func() {}
	return w.Buffer.Write(data)
}

func TestExportBesideExchange(t *testing.T) {
	dir, files := guarded(t)
	w := &exchanging{exchange: func() { must(t, install(dir, files, nil)) }}
	must(t, Export(dir, w))
	exported, err := readExport(w.Bytes())
	must(t, err)
	if len(exported) != len(files) || exported[policyFile] == nil {
		t.Errorf("exported %v", sortedNames(exported))
	}
}

func TestExportMissing(t *testing.T) {
	var out bytes.Buffer
	if err := Export(filepath.Join(t.TempDir(), "none"), &out); report.CodeOf(err) != report.Usage || out.Len() > 0 {
		t.Errorf("%v, %d bytes", err, out.Len())
	}
	dir, _ := guarded(t)
	must(t, os.WriteFile(filepath.Join(dir, keysDir, "b.pub"), []byte("none"), 0o600))
	if err := Export(dir, &out); err == nil || out.Len() > 0 {
		t.Errorf("%v, %d bytes", err, out.Len())
	}
}

// TestAddsOfOneName lets two processes add different keys under one name: only one of them succeeds.
func TestAddsOfOneName(t *testing.T) {
	dir, _ := guarded(t)
	keys := [][]byte{keytest.New(t).Public().PEM(), keytest.New(t).Public().PEM()}
	for range 10 {
		errs := make(chan error, len(keys))
		for _, data := range keys {
			go func() {
				_, err := Add(dir, "next", data, nil)
				errs <- err
			}()
		}
		one, two := <-errs, <-errs
		if (one == nil) == (two == nil) {
			t.Fatalf("%v and %v", one, two)
		}
		must(t, Remove(dir, "next"))
	}
}

// TestRemoveBesideExchange removes a key while the store is exchanged for one with the same keys: the key stays removed when the removal was
// the last change.
func TestRemoveBesideExchange(t *testing.T) {
	dir, files := guarded(t)
	files["keys/old.pub"] = keytest.New(t).Public().PEM()
	for range 10 {
		must(t, install(dir, files, nil))
		exchanged := make(chan error)
		go func() {
			exchanged <- changing(dir, func() error {
				present, err := readSnapshot(dir)
				if err != nil {
					return err
				}
				return install(dir, present.files, nil)
			})
		}()
		must(t, errors.Join(Remove(dir, "old"), <-exchanged))
		store, err := Load([]string{dir}, nil)
		must(t, err)
		if store.keys["old"] != nil {
			t.Fatal("a removed key is trusted again")
		}
	}
}
