//go:build unix

package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
)

// Stand-ins for bundles: a store does not parse them.
var (
	vendorBundles = []Bundle{{Data: []byte("signature of the vendor"), Accepted: true}}
	siteBundles   = []Bundle{{Data: []byte("signature of the site")}}
)

func bundleName(e Entry, b Bundle) string {
	return filepath.Base((&Store{}).bundleFile(e.ID(), e.SHA256, b.Data).path)
}

// entryFiles returns the names of all files of a store whose entries have these bundles.
func entryFiles(t *testing.T, s *Store, bundles []Bundle) []string {
	t.Helper()
	entries, err := s.Entries()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.ID()+".iso", e.ID()+".json")
		for _, b := range bundles {
			names = append(names, bundleName(e, b))
		}
	}
	slices.Sort(names)
	return names
}

// signed makes a store that has an archive with the signature of the vendor. source is the archive without any.
func signed(t *testing.T) (dir string, s *Store, source Source) {
	t.Helper()
	dir = t.TempDir()
	original := filepath.Join(dir, "demo.iso")
	writeArchive(t, original)
	s = open(t, filepath.Join(dir, "store"))
	source = newSource(t, original, "1.0.0")
	if _, _, err := add(s, source); err != nil {
		t.Fatal(err)
	}
	source.Bundles = nil
	return dir, s, source
}

func TestBundles(t *testing.T) {
	many := make([]Bundle, maxBundles+5)
	for i := range many {
		many[i].Data = fmt.Appendf(nil, "signature %d", i)
	}
	accepted := slices.Clone(many[:maxBundles])
	for i := range accepted {
		accepted[i].Accepted = true
	}
	large := []Bundle{{Data: bytes.Repeat([]byte("a"), bundle.MaxSize+1)}}
	both := slices.Concat(vendorBundles, siteBundles)
	for _, test := range []struct {
		name        string
		given, want []Bundle
	}{
		{"none keeps those before", nil, vendorBundles},
		{"the same", vendorBundles, vendorBundles},
		{"a further signer", siteBundles, both},
		{"both", both, both},
		{"twice the same", slices.Concat(siteBundles, siteBundles), both},
		{"too many do not displace those before", many, slices.Concat(vendorBundles, many[:maxBundles-1])},
		{"too many accepted ones do", slices.Concat(siteBundles, accepted), accepted},
		{"too large", slices.Concat(large, siteBundles), both},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, s, source := signed(t)
			source.Bundles = test.given
			entry, method, err := add(s, source)
			if err != nil || method != Present {
				t.Fatalf("%s, %v", method, err)
			}
			if got, want := files(t, s.Dir()), entryFiles(t, s, test.want); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			bundles, err := s.Bundles(entry)
			if err != nil || len(bundles) != len(test.want) {
				t.Errorf("%d bundles, %v", len(bundles), err)
			}
			if err = remove(s, entry.ID()); err != nil {
				t.Fatal(err)
			}
			if left := files(t, s.Dir()); left != nil {
				t.Errorf("left %q", left)
			}
		})
	}
}

