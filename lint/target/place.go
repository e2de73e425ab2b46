package target

import (
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Place is the place of a finding: a file of the archive, a position in it when that is known, and a thing inside.
type Place struct {
	File         string
	Line, Column int
	Object       string // "Deployment/web: spec.replicas"
}

// InFile is a place that is a whole file.
func InFile(name string) Place { return Place{File: name} }

// PlaceOf is the place that a finding names.
func PlaceOf(f report.Finding) Place {
	return Place{File: f.Path, Line: f.Line, Column: f.Column, Object: f.Object}
}

// At is the place of a field: of its value, or of the nearest value around it. The path is that of the packages kube,
// crd, rbac and images: spec.containers[0].image; "" is the object itself.
func (o *Object) At(path string) Place { return o.place(path, (*schema.Document).Lookup) }

// Written returns the text of a scalar as its file has it, which a reader of YAML may have taken for something else: 1.10, 0644, no.
// It is empty for what is rendered.
func (o *Object) Written(path string) string {
	if o.document == nil {
		return ""
	}
	return o.document.SourceText(append(slices.Clone(o.prefix), SplitPath(path)...)...)
}

// AtKey is the place of the key of a field.
func (o *Object) AtKey(path string) Place { return o.place(path, (*schema.Document).LookupKey) }

func (o *Object) place(path string, lookup func(*schema.Document, ...string) (int, int)) Place {
	at := Place{File: o.File, Object: o.String()}
	if o.template != "" {
		at.Object = o.template + ": " + at.Object
	}
	if path != "" {
		at.Object += ": " + path
	}
	if o.document != nil {
		at.Line, at.Column = lookup(o.document, append(append([]string(nil), o.prefix...), SplitPath(path)...)...)
	}
	return at
}

// At is the place of a field of the definition; of its file where that could not be taken for Kubernetes objects.
func (d Definition) At(path string) Place {
	if d.Object == nil {
		return InFile(d.File)
	}
	return d.Object.At(path)
}

// ManifestPlace is a place in manifest.yaml.
func (t *Target) ManifestPlace(steps ...string) Place {
	return t.manifestPlace((*schema.Document).Lookup, steps)
}

// ManifestKey is the place of a key in manifest.yaml.
func (t *Target) ManifestKey(steps ...string) Place {
	return t.manifestPlace((*schema.Document).LookupKey, steps)
}

func (t *Target) manifestPlace(lookup func(*schema.Document, ...string) (int, int), steps []string) Place {
	at := Place{File: archive.ManifestFile, Object: strings.Join(steps, ".")}
	if documents, err := t.Documents(archive.ManifestFile); err == nil && len(documents) > 0 {
		at.Line, at.Column = lookup(documents[0], steps...)
	}
	return at
}

// SourcePath returns the path of a file as the user knows it: for a project, that of the file that would be copied.
func (t *Target) SourcePath(name string) string {
	if t.sourcePath == nil {
		return name
	}
	return t.sourcePath(name)
}

// Locate returns the finding with the path, line and column that the user knows: in a project, those of the file that
// would be copied into the archive.
func (t *Target) Locate(f report.Finding) report.Finding {
	if f.Path == "" || f.Path == ProjectFile {
		return f
	}
	source := t.SourcePath(f.Path)
	if source == ProjectFile && f.Path != source {
		// It is generated, except the components, which have the same lines.
		f.Line, f.Column = 0, 0
		if t.project != nil && strings.HasPrefix(f.Object, "spec.components.") {
			f.Line, f.Column = t.project.Lookup(strings.Split(f.Object, ".")...)
		}
	}
	f.Path = source
	return f
}
