package images

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

// Reference is a parsed image reference.
type Reference struct {
	Registry   string // "docker.io" when the text has none
	Repository string // "library/nginx" for "nginx"
	Tag        string // "" when there is none
	Digest     string // "sha256:…" or ""
	written    string // the registry as written
}

// The grammar of the OCI distribution specification and of the reference package of the distribution project.
var (
	component = lazyregexp.New(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$`)
	tagText   = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	digestRef = lazyregexp.New(`^sha(?:256|512):[0-9a-f]+$`)
	hostText  = lazyregexp.New(`^(?:(?:[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9])(?:\.(?:[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9]))*|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?$`)
)

const (
	maxTag       = 128
	sha256Length = len("sha256:") + 64
	sha512Length = len("sha512:") + 128
)

// maxName bounds registry and repository, as the distribution project does; maxReference both with tag and digest.
const (
	maxName      = 255
	maxReference = 1024
)

func isDigest(text string) bool {
	length := sha256Length
	if strings.HasPrefix(text, "sha512:") {
		length = sha512Length
	}
	return len(text) == length && digestRef.MatchString(text)
}

// ParseReference reads a reference such as "nginx", "quay.io/acme/web:1.0" or "registry:5000/web@sha256:…".
func ParseReference(text string) (Reference, bool) {
	if len(text) > maxReference {
		return Reference{}, false
	}
	var r Reference
	rest, digest, hasDigest := strings.Cut(text, "@")
	if hasDigest {
		if !isDigest(digest) {
			return Reference{}, false
		}
		r.Digest = digest
	}
	if colon := strings.LastIndexByte(rest, ':'); colon > strings.LastIndexByte(rest, '/') {
		r.Tag = rest[colon+1:]
		if len(r.Tag) > maxTag || !tagText.MatchString(r.Tag) {
			return Reference{}, false
		}
		rest = rest[:colon]
	}
	if host, path, ok := strings.Cut(rest, "/"); ok && isHost(host) {
		r.written, rest = host, path
	}
	r.Registry, r.Repository = r.written, rest
	for part := range strings.SplitSeq(rest, "/") {
		if !component.MatchString(part) {
			return Reference{}, false
		}
	}
	if r.Registry == "" || r.Registry == "index.docker.io" {
		r.Registry = "docker.io"
	}
	if r.Registry == "docker.io" && !strings.Contains(rest, "/") {
		r.Repository = "library/" + rest
	}
	return r, len(r.Registry) <= maxName && len(r.Repository) <= maxName
}

// isHost decides, as container runtimes do, whether the first component is a registry.
func isHost(text string) bool {
	return hostText.MatchString(text) && (strings.ContainsAny(text, ".:") || text == "localhost" || strings.ToLower(text) != text)
}

// String returns the reference in full, with "latest" when it has neither tag nor digest.
func (r Reference) String() string {
	text := r.Registry + "/" + r.Repository
	switch {
	case r.Tag != "":
		text += ":" + r.Tag
	case r.Digest == "":
		text += ":latest"
	}
	if r.Digest != "" {
		text += "@" + r.Digest
	}
	return text
}

// digestTag is how many digits of a digest are a tag.
const digestTag = 12

// Name gives an image a name in an archive that no other one has: the last part of its repository, and as many parts before as it takes.
func (r Reference) Name(taken map[schema.ImageRef]bool) schema.ImageRef {
	_, hex, _ := strings.Cut(r.Digest, ":")
	hex = hex[:min(len(hex), digestTag)]
	tag := cmp.Or(r.Tag, hex, "latest")
	parts := strings.Split(r.Registry+"/"+r.Repository, "/")
	for i := range slices.Backward(parts) {
		name := strings.ToLower(strings.ReplaceAll(strings.Join(parts[i:], "-"), ":", "-"))
		if ref := (schema.ImageRef{Name: name, Tag: tag}); !taken[ref] && schema.ValidImageName(name) {
			return ref
		}
	}
	name := path.Base(r.Repository)
	if hex != "" && r.Tag != "" {
		if ref := (schema.ImageRef{Name: name, Tag: r.Tag + "-" + hex}); !taken[ref] && schema.ValidImageTag(ref.Tag) {
			return ref
		}
	}
	for i := 2; ; i++ {
		if ref := (schema.ImageRef{Name: fmt.Sprintf("%s-%d", name, i), Tag: tag}); !taken[ref] {
			return ref
		}
	}
}

// Entry is the entry of solution.yaml's images that brings the image into an archive.
func (r Reference) Entry() string { return r.EntryAs(r.Name(nil)) }

// EntryAs is the entry that brings the image into an archive under a name.
func (r Reference) EntryAs(ref schema.ImageRef) string {
	return fmt.Sprintf("{name: %s, tag: %q, source: %q}", ref.Name, ref.Tag, "docker://"+r.String())
}

func (r Reference) hasRegistry() bool { return r.written != "" }

// isFull reports a reference that is one in any text: a digest, or registry, repository and tag.
func (r Reference) isFull() bool {
	if r.Digest != "" {
		return true
	}
	host, _, _ := strings.Cut(r.written, ":")
	label := host == "kubernetes.io" || strings.HasSuffix(host, ".kubernetes.io") // app.kubernetes.io/name:web is none
	return r.written != "" && r.Tag != "" && !label && !isFileName(r.Tag)
}

// namesImage reports names of fields, variables and flags that hold an image: image, sidecarImage, IMAGE_PROXY,
// --helper-image-ref; not imagePullPolicy or imageRegistry.
func namesImage(name string) bool {
	if len(name) > maxName {
		return false
	}
	words := words(name)
	at := slices.IndexFunc(words, func(w string) bool { return w == "image" || w == "images" })
	if at < 0 {
		return false
	}
	for _, w := range words[at+1:] {
		if slices.Contains([]string{
			"pull", "policy", "registry", "secret", "secrets", "tag", "version", "repository", "prefix", "size", "type", "format", "digest", "width", "height", "path",
		}, w) {
			return false
		}
	}
	return true
}

// words splits sidecarImage, SIDECAR_IMAGE and --sidecar-image into lower-case words.
func words(name string) []string {
	var split strings.Builder
	for i, r := range name {
		upper := r >= 'A' && r <= 'Z'
		if upper && i > 0 && name[i-1] >= 'a' && name[i-1] <= 'z' {
			split.WriteByte(' ')
		}
		split.WriteRune(r)
	}
	return strings.FieldsFunc(strings.ToLower(split.String()), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
}

// looksLikeImage is for places whose name suggests an image: the reference has a registry, a tag or a digest.
func looksLikeImage(text string) bool {
	if strings.Contains(text, "{{") && strings.Contains(text, "/") {
		return !strings.Contains(text, "\n") && !strings.Contains(text, "://")
	}
	r, ok := ParseReference(text)
	return ok && !isFileName(text) && (r.hasRegistry() || r.Tag != "" || r.Digest != "" || strings.Contains(r.Repository, "/") && r.Registry != "docker.io")
}

// isBareName is for fields that are called image and nothing else: "nginx" is one, "logo.png" is not.
func isBareName(text string) bool {
	_, ok := ParseReference(text)
	return ok && !isFileName(text)
}

func isFileName(text string) bool {
	for _, extension := range []string{".png", ".svg", ".jpg", ".jpeg", ".gif", ".ico", ".webp", ".iso", ".img", ".qcow2", ".raw", ".html", ".yaml", ".json"} {
		if strings.HasSuffix(strings.ToLower(text), extension) {
			return true
		}
	}
	return false
}
