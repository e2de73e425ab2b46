package sbom

import (
	"cmp"
	"strings"
)

// purl returns the package URL of a package in an image of this distribution.
// See https://github.com/package-url/purl-spec.
func (c component) purl(release *osRelease) string {
	var b strings.Builder
	b.WriteString("pkg:" + c.kind + "/")
	namespace, name := c.namespace, c.name
	switch c.kind {
	case "deb", "apk", "rpm":
		namespace = cmp.Or(distributionID(release), map[string]string{"deb": "debian", "apk": "alpine"}[c.kind], strings.ToLower(c.vendor))
		if c.kind == "rpm" { // whose names have upper case letters
			namespace = rpmNamespace(namespace)
		} else {
			name = strings.ToLower(name)
		}
	case "pypi":
		name = normalizePython(name)
	case "golang":
		namespace, name = strings.ToLower(namespace), strings.ToLower(name)
	}
	if namespace != "" {
		for segment := range strings.SplitSeq(namespace, "/") {
			b.WriteString(escapePURL(segment) + "/")
		}
	}
	b.WriteString(escapePURL(name))
	if c.version != "" && c.version != develVersion {
		b.WriteString("@" + escapePURL(c.version))
	}
	separator := "?"
	for _, qualifier := range c.qualifiers(release) {
		if qualifier[1] != "" {
			b.WriteString(separator + qualifier[0] + "=" + escapePURL(qualifier[1]))
			separator = "&"
		}
	}
	return b.String()
}

// qualifiers returns names and values, sorted by name.
func (c component) qualifiers(release *osRelease) [][2]string {
	if c.kind != "deb" && c.kind != "apk" && c.kind != "rpm" {
		return nil
	}
	return [][2]string{{"arch", c.arch}, {"distro", release.String()}, {"epoch", c.epoch}, {"upstream", c.upstream()}}
}

// upstream names the source package as other tools do: NAME@VERSION, and for rpm the file.
func (c component) upstream() string {
	switch {
	case c.source == "":
		return ""
	case c.kind == "rpm":
		return c.source + "-" + c.sourceVersion + ".src.rpm"
	case c.sourceVersion != "":
		return c.source + "@" + c.sourceVersion
	case c.source == c.name:
		return ""
	}
	return c.source
}

// rpmNamespace returns the namespace of the packages of a distribution of rpm, which its vendor and other tools use instead of its identifier.
func rpmNamespace(distribution string) string {
	switch {
	case distribution == "rhel":
		return "redhat"
	case strings.HasPrefix(distribution, "opensuse-"):
		return "opensuse"
	}
	return distribution
}

func distributionID(release *osRelease) string {
	if release == nil {
		return ""
	}
	return strings.ToLower(release.id)
}

// normalizePython returns the normalized name of a Python package: runs of - _ . are one -.
func normalizePython(name string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '_' || r == '.' }), "-")
}

// escapePURL encodes a part of a package URL.
func escapePURL(text string) string {
	const hexadecimal = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~:", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteString("%" + string(hexadecimal[c>>4]) + string(hexadecimal[c&15]))
		}
	}
	return b.String()
}
