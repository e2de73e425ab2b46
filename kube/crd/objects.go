package crd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Invalid is a reason for which the API server would refuse an object.
type Invalid struct {
	Path    string
	Message string
}

func (i Invalid) String() string {
	if i.Path == "" {
		return i.Message
	}
	return i.Path + ": " + i.Message
}

// LostField is the path of a field that the API server would drop, and how many values lie below it.
type LostField struct {
	Path   string
	Values int
}

// Checker judges objects against the versions of one definition. The schemas are compiled once; a Checker may be used
// by several goroutines.
type Checker struct {
	versions map[string]*compiled
}

type compiled struct {
	apiVersion string
	structural *structural.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator // nil when the schema has none
}

// NewChecker compiles the schemas of every version of the definition.
func NewChecker(d *Definition) (*Checker, error) {
	c := &Checker{versions: map[string]*compiled{}}
	if excess := d.tooLarge(); excess != "" {
		return nil, report.Errorf(report.Invalid, "custom resource definition %s: %s", d.Name, excess).
			WithHint("make several definitions of it")
	}
	internal, err := d.internal()
	if err != nil {
		return nil, err
	}
	for _, version := range d.Spec.Versions {
		one, err := compile(internal, version.Name)
		if err != nil {
			return nil, report.Errorf(report.Invalid, "custom resource definition %s: version %s: %w", d.Name, version.Name, err).
				WithHint("lint the definition: its schema cannot be used")
		}
		c.versions[version.Name] = one
	}
	return c, nil
}

func compile(d *apiextensions.CustomResourceDefinition, version string) (*compiled, error) {
	schema, err := apiextensions.GetSchemaForVersion(d, version)
	if err != nil {
		return nil, err
	}
	one := &compiled{apiVersion: d.Spec.Group + "/" + version}
	if schema == nil || schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("there is no schema")
	}
	if one.structural, err = structural.NewStructural(schema.OpenAPIV3Schema.DeepCopy()); err != nil {
		return nil, err
	}
	if errs := structural.ValidateStructural(nil, one.structural); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	if one.schema, _, err = validation.NewSchemaValidator(schema.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	one.rules = cel.NewValidator(one.structural, true, celconfig.PerCallLimit)
	return one, nil
}

// Check returns the fields that the API server would drop from a stored object in the given version, and the reasons
// why it would refuse it, both in the order of the paths. Defaults are filled in first, as on a read. With a conversion
// webhook, the object must be the webhook's result. The object is not changed.
func (c *Checker) Check(ctx context.Context, version string, object map[string]any) ([]Invalid, []LostField, error) {
	one, ok := c.versions[version]
	if !ok {
		return nil, nil, report.Errorf(report.Invalid, "version %s does not exist", version)
	}
	work, ok := copyJSON(object).(map[string]any)
	if !ok {
		return nil, nil, report.Errorf(report.Invalid, "the object is empty")
	}
	work["apiVersion"] = one.apiVersion
	lost := one.prune(work, object)
	defaulting.PruneNonNullableNullsWithoutDefaults(work, one.structural)
	defaulting.Default(work, one.structural)
	return one.invalid(ctx, work), lost, nil
}

// prune removes fields without a schema from work and finds their values in the original.
func (one *compiled) prune(work, original map[string]any) []LostField {
	options := structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	before := original
	paths := pruning.PruneWithOptions(work, one.structural, true, options)
	lost := make([]LostField, len(paths))
	for i, path := range paths {
		lost[i] = LostField{Path: path, Values: countAt(before, path)}
	}
	return lost
}

// Missing lists the paths of values of an object that another form of it lacks, or has changed. Of the metadata, labels
// and annotations count: the API server lets a conversion change nothing else.
func Missing(object, other map[string]any) []string {
	said := func(object map[string]any) map[string]any {
		all, _ := copyJSON(object).(map[string]any)
		metadata, _ := all["metadata"].(map[string]any)
		delete(all, "apiVersion")
		all["metadata"] = map[string]any{}
		for _, field := range []string{"labels", "annotations"} {
			if value, ok := metadata[field]; ok {
				all["metadata"].(map[string]any)[field] = value
			}
		}
		return all
	}
	return missing("", said(object), said(other), nil)
}

func missing(path string, a, b any, found []string) []string {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return append(found, path)
		}
		for _, name := range slices.Sorted(maps.Keys(x)) {
			if value, ok := y[name]; ok {
				found = missing(join(path, name), x[name], value, found)
			} else {
				found = append(found, join(path, name))
			}
		}
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return append(found, path)
		}
		for i := range x {
			found = missing(fmt.Sprintf("%s[%d]", path, i), x[i], y[i], found)
		}
	default:
		if a != b {
			return append(found, path)
		}
	}
	return found
}

// countAt counts the scalars below a path of the form spec.list[0].name; 1 when the path cannot be followed because a
// key has a dot.
func countAt(value any, path string) int {
	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok {
			number, after, _ := strings.Cut(rest, "]")
			list, _ := value.([]any)
			var index int
			if _, err := fmt.Sscanf(number, "%d", &index); err != nil || index >= len(list) {
				return 1
			}
			value, path = list[index], strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		m, _ := value.(map[string]any)
		next, ok := m[path[:end]]
		if !ok {
			return 1
		}
		value = next
		path = strings.TrimPrefix(path[end:], ".")
	}
	return max(1, countScalars(value))
}

func countScalars(value any) int {
	count := 0
	switch v := value.(type) {
	case map[string]any:
		for _, entry := range v {
			count += countScalars(entry)
		}
	case []any:
		for _, entry := range v {
			count += countScalars(entry)
		}
	default:
		return 1
	}
	return count
}

func (one *compiled) invalid(ctx context.Context, object map[string]any) []Invalid {
	errs := validation.ValidateCustomResource(nil, object, one.schema)
	errs = append(errs, objectmeta.Validate(nil, object, one.structural, true)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, one.structural, object)...)
	if one.rules != nil && !malformed(errs) {
		broken, _ := one.rules.Validate(ctx, nil, one.structural, object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	all := make([]Invalid, 0, len(errs))
	for _, err := range errs {
		path := err.Field
		if path == "<nil>" {
			path = ""
		}
		all = append(all, Invalid{Path: path, Message: refusal(err)})
	}
	slices.SortFunc(all, func(a, b Invalid) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(all)
}

// malformed reports whether rules would get values of other types than they were compiled for; the API server skips
// them then as well.
func malformed(errs field.ErrorList) bool {
	return slices.ContainsFunc(errs, func(err *field.Error) bool {
		switch err.Type {
		case field.ErrorTypeTypeInvalid, field.ErrorTypeRequired, field.ErrorTypeNotSupported, field.ErrorTypeTooLong, field.ErrorTypeTooMany:
			return true
		}
		return false
	})
}

// copyJSON copies an object into the types that the API server's code insists on: int64 and float64 for numbers.
func copyJSON(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if v == nil {
			return nil
		}
		m := make(map[string]any, len(v))
		for key, entry := range v {
			m[key] = copyJSON(entry)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, entry := range v {
			list[i] = copyJSON(entry)
		}
		return list
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case uint64:
		return int64(v) //nolint:gosec // numbers above 2^63 cannot be stored
	case float64:
		if v == math.Trunc(v) && math.Abs(v) <= 1<<53 {
			return int64(v) // as encoding/json decodes 3
		}
	case json.Number:
		if whole, err := v.Int64(); err == nil {
			return whole
		}
		fraction, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return fraction
	}
	return value
}
