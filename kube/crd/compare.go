package crd

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Severity grades a change by its effect on users of the resource.
type Severity string

// The severities, gravest first.
const (
	Lossy    Severity = "lossy"    // the API server drops stored data
	Breaking Severity = "breaking" // objects or clients that worked are refused or behave differently
	Safe     Severity = "safe"     // everything continues to work
)

// ChangeKind names the part of a definition that changed. Kinds are stable; a change inside a schema has the name of the schema's field.
type ChangeKind string

// The kinds of changes outside of schemas, and the two that every schema knows.
const (
	GroupChanged      ChangeKind = "group"
	ScopeChanged      ChangeKind = "scope"
	NamesChanged      ChangeKind = "names"
	ConversionChanged ChangeKind = "conversion"
	StoredRemoved     ChangeKind = "stored-version-removed"
	StorageChanged    ChangeKind = "storage-version"
	VersionRemoved    ChangeKind = "served-version-removed"
	VersionAdded      ChangeKind = "version-added"
	SubresourceStatus ChangeKind = "status-subresource"
	SubresourceScale  ChangeKind = "scale-subresource"
	SelectableFields  ChangeKind = "selectable-fields"
	PrinterColumns    ChangeKind = "printer-columns"
	FieldRemoved      ChangeKind = "field-removed"
	FieldAdded        ChangeKind = "field-added"
	Unhandled         ChangeKind = "unhandled" // an unknown constraint, so it counts as breaking
)

// Change is one difference between two definitions. Path leads to a field of the objects, as spec.replicas or
// spec.ports[*].name, and is empty for the definition itself. Version is the version concerned, "v1 -> v2" when objects
// stored in one version are read in another, and empty for the definition itself.
type Change struct {
	Kind     ChangeKind
	Severity Severity
	Version  string
	Path     string
	Message  string
}

func (c Change) String() string {
	text := c.Message
	if c.Path != "" {
		text = c.Path + ": " + text
	}
	if c.Version != "" {
		text = c.Version + ": " + text
	}
	return text
}

// Compare lists the changes when next replaces previous, gravest first. It fails closed: an unknown difference is
// breaking. Compare(a, b) and Compare(b, a) judge an upgrade and the downgrade that undoes it.
func Compare(previous, next *Definition) []Change {
	left := maxSteps
	changes := slices.Concat(
		compareIdentity(previous, next), compareConversion(previous, next), compareVersionLists(previous, next),
		compareVersions(previous, next, &left), compareStored(previous, next, &left),
	)
	order := map[Severity]int{Lossy: 0, Breaking: 1, Safe: 2}
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(order[a.Severity], order[b.Severity]), cmp.Compare(a.Version, b.Version),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(changes)
}

// worst returns the gravest change that is not safe.
func worst(changes []Change) (Change, bool) {
	for _, severity := range []Severity{Lossy, Breaking} {
		if i := slices.IndexFunc(changes, func(c Change) bool { return c.Severity == severity }); i >= 0 {
			return changes[i], true
		}
	}
	return Change{}, false
}

func compareIdentity(previous, next *Definition) []Change {
	var changes []Change
	add := func(kind ChangeKind, severity Severity, what string, a, b any) {
		if !equality.Semantic.DeepEqual(a, b) {
			changes = append(changes, Change{Kind: kind, Severity: severity, Message: fmt.Sprintf("%s changed from %v to %v", what, a, b)})
		}
	}
	a, b := previous.Spec, next.Spec
	add(GroupChanged, Breaking, "group", a.Group, b.Group)
	add(ScopeChanged, Breaking, "scope", a.Scope, b.Scope)
	add(NamesChanged, Breaking, "kind", a.Names.Kind, b.Names.Kind)
	add(NamesChanged, Breaking, "plural name", a.Names.Plural, b.Names.Plural)
	add(NamesChanged, Breaking, "list kind", a.Names.ListKind, b.Names.ListKind)
	add(NamesChanged, Breaking, "singular name", a.Names.Singular, b.Names.Singular)
	add(NamesChanged, Safe, "short names", a.Names.ShortNames, b.Names.ShortNames)
	add(NamesChanged, Safe, "categories", a.Names.Categories, b.Names.Categories)
	if a.PreserveUnknownFields && !b.PreserveUnknownFields {
		changes = append(changes, Change{
			Kind: "preserveUnknownFields", Severity: Lossy, Message: "fields that the schema does not have are no longer kept",
		})
	}
	return changes
}

