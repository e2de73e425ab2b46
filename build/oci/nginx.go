package oci

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// The forms of the registry configuration.
const (
	// Extended serves every image, indexes and referrers included, with plain nginx directives.
	Extended = "extended"
	// Legacy is byte for byte what MetalK8s' own generator, static-container-registry, writes with --omit-constants.
	Legacy = "legacy"
)

// RegistryConfigFile is the name of a registry configuration in an archive.
const RegistryConfigFile = "registry-config.inc.j2"

// MaxRegistryConfig is the size of the largest registry configuration that is written and read, in bytes: 5,000 images of one platform have
// 7.4 million, and each further platform of an image adds 400.
const MaxRegistryConfig = 32 << 20

// RegistryConfig returns the content of registry-config.inc.j2: nginx locations that serve images/ as a registry. It is
// a template with the variables repository and registry_root, which MetalK8s replaces and includes in a server block
// that has the constant locations (/v2/ and @404_tag) already.
//
// The legacy form leaves out the same images as the generator: indexes, and manifests without a mediaType field.
func RegistryConfig(images []*Image, form string) ([]byte, error) {
	images = withoutArtifacts(sorted(images))
	if err := checkImages(images); err != nil {
		return nil, err
	}
	var out strings.Builder
	for _, repository := range repositories(images) {
		switch form {
		case Legacy:
			writeLegacy(&out, repository)
		case Extended:
			writeExtended(&out, repository)
		default:
			return nil, report.Errorf(report.Invalid, "registry configuration %q is unknown", form).WithHint("the forms are %s and %s", Extended, Legacy)
		}
	}
	if out.Len() > MaxRegistryConfig {
		return nil, report.Errorf(report.Invalid, "%s would have %d bytes, the limit is %d", RegistryConfigFile, out.Len(), MaxRegistryConfig).
			WithHint("put the images into several Solutions")
	}
	return []byte(out.String()), nil
}

func withoutArtifacts(images []*Image) []*Image {
	var rest []*Image
	for _, image := range images {
		if !isArtifact(image) {
			rest = append(rest, image)
		}
	}
	return rest
}

// repositories groups sorted images by name.
func repositories(images []*Image) [][]*Image {
	var groups [][]*Image
	for i, image := range images {
		if i == 0 || image.Ref.Name != images[i-1].Ref.Name {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], image)
	}
	return groups
}

const (
	nginxTags = `
location = /v2/{{ repository }}/%[1]s/tags/list {
    types { } default_type "application/json";
%[2]s}
`
	nginxManifest = `
location = "/v2/{{ repository }}/%[1]s/manifests/%[2]s" {
    alias {{ registry_root }}/%[1]s/%[3]s/;
    types { } default_type "%[4]s";
    add_header 'Docker-Content-Digest' 'sha256:%[5]s';
    try_files %[6]s =404;
    error_page 404 @404_tag;
}
`
	nginxServed = `
# Digest for "%s" already served
`
	nginxBlobsLegacy = `
location ~ "/v2/{{ repository }}/%[1]s/blobs/sha256:([a-f0-9]{64})" {
    alias {{ registry_root }}/%[1]s/;
    try_files %[2]s =404;
}
`
	// In a pattern of ours the dots of the repository stay wildcards: only Jinja knows its name.
	nginxBlobs = `
location ~ "^/v2/{{ repository }}/%[1]s/blobs/sha256:([a-f0-9]{64})$" {
    alias {{ registry_root }}/%[2]s/;
    types { } default_type "application/octet-stream";
    add_header 'Docker-Content-Digest' 'sha256:$1';
    try_files %[3]s =404;
}
`
	nginxReferrers = `
location %[1]s "/v2/{{ repository }}/%[2]s/referrers/%[3]s" {
    types { } default_type "application/vnd.oci.image.index.v1+json";
%[4]s}
`
)

// writeLegacy writes the same as the generator: it reads only the manifest of each tag, and of that only the media
// type.
func writeLegacy(w io.Writer, images []*Image) {
	images = legacyImages(images)
	if len(images) == 0 {
		return
	}
	name := images[0].Ref.Name
	_, _ = fmt.Fprintf(w, nginxTags, name, "    return 200 '"+tagList(name, images)+"';\n")
	seen := map[Digest]bool{}
	for _, image := range images {
		ref, root := image.Ref, image.Root
		_, _ = fmt.Fprintf(w, nginxManifest, name, ref.Tag, ref.Tag, root.MediaType, root.Digest.Hex, manifestFile)
		if seen[root.Digest] {
			_, _ = fmt.Fprintf(w, nginxServed, ref)
			continue
		}
		seen[root.Digest] = true
		_, _ = fmt.Fprintf(w, nginxManifest, name, root.Digest, ref.Tag, root.MediaType, root.Digest.Hex, manifestFile)
	}
	_, _ = fmt.Fprintf(w, nginxBlobsLegacy, name, blobFiles(images))
}

