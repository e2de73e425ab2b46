package schema

import (
	"cmp"
	"strings"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

var (
	imageNamePattern = lazyregexp.New(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*$`)
	imageTagPattern  = lazyregexp.New(`^[a-zA-Z0-9_][a-zA-Z0-9._-]*$`)
)

const maxImageName, maxImageTag = 128, 128

// ProgramImage is the name of the image that has solutionctl in it. No manifest names it: solutionctl itself starts it, to work
// from inside the cluster.
const ProgramImage = "solutionctl"

// ImageRef names an image of a Solution: one path component and a tag. It is written "name:tag".
type ImageRef struct {
	Name string
	Tag  string
}

// ParseImageRef reads "name:tag". Both parts follow the grammar of the OCI distribution specification, and the name is
// one path component, because the archive, the registry and MetalK8s' nginx use it as a directory.
func ParseImageRef(s string) (ImageRef, error) {
	name, tag, found := strings.Cut(s, ":")
	if !found {
		return ImageRef{}, report.Errorf(report.Invalid, "image %q has no tag", s).WithHint("write it as name:tag")
	}
	ref := ImageRef{Name: name, Tag: tag}
	if err := ref.check(); err != nil {
		return ImageRef{}, err
	}
	return ref, nil
}

func (r ImageRef) check() error {
	if !ValidImageName(r.Name) {
		return report.Errorf(report.Invalid, "image name %q is not one path component of lower-case letters and digits, "+
			"separated by '.', '_', '__' or '-', of at most %d characters", r.Name, maxImageName)
	}
	if !ValidImageTag(r.Tag) {
		return report.Errorf(report.Invalid, "image tag %q is not made of at most 128 letters, digits, '_', '.' and '-' "+
			"with no '.' or '-' in front", r.Tag)
	}
	return nil
}

// ValidImageName reports whether name is one path component of the OCI grammar for repository names.
func ValidImageName(name string) bool {
	return len(name) <= maxImageName && imageNamePattern.MatchString(name)
}

// ValidImageTag reports whether tag follows the OCI grammar for tags.
func ValidImageTag(tag string) bool {
	return len(tag) <= maxImageTag && imageTagPattern.MatchString(tag)
}

func (r ImageRef) String() string { return r.Name + ":" + r.Tag }

// Compare orders references by name, then by tag, both by bytes.
func (r ImageRef) Compare(other ImageRef) int {
	return cmp.Or(strings.Compare(r.Name, other.Name), strings.Compare(r.Tag, other.Tag))
}

// MarshalText writes "name:tag" and refuses a reference that [ParseImageRef] would not read.
func (r ImageRef) MarshalText() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	return []byte(r.String()), nil
}

// UnmarshalText reads what [ImageRef.MarshalText] writes.
func (r *ImageRef) UnmarshalText(text []byte) error {
	ref, err := ParseImageRef(string(text))
	if err != nil {
		return err
	}
	*r = ref
	return nil
}

// ImageName is an image as two fields, each of which may be left to its default.
type ImageName struct {
	Name string `json:"name,omitempty"`
	Tag  string `json:"tag,omitempty"`
}

// ref fills what n leaves open; n may be nil.
func (n *ImageName) ref(name, tag string) ImageRef {
	if n == nil {
		n = &ImageName{}
	}
	return ImageRef{Name: cmp.Or(n.Name, name), Tag: cmp.Or(n.Tag, tag)}
}

// Platform is an operating system and an architecture, in the words of the OCI image specification (GOOS, GOARCH). It is written
// "os/architecture" or "os/architecture/variant".
type Platform struct {
	OS           string
	Architecture string
	Variant      string
}

var platformPattern = lazyregexp.New(`^[a-z0-9]+/[a-z0-9_]+(/[a-z0-9.]+)?$`)

// ParsePlatform reads "linux/amd64" or "linux/arm/v7".
func ParsePlatform(s string) (Platform, error) {
	if !platformPattern.MatchString(s) {
		return Platform{}, report.Errorf(report.Invalid, "platform %q is not os/architecture or os/architecture/variant", s).
			WithHint("write it as linux/amd64 or linux/arm/v7")
	}
	part := strings.Split(s, "/")
	p := Platform{OS: part[0], Architecture: part[1]}
	if len(part) == 3 {
		p.Variant = part[2]
	}
	if right, wrong := foreignArchitectures[p.Architecture]; wrong {
		return Platform{}, report.Errorf(report.Invalid, "platform %q: %q is not the OCI name of an architecture", s, p.Architecture).
			WithHint("write %s/%s", p.OS, right)
	}
	return p, nil
}

// foreignArchitectures are the names by which uname and package managers call an architecture.
var foreignArchitectures = map[string]string{
	"x86_64": "amd64", "aarch64": "arm64", "i386": "386", "i686": "386", "armhf": "arm", "armv7l": "arm", "ppc64el": "ppc64le",
}

func (p Platform) String() string {
	s := p.OS + "/" + p.Architecture
	if p.Variant != "" {
		s += "/" + p.Variant
	}
	return s
}

// Matches reports whether an image for platform have satisfies the wish p. A wish without a variant is satisfied by any
// variant; on arm64, v8 and no variant are the same.
func (p Platform) Matches(have Platform) bool {
	p, have = p.normal(), have.normal()
	return p.OS == have.OS && p.Architecture == have.Architecture && (p.Variant == "" || p.Variant == have.Variant)
}

func (p Platform) normal() Platform {
	if p.Architecture == "arm64" && p.Variant == "v8" {
		p.Variant = ""
	}
	return p
}

// MarshalText writes the form that [ParsePlatform] reads. It also writes values that an image claims for itself and that are
// not valid names of platforms.
func (p Platform) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what [Platform.MarshalText] writes.
func (p *Platform) UnmarshalText(text []byte) error {
	platform, err := ParsePlatform(string(text))
	if err != nil {
		return err
	}
	*p = platform
	return nil
}
