package sbom_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/solutionctl/solutionctl/build/sbom"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Advisories as their publishers write them, shortened.
const (
	osvGo = `{"schema_version":"1.3.1","id":"GO-2024-3105","aliases":["CVE-2024-34155"],"affected":[{"package":{"name":"stdlib","ecosystem":"Go"},
"ranges":[{"type":"SEMVER","events":[{"introduced":"0"},{"fixed":"1.22.7"},{"introduced":"1.23.0-0"},{"fixed":"1.23.1"}]}],"ecosystem_specific":{"imports":[]}}]}`
	osvDebian = `[{"id":"DSA-5764-1","affected":[{"package":{"ecosystem":"Debian:12","name":"openssl","purl":"pkg:deb/debian/openssl?arch=source"},
"ranges":[{"type":"ECOSYSTEM","events":[{"introduced":"0"},{"fixed":"3.0.14-1~deb12u2"}]}],"versions":["3.0.11-1~deb12u2"]}]}]`
	osvVersions = `{"vulns":[{"id":"MAL-1","affected":[{"package":{"ecosystem":"npm","name":"lodash"},"versions":["4.17.19","4.17.20"]},
{"package":{"ecosystem":"crates.io","name":"time"},"ranges":[]},{"package":{"ecosystem":"npm","name":"other"},"ranges":[{"type":"GIT","events":[{"introduced":"0"}]}]}]}]}`
	csafRedHat = `{"document":{"category":"csaf_vex","csaf_version":"2.0"},"product_tree":{"branches":[{"category":"vendor","name":"Red Hat","branches":[
{"category":"product_version","name":"openssl","product":{"product_id":"openssl-0:3.0.7-27.el9.x86_64","name":"openssl","product_identification_helper":{"purl":"pkg:rpm/redhat/openssl@3.0.7-27.el9?arch=x86_64&epoch=1"}}},
{"category":"product_name","name":"RHEL 9","product":{"product_id":"AppStream","name":"RHEL 9"}}]}],
"relationships":[{"category":"default_component_of","full_product_name":{"product_id":"AppStream:openssl","name":"openssl"},"product_reference":"openssl-0:3.0.7-27.el9.x86_64","relates_to_product_reference":"AppStream"}]},
"vulnerabilities":[{"cve":"CVE-2024-6119","product_status":{"fixed":["AppStream"],"known_affected":["AppStream:openssl","AppStream:unknown"]}}]}`
	csafRange = `{"document":{"category":"csaf_security_advisory"},"product_tree":{"branches":[{"category":"product_version_range","name":"vers:npm/<4.17.21",
"product":{"product_id":"P1","name":"lodash","product_identification_helper":{"purl":"pkg:npm/lodash"}}}]},"vulnerabilities":[{"cve":"CVE-2021-23337","product_status":{"known_affected":["P1"]}}]}`
	openVEX = `{"@context":"https://openvex.dev/ns/v0.2.0","@id":"https://acme.example/vex","author":"Acme","timestamp":"2026-01-02T03:04:05Z","version":1,"statements":[
{"vulnerability":{"name":"CVE-2024-6119"},"products":[{"@id":"pkg:oci/app","subcomponents":[{"@id":"pkg:deb/debian/openssl@3.0.11-1~deb12u2"}]}],"status":"affected"},
{"vulnerability":{"name":"CVE-2021-23337","aliases":["GHSA-35jh"]},"products":[{"@id":"pkg:npm/lodash"}],"status":"not_affected","justification":"vulnerable_code_not_present"}]}`
)

