package sbom

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// MaxAdvisory bounds the file of an advisory, in bytes.
const MaxAdvisory = 32 << 20

const (
	maxAsked    = 10_000  // packages of one advisory
	maxValues   = 500_000 // commas of one file, which bound the memory that its lists take
	maxBranches = 64      // levels of a product tree
)

// Advisory is a file about vulnerabilities as a question: which packages have them.
type Advisory struct {
	Asked []Asked
	// Left are packages that cannot be searched for, as the file names them: of kinds that are not looked for, or without a package URL.
	Left []string
}

// Asked is a package with a vulnerability, by its versions.
type Asked struct {
	IDs []string // of the vulnerability, such as CVE-2024-1234 and its aliases
	*Query
}

// ParseAdvisory reads OpenVEX, CSAF 2.0 or OSV: one entry, a list, or an answer of the API of OSV. Of OpenVEX and CSAF, the packages that are affected or under
// investigation are asked for. All errors have the code report.Invalid.
func ParseAdvisory(data []byte) (*Advisory, error) {
	if len(data) > MaxAdvisory {
		return nil, report.Errorf(report.Invalid, "the advisory has more than %d bytes", MaxAdvisory)
	}
	if err := checkValues(data); err != nil {
		return nil, err
	}
	a := &advisoryReader{advisory: &Advisory{}, seen: map[string]bool{}}
	if err := a.read(data); err != nil {
		return nil, err
	}
	if len(a.advisory.Asked) == 0 {
		err := report.Errorf(report.Invalid, "the advisory names no affected package that can be searched for")
		if len(a.advisory.Left) > 0 {
			return nil, err.WithHint("it names %s; search for a package by its URL instead: %s", clean(a.advisory.Left[0], 200), queryHint)
		}
		return nil, err.WithHint("search for a package by its URL instead: %s", queryHint)
	}
	return a.advisory, nil
}

// checkValues refuses a document with more values than advisories have: in memory, an empty object takes some fifty times its two bytes.
func checkValues(data []byte) error {
	if n := bytes.Count(data, []byte(",")); n > maxValues {
		return report.Errorf(report.Invalid, "it has more than %d values", maxValues)
	}
	return nil
}

// advisoryReader collects the questions of a file.
type advisoryReader struct {
	advisory *Advisory
	seen     map[string]bool
}

func (a *advisoryReader) read(data []byte) error {
	var head struct {
		Context    json.RawMessage   `json:"@context"`
		Statements []vexStatement    `json:"statements"`
		Document   json.RawMessage   `json:"document"`
		Affected   json.RawMessage   `json:"affected"`
		Vulns      []json.RawMessage `json:"vulns"`
	}
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '[' {
		var list []osvEntry
		return a.decode(data, &list, func() error { return a.readOSV(list...) })
	}
	return a.decode(data, &head, func() error {
		switch {
		case head.Statements != nil && head.Context != nil:
			return a.readVEX(head.Statements)
		case head.Document != nil:
			var document csafDocument
			return a.decode(data, &document, func() error { return a.readCSAF(&document) })
		case head.Affected != nil:
			var entry osvEntry
			return a.decode(data, &entry, func() error { return a.readOSV(entry) })
		case head.Vulns != nil:
			var answer struct{ Vulns []osvEntry }
			return a.decode(data, &answer, func() error { return a.readOSV(answer.Vulns...) })
		}
		return report.Errorf(report.Invalid, "it is neither OpenVEX, nor CSAF, nor OSV")
	})
}

func (a *advisoryReader) decode(data []byte, into any, use func() error) error {
	if err := json.Unmarshal(data, into); err != nil {
		return report.Errorf(report.Invalid, "it is not a valid advisory: %w", err)
	}
	return use()
}

// ask adds a question about a package URL without a version, and a range. One that cannot be asked is left.
func (a *advisoryReader) ask(ids []string, p packageURL, set string) error {
	ids = cleanIDs(ids)
	text := p.String() + " " + set
	key := strings.Join(ids, " ") + " " + text
	if a.seen[key] {
		return nil
	}
	a.seen[key] = true
	if len(a.seen) > maxAsked {
		return report.Errorf(report.Invalid, "the advisory names more than %d packages", maxAsked)
	}
	q, err := newQuery(p, set)
	if err != nil {
		a.leave(text)
		return nil
	}
	if limit := q.Limit(); limit != "" {
		a.leave(limit)
	}
	a.advisory.Asked = append(a.advisory.Asked, Asked{ids, q})
	return nil
}