// Impossible returns the reason why the API server will never replace a served CRD by another one of the same name; ""
// without such a reason.
func Impossible(previous, next *Definition) string {
	established := slices.ContainsFunc(previous.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
	switch a, b := previous.Spec, next.Spec; {
	case !established:
		return ""
	case a.Scope != b.Scope:
		return fmt.Sprintf("its scope can never change from %s to %s", a.Scope, b.Scope)
	case a.Names.Kind != b.Names.Kind:
		return fmt.Sprintf("its kind can never change from %s to %s", a.Names.Kind, b.Names.Kind)
	}
	return ""
}

func compareConversion(previous, next *Definition) []Change {
	a, b := previous.Spec.Conversion, next.Spec.Conversion
	webhook := apiextensionsv1.WebhookConverter
	switch {
	case equality.Semantic.DeepEqual(a, b):
		return nil
	case a.Strategy == webhook && b.Strategy != webhook:
		return []Change{{Kind: ConversionChanged, Severity: Breaking, Message: "objects are no longer converted between versions"}}
	case a.Strategy != webhook && b.Strategy == webhook:
		return []Change{{Kind: ConversionChanged, Severity: Safe, Message: "objects are converted by a webhook from now on"}}
	}
	return []Change{{Kind: ConversionChanged, Severity: Safe, Message: "the conversion webhook's configuration changed"}}
}

func compareVersionLists(previous, next *Definition) []Change {
	var changes []Change
	for _, name := range previous.stored() {
		if next.version(name) == nil {
			changes = append(changes, Change{
				Kind: StoredRemoved, Severity: Breaking, Version: name,
				Message: "objects may be stored in this version, so the API server refuses its removal",
			})
		}
	}
	for i := range previous.Spec.Versions {
		old := &previous.Spec.Versions[i]
		if version := next.version(old.Name); old.Served && (version == nil || !version.Served) {
			changes = append(changes, Change{
				Kind: VersionRemoved, Severity: Breaking, Version: old.Name, Message: "is no longer served",
			})
		}
	}
	for _, version := range next.Spec.Versions {
		if old := previous.version(version.Name); old == nil || !old.Served && version.Served {
			changes = append(changes, Change{Kind: VersionAdded, Severity: Safe, Version: version.Name, Message: "is new"})
		}
	}
	if a, b := previous.StorageVersion(), next.StorageVersion(); a != b && a != "" && b != "" {
		changes = append(changes, Change{
			Kind: StorageChanged, Severity: Safe, Message: fmt.Sprintf("objects are stored as %s instead of %s", b, a),
		})
	}
	return changes
}

// stored are the versions in which objects may lie in etcd.
func (d *Definition) stored() []string {
	if len(d.Status.StoredVersions) > 0 {
		return d.Status.StoredVersions
	}
	if name := d.StorageVersion(); name != "" {
		return []string{name}
	}
	return nil
}

// StorageVersion is the version that objects are stored in.
func (d *Definition) StorageVersion() string {
	for _, version := range d.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

func (d *Definition) version(name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range d.Spec.Versions {
		if d.Spec.Versions[i].Name == name {
			return &d.Spec.Versions[i]
		}
	}
	return nil
}

func schemaOf(version *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return &apiextensionsv1.JSONSchemaProps{}
	}
	return version.Schema.OpenAPIV3Schema
}

// compareVersions compares each version with its namesake.
func compareVersions(previous, next *Definition, left *int) []Change {
	var changes []Change
	for i := range previous.Spec.Versions {
		a := &previous.Spec.Versions[i]
		b := next.version(a.Name)
		if b == nil || !a.Served && !a.Storage {
			continue
		}
		changes = append(changes, compareSchemas(schemaOf(a), schemaOf(b), a.Name, left)...)
		changes = append(changes, compareExtras(a, b)...)
	}
	return changes
}

// compareExtras compares a version besides its schema.
func compareExtras(a, b *apiextensionsv1.CustomResourceDefinitionVersion) []Change {
	var changes []Change
	add := func(kind ChangeKind, severity Severity, message string) {
		changes = append(changes, Change{Kind: kind, Severity: severity, Version: a.Name, Message: message})
	}
	var olds, news apiextensionsv1.CustomResourceSubresources
	if a.Subresources != nil {
		olds = *a.Subresources
	}
	if b.Subresources != nil {
		news = *b.Subresources
	}
	switch {
	case olds.Status == nil && news.Status != nil:
		add(SubresourceStatus, Breaking, "status becomes a subresource: clients that write it with the object no longer do")
	case olds.Status != nil && news.Status == nil:
		add(SubresourceStatus, Breaking, "status is no longer a subresource")
	}
	switch {
	case equality.Semantic.DeepEqual(olds.Scale, news.Scale):
	case olds.Scale == nil:
		add(SubresourceScale, Safe, "gains the scale subresource")
	default:
		add(SubresourceScale, Breaking, "the scale subresource changed or is gone")
	}
	for _, old := range a.SelectableFields {
		if !slices.Contains(b.SelectableFields, old) {
			add(SelectableFields, Breaking, "objects can no longer be selected by "+old.JSONPath)
		}
	}
	for _, added := range b.SelectableFields {
		if !slices.Contains(a.SelectableFields, added) {
			add(SelectableFields, Safe, "objects can be selected by "+added.JSONPath)
		}
	}
	if !equality.Semantic.DeepEqual(a.AdditionalPrinterColumns, b.AdditionalPrinterColumns) {
		add(PrinterColumns, Safe, "the printed columns changed")
	}
	if !a.Deprecated && b.Deprecated {
		add("deprecated", Safe, "is deprecated")
	}
	return changes
}

// compareStored checks reading objects that etcd has in one version as another version, without conversion. Earlier
// losses of that kind are not reported again.
func compareStored(previous, next *Definition, left *int) []Change {
	if next.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
		return nil
	}
	var changes []Change
	for _, name := range previous.stored() {
		from := previous.version(name)
		if from == nil {
			continue
		}
		for i := range next.Spec.Versions {
			to := &next.Spec.Versions[i]
			if to.Name == name || !to.Served {
				continue
			}
			known := map[Change]bool{}
			label := name + " -> " + to.Name
			if old := previous.version(to.Name); old != nil && old.Served && previous.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter {
				for _, change := range compareSchemas(schemaOf(from), schemaOf(old), label, left) {
					known[change] = true
				}
			}
			for _, change := range compareSchemas(schemaOf(from), schemaOf(to), label, left) {
				if change.Severity != Safe && !known[change] {
					changes = append(changes, change)
				}
			}
		}
	}
	return changes
}