// TestDamagedBundle: a damaged bundle does not count, and the next import of it writes it again.
func TestDamagedBundle(t *testing.T) {
	_, s, source := signed(t)
	entry, err := s.Find("demo-1.0.0", "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.Dir(), bundleName(entry, vendorBundles[0]))
	for name, data := range map[string][]byte{"altered": []byte("signature of the vandal"), "too large": make([]byte, bundle.MaxSize+1)} {
		if err = errors.Join(os.Remove(path), os.WriteFile(path, data, 0o440)); err != nil {
			t.Fatal(err)
		}
		if bundles, failure := s.Bundles(entry); failure != nil || bundles != nil {
			t.Errorf("%s: %q, %v", name, bundles, failure)
		}
		source.Bundles = vendorBundles
		if _, _, err = add(s, source); err != nil {
			t.Fatal(err)
		}
	}
	if bundles, failure := s.Bundles(entry); failure != nil || len(bundles) != 1 {
		t.Errorf("%q, %v", bundles, failure)
	}
}

// TestOwnFilesStay: a store of an earlier program has no bundles, and a user may have signed an archive where it lies.
func TestOwnFilesStay(t *testing.T) {
	dir := t.TempDir()
	original := filepath.Join(dir, "demo.iso")
	writeArchive(t, original)
	s := open(t, filepath.Join(dir, "store"))
	source := newSource(t, original, "1.0.0")
	source.Bundles = nil
	entry, _, err := add(s, source)
	if err != nil {
		t.Fatal(err)
	}
	if bundles, failure := s.Bundles(entry); failure != nil || bundles != nil {
		t.Errorf("%q, %v", bundles, failure)
	}
	own := []string{"demo-1.0.0.iso.sigstore.json", "demo-1.0.0.iso.site.sigstore.json"}
	for _, name := range own {
		if err = os.WriteFile(filepath.Join(s.Dir(), name), []byte("signature"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err = s.Tidy(t.Context(), 0, nil); err != nil {
		t.Fatal(err)
	}
	if entries, failure := s.Entries(); failure != nil || len(entries) != 1 {
		t.Errorf("%d entries, %v", len(entries), failure)
	}
	if err = remove(s, entry.ID()); err != nil {
		t.Fatal(err)
	}
	if left := files(t, s.Dir()); !slices.Equal(left, own) {
		t.Errorf("left %q", left)
	}
}

func TestVersionLikeABundle(t *testing.T) {
	_, s, source := signed(t)
	before := files(t, s.Dir())
	source.Version = "1.0.0-rc.iso.sigstore"
	if _, _, err := add(s, source); report.CodeOf(err) != report.Refused {
		t.Errorf("got %v", err)
	}
	if after := files(t, s.Dir()); !slices.Equal(before, after) {
		t.Errorf("left %q", after)
	}
}

// TestCountersign interrupts, before each step, an import that adds the signature of the site. The archive and the signature
// of the vendor are there all the time; the same command finishes the work.
func TestCountersign(t *testing.T) {
	for name, damaged := range map[string]bool{"intact": false, "damaged": true} {
		prepare := func(t *testing.T) (string, *Store, Source) {
			t.Helper()
			dir, s, source := signed(t)
			source.Bundles = siteBundles
			if damaged {
				if err := os.Truncate(filepath.Join(s.Dir(), "demo-1.0.0.iso"), 4096); err != nil {
					t.Fatal(err)
				}
			}
			return dir, s, source
		}
		var steps []string
		_, s, source := prepare(t)
		s.step = inTurn(func(name string) error { steps = append(steps, name); return nil })
		if _, _, err := add(s, source); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(steps, "write bundle") {
			t.Fatalf("steps %q", steps)
		}
		for i, step := range steps {
			for _, way := range []string{"killed", "failed"} {
				t.Run(fmt.Sprintf("%s %s %d %s", name, way, i, step), func(t *testing.T) {
					dir, s, source := prepare(t)
					if way == "killed" {
						kill(t, dir, i, "countersign")
					} else {
						count := 0
						s.step = inTurn(func(string) error {
							if count++; count == i+1 {
								return syscall.ENOSPC
							}
							return nil
						})
						if _, _, err := add(s, source); report.CodeOf(err) != report.NoSpace && !errors.Is(err, syscall.ENOSPC) {
							t.Fatal(err)
						}
					}
					s = open(t, filepath.Join(dir, "store"))
					entry, err := s.Find("demo-1.0.0", "")
					if err != nil {
						t.Fatal(err)
					}
					bundles, err := s.Bundles(entry)
					if err != nil || !slices.ContainsFunc(bundles, func(b []byte) bool { return bytes.Equal(b, vendorBundles[0].Data) }) {
						t.Errorf("bundles %q, %v", bundles, err)
					}
					if !damaged {
						content(t, s)
					}
					if _, _, err := add(s, source); err != nil {
						t.Fatal(err)
					}
					content(t, s)
					if got, want := files(t, s.Dir()), entryFiles(t, s, slices.Concat(vendorBundles, siteBundles)); !slices.Equal(got, want) {
						t.Errorf("got %q, want %q", got, want)
					}
				})
			}
		}
	}
}
