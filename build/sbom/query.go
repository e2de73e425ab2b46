package sbom

import (
	"net/url"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/sbom/versions"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Query selects packages: a package URL whose version is a range, such as pkg:deb/debian/openssl@<3.0.15.
type Query struct {
	Package string // without the range
	Range   *versions.Range

	typ, namespace, name string
	distro               string
}

const queryHint = "write it as pkg:TYPE/NAME@RANGE, such as 'pkg:deb/debian/openssl@<3.0.15' or 'pkg:npm/lodash@>=4.0.0|<4.17.21'"

// ParseQuery reads a query. Without a range it selects all versions. The namespace of packages of a distribution, and of Maven, can be left out.
func ParseQuery(text string) (*Query, error) {
	refuse := func(reason string) error {
		return report.Errorf(report.Usage, "%q: %s", text, reason).WithHint(queryHint)
	}
	rest, ok := strings.CutPrefix(text, "pkg:")
	typ, rest, hasName := strings.Cut(strings.TrimLeft(rest, "/"), "/")
	typ = strings.ToLower(typ)
	if !ok || !hasName {
		return nil, refuse("not a package URL")
	}
	if !slices.ContainsFunc(kinds, func(k kind) bool { return k.typ == typ }) {
		return nil, refuse("packages of type " + typ + " are not looked for; those of these types are: " + strings.Join(versions.Types(), ", "))
	}
	rest, qualifiers, _ := strings.Cut(rest, "?")
	path, set := rest, ""
	if i := strings.LastIndex(rest, "@"); i > strings.LastIndex(rest[:max(i, 0)], "/")+1 { // not that of a scope
		path, set = rest[:i], strings.TrimPrefix(rest[i+1:], "vers:"+typ+"/")
	}
	q := &Query{typ: typ}
	for i, part := range []*string{&path, &set, &qualifiers} {
		decoded, err := url.PathUnescape(*part)
		if err != nil {
			return nil, refuse("part " + []string{"name", "range", "qualifiers"}[i] + " is not encoded as in an URL")
		}
		*part = decoded
	}
	path = strings.Trim(path, "/")
	q.Package = "pkg:" + typ + "/" + path
	if i := strings.LastIndex(path, "/"); i >= 0 {
		q.namespace, path = path[:i], path[i+1:]
	}
	if q.name = path; path == "" || strings.ContainsAny(path, "<>=|!* ") {
		return nil, refuse("it has no name, or one with characters of a range")
	}
	for qualifier := range strings.SplitSeq(qualifiers, "&") {
		if distro, ok := strings.CutPrefix(qualifier, "distro="); ok {
			q.distro = distro
		} else if qualifier != "" {
			return nil, refuse("of the qualifiers, distro is the only one that selects packages")
		}
	}
	var err error
	if q.Range, err = versions.ParseRange(typ, set); err != nil {
		return nil, refuse(err.Error())
	}
	return q, nil
}

// Match is a package that a query selects.
type Match struct {
	Source  bool   // by its source package
	Unclear string // why the version cannot be compared; empty if it is in the range
}

// Match reports whether the query selects a package: itself, or its source package, because distributions publish advisories about these.
func (q *Query) Match(p schema.Package, distribution string) (Match, bool) {
	if p.Type != q.typ || q.distro != "" && q.distro != distribution {
		return Match{}, false
	}
	namespace, name := splitPURL(p.PURL)
	if !q.matchesNamespace(namespace) {
		return Match{}, false
	}
	match, version := Match{}, p.Version
	if !q.same(q.name, name) {
		if p.Source == "" || p.Source != q.name {
			return Match{}, false
		}
		match.Source = true
		if p.SourceVersion != "" {
			version = p.SourceVersion
		}
	}
	inside, err := q.Range.Contains(version)
	if err != nil {
		match.Unclear = err.Error()
	}
	return match, inside || err != nil
}

func (q *Query) matchesNamespace(namespace string) bool {
	optional := q.typ != "golang" && q.typ != "npm"
	return q.namespace == "" && optional || q.same(q.namespace, namespace)
}

// same compares names by the rules of their type.
func (q *Query) same(a, b string) bool {
	switch q.typ {
	case "pypi":
		return normalizePython(a) == normalizePython(b)
	case "npm", "maven", "rpm":
		return a == b
	}
	return strings.EqualFold(a, b)
}

// splitPURL returns namespace and name of a package URL that this package has made.
func splitPURL(purl string) (namespace, name string) {
	_, path, _ := strings.Cut(purl, "/")
	path, _, _ = strings.Cut(path, "?")
	path, _, _ = strings.Cut(path, "@")
	if decoded, err := url.PathUnescape(path); err == nil {
		path = decoded
	}
	if i := strings.LastIndex(path, "/"); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

// Search returns the packages of an archive that the query selects. The caller names the archive.
func (q *Query) Search(list *schema.PackageList) *schema.AffectedArchive {
	found := &schema.AffectedArchive{Solution: list.Solution, Version: list.Version, Images: len(list.Images), Packages: []schema.AffectedPackage{}}
	for _, image := range list.Images {
		for _, p := range image.Packages {
			match, ok := q.Match(p, image.Distribution)
			if !ok {
				continue
			}
			affected := schema.AffectedPackage{
				Image: image.Image, Platform: image.Platform, Name: p.Name, Version: p.Version, PURL: p.PURL, Paths: p.Paths, Unclear: match.Unclear,
			}
			if match.Source {
				affected.Source = p.Source
			}
			found.Packages = append(found.Packages, affected)
		}
		for _, f := range image.Unread {
			found.Unread = append(found.Unread, schema.UnreadFile{Path: image.Image + ": " + f.Path, Reason: f.Reason})
		}
	}
	return found
}
