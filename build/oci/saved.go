package oci

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Saved is an image in a file or a directory on this host.
type Saved struct {
	Origin string // its full reference
	Source string // names it, for [Resolver.Resolve]
}

// Saved lists the images of a file that docker, podman or skopeo have written, or of an OCI image layout, that have a full name. Name is a
// path, or a source without the name of an image: oci:DIR, oci-archive:FILE, docker-archive:FILE.
func (r *Resolver) Saved(ctx context.Context, name string) ([]Saved, error) {
	found, err := r.saved(ctx, name)
	if err != nil && len(report.Hints(err)) == 0 {
		return nil, report.As(report.CodeOf(err), err).WithHint("name a file of images: docker save --output images.tar IMAGE… writes one; or oci:DIR, an OCI image layout")
	}
	return found, err
}

func (r *Resolver) saved(ctx context.Context, name string) ([]Saved, error) {
	kind, path, err := r.savedKind(name)
	if err != nil {
		return nil, err
	}
	var opened *place
	if kind == kindLayout {
		opened, err = r.open(kind, path, openLayout)
	} else {
		opened, err = r.tarball(ctx, path)
	}
	if err != nil {
		return nil, inContext(name, err)
	}
	var found []Saved
	known := map[string]bool{}
	add := func(kind, origin, name string) {
		if origin != "" && !known[origin] {
			known[origin] = true
			found = append(found, Saved{origin, kind + ":" + path + ":" + name})
		}
	}
	if kind != kindLayout { // docker writes both lists, and its own is the complete one
		var entries []dockerImage
		entries, err = (&dockerArchive{layout: opened.layout}).entries()
		for _, entry := range entries {
			for _, tag := range entry.RepoTags {
				add(kindDockerArchive, normalReference(tag), tag)
			}
		}
		if len(found) > 0 || err == nil {
			return found, nil
		}
		kind = kindLayoutArchive
	}
	listed, err := opened.layout.list()
	if err != nil {
		return nil, inContext(name, err)
	}
	for _, d := range listed.images {
		name := d.Annotations[fullName]
		if name == "" {
			name = d.Annotations[refName]
		}
		if strings.ContainsAny(name, ":/") {
			add(kind, normalReference(name), name)
		}
	}
	return found, nil
}

// savedKind distinguishes a directory from a file, where the name does not.
func (r *Resolver) savedKind(name string) (kind, path string, err error) {
	for _, kind := range []string{kindLayout, kindLayoutArchive, kindDockerArchive} {
		if path, ok := strings.CutPrefix(name, kind+":"); ok && path != "" {
			return kind, path, nil
		}
	}
	info, err := os.Stat(r.path(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "", report.Errorf(report.NotFound, "there is no %s with images", name).WithHint("write one with: docker save --output %s IMAGE…", report.ShellFile(name))
	case err != nil:
		return "", "", err
	case info.IsDir():
		return kindLayout, name, nil
	case !info.Mode().IsRegular():
		return "", "", report.Errorf(report.Invalid, "%s is not a file, and each build reads it again", name).WithHint("save the images to a file: docker save --output images.tar IMAGE…")
	default:
		return kindDockerArchive, name, nil
	}
}
