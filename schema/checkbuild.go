package schema

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/solutionctl/solutionctl/schema/report"
)

func checkSolutionBuild(c *checker) {
	c.checkCommon()
	c.checkBuildImages()
	c.checkVolumeID()
	c.checkBuildAnnotations()
	c.checkFiles()
	c.eachString("spec.platforms.*", func(path []string, s string) {
		if _, err := ParsePlatform(s); err != nil {
			c.failWith(path, err)
		}
	})
	c.eachString("spec.buildTime", func(path []string, s string) {
		// The directory records of ISO 9660 count years from 1900 in one byte.
		if t, err := time.Parse(time.RFC3339, s); err != nil || t.UTC().Year() < 1970 || t.UTC().Year() > 2155 {
			c.fail(path, "write it as 2026-01-01T00:00:00Z", "%q is not a time between 1970 and 2155", s)
		}
	})
}

// checkBuildImages makes sure that images are unique and that operator and ui use images that are there.
func (c *checker) checkBuildImages() {
	name, version := c.text("metadata.name"), c.text("spec.version")
	var refs []string
	known := map[string]bool{}
	complete := true
	images, _ := lookup(c.pruned, "spec", "images").([]any)
	for i := range images {
		at := []string{"spec", "images", strconv.Itoa(i)}
		image, ok := part[BuildImage](c, strings.Join(at, "."))
		if !ok || image.Tag == "" && version == "" {
			complete = false
			continue
		}
		ref := (&BuildSpec{Version: version}).ImageRef(image).String()
		if known[ref] {
			c.fail(at, "give it another name or tag", "image %s is there already", ref)
		}
		known[ref] = true
		refs = append(refs, ref)
	}
	if !complete || name == "" || version == "" {
		return
	}
	for _, part := range []string{"operator", "ui"} {
		c.checkUsedImage([]string{"spec", part}, name+"-"+part, version, refs)
	}
	components, _ := lookup(c.pruned, "spec", "components").([]any)
	for i, component := range components {
		if name, ok := lookup(component, "name").(string); ok && lookup(component, "operator") != nil {
			c.checkUsedImage([]string{"spec", "components", strconv.Itoa(i)}, name, version, refs)
		}
	}
}

// checkUsedImage makes sure that the image of an operator or the user interface is one of refs.
func (c *checker) checkUsedImage(user []string, name, tag string, refs []string) {
	used, ok := part[struct {
		Image *ImageName `json:"image"`
	}](c, strings.Join(user, "."))
	if !ok {
		return
	}
	ref := used.Image.ref(name, tag).String()
	if slices.Contains(refs, ref) {
		return
	}
	hint := didYouMean(ref, refs, "add it to spec.images, or name one of them: "+strings.Join(refs, ", "))
	c.fail(append(user, "image"), hint, "image %s is not in spec.images", ref)
}

func (c *checker) checkVolumeID() {
	c.eachString("spec.volumeID", func(path []string, id string) {
		if len(id) > maxVolumeID {
			c.fail(path, "", "has %d bytes, more than %d", len(id), maxVolumeID)
		}
		if strings.ContainsFunc(id, unicode.IsControl) {
			c.fail(path, "", "%q has control characters", id)
		}
	})
}

// checkBuildAnnotations refuses annotations that fields of their own decide, and the one that no build can reproduce.
func (c *checker) checkBuildAnnotations() {
	c.each("spec.annotations.*", func(path []string, _ any) {
		switch fullAnnotation(path[2]) {
		case AnnotationDisplayName:
			c.addKey(report.SeverityError, "bad-key", path, "", "spec.displayName sets this annotation")
		case annotationBuildTimestamp:
			c.addKey(report.SeverityError, "bad-key", path, "", "spec.buildTime sets this annotation")
		case AnnotationPrefix + "build-host":
			c.addKey(report.SeverityError, "bad-key", path, "remove it", "the name of a host would make builds differ")
		}
	})
}

// checkFiles keeps further files out of the way of what build writes itself.
func (c *checker) checkFiles() {
	c.eachString("spec.files.*.path", func(at []string, s string) {
		if !c.checkArchivePath(at, s) {
			return
		}
		top, _, _ := strings.Cut(s, "/")
		switch top {
		case "manifest.yaml", "registry-config.inc.j2", "oci-layout", "index.json", "images", "blobs":
			c.fail(at, "choose another path", "build writes %s itself", top)
		}
	})
	c.unique("spec.files.*.path", "path")
}

// checkArchivePath judges a path in the archive and reports whether it is fine.
func (c *checker) checkArchivePath(at []string, s string) bool {
	if scheme, _, ok := strings.Cut(s, "://"); ok && (scheme == "oci" || scheme == "http" || scheme == "https") {
		c.fail(at, downloadHint(at[len(at)-1], s), "%q is an address: an archive holds its files itself", s)
		return false
	}
	if !fs.ValidPath(s) || s == "." {
		c.fail(at, "write "+path.Join("/", s)[1:], "%q is not a plain path in the archive", s)
		return false
	}
	return true
}

// downloadHint is the command that brings what lies at an address into a project.
func downloadHint(field, address string) string {
	name := path.Base(address)
	switch {
	case field != "chart":
		return fmt.Sprintf("download it, and name the file: curl -fL --create-dirs -o components/%s %q", name, address)
	case strings.HasSuffix(name, ".tgz"):
		return fmt.Sprintf("download it, and write charts/%s: helm pull %q --destination charts", name, address)
	}
	version, option := "VERSION", ""
	if chart, tag, ok := strings.Cut(name, ":"); ok {
		address, name = strings.TrimSuffix(address, ":"+tag), chart
		version, option = tag, " --version "+tag
	}
	return fmt.Sprintf("download it, and write charts/%s-%s.tgz: helm pull %q%s --destination charts", name, version, address, option)
}