// image has packages of each kind that the advisories name.
func advisoryList() *schema.PackageList {
	pack := func(typ, name, version, purl, source string) schema.Package {
		return schema.Package{Type: typ, Name: name, Version: version, PURL: purl, Source: source}
	}
	return &schema.PackageList{Solution: "demo", Version: "1.0.0", Images: []schema.ImagePackages{
		{Image: "app:1", Distribution: "debian-12", Packages: []schema.Package{
			pack("deb", "libssl3", "3.0.11-1~deb12u2", "pkg:deb/debian/libssl3@3.0.11-1~deb12u2?arch=amd64&distro=debian-12&upstream=openssl", "openssl"),
			pack("golang", "stdlib", "1.22.6", "pkg:golang/stdlib@1.22.6", ""), pack("golang", "stdlib", "1.22.8", "pkg:golang/stdlib@1.22.8", ""),
			pack("npm", "lodash", "4.17.20", "pkg:npm/lodash@4.17.20", ""),
		}},
		{Image: "rpm:1", Distribution: "rhel-9.4", Packages: []schema.Package{
			pack("rpm", "openssl", "1:3.0.7-27.el9", "pkg:rpm/redhat/openssl@3.0.7-27.el9?arch=x86_64&epoch=1", ""),
			pack("rpm", "openssl", "1:3.0.7-28.el9", "pkg:rpm/redhat/openssl@3.0.7-28.el9?arch=x86_64&epoch=1", ""),
		}},
		{Image: "old:1", Distribution: "debian-11", Packages: []schema.Package{
			pack("deb", "openssl", "1.1.1n-0+deb11u5", "pkg:deb/debian/openssl@1.1.1n-0%2Bdeb11u5?arch=amd64&distro=debian-11", ""),
		}},
	}}
}

// TestAdvisory asks with advisories of all formats.
func TestAdvisory(t *testing.T) {
	for _, test := range []struct {
		name, document string
		want           []string // image, package, version and vulnerabilities
		left           []string
	}{
		{"OSV of Go", osvGo, []string{"app:1 stdlib 1.22.6 GO-2024-3105 CVE-2024-34155"}, nil},
		{"OSV of Debian, for one release", osvDebian, []string{"app:1 libssl3 3.0.11-1~deb12u2 DSA-5764-1"}, nil},
		{"OSV with versions, and packages that are not looked for", osvVersions, []string{"app:1 lodash 4.17.20 MAL-1"}, []string{"crates.io time, by its commits", "npm other, by its commits"}},
		{"CSAF with relationships", csafRedHat, []string{"rpm:1 openssl 1:3.0.7-27.el9 CVE-2024-6119"}, []string{"product AppStream:unknown"}},
		{"CSAF with a range", csafRange, []string{"app:1 lodash 4.17.20 CVE-2021-23337"}, nil},
		{"OpenVEX", openVEX, []string{"app:1 libssl3 3.0.11-1~deb12u2 CVE-2024-6119"}, nil},
	} {
		a, err := sbom.ParseAdvisory([]byte(test.document))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var got []string
		for _, p := range a.Search(advisoryList()).Packages {
			got = append(got, strings.Join(append([]string{p.Image, p.Name, p.Version}, p.Vulnerabilities...), " "))
		}
		if !slices.Equal(got, test.want) || !slices.Equal(a.Left, test.left) {
			t.Errorf("%s: found %q, want %q; left out %q, want %q", test.name, got, test.want, a.Left, test.left)
		}
	}
}

// TestAdvisoryRefused reads other documents, and hostile ones.
func TestAdvisoryRefused(t *testing.T) {
	deep := strings.Repeat(`{"category":"vendor","name":"x","branches":[`, 200) + strings.Repeat("]}", 200)
	for name, document := range map[string]string{
		"nothing": "", "a number": "7", "another document": `{"a":1}`, "an empty list": "[]", "statements that are none": `{"@context":"x","statements":[]}`,
		"another type of a field": `{"affected":7}`, "a list of numbers": "[1]",
		"only packages that are not looked for": `{"id":"X","affected":[{"package":{"ecosystem":"RubyGems","name":"time"}}]}`,
		"a tree without an end":                 `{"document":{},"product_tree":{"branches":[` + deep + `]}}`,
		"a deeper one":                          strings.Repeat("[", 1_000_000),
		"packages without an end":               `{"id":"X","affected":[` + manyPackages(20_000) + `]}`,
		"values without an end":                 `{"id":"X","affected":[{}` + strings.Repeat(",{}", 10_000_000) + `]}`,
		"more bytes than are read":              `{"id":"` + strings.Repeat("x", sbom.MaxAdvisory) + `"}`,
	} {
		if _, err := sbom.ParseAdvisory([]byte(document)); report.CodeOf(err) != report.Invalid {
			t.Errorf("%s: %v, want code %s", name, err, report.Invalid)
		}
	}
}

