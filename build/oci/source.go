package oci

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// The kinds of sources.
const (
	kindLayout        = "oci"
	kindLayoutArchive = "oci-archive"
	kindDockerArchive = "docker-archive"
	kindDockerDaemon  = "docker-daemon"
	kindRegistry      = "docker"
	kindDir           = "dir"
	kindSolution      = "solution"
)

// sourceForms lists the forms of a source, for hints.
const sourceForms = "write one of oci:DIR[:REF], oci-archive:FILE[:REF], docker-archive:FILE[:REF], docker-daemon:REF, " +
	"docker://REGISTRY/NAME:TAG, dir:DIR, solution:FILE.iso:IMAGE"

// source is a parsed source: the kind, the path of a file or directory, and the name of the image there.
type source struct {
	kind, path, ref string
}

// parseSource reads "kind:path[:ref]" and, for registries and the daemon, "kind:ref".
func parseSource(s string) (source, error) {
	kind, rest, ok := strings.Cut(s, ":")
	if !ok || !slices.Contains([]string{kindLayout, kindLayoutArchive, kindDockerArchive, kindDockerDaemon, kindRegistry, kindDir, kindSolution}, kind) {
		return source{}, noSuchForm(s, kind)
	}
	slashes := strings.HasPrefix(rest, "//")
	src := source{kind: kind}
	switch kind {
	case kindRegistry:
		if !slashes {
			return source{}, report.Errorf(report.Invalid, "source %q lacks the slashes", Redact(s)).
				WithHint("write docker://%s for a registry, docker-daemon:%[1]s for the local Docker", Redact(rest))
		}
		src.ref = strings.TrimPrefix(rest, "//")
	case kindDockerDaemon:
		src.ref = strings.TrimPrefix(rest, "//")
	case kindDir:
		src.path = rest
	default:
		if kind == kindLayout && slashes {
			return source{}, report.Errorf(report.Invalid, "source %q mixes two forms", Redact(s)).
				WithHint("write docker:%s for a registry, oci:DIR for a directory", Redact(rest))
		}
		src.path, src.ref = splitPath(rest)
	}
	return src, src.check(s)
}

// RelativeSource returns a source, whose path starts from the current directory, for a Resolver whose paths start from dir.
func RelativeSource(text, dir string) (string, error) {
	s, err := parseSource(text)
	if err != nil || s.path == "" || s.path == "-" || filepath.IsAbs(s.path) {
		return text, err
	}
	base, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	file, err := filepath.Abs(s.path)
	if err != nil {
		return "", err
	}
	if relative, err := filepath.Rel(base, file); err == nil { // it fails between the drives of Windows
		file = relative
	}
	_, rest, _ := strings.Cut(text, ":")
	return s.kind + ":" + file + strings.TrimPrefix(rest, s.path), nil
}

// IsStdin reports whether a source is read from standard input.
func IsStdin(text string) bool {
	s, err := parseSource(text)
	return err == nil && s.path == "-"
}

// LocalPath returns the file or directory of a source whose relative path starts from dir; "" for a registry, the daemon, standard
// input and a text of another form.
func LocalPath(text, dir string) string {
	s, err := parseSource(text)
	switch {
	case err != nil || s.path == "" || s.path == "-":
		return ""
	case filepath.IsAbs(s.path):
		return s.path
	default:
		return filepath.Join(dir, s.path)
	}
}

func (s source) check(text string) error {
	needsPath := s.kind != kindRegistry && s.kind != kindDockerDaemon
	needsRef := !needsPath || s.kind == kindSolution
	switch {
	case needsPath && s.path == "":
		return report.Errorf(report.Invalid, "source %q names no file or directory", Redact(text)).WithHint(sourceForms)
	case needsRef && s.ref == "":
		return report.Errorf(report.Invalid, "source %q names no image", Redact(text)).WithHint(sourceForms)
	case strings.ContainsRune(text, 0):
		return report.Errorf(report.Invalid, "source %q is not a valid name", Redact(text))
	}
	return nil
}

// splitPath splits "path:ref" at the first colon that is not part of a Windows drive.
func splitPath(s string) (path, ref string) {
	start := 0
	if len(s) > 2 && s[1] == ':' && (s[2] == '\\' || s[2] == '/') {
		start = 2
	}
	if i := strings.IndexByte(s[start:], ':'); i >= 0 {
		return s[:start+i], s[start+i+1:]
	}
	return s, ""
}

// noSuchForm guesses the intended kind of a source without a known kind.
func noSuchForm(s, kind string) error {
	err := report.Errorf(report.Invalid, "source %q has no known form", Redact(s))
	switch {
	case kind == "http" || kind == "https":
		return err.WithHint("images come from registries, not from web pages: write docker:%s", strings.TrimPrefix(Redact(s), kind+":"))
	case kind == "containers-storage":
		return err.WithHint("write the image to a file first: `podman save --format oci-archive -o FILE IMAGE`, then oci-archive:FILE")
	case normalReference(s) != "" && !strings.HasPrefix(s, ".") && !strings.HasPrefix(s, "/"):
		return err.WithHint("for an image in a registry, write docker://%s; otherwise %s", Redact(s), sourceForms)
	default:
		return err.WithHint(sourceForms)
	}
}

// Redact hides the credentials that a source may contain.
func Redact(s string) string {
	start := strings.Index(s, "//")
	if start < 0 {
		return s
	}
	authority, _, _ := strings.Cut(s[start+2:], "/")
	at := strings.LastIndexByte(authority, '@')
	if at < 0 || !strings.Contains(authority[:at], ":") || strings.HasPrefix(authority[at:], "@sha") {
		return s
	}
	return s[:start+2] + "…" + s[start+2+at:]
}