// compareSchemas walks two schemas together, and takes each compared pair of fields from left. When nothing is left,
// the rest is one breaking change.
func compareSchemas(a, b *apiextensionsv1.JSONSchemaProps, version string, left *int) []Change {
	w := walk{version: version, left: left}
	w.node(complete(a), complete(b), "")
	return w.changes
}

// complete returns the schema of an object as the API server applies it: every object has apiVersion, kind and metadata,
// and of metadata a schema can restrict the name only.
func complete(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	metadata := apiextensionsv1.JSONSchemaProps{Type: "object"}
	if given, ok := s.Properties["metadata"]; ok {
		metadata = given
	}
	metadata.Properties = withDefaults(metadata.Properties, map[string]apiextensionsv1.JSONSchemaProps{"name": text, "generateName": text})
	whole := *s
	whole.Properties = withDefaults(s.Properties, map[string]apiextensionsv1.JSONSchemaProps{"apiVersion": text, "kind": text})
	whole.Properties["metadata"] = metadata
	whole.Required = slices.DeleteFunc(slices.Clone(s.Required), func(name string) bool {
		return name == "apiVersion" || name == "kind" || name == "metadata"
	})
	return &whole
}

func withDefaults[V any](given, defaults map[string]V) map[string]V {
	all := maps.Clone(defaults)
	maps.Copy(all, given)
	return all
}