func manyPackages(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"package":{"ecosystem":"npm","name":"p%d"},"versions":["1"]}`, i))
	}
	return strings.Join(list, ",")
}

// TestStatements shows what the vendor states beside the packages that were found.
func TestStatements(t *testing.T) {
	archive := fstest.MapFS{"vex/acme.json": {Data: []byte(openVEX)}, "vex/readme.md": {Data: []byte("no JSON")}}
	statements, err := sbom.ReadStatements(archive)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, query, advisory string
		want                  []string
	}{
		{"a package", "pkg:npm/lodash", "", []string{"app:1 CVE-2021-23337 not_affected: vulnerable_code_not_present"}},
		{"a source package of an image", "pkg:deb/debian/openssl@<4", "", []string{"app:1 CVE-2024-6119 affected", "old:1 "}},
		{"another package", "pkg:golang/stdlib", "", []string{"app:1 ", "app:1 "}},
		{"a vulnerability of the advisory", "", csafRange, []string{"app:1 CVE-2021-23337 not_affected: vulnerable_code_not_present"}},
		{"another vulnerability", "", osvVersions, []string{"app:1 "}},
	} {
		var found *schema.AffectedArchive
		if test.advisory == "" {
			query, err := sbom.ParseQuery(test.query)
			if err != nil {
				t.Fatal(err)
			}
			found = query.Search(advisoryList())
		} else {
			advisory, err := sbom.ParseAdvisory([]byte(test.advisory))
			if err != nil {
				t.Fatal(err)
			}
			found = advisory.Search(advisoryList())
		}
		statements.Explain(found)
		var got []string
		for _, p := range found.Packages {
			text := ""
			for _, s := range p.Statements {
				text += s.String()
			}
			got = append(got, p.Image+" "+text)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	for name, document := range map[string]string{
		"no JSON": "{", "no OpenVEX": `{"statements":[]}`, "another state": strings.Replace(openVEX, `"affected"`, `"fine"`, 1),
		"statements without an end": `{"@context":"https://openvex.dev/ns","statements":[{"status":"fixed"}` + strings.Repeat(`,{"status":"fixed"}`, 20_000) + `]}`,
	} {
		if _, err := sbom.ReadStatements(fstest.MapFS{"vex/a.json": {Data: []byte(document)}}); report.CodeOf(err) != report.Invalid {
			t.Errorf("%s: %v, want code %s", name, err, report.Invalid)
		}
	}
}

// FuzzAdvisory reads advisories and statements, and searches with them: an error has a code.
func FuzzAdvisory(f *testing.F) {
	for _, document := range []string{osvGo, osvDebian, osvVersions, csafRedHat, csafRange, openVEX} {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := sbom.ParseAdvisory(data)
		if err != nil && report.CodeOf(err) != report.Invalid {
			t.Errorf("code %q of %v", report.CodeOf(err), err)
		}
		if err == nil {
			if found := a.Search(advisoryList()); found == nil || len(a.Names()) == 0 {
				t.Error("an advisory without a question was accepted")
			}
		}
		s := &sbom.Statements{}
		if err = s.Add("vex/a.json", data); err != nil && report.CodeOf(err) != report.Invalid {
			t.Errorf("code %q of %v", report.CodeOf(err), err)
		}
		query, err := sbom.ParseQuery("pkg:npm/lodash")
		if err != nil {
			t.Fatal(err)
		}
		found := query.Search(advisoryList())
		s.Explain(found)
		if _, err = json.Marshal(found); err != nil {
			t.Error(err)
		}
	})
}
