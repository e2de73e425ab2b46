package sbom

import (
	"bytes"
	"flag"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the expected documents")

// FuzzReaders gives every reader of files any content: none crashes, hangs, or returns texts that are not clean.
func FuzzReaders(f *testing.F) {
	paths := []string{
		"var/lib/dpkg/status", "usr/share/doc/a/copyright", "lib/apk/db/installed", "var/lib/rpm/rpmdb.sqlite", "var/lib/rpm/Packages.db", "var/lib/rpm/Packages",
		"a.dist-info/METADATA", "node_modules/a/package.json", "a.jar", "etc/os-release",
	}
	jar := jarOf(f, "META-INF/maven/a/b/pom.properties", "groupId=a\nartifactId=b\nversion=1\n", "c.jar", jarOf(f, "x", "y"))
	for i, content := range []string{dpkgStatus, copyright, apkDB, sqliteMagic, "RpmP", "", "Name: a\nVersion: 1\n", `{"name":"a","version":"1"}`, jar, debianRelease} {
		f.Add(uint8(i), []byte(content)) //nolint:gosec // there are few
	}
	f.Add(uint8(len(paths)), append(append(append([]byte("x"), goMarks().modules...), "mod\ta\tv1\t\n"...), goMarks().end...)) //nolint:gosec // there are few
	limit := standardLimits()
	limit.document, limit.spooled, limit.jarInflated = 1<<16, 1<<20, 1<<20
	f.Fuzz(func(t *testing.T, which uint8, content []byte) {
		name, read := "program", reader(readGoProgram)
		if int(which) < len(paths) {
			name = paths[which]
			read = readerOf(name)
		}
		found, err := read(file{ctx: t.Context(), Reader: bytes.NewReader(content), path: name, size: int64(len(content)), limit: &limit})
		if found == nil {
			return
		}
		for _, c := range found.packages {
			if c.valid(&limit) != nil || len(c.license) > limit.text || strings.ContainsFunc(c.license, isControl) {
				t.Errorf("%s: package %+v (%v)", name, c, err)
			}
			_ = parseLicense(c.license)
			_ = c.purl(nil)
		}
	})
}

// FuzzBill reads any bill of materials: its packages are clean, and written as they are read.
func FuzzBill(f *testing.F) {
	for _, text := range []string{statedSPDX, statedCycloneDX, statement(statedSPDX, "aa"), envelope(statement(statedSPDX, "aa")), bundle(statement(statedSPDX, "aa"))} {
		f.Add([]byte(text))
	}
	limit := standardLimits()
	limit.objects, limit.packages = 1000, 100
	f.Fuzz(func(t *testing.T, content []byte) {
		b := &billReader{limit: &limit, subjects: []string{"aa"}, seen: map[string]bool{}}
		if b.read(content, 0) != nil {
			return
		}
		for _, p := range b.packages {
			c := component{name: p.Name, version: p.Version, source: p.Source, sourceVersion: p.SourceVersion}
			if c.valid(&limit) != nil || strings.ContainsFunc(p.PURL+p.License+b.tool+b.format, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("package %+v of %q", p, b.tool)
			}
			if again, ok := parsePackageURL(p.PURL); !ok || again.canonical(qualifiersOf(p.PURL)) != p.PURL {
				t.Errorf("%q is read as %+v", p.PURL, again)
			}
		}
	})
}

// FuzzQuery reads any text as a query.
func FuzzQuery(f *testing.F) {
	f.Add("pkg:deb/debian/openssl@<3.0.15")
	f.Add("pkg:npm/%40a/b@>=1.0.0|<2.0.0?distro=x")
	f.Fuzz(func(t *testing.T, text string) {
		if q, err := ParseQuery(text); err == nil && (q.name == "" || q.Range == nil) {
			t.Errorf("%q: %+v", text, q)
		}
	})
}
