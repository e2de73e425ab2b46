package target

import "strings"

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

// Version returns the version of the API, "v1".
func (o *Object) Version() string {
	_, version, ok := strings.Cut(o.APIVersion, "/")
	if !ok {
		return o.APIVersion
	}
	return version
}

// Judged tells whether an object takes part in the rules: one with apiVersion and kind, in a place where somebody
// applies it, or a sample, which somebody will.
func (o *Object) Judged() bool {
	return o.APIVersion != "" && o.Kind != "" && o.Part != PartUnapplied
}

// IsDefinition is true for CustomResourceDefinitions of any version: they have rules of their own.
func (o *Object) IsDefinition() bool {
	return o.Group() == "apiextensions.k8s.io" && o.Kind == "CustomResourceDefinition"
}

// Rendered tells whether the object comes out of a chart.
func (o *Object) Rendered() bool { return o.template != "" }

// Serves tells whether a version of the definition is served, and which ones are.
func (d Definition) Serves(version string) (served bool, versions []string) {
	for _, v := range d.Spec.Versions {
		if v.Served {
			versions = append(versions, v.Name)
			served = served || v.Name == version
		}
	}
	return served, versions
}
