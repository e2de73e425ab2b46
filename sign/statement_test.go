package sign_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

func TestFileNames(t *testing.T) {
	for name, good := range map[string]bool{
		"x.iso": true, "with space.iso": true, "\u05d0\u05d1.iso": true, "cafe\u0301.iso": true, strings.Repeat("x", 255): true,
		"": false, ".": false, "..": false, "a/b.iso": false, `a\b.iso`: false, "new\nline.iso": false, "tab\t.iso": false,
		"osi.\u202eexe": false, "zero\u200bwidth": false, "\xff.iso": false, "line\u2028.iso": false, strings.Repeat("x", 256): false,
	} {
		_, err := sign.NewStatement(contentSums(t), sign.Claims{Name: name, Solution: acmeDB, CreatedAt: now})
		if (err == nil) != good || err != nil && report.CodeOf(err) != report.Usage {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestNewStatementRefuses(t *testing.T) {
	good := sign.Claims{Name: "x.iso", Solution: acmeDB, CreatedAt: now}
	for name, change := range map[string]func(*sign.Claims){
		"no Solution":                    func(c *sign.Claims) { c.Solution.Name = "" },
		"version that is not semantic":   func(c *sign.Claims) { c.Solution.Version = "latest" },
		"version with a v":               func(c *sign.Claims) { c.Solution.Version = "v1.0.0" },
		"expires before it is made":      func(c *sign.Claims) { c.Expires = now.Add(-time.Second) },
		"expires when it is made":        func(c *sign.Claims) { c.Expires = now },
		"control character in the name":  func(c *sign.Claims) { c.Solution.Name = "a\x1b[2J" },
		"version of two numbers":         func(c *sign.Claims) { c.Solution.Version = "1.2" },
		"version with a space before it": func(c *sign.Claims) { c.Solution.Version = " 1.2.3" },
	} {
		c := good
		change(&c)
		if _, err := sign.NewStatement(contentSums(t), c); report.CodeOf(err) != report.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := sign.NewStatement(&chunk.Sums{}, good); report.CodeOf(err) != report.Usage {
		t.Errorf("empty file: %v", err)
	}
}

func TestFindBundles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"x[1].iso", "x[1].iso.sigstore.json", "x[1].iso.acme.sigstore.json", "x[1].iso.bak", "x1.iso.sigstore.json",
		"x[1].iso2.sigstore.json", "sigstore.json",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	archive := filepath.Join(dir, "x[1].iso")
	found, err := sign.FindBundles(archive)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{sign.BundleName(archive, ""), sign.BundleName(archive, "acme")}
	if len(found) != 2 || found[0].File != want[0] || found[1].File != want[1] || !bytes.Contains(found[1].Data, []byte("acme")) {
		t.Errorf("found %v, want %v", found, want)
	}
}

// TestJunkBesideAnArchive puts files that are not bundles in the places of bundles.
func TestJunkBesideAnArchive(t *testing.T) {
	w := newWorld(t)
	archive := filepath.Join(t.TempDir(), "x.iso")
	write := func(signer string, data []byte) {
		t.Helper()
		if err := os.WriteFile(sign.BundleName(archive, signer), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		write(fmt.Sprintf("junk%d", i), []byte("{}"))
	}
	if err := errors.Join(os.Mkdir(sign.BundleName(archive, "directory"), 0o700), os.Symlink("/dev/zero", sign.BundleName(archive, "link"))); err != nil {
		t.Skip("needs symbolic links:", err)
	}
	write("zz-honest-signer-with-a-long-name", w.bundles[0].Data)
	found, err := sign.FindBundles(archive)
	if err != nil || len(found) != 103 {
		t.Fatalf("%d bundles, %v", len(found), err)
	}
	w.bundles = found
	if verdict, _, failure := w.verify(); failure != nil || !verdict.Verified {
		t.Errorf("an honest signature does not count: %v", failure)
	}
	for _, name := range []string{"directory", "link"} {
		if _, err = sign.ReadBundle(sign.BundleName(archive, name)); report.CodeOf(err) != report.BadBundle {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range 1000 {
		write(fmt.Sprintf("more%d", i), []byte("{}"))
	}
	if found, err = sign.FindBundles(archive); err != nil || len(found) != 1001 || found[1000].Problem == nil {
		t.Errorf("%d bundles, %v", len(found), err)
	}
}

func TestReadBundleIsBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 1<<40); err != nil {
		t.Skip("needs sparse files:", err)
	}
	b, err := sign.ReadBundle(file)
	if err != nil || len(b.Data) != bundle.MaxSize+1 {
		t.Errorf("read %d bytes, %v", len(b.Data), err)
	}
}
