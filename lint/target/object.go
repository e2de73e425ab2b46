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

// Judged reports whether the rules apply to an object: it has apiVersion and kind, and is applied, or is a sample for
// users.
func (o *Object) Judged() bool {
	return o.APIVersion != "" && o.Kind != "" && o.Part != PartUnapplied
}

// IsDefinition is true for CustomResourceDefinitions of any version: they have rules of their own.
func (o *Object) IsDefinition() bool {
	return o.Group() == "apiextensions.k8s.io" && o.Kind == "CustomResourceDefinition"
}

// Rendered reports whether the object comes out of a chart.
func (o *Object) Rendered() bool { return o.template != "" }

// Serves reports whether a version of the definition is served, and lists the served ones.
func (d Definition) Serves(version string) (served bool, versions []string) {
	for _, v := range d.Spec.Versions {
		if v.Served {
			versions = append(versions, v.Name)
			served = served || v.Name == version
		}
	}
	return served, versions
}