// LegacyUnserved returns the images that a configuration in the legacy form leaves out, so that they cannot be pulled.
func LegacyUnserved(images []*Image) []schema.ImageRef {
	images = withoutArtifacts(images)
	served := legacyImages(images)
	var refs []schema.ImageRef
	for _, image := range images {
		if !slices.Contains(served, image) {
			refs = append(refs, image.Ref)
		}
	}
	return refs
}

func legacyImages(images []*Image) []*Image {
	var served []*Image
	for _, image := range images {
		var field struct {
			SchemaVersion int             `json:"schemaVersion"`
			MediaType     types.MediaType `json:"mediaType"`
		}
		if json.Unmarshal(image.Manifests[0].Data, &field) == nil && field.SchemaVersion == 2 && field.MediaType.IsImage() {
			served = append(served, image)
		}
	}
	return served
}

func writeExtended(w io.Writer, images []*Image) {
	name := images[0].Ref.Name
	_, _ = fmt.Fprintf(w, nginxTags, name, returnJSON(tagList("{{ repository }}/"+name, images)))
	for _, image := range images {
		_, _ = fmt.Fprintf(w, nginxManifest, name, image.Ref.Tag, image.Ref.Tag, image.Root.MediaType, image.Root.Digest.Hex, manifestFile)
	}
	seen := map[Digest]bool{}
	for _, image := range images {
		for i, m := range image.Manifests {
			if seen[m.Digest] {
				continue
			}
			seen[m.Digest] = true
			file := manifestFile
			if i > 0 {
				file = m.Digest.Hex + childManifestExt
			}
			_, _ = fmt.Fprintf(w, nginxManifest, name, m.Digest, image.Ref.Tag, m.MediaType, m.Digest.Hex, file)
		}
	}
	_, _ = fmt.Fprintf(w, nginxBlobs, regexp.QuoteMeta(name), name, blobFiles(images))
	writeReferrers(w, name, images)
}

// writeReferrers writes the answer for each subject, and the empty one for all others.
func writeReferrers(w io.Writer, name string, images []*Image) {
	bySubject := map[Digest][]Descriptor{}
	var subjects []Digest
	seen := map[Digest]bool{}
	for _, image := range images {
		for _, r := range referrersIn(image) {
			if seen[r.Digest] {
				continue
			}
			seen[r.Digest] = true
			if bySubject[r.subject] == nil {
				subjects = append(subjects, r.subject)
			}
			bySubject[r.subject] = append(bySubject[r.subject], Descriptor{MediaType: r.MediaType, Size: r.Size, Digest: r.Digest, ArtifactType: r.ArtifactType})
		}
	}
	for _, subject := range subjects {
		_, _ = fmt.Fprintf(w, nginxReferrers, "=", name, subject, returnJSON(referrersIndex(bySubject[subject])))
	}
	_, _ = fmt.Fprintf(w, nginxReferrers, "^~", name, "", returnJSON(referrersIndex(nil)))
}

func referrersIndex(descriptors []Descriptor) string {
	items := make([]string, len(descriptors))
	for i, d := range descriptors {
		items[i] = fmt.Sprintf(`{"mediaType":%s,"size":%d,"digest":"%s","artifactType":%s}`, nginxString(string(d.MediaType)), d.Size, d.Digest, nginxString(d.ArtifactType))
	}
	return `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[` + strings.Join(items, ",") + `]}`
}

// nginxString writes a foreign string as JSON that means nothing to nginx and Jinja: whatever is not a letter, a digit
// or one of a few signs becomes an escape.
func nginxString(s string) string {
	var out strings.Builder
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("/.+-_:", r):
			out.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			_, _ = fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			_, _ = fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return `"` + out.String() + `"`
}

// returnJSON returns the directives that answer with text. nginx reads parameters of at most 4 KiB, so that a longer
// text is put together from variables.
func returnJSON(text string) string {
	const limit = 3 << 10
	if len(text) <= limit {
		return fmt.Sprintf("    return 200 '%s';\n", text)
	}
	var out, all strings.Builder
	for i := 0; text != ""; i++ {
		n := min(limit, len(text))
		_, _ = fmt.Fprintf(&out, "    set $solution_part%d '%s';\n", i, text[:n])
		_, _ = fmt.Fprintf(&all, "${solution_part%d}", i)
		text = text[n:]
	}
	_, _ = fmt.Fprintf(&out, "    return 200 '%s';\n", all.String())
	return out.String()
}

// tagList is the JSON of a tag list with the spaces that Python's json puts in it.
func tagList(name string, images []*Image) string {
	tags := make([]string, len(images))
	for i, image := range images {
		tags[i] = `"` + image.Ref.Tag + `"`
	}
	return fmt.Sprintf(`{"name": "%s", "tags": [%s]}`, name, strings.Join(tags, ", "))
}

// blobFiles are the places where nginx looks for a blob of a repository.
func blobFiles(images []*Image) string {
	files := make([]string, len(images))
	for i, image := range images {
		files[i] = image.Ref.Tag + "/$1"
	}
	return strings.Join(files, " ")
}
