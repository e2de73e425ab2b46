package sbom

import (
	"errors"
	"fmt"
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
	rest, qualifiers, _ := strings.Cut(rest, "?")
	path, set := rest, ""
	if i := strings.LastIndex(rest, "@"); i > strings.LastIndex(rest[:max(i, 0)], "/")+1 { // not that of a scope
		path, set = rest[:i], strings.TrimPrefix(rest[i+1:], "vers:"+typ+"/")
	}
	for i, part := range []*string{&path, &set, &qualifiers} {
		decoded, err := url.PathUnescape(*part)
		if err != nil {
			return nil, refuse("part " + []string{"name", "range", "qualifiers"}[i] + " is not encoded as in an URL")
		}
		*part = decoded
	}
	p := packageURL{typ: typ, path: strings.Trim(path, "/")}
	for qualifier := range strings.SplitSeq(qualifiers, "&") {
		if distro, ok := strings.CutPrefix(qualifier, "distro="); ok {
			p.distro = distro
		} else if qualifier != "" {
			return nil, refuse("of the qualifiers, distro is the only one that selects packages")
		}
	}
	q, err := newQuery(p, set)
	if err != nil {
		return nil, refuse(err.Error())
	}
	return q, nil
}

// newQuery returns the query for packages of this name, in a range of versions in the syntax of vers.
func newQuery(p packageURL, set string) (*Query, error) {
	if !slices.Contains(versions.Types(), p.typ) {
		return nil, fmt.Errorf("packages of type %s are not looked for; those of these types are: %s", p.typ, strings.Join(versions.Types(), ", "))
	}
	q := &Query{Package: p.String(), typ: p.typ, name: p.path, distro: p.distro}
	if i := strings.LastIndex(p.path, "/"); i >= 0 {
		q.namespace, q.name = p.path[:i], p.path[i+1:]
	}
	if q.name == "" || strings.ContainsAny(q.name, "<>=|!* ") {
		return nil, errors.New("it has no name, or one with characters of a range")
	}
	var err error
	q.Range, err = versions.ParseRange(p.typ, set)
	return q, err
}

// Limit explains that packages of this type are not looked for in layers, and only found in bills of materials that images bring; "" for other types.
func (q *Query) Limit() string {
	if slices.ContainsFunc(kinds, func(k kind) bool { return k.typ == q.typ }) {
		return ""
	}
	return q.Package + " in layers; only in bills of materials that images bring"
}

// Match is a package that a query selects.
type Match struct {
	Source  bool   // by its source package
	Unclear string // why the version cannot be compared; empty if it is in the range
}

// Match reports whether the query selects a package: itself, or its source package, because distributions publish advisories about these.
func (q *Query) Match(p schema.Package, distribution string) (Match, bool) {
	if p.Type != q.typ || !q.matchesDistribution(distribution) {
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

// matchesDistribution reports whether a distribution is the one of the query, or a release of it: alpine-3.20 has alpine-3.20.3.
func (q *Query) matchesDistribution(distribution string) bool {
	return q.distro == "" || q.distro == distribution || strings.HasPrefix(distribution, q.distro+".")
}

func (q *Query) matchesNamespace(namespace string) bool {
	if q.typ == "rpm" {
		return q.namespace == "" || vendorOf(q.namespace) == vendorOf(namespace)
	}
	optional := q.typ != "golang" && q.typ != "npm"
	return q.namespace == "" && optional || q.same(q.namespace, namespace)
}

// vendorOf returns one name for the namespaces that advisories and bills of materials have for the packages of one vendor.
func vendorOf(namespace string) string {
	namespace = rpmNamespace(strings.ToLower(namespace))
	switch {
	case namespace == "sles", namespace == "sled", strings.HasPrefix(namespace, "sle-"):
		return "suse"
	case namespace == "rocky-linux":
		return "rocky"
	}
	return namespace
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
	return search(list, func(p schema.Package, image *schema.ImagePackages) *schema.AffectedPackage {
		if match, ok := q.Match(p, image.Distribution); ok {
			return affectedPackage(p, image, match)
		}
		return nil
	})
}

// search returns the packages of an archive for which selected returns a description.
func search(list *schema.PackageList, selected func(schema.Package, *schema.ImagePackages) *schema.AffectedPackage) *schema.AffectedArchive {
	found := &schema.AffectedArchive{Solution: list.Solution, Version: list.Version, Images: len(list.Images), Packages: []schema.AffectedPackage{}}
	for i := range list.Images {
		image := &list.Images[i]
		for _, p := range image.Packages {
			if affected := selected(p, image); affected != nil {
				found.Packages = append(found.Packages, *affected)
			}
		}
		for _, f := range image.Unread {
			found.Unread = append(found.Unread, schema.UnreadFile{Path: image.Image + ": " + f.Path, Reason: f.Reason})
		}
	}
	return found
}

func affectedPackage(p schema.Package, image *schema.ImagePackages, match Match) *schema.AffectedPackage {
	affected := &schema.AffectedPackage{
		Image: image.Image, Platform: image.Platform, Name: p.Name, Version: p.Version, PURL: p.PURL, Paths: p.Paths, Origin: p.Origin, Unclear: match.Unclear,
	}
	if match.Source {
		affected.Source = p.Source
	}
	return affected
}
