package lint

import (
	"strings"

	"github.com/solutionctl/solutionctl/schema"
)

// String returns "Deployment/web".
func (o *Object) String() string {
	if o.Name == "" {
		return o.Kind
	}
	return o.Kind + "/" + o.Name
}

// Group returns the API group, "" for the core group.
func (o *Object) Group() string {
	group, _, ok := strings.Cut(o.APIVersion, "/")
	if !ok {
		return ""
	}
	return group
}

// At is the place of a field: of its value, or of the nearest value around it. The path is that of the packages kube,
// crd, rbac and images: spec.containers[0].image; "" is the object itself.
func (o *Object) At(path string) Place { return o.place(path, (*schema.Document).Lookup) }

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