// cleanIDs returns the names of a vulnerability, "unnamed" if it has none.
func cleanIDs(ids []string) []string {
	list := []string{}
	for _, id := range ids[:min(len(ids), 16)] {
		if id = clean(id, 100); id != "" && !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	if len(list) == 0 {
		return []string{"unnamed"}
	}
	return list
}

func (a *advisoryReader) leave(what string) {
	what = clean(what, 300)
	if len(a.advisory.Left) < maxAsked && !slices.Contains(a.advisory.Left[max(0, len(a.advisory.Left)-8):], what) {
		a.advisory.Left = append(a.advisory.Left, what)
	}
}

// packageURL is the part of a package URL that selects packages.
type packageURL struct {
	typ, path, version, distro string // path: the namespace and the name
}

func (p packageURL) String() string { return "pkg:" + p.typ + "/" + p.path }

// parsePackageURL reads a package URL of an advisory. Its version is exact.
func parsePackageURL(text string) (p packageURL, ok bool) {
	rest, ok := strings.CutPrefix(text, "pkg:")
	if !ok || len(text) > 2000 {
		return p, false
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, qualifiers, _ := strings.Cut(rest, "?")
	p.typ, rest, ok = strings.Cut(strings.TrimLeft(rest, "/"), "/")
	p.typ = strings.ToLower(p.typ)
	if i := strings.LastIndex(rest, "@"); i > 0 && i > strings.LastIndex(rest, "/")+1 {
		rest, p.version = rest[:i], rest[i+1:]
	}
	values, err := url.ParseQuery(qualifiers)
	for _, part := range []*string{&rest, &p.version} {
		decoded, failure := url.PathUnescape(*part)
		err, *part = cmp.Or(err, failure), decoded
	}
	p.path, p.distro = strings.Trim(rest, "/"), values.Get("distro")
	if epoch := values.Get("epoch"); epoch != "" && p.version != "" {
		p.version = epoch + ":" + p.version
	}
	return p, ok && err == nil && p.path != ""
}

// askURL asks for the version of a package URL, or for all if it has none.
func (a *advisoryReader) askURL(ids []string, text string) error {
	p, ok := parsePackageURL(text)
	if !ok {
		a.leave(text)
		return nil
	}
	set := ""
	if p.version != "" {
		set = "=" + p.version
	}
	return a.ask(ids, p, set)
}

// Search returns the packages of an archive that have one of the vulnerabilities, each once. The caller names the archive.
func (a *Advisory) Search(list *schema.PackageList) *schema.AffectedArchive {
	byName := map[string][]Asked{}
	for _, asked := range a.Asked {
		byName[looseName(asked.name)] = append(byName[looseName(asked.name)], asked)
	}
	return search(list, func(p schema.Package, image *schema.ImagePackages) *schema.AffectedPackage {
		_, name := splitPURL(p.PURL)
		candidates := byName[looseName(name)]
		if source := looseName(p.Source); p.Source != "" && source != looseName(name) {
			candidates = slices.Concat(candidates, byName[source])
		}
		var affected *schema.AffectedPackage
		for _, asked := range candidates {
			match, ok := asked.Match(p, image.Distribution)
			if !ok {
				continue
			}
			if affected == nil {
				affected = affectedPackage(p, image, match)
			}
			for _, id := range asked.IDs {
				if !slices.Contains(affected.Vulnerabilities, id) {
					affected.Vulnerabilities = append(affected.Vulnerabilities, id)
				}
			}
		}
		return affected
	})
}

// looseName is the same for all names that some type of packages takes for the same.
func looseName(name string) string { return normalizePython(strings.ToLower(name)) }

// Names returns the vulnerabilities of the advisory, each by its first name.
func (a *Advisory) Names() []string {
	var list []string
	seen := map[string]bool{}
	for _, asked := range a.Asked {
		if name := asked.IDs[0]; !seen[name] {
			seen[name] = true
			list = append(list, name)
		}
	}
	return list
}