type walk struct {
	version string
	changes []Change
	left    *int // pairs of fields
	ended   bool
}

// ends takes one from the budget, and reports that nothing was left.
func (w *walk) ends(path string) bool {
	if w.ended {
		return true
	}
	*w.left--
	if *w.left >= 0 && len(w.changes) < maxChanges {
		return false
	}
	w.ended = true
	w.add(Unhandled, Breaking, path, "the schemas differ too much to be compared")
	return true
}

func (w *walk) add(kind ChangeKind, severity Severity, path, format string, args ...any) {
	w.changes = append(w.changes, Change{
		Kind: kind, Severity: severity, Version: w.version, Path: path, Message: fmt.Sprintf(format, args...),
	})
}

func (w *walk) node(a, b *apiextensionsv1.JSONSchemaProps, path string) {
	if w.ends(path) || equality.Semantic.DeepEqual(a, b) {
		return
	}
	if a.XEmbeddedResource && b.XEmbeddedResource {
		a, b = complete(a), complete(b)
	}
	w.constraints(a, b, path)
	w.properties(a, b, path)
	w.values(a, b, path)
	switch {
	case a.Items != nil && a.Items.Schema != nil && b.Items != nil && b.Items.Schema != nil:
		w.node(a.Items.Schema, b.Items.Schema, path+"[*]")
	case equality.Semantic.DeepEqual(a.Items, b.Items):
	case a.Items != nil && b.Items == nil && preserves(b):
		w.add("items", Safe, path, "entries are no longer checked")
	default:
		w.add("items", Breaking, path, "entries have another schema")
	}
}

func preserves(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
}

func (w *walk) properties(a, b *apiextensionsv1.JSONSchemaProps, path string) {
	for _, name := range slices.Sorted(maps.Keys(a.Properties)) {
		old := a.Properties[name]
		at := join(path, name)
		if w.ends(at) {
			return
		}
		switch next, ok := b.Properties[name]; {
		case ok:
			w.node(&old, &next, at)
		case b.AdditionalProperties != nil && b.AdditionalProperties.Schema != nil:
			w.node(&old, b.AdditionalProperties.Schema, at)
		case preserves(b) || b.AdditionalProperties != nil && b.AdditionalProperties.Allows:
			w.add(FieldRemoved, Safe, at, "is kept, but no longer checked")
		default:
			w.add(FieldRemoved, Lossy, at, "is removed: its values are dropped")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.Properties)) {
		next := b.Properties[name]
		if w.ends(join(path, name)) {
			return
		}
		switch _, ok := a.Properties[name]; {
		case ok:
		case a.AdditionalProperties != nil && a.AdditionalProperties.Schema != nil:
			w.node(a.AdditionalProperties.Schema, &next, join(path, name))
		case preserves(a) || a.AdditionalProperties != nil:
			w.add(FieldAdded, Breaking, join(path, name), "is checked from now on; it could hold anything before")
		default:
			w.add(FieldAdded, Safe, join(path, name), "is new")
		}
	}
}

// values compares the schemas of maps with free keys.
func (w *walk) values(a, b *apiextensionsv1.JSONSchemaProps, path string) {
	at := join(path, "*")
	switch x, y := a.AdditionalProperties, b.AdditionalProperties; {
	case x == nil && y == nil:
	case x != nil && !x.Allows && x.Schema == nil:
		// no further keys were possible
	case x == nil:
		if len(a.Properties) == 0 && preserves(a) && y.Schema != nil {
			w.add("additionalProperties", Breaking, at, "values are checked from now on; they could be anything before")
		} else {
			w.add("additionalProperties", Safe, at, "further keys are accepted")
		}
	case y == nil || y.Schema == nil && !y.Allows:
		if preserves(b) {
			w.add("additionalProperties", Safe, at, "values are kept, but no longer checked")
		} else {
			w.add("additionalProperties", Lossy, at, "keys that the schema does not name are dropped")
		}
	case x.Schema != nil && y.Schema != nil:
		w.node(x.Schema, y.Schema, at)
	case x.Schema == nil && y.Schema != nil:
		w.add("additionalProperties", Breaking, at, "values are checked from now on; they could be anything before")
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
