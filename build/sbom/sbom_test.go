package sbom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	debianRelease = "PRETTY_NAME=\"Debian\"\nID=debian\nVERSION_ID=\"12\"\n"
	dpkgStatus    = `Package: libssl3
Status: install ok installed
Architecture: amd64
Source: openssl
Version: 3.0.11-1~deb12u2
Description: toolkit
 Version: not a field

Package: gone
Status: deinstall ok config-files
Version: 1

Package: login
Status: install ok installed
Architecture: amd64
Source: shadow (1:4.13+dfsg1-1)
Version: 1:4.13+dfsg1-1+b1
`
	copyright = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\nFiles: *\nLicense: Apache-2.0\n\nFiles: debian/*\nLicense: GPL-2+\n Text\n"
	apkDB     = "C:Q1qKcZ+j23xssAXmgQhkOO8dHnbWw=\nP:musl\nV:1.2.4_git20230717-r4\nA:x86_64\nL:MIT\no:musl\nF:lib\nR:ld.so\n\nP:libcrypto3\nV:3.1.4-r5\nA:x86_64\no:openssl\n\n"
)

// urls lists the package URLs of an image.
func urls(image schema.ImagePackages) []string {
	list := []string{}
	for _, p := range image.Packages {
		list = append(list, p.PURL)
	}
	return list
}

// TestKinds reads each kind of packages.
func TestKinds(t *testing.T) {
	pom := "#Created\ngroupId=org.example\nartifactId=inner\nversion=2.0\n"
	inner := jarOf(t, "META-INF/maven/org.example/inner/pom.properties", pom)
	deepest := jarOf(t, "lib/outer.jar", jarOf(t, "lib/deep.jar", jarOf(t, "META-INF/maven/a/b/pom.properties", "groupId=a\nartifactId=b\nversion=1\n")))
	for _, test := range []struct {
		name    string
		entries []entry
		want    []string
	}{
		{"dpkg", []entry{{name: "etc/os-release", content: debianRelease}, {name: "var/lib/dpkg/status", content: dpkgStatus}}, []string{
			"pkg:deb/debian/libssl3@3.0.11-1~deb12u2?arch=amd64&distro=debian-12&upstream=openssl",
			"pkg:deb/debian/login@1:4.13%2Bdfsg1-1%2Bb1?arch=amd64&distro=debian-12&upstream=shadow%401:4.13%2Bdfsg1-1",
		}},
		{"distroless", []entry{
			{name: "usr/lib/os-release", content: debianRelease},
			{name: "./var/lib/dpkg/status.d/base-files", content: "Package: base-files\nVersion: 12.4+deb12u5\nArchitecture: amd64\n"},
			{name: "var/lib/dpkg/status.d/base-files.md5sums", content: "Package: x\nVersion: 1\n"},
		}, []string{"pkg:deb/debian/base-files@12.4%2Bdeb12u5?arch=amd64&distro=debian-12"}},
		{"apk", []entry{{name: "etc/os-release", content: "ID=alpine\nVERSION_ID=3.19.1\n"}, {name: "lib/apk/db/installed", content: apkDB}}, []string{
			"pkg:apk/alpine/libcrypto3@3.1.4-r5?arch=x86_64&distro=alpine-3.19.1&upstream=openssl",
			"pkg:apk/alpine/musl@1.2.4_git20230717-r4?arch=x86_64&distro=alpine-3.19.1",
		}},
		{"python", []entry{
			{name: "usr/lib/python3/dist-packages/PyYAML-6.0.1.dist-info/METADATA", content: "Metadata-Version: 2.1\nName: PyYAML\nVersion: 6.0.1\nLicense: MIT\n\nName: wrong\nVersion: 1\n"},
			{name: "usr/lib/python3/dist-packages/zope.event.egg-info/PKG-INFO", content: "Name: zope.event\nVersion: 4.6\n"},
		}, []string{"pkg:pypi/pyyaml@6.0.1", "pkg:pypi/zope-event@4.6"}},
		{"npm", []entry{
			{name: "app/node_modules/@angular/core/package.json", content: `{"name":"@angular/core","version":"17.0.0","license":{"type":"MIT"}}`},
			{name: "app/node_modules/a/node_modules/b/package.json", content: `{"name":"b","version":"1.0.0","licenses":[{"type":"MIT"},{"type":"ISC"}]}`},
			{name: "app/node_modules/a/lib/package.json", content: `{"name":"no","version":"1.0.0"}`},
			{name: "app/package.json", content: `{"name":"app","version":"1.0.0"}`},
			{name: "app/node_modules/c/package.json", content: `{"type":"module"}`},
		}, []string{"pkg:npm/%40angular/core@17.0.0", "pkg:npm/b@1.0.0"}},
		{"java", []entry{
			{name: "app.jar", content: jarOf(t, "META-INF/maven/com.acme/app/pom.properties", "version=1.0\ngroupId=com.acme\nartifactId=app\n", "BOOT-INF/lib/inner.jar", inner)},
			{name: "deep.war", content: deepest},
		}, []string{"pkg:maven/com.acme/app@1.0", "pkg:maven/org.example/inner@2.0"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, urls(scanImage(t, test.entries))); diff != "" {
				t.Errorf("packages (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFields compares all fields of packages.
func TestFields(t *testing.T) {
	image := scanImage(t, []entry{
		{name: "etc/os-release", content: debianRelease},
		{name: "var/lib/dpkg/status", content: dpkgStatus},
		{name: "usr/share/doc/libssl3/copyright", content: copyright},
		{name: "usr/share/doc/login/copyright", content: "This is free software.\n"},
		{name: "lib/apk/db/installed", content: apkDB},
	})
	if image.Distribution != "debian-12" || image.Created != "2026-03-04T05:06:07Z" || image.Platform.String() != "linux/amd64" {
		t.Errorf("image: %+v", image)
	}
	got := image.Packages[2]
	want := schema.Package{
		Name: "libssl3", Version: "3.0.11-1~deb12u2", Type: "deb", PURL: got.PURL, Layer: got.Layer, License: "Apache-2.0 AND GPL-2.0-or-later", Source: "openssl",
		Paths: []string{"var/lib/dpkg/status"}, Origin: schema.OriginMade,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("libssl3 (-want +got):\n%s", diff)
	}
	if musl := image.Packages[1]; musl.Digest != "sha1:a8a719fa3db7c6cb005e681086438ef1d1e76d6c" || musl.License != "MIT" {
		t.Errorf("musl: %+v", musl)
	}
	if login := image.Packages[3]; login.Source != "shadow" || login.SourceVersion != "1:4.13+dfsg1-1" || login.License != "" {
		t.Errorf("login: %+v", login)
	}
}

// TestMerge removes what upper layers hide.
func TestMerge(t *testing.T) {
	npm := func(path, version string) entry {
		return entry{name: path + "/package.json", content: `{"name":"` + filepath.Base(path) + `","version":"` + version + `"}`}
	}
	base := []entry{{name: "app/"}, npm("app/node_modules/a", "1.0.0"), npm("app/node_modules/b", "1.0.0"), npm("lib/node_modules/c", "1.0.0")}
	for _, test := range []struct {
		name  string
		upper []entry
		want  []string
	}{
		{"nothing", nil, []string{"pkg:npm/a@1.0.0", "pkg:npm/b@1.0.0", "pkg:npm/c@1.0.0"}},
		{"replaced", []entry{npm("app/node_modules/a", "2.0.0")}, []string{"pkg:npm/a@2.0.0", "pkg:npm/b@1.0.0", "pkg:npm/c@1.0.0"}},
		{"whiteout of a file", []entry{{name: "app/node_modules/a/.wh.package.json"}}, []string{"pkg:npm/b@1.0.0", "pkg:npm/c@1.0.0"}},
		{"whiteout of a directory", []entry{{name: "app/.wh.node_modules"}}, []string{"pkg:npm/c@1.0.0"}},
		{"whiteout of a directory above", []entry{{name: ".wh.app"}, npm("app/node_modules/d", "1.0.0")}, []string{"pkg:npm/c@1.0.0", "pkg:npm/d@1.0.0"}},
		{"opaque", []entry{npm("app/node_modules/e", "1.0.0"), {name: "app/node_modules/.wh..wh..opq"}}, []string{"pkg:npm/c@1.0.0", "pkg:npm/e@1.0.0"}},
		{"opaque root", []entry{{name: ".wh..wh..opq"}, npm("x/node_modules/e", "1.0.0")}, []string{"pkg:npm/e@1.0.0"}},
		{"a file in the place of a directory", []entry{{name: "app", content: "x"}}, []string{"pkg:npm/c@1.0.0"}},
		{"a directory in the place of a file", []entry{{name: "app/node_modules/a/package.json/"}}, []string{"pkg:npm/b@1.0.0", "pkg:npm/c@1.0.0"}},
		{"a directory in the place of a directory", []entry{{name: "app/"}, {name: "app/node_modules/"}}, []string{"pkg:npm/a@1.0.0", "pkg:npm/b@1.0.0", "pkg:npm/c@1.0.0"}},
		{"a directory of aufs", []entry{{name: "app/.wh..wh.plnk"}}, []string{"pkg:npm/a@1.0.0", "pkg:npm/b@1.0.0", "pkg:npm/c@1.0.0"}},
		{"twice in one layer", []entry{npm("app/node_modules/a", "3.0.0"), {name: "app/node_modules/a/package.json", content: "{}"}}, []string{"pkg:npm/b@1.0.0", "pkg:npm/c@1.0.0"}},
		{"hard link", []entry{npm("app/node_modules/a", "4.0.0"), {name: "y/node_modules/a/package.json", link: "app/node_modules/a/package.json"}}, []string{
			"pkg:npm/a@4.0.0", "pkg:npm/b@1.0.0", "pkg:npm/c@1.0.0",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, urls(scanImage(t, base, test.upper))); diff != "" {
				t.Errorf("packages (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGoProgram finds in this test program what debug.ReadBuildInfo finds.
func TestGoProgram(t *testing.T) {
	name, err := os.Executable()
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("the test program is not in ELF format")
	}
	program, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("this program has no build information")
	}
	want := []string{"stdlib@" + strings.TrimPrefix(strings.Fields(info.GoVersion)[0], "go")}
	if info.Main.Path != "" {
		want = append(want, info.Main.Path+"@"+info.Main.Version)
	}
	for _, m := range info.Deps {
		want = append(want, m.Path+"@"+m.Version)
	}
	var got []string
	image := scanImage(t, []entry{{name: "bin/app", content: string(program)}, {name: "bin/c", content: "\x7fELF" + strings.Repeat("x", 1000)}})
	for _, p := range image.Packages {
		got = append(got, p.Name+"@"+p.Version)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
}

// TestGoWindows finds the marks wherever they are in the windows that are searched.
func TestGoWindows(t *testing.T) {
	info := goInfo("path\tx\nmod\texample.com/x\tv1.0.0\th1:abc=\n")
	for _, before := range []int{64, goWindow - 600, goWindow - 512, goWindow - 60, goWindow - 40, goWindow - 16, goWindow - 1, goWindow, 2*goWindow - 520} {
		content := elfMagic + string(goMarks().modules) + strings.Repeat("x", before) + info + strings.Repeat("y", 100)
		image := scanImage(t, []entry{{name: "app", content: content}})
		if diff := cmp.Diff([]string{"pkg:golang/example.com/x@v1.0.0", "pkg:golang/stdlib@1.22"}, urls(image)); diff != "" {
			t.Errorf("%d bytes before (-want +got):\n%s", before, diff)
		}
	}
}

// goInfo is the build information of a program of Go 1.22 with these modules.
func goInfo(modules string) string {
	header := append(slices.Clone(goMarks().info), 8, 2)
	return string(append(header, make([]byte, goInfoHeader-len(header))...)) + "\x06go1.22" + "\x80\x01" + string(goMarks().modules) + modules + string(goMarks().end)
}

// TestGoModules lists the modules of programs as Go writes them.
func TestGoModules(t *testing.T) {
	for _, test := range []struct {
		name, modules string
		want          []string // beside the standard library
	}{
		{"replaced by a module", "path\tx\nmod\tx.io/x\tv1.0.0\t\ndep\tx.io/a\tv1.2.0\n=>\tx.io/b\tv1.3.0\th1:abc=\n", []string{"x.io/b v1.3.0", "x.io/x v1.0.0"}},
		{"replaced by a directory", "path\tx\nmod\tx.io/x\tv1.0.0\t\ndep\tx.io/a\tv1.2.0\n=>\t../a\t(devel)\t\n", []string{"x.io/a (devel)", "x.io/x v1.0.0"}},
		{"replaced by an absolute directory", "path\tx\nmod\tx.io/x\tv1.0.0\t\ndep\tx.io/a\tv1.2.0\n=>\t/src/a\t\t\n", []string{"x.io/a (devel)", "x.io/x v1.0.0"}},
		{"of Go itself", "path\tcmd/gofmt\nbuild\tCGO_ENABLED=0\n", []string{"cmd/gofmt (devel)"}},
		{"of files", "path\tcommand-line-arguments\ndep\tx.io/a\tv1.2.0\th1:abc=\n", []string{"x.io/a v1.2.0"}},
		{"of files in a module", "path\tcommand-line-arguments\ndep\tx.io/x\t(devel)\t\n", []string{"x.io/x (devel)"}},
		{"of another module", "path\tx.io/x/cmd/y\ndep\tx.io/x\t(devel)\t\n", []string{"x.io/x (devel)"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			image := scanImage(t, []entry{{name: "app", content: elfMagic + strings.Repeat("x", 100) + goInfo(test.modules)}})
			var got []string
			for _, p := range image.Packages {
				if p.Name != "stdlib" {
					got = append(got, p.Name+" "+p.Version)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("packages (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRPM reads a database that rpm has made, and those that its other formats have.
func TestRPM(t *testing.T) {
	for _, test := range []struct{ name, path, content string }{
		{"SQLite", "var/lib/rpm/rpmdb.sqlite", ""},
		{"ndb", "usr/lib/sysimage/rpm/Packages.db", ndbOf(rpmHeaders()...)},
		{"Berkeley DB", "var/lib/rpm/Packages", berkeleyDBOf(rpmHeaders()...)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.content == "" {
				test.content = rpmDatabaseOf(t)
			}
			image := scanImage(t, []entry{{name: "etc/os-release", content: "ID=fedora\nVERSION_ID=40\n"}, {name: test.path, content: test.content}})
			want := []string{
				"pkg:rpm/fedora/acme@1.0-1?arch=noarch&distro=fedora-40&epoch=2&upstream=acme-1.0-1.src.rpm",
				"pkg:rpm/fedora/acme-docs@1.0-1?arch=noarch&distro=fedora-40&epoch=2&upstream=acme-1.0-1.src.rpm",
			}
			if diff := cmp.Diff(want, urls(image)); diff != "" {
				t.Errorf("packages (-want +got):\n%s\n%v", diff, image.Unread)
			}
			if p := image.Packages[0]; p.Version != "2:1.0-1" || p.License != "MIT AND GPL-2.0-or-later" || p.SourceVersion != "" {
				t.Errorf("acme: %+v", p)
			}
		})
	}
}

// TestRPMNamespaces has the namespaces that other tools give to the packages of a distribution.
func TestRPMNamespaces(t *testing.T) {
	for id, want := range map[string]string{"rhel": "redhat", "opensuse-leap": "opensuse", "opensuse-tumbleweed": "opensuse", "sles": "sles", "rocky": "rocky", "ol": "ol"} {
		image := scanImage(t, []entry{{name: "etc/os-release", content: "ID=" + id + "\n"}, {name: "usr/lib/sysimage/rpm/Packages.db", content: ndbOf(rpmHeaders()...)}})
		if got := urls(image); !strings.HasPrefix(got[0], "pkg:rpm/"+want+"/acme@") {
			t.Errorf("%s: %s, want the namespace %s", id, got[0], want)
		}
	}
}

// rpmHeaders are the headers of three packages, one of which is a key; the second is longer than a page.
func rpmHeaders() (headers []string) {
	for _, name := range []string{"acme", "acme-docs", "gpg-pubkey"} {
		var index, values []byte
		add := func(tag, kind uint32, value string) {
			for _, n := range []uint32{tag, kind, uint32(len(values)), 1} { //nolint:gosec // it is short
				index = binary.BigEndian.AppendUint32(index, n)
			}
			values = append(values, value...)
		}
		add(rpmEpoch, rpmInt32, "\x00\x00\x00\x02")
		for tag, value := range map[uint32]string{rpmName: name, rpmVersion: "1.0", rpmRelease: "1", rpmArch: "noarch", rpmLicense: "MIT AND GPL-2.0-or-later", rpmSource: "acme-1.0-1.src.rpm"} {
			add(tag, rpmString, value+"\x00")
		}
		add(1027, rpmString, strings.Repeat("/usr/share/acme\x00", 600))
		header := binary.BigEndian.AppendUint32(nil, uint32(len(index)/rpmEntry)) //nolint:gosec // it is short
		header = binary.BigEndian.AppendUint32(header, uint32(len(values)))       //nolint:gosec // it is short
		headers = append(headers, string(header)+string(index)+string(values))
	}
	return headers
}

// ndbOf makes a database in the format ndb: a page of slots, and headers.
func ndbOf(headers ...string) string {
	database := make([]byte, 4096)
	copy(database, "RpmP")
	database[12] = 1
	for i, header := range headers {
		slot := database[32+16*i:]
		copy(slot, "Slot")
		slot[4] = byte(i + 1)
		binary.LittleEndian.PutUint32(slot[8:], uint32(len(database)/16)) //nolint:gosec // it is short
		blob := append([]byte("BlbS"), byte(i+1), 0, 0, 0, 0, 0, 0, 0)
		blob = binary.LittleEndian.AppendUint32(blob, uint32(len(header))) //nolint:gosec // it is short
		database = append(append(database, blob...), header...)
		database = append(database, make([]byte, 32-len(header)%16)...)
	}
	return string(database)
}

// berkeleyDBOf makes a hash table: a page about itself, a page of keys and values, and pages with the rest of values.
func berkeleyDBOf(headers ...string) string {
	const page, head = 512, 26
	database := make([]byte, 2*page)
	order := binary.LittleEndian
	order.PutUint32(database[12:], 0x061561)
	order.PutUint32(database[20:], page)
	table := database[page:]
	table[25] = 13
	order.PutUint16(table[20:], uint16(2*len(headers))) //nolint:gosec // there are few
	for i, header := range headers {
		at := page - 12*(i+1)
		order.PutUint16(database[page+head+4*i+2:], uint16(at)) //nolint:gosec // it is in a page
		database[page+at] = 3
		order.PutUint32(database[page+at+4:], uint32(len(database)/page)) //nolint:gosec // it is short
		order.PutUint32(database[page+at+8:], uint32(len(header)))        //nolint:gosec // it is short
		for header != "" {
			next := make([]byte, page)
			next[25] = 7
			n := copy(next[head:], header)
			if header = header[n:]; header != "" {
				order.PutUint32(next[16:], uint32(len(database)/page+1)) //nolint:gosec // it is short
			}
			order.PutUint16(next[22:], uint16(n)) //nolint:gosec // it is in a page
			database = append(database, next...)
		}
	}
	order.PutUint32(database[32:], uint32(len(database)/page-1)) //nolint:gosec // it is short
	return string(database)
}

// rpmDatabaseOf builds two packages, one of which has a list of 3,000 files, and installs them into a new database.
func rpmDatabaseOf(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("rpmbuild"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("rpmbuild is missing: apt-get install rpm")
	}
	dir := t.TempDir()
	script := `set -e
cat >acme.spec <<'end'
Name: acme
Version: 1.0
Release: 1
Epoch: 2
Summary: s
License: MIT AND GPL-2.0-or-later
BuildArch: noarch
%description
d
%package docs
Summary: s
%description docs
d
%install
mkdir -p %{buildroot}/usr/share/acme
for i in $(seq 3000); do : >%{buildroot}/usr/share/acme/a-file-with-a-long-name-$i; done
%files
%files docs
/usr/share/acme
end
rpmbuild --define "_topdir $PWD/build" -bb acme.spec
rpm --define "_db_backend sqlite" --dbpath "$PWD/db" --initdb
rpm --define "_db_backend sqlite" --dbpath "$PWD/db" --nodeps --justdb --force-debian -i build/RPMS/noarch/*.rpm
`
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "db", "rpmdb.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestUnread lists files that cannot be read, with a reason.
func TestUnread(t *testing.T) {
	bomb := jarOf(t, "a.class", "x")
	for _, test := range []struct{ name, path, content, reason string }{
		{"database of SQLite", "var/lib/rpm/rpmdb.sqlite", "x", "shorter than it should be"},
		{"changes beside a database", "var/lib/rpm/rpmdb.sqlite-wal", "x", "not in rpmdb.sqlite yet"},
		{"ndb", "usr/lib/sysimage/rpm/Packages.db", strings.Repeat("x", 4096), "not a database"},
		{"Berkeley DB", "var/lib/rpm/Packages", strings.Repeat("x", 4096), "not a hash table"},
		{"jar", "a.jar", "PK", "not a valid zip file"},
		{"jar without coordinates", "lib/a.jar", bomb, "in a jar of a jar: a.jar"},
		{"jar with a wrong count", "a.jar", endlessJar(200_000), "more than 100000 files"},
		{"package.json", "node_modules/a/package.json", "{", "unexpected end of JSON"},
		{"control characters", "var/lib/dpkg/status", "Package: a\x1b\nVersion: 1\n", "control characters"},
		{"long name", "var/lib/dpkg/status", "Package: " + strings.Repeat("a", 1000) + "\nVersion: 1\n", "too long"},
	} {
		t.Run(test.name, func(t *testing.T) {
			image := scanImage(t, []entry{{name: test.path, content: test.content}})
			if len(image.Unread) != 1 || image.Unread[0].Path != test.path || !strings.Contains(image.Unread[0].Reason, test.reason) {
				t.Errorf("unread: %+v, want %s: …%s…", image.Unread, test.path, test.reason)
			}
		})
	}
}

// TestRefused refuses layers that are damaged, or larger than the limits.
func TestRefused(t *testing.T) {
	good := layerOf(t, entry{name: "a", content: strings.Repeat("x", 5000)}, entry{name: "b", content: "y"})
	few := func(change func(*limits)) limits {
		l := standardLimits()
		change(&l)
		return l
	}
	packages := layerOf(t, entry{name: "var/lib/dpkg/status", content: dpkgStatus}, entry{name: "lib/apk/db/installed", content: apkDB}, entry{name: "c", content: "c"})
	for _, test := range []struct {
		name   string
		layer  []byte
		limits limits
		code   report.Code
	}{
		{"truncated", compress(t, good[:3000]), standardLimits(), report.Corrupt},
		{"not a tar file", compress(t, []byte(strings.Repeat("x", 2000))), standardLimits(), report.Corrupt},
		{"not compressed well", append(compress(t, good)[:100], strings.Repeat("x", 100)...), standardLimits(), report.Corrupt},
		{"long", compress(t, good), few(func(l *limits) { l.layerBytes = 4096 }), report.Invalid},
		{"many entries", compress(t, packages), few(func(l *limits) { l.layerEntries = 2 }), report.Invalid},
		{"many files with packages", compress(t, packages), few(func(l *limits) { l.files = 1 }), report.Invalid},
		{"many entries in all", compress(t, packages), few(func(l *limits) { l.entries = 3 }), report.Invalid},
		{"much memory", compress(t, packages), few(func(l *limits) { l.memory = 1000 }), report.Invalid},
		{"many packages", compress(t, packages), few(func(l *limits) { l.packages = 3 }), report.Invalid},
		{"long merge", compress(t, packages), few(func(l *limits) { l.lookups = 3 }), report.Invalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			image := imageOf(t, "app", test.layer, compress(t, layerOf(t, entry{name: "etc/x", content: "x"})))
			_, err := scan(t.Context(), []*oci.Image{image}, Options{}, test.limits)
			if report.CodeOf(err) != test.code {
				t.Errorf("%v, want code %s", err, test.code)
			}
		})
	}
}

// TestDamagedBlob refuses a layer that does not have its digest, although it can be unpacked.
func TestDamagedBlob(t *testing.T) {
	data := compress(t, layerOf(t, entry{name: "a", content: "a"}))
	image := imageOf(t, "app", data)
	data[4] ^= 1 // the time in the head of gzip, which nothing else verifies
	if _, err := listImages(t.Context(), []*oci.Image{image}, Options{}); report.CodeOf(err) != report.Corrupt {
		t.Errorf("%v, want a damaged layer", err)
	}
}

// TestDocuments writes the same bytes twice, with equal packages whatever the order of the scan is.
func TestDocuments(t *testing.T) {
	images := []*oci.Image{
		imageOf(t, "a", compress(t, layerOf(t, entry{name: "etc/os-release", content: debianRelease}, entry{name: "var/lib/dpkg/status", content: dpkgStatus}))),
		imageOf(t, "b", compress(t, layerOf(t, entry{name: "lib/apk/db/installed", content: apkDB}, entry{name: "x.jar", content: "x"}))),
	}
	var written [2][2]bytes.Buffer
	for i := range written {
		list, err := listImages(t.Context(), images, Options{Jobs: i + 1})
		if err != nil {
			t.Fatal(err)
		}
		d := &Document{&schema.PackageList{Solution: "demo", Version: "1.0.0", Images: list, LookedFor: packageKinds()}, "1.2.3"}
		if err := errors.Join(d.SPDX(&written[i][0]), d.CycloneDX(&written[i][1])); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range []string{"spdx.json", "cyclonedx.json"} {
		if !bytes.Equal(written[0][i].Bytes(), written[1][i].Bytes()) {
			t.Errorf("%s is not the same twice", name)
		}
		golden := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(golden, written[0][i].Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), written[0][i].String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLicenses(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"MIT":                           "MIT",
		"mit":                           "MIT",
		"GPL-2.0":                       "GPL-2.0-only",
		"GPL-2.0+":                      "GPL-2.0-or-later",
		"MIT and (BSD-3-Clause or ISC)": "MIT AND (BSD-3-Clause OR ISC)",
		"GPL-2.0-or-later WITH Bison-exception-2.2": "GPL-2.0-or-later WITH Bison-exception-2.2",
		"GPLv2+":                         "LicenseRef-GPLv2-e5c5ab74",
		"The MIT License (MIT)":          "LicenseRef-The-MIT-License--MIT-ea4afbd0",
		"MIT AND":                        "LicenseRef-MIT-AND-5f4b6e9b",
		strings.Repeat("(", 100) + "MIT": "",
	} {
		got := parseLicense(text)
		if want == "" && text != "" {
			want = got.text // a reference, in bounded time
		}
		if strings.HasPrefix(want, "LicenseRef-") {
			if id := want[:strings.LastIndex(want, "-")]; !strings.HasPrefix(got.text, id) || got.references[got.text] != text {
				t.Errorf("%q: %q %v, want %q", text, got.text, got.references, id)
			}
			continue
		}
		if got.text != want {
			t.Errorf("%q: %q, want %q", text, got.text, want)
		}
	}
}

func TestQuery(t *testing.T) {
	openssl := schema.Package{Name: "libssl3", Version: "3.0.11-1~deb12u2", Type: "deb", Source: "openssl", PURL: "pkg:deb/debian/libssl3@3.0.11-1~deb12u2?arch=amd64&distro=debian-12"}
	rpm := schema.Package{Name: "openssl", Version: "1:3.0.7-27.el9", Type: "rpm", PURL: "pkg:rpm/rhel/openssl@3.0.7-27.el9?epoch=1"}
	redhat := schema.Package{Name: "openssl", Version: "1:3.0.7-27.el9", Type: "rpm", PURL: "pkg:rpm/redhat/openssl@3.0.7-27.el9?epoch=1"}
	suse := schema.Package{Name: "openssl", Version: "3.0.7-1", Type: "rpm", PURL: "pkg:rpm/sles/openssl@3.0.7-1"}
	net := schema.Package{Name: "golang.org/x/net", Version: "v0.20.0", Type: "golang", PURL: "pkg:golang/golang.org/x/net@v0.20.0"}
	own := schema.Package{Name: "example.com/App", Version: "(devel)", Type: "golang", PURL: "pkg:golang/example.com/app"}
	angular := schema.Package{Name: "@angular/core", Version: "17.0.0", Type: "npm", PURL: "pkg:npm/%40angular/core@17.0.0"}
	log4j := schema.Package{Name: "org.apache.logging.log4j:log4j-core", Version: "2.14.1", Type: "maven", PURL: "pkg:maven/org.apache.logging.log4j/log4j-core@2.14.1"}
	for _, test := range []struct {
		query   string
		p       schema.Package
		want    bool
		unclear bool
	}{
		{"pkg:deb/debian/openssl@<3.0.15", openssl, true, false},
		{"pkg:deb/openssl@vers:deb/<3.0.15", openssl, true, false},
		{"pkg:deb/debian/libssl3@%3C3.0.15", openssl, true, false},
		{"pkg:deb/ubuntu/openssl@<3.0.15", openssl, false, false},
		{"pkg:deb/debian/openssl@<3.0.15?distro=debian-11", openssl, false, false},
		{"pkg:deb/debian/openssl@<3.0.11-1~deb12u2", openssl, false, false},
		{"pkg:rpm/openssl@<3.0.15", rpm, true, false},
		{"pkg:rpm/openssl@<1:3.0.7-20", rpm, false, false},
		{"pkg:rpm/redhat/openssl@<1:3.0.15", rpm, true, false},
		{"pkg:rpm/rhel/openssl@<1:3.0.15", rpm, true, false},
		{"pkg:rpm/rhel/openssl@<1:3.0.15", redhat, true, false},
		{"pkg:rpm/suse/openssl@<3.0.15", suse, true, false},
		{"pkg:rpm/opensuse/openssl@<3.0.15", suse, false, false},
		{"pkg:rpm/fedora/openssl@<1:3.0.15", rpm, false, false},
		{"pkg:golang/golang.org/x/net@<0.33.0", net, true, false},
		{"pkg:golang/net@<0.33.0", net, false, false},
		{"pkg:golang/example.com/App@<1.0.0", own, true, true},
		{"pkg:golang/example.com/app", own, true, false},
		{"pkg:npm/@angular/core@<18", angular, true, false},
		{"pkg:npm/%40angular/core", angular, true, false},
		{"pkg:npm/core", angular, false, false},
		{"pkg:maven/log4j-core@>=2.0|<2.17.1", log4j, true, false},
		{"pkg:maven/org.apache.logging.log4j/log4j-core@<2.0", log4j, false, false},
	} {
		q, err := ParseQuery(test.query)
		if err != nil {
			t.Errorf("%s: %v", test.query, err)
			continue
		}
		match, ok := q.Match(test.p, "debian-12")
		if ok != test.want || (match.Unclear != "") != test.unclear {
			t.Errorf("%s: %v %+v, want %v", test.query, ok, match, test.want)
		}
	}
	for _, text := range []string{"openssl", "pkg:deb", "pkg:deb/", "pkg:gem/rails@<1", "pkg:deb/openssl@<", "pkg:npm/a@<latest", "pkg:deb/a?arch=amd64", "pkg:deb/%zz", "pkg:npm/a/@<1", "pkg:deb/a b"} {
		if _, err := ParseQuery(text); report.CodeOf(err) != report.Usage {
			t.Errorf("%s: %v, want a wrong command line", text, err)
		}
	}
}
