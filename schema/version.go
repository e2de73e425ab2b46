package schema

import (
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Version is a version of a Solution: strict Semantic Versioning 2.0.0 in lower case and without build metadata, because it
// becomes part of a repository name and a tag. The zero value is not a version.
type Version struct {
	semver semver.Version
	text   string
}

// maxVersion is the size of a Kubernetes label value, which is where a version ends up.
const maxVersion = 63

// ParseVersion reads a version such as "1.0.0" or "1.1.0-rc.1".
func ParseVersion(s string) (Version, error) {
	v, err := semver.StrictNewVersion(s)
	switch {
	case err != nil:
		return Version{}, report.Errorf(report.Invalid, "%q is not a semantic version", s).WithHint("%s", versionHint(s))
	case v.Metadata() != "":
		return Version{}, report.Errorf(report.Invalid, "version %q has build metadata, which tags cannot carry", s).
			WithHint("write %s", strings.TrimSuffix(s, "+"+v.Metadata()))
	case s != strings.ToLower(s):
		return Version{}, report.Errorf(report.Invalid, "version %q is not in lower case, which repository names require", s).
			WithHint("write %s", strings.ToLower(s))
	case len(s) > maxVersion:
		return Version{}, report.Errorf(report.Invalid, "version %q is longer than the %d characters of a label value", s, maxVersion)
	}
	return Version{semver: *v, text: s}, nil
}

// versionHint completes what is nearly a version.
func versionHint(s string) string {
	if v, err := semver.NewVersion(s); err == nil {
		return "write " + v.String()
	}
	return "write MAJOR.MINOR.PATCH, such as 1.0.0 or 1.1.0-rc.1"
}

func (v Version) String() string { return v.text }

// IsZero reports whether v is the zero value.
func (v Version) IsZero() bool { return v.text == "" }

// IsPrerelease reports whether v comes before the release of the same number.
func (v Version) IsPrerelease() bool { return v.semver.Prerelease() != "" }

// Replaceable reports whether another archive may take the place of the one that was imported of a version: of a
// pre-release, never of a release.
func Replaceable(version string) bool {
	v, err := ParseVersion(version)
	return err == nil && v.IsPrerelease()
}

// Compare orders versions by SemVer precedence.
func (v Version) Compare(other Version) int { return v.semver.Compare(&other.semver) }

// Latest resolves "latest": the highest release, or without a release the highest pre-release and a notice about it. With
// preferPre the highest version wins, pre-release or not. It reports false when versions is empty.
func Latest(versions []Version, preferPre bool) (latest Version, notice string, ok bool) {
	if len(versions) == 0 {
		return Version{}, "", false
	}
	sorted := slices.SortedFunc(slices.Values(versions), Version.Compare)
	highest := sorted[len(sorted)-1]
	if preferPre {
		return highest, "", true
	}
	for _, v := range slices.Backward(sorted) {
		if !v.IsPrerelease() {
			return v, "", true
		}
	}
	return highest, "there is no release, so " + highest.String() + ", the highest pre-release, is the latest version", true
}

// SamePrecedence reports whether two versions, in any notation that SemVer readers tolerate, have the same precedence:
// "1.0.0+a" and "1.0.0+b" do. Two such versions of one Solution cannot be distinguished and must not both be imported.
func SamePrecedence(a, b string) bool {
	if a == b {
		return true
	}
	va, errA := semver.NewVersion(a)
	vb, errB := semver.NewVersion(b)
	return errA == nil && errB == nil && va.Equal(vb)
}

// Range is a set of versions, such as ">=1.4.0 <2" or "~1.4 || ^2.1". The zero value holds every version.
type Range struct {
	constraints *semver.Constraints
	text        string
}

// ParseRange reads a range; "" holds every version.
func ParseRange(s string) (Range, error) {
	if strings.TrimSpace(s) == "" {
		return Range{}, nil
	}
	constraints, err := semver.NewConstraint(s)
	if err != nil {
		return Range{}, report.Errorf(report.Invalid, "%q is not a range of versions", s).
			WithHint(`write comparisons, such as ">=1.4.0 <2"`)
	}
	r := Range{constraints: constraints, text: s}
	if r.isEmpty() {
		return Range{}, report.Errorf(report.Invalid, "no version is in the range %q", s).
			WithHint(`write comparisons that a version can meet, such as ">=1.4.0 <2"`)
	}
	return r, nil
}

var versionInRange = lazyregexp.New(`[0-9]+(\.[0-9]+){0,2}(-[0-9A-Za-z.-]+)?`)

// isEmpty tries the versions at the ends of a range, and those next to them: if there is any in the range, one of these is.
func (r Range) isEmpty() bool {
	candidates := []semver.Version{*semver.New(0, 0, 0, "", "")}
	for _, text := range versionInRange.FindAllString(r.text, -1) {
		v, err := semver.NewVersion(text)
		if err != nil {
			continue
		}
		candidates = append(candidates, *v, v.IncPatch(), v.IncMinor(), v.IncMajor())
		if next, err := v.SetPrerelease(v.Prerelease() + ".0"); err == nil {
			candidates = append(candidates, next)
		}
	}
	return !slices.ContainsFunc(candidates, func(v semver.Version) bool { return r.constraints.Check(&v) })
}

func (r Range) String() string { return r.text }

// Contains reports whether v is in the range. A pre-release is only in ranges that mention a pre-release.
func (r Range) Contains(v Version) bool {
	return r.constraints == nil || r.constraints.Check(&v.semver)
}

// ContainsKubernetes reports whether a cluster of this version is in the range. What distributions add to a version, as
// in "v1.36.3-eks-1" or "v1.30.14+k3s1", does not count.
func (r Range) ContainsKubernetes(gitVersion string) (bool, error) {
	v, err := semver.NewVersion(gitVersion)
	if err != nil {
		return false, report.Errorf(report.Invalid, "%q is not a version of Kubernetes", gitVersion)
	}
	plain := semver.New(v.Major(), v.Minor(), v.Patch(), "", "")
	return r.constraints == nil || r.constraints.Check(plain), nil
}

// joinVersions lists versions for a person, lowest first.
func joinVersions(versions []Version) string {
	if len(versions) == 0 {
		return "none"
	}
	return strings.Join(Strings(slices.SortedFunc(slices.Values(versions), Version.Compare)), ", ")
}
