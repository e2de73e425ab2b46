package engine

import (
	"fmt"
	"maps"
	"strings"

	"sigs.k8s.io/yaml"
)

// Values are values of a chart. Templates call the methods: .Values.AsMap is for functions that need plain tables.
type Values map[string]any

// AsMap returns the values as a plain table, which is never nil.
func (v Values) AsMap() map[string]any {
	if len(v) == 0 {
		return map[string]any{}
	}
	return v
}

// YAML returns the values as a document.
func (v Values) YAML() (string, error) {
	switch s := measure(v, maxText/2); {
	case s.deep && endless(v):
		return "", errEndless
	case s.full():
		return "", excess(fmt.Sprintf("YAML: the values are larger than %d MiB", maxText/2>>20))
	}
	data, err := yaml.Marshal(v)
	return string(data), err
}

// Table returns the table at a path, keys with dots between them.
func (v Values) Table(place string) (Values, error) {
	for key := range strings.SplitSeq(place, ".") {
		switch table := v[key].(type) {
		case map[string]any:
			v = table
		case Values:
			v = table
		default:
			return nil, fmt.Errorf("%q is not a table", key)
		}
	}
	return v, nil
}

// PathValue returns the value at a path that is not a table.
func (v Values) PathValue(place string) (any, error) {
	key := place
	if i := strings.LastIndexByte(place, '.'); i >= 0 {
		key = place[i+1:]
		var err error
		if v, err = v.Table(place[:i]); err != nil {
			return nil, fmt.Errorf("%q is not a value", key)
		}
	}
	value, ok := v[key]
	if !ok || isTable(value) {
		return nil, fmt.Errorf("%q is not a value", key)
	}
	return value, nil
}

func isTable(value any) bool {
	_, ok := value.(map[string]any)
	return ok
}

// The handling of nulls while values are merged. In the end they are dropped: a null removes a default. Before, while
// values are gathered, they are kept for that.
const (
	dropNulls = false
	keepNulls = true
)

// Complete merges values over the defaults of the chart and of its subcharts. The result shares nothing with them.
func (c *Chart) Complete(values map[string]any) (Values, error) {
	complete := copyTable(values)
	return complete, c.complete(complete, dropNulls, new(int64(maxParsed)))
}

// complete is Complete in place. shared is how many global values subcharts may still get: each gets its own table of them.
func (c *Chart) complete(values map[string]any, nulls bool, shared *int64) error {
	c.addDefaults(values, nulls)
	for _, sub := range c.Subcharts {
		if sub.Name == "global" { // Helm makes tables of it that contain themselves
			return fmt.Errorf("a subchart of %s is called global, as are values of all charts", c.Name)
		}
		if _, ok := values[sub.Name]; !ok {
			values[sub.Name] = map[string]any{}
		}
		own, ok := values[sub.Name].(map[string]any)
		if !ok {
			return fmt.Errorf("%s is a subchart of %s, and its values are not a table", sub.Name, c.Name)
		}
		if globals, ok := values["global"].(map[string]any); ok {
			count, err := count(globals)
			if err != nil {
				return err
			}
			if *shared -= count; *shared < 0 {
				return tooMuch("subcharts share more than %d global values", maxParsed)
			}
		}
		shareGlobals(own, values)
		if err := sub.complete(own, nulls, shared); err != nil {
			return err
		}
	}
	return nil
}

// addDefaults completes values of a chart, not those of its subcharts.
func (c *Chart) addDefaults(values map[string]any, nulls bool) {
	subcharts := map[string]bool{}
	for _, sub := range c.Subcharts {
		subcharts[sub.Name] = true
	}
	for key, standard := range copyTable(c.values) {
		value, given := values[key]
		table, _ := value.(map[string]any)
		defaults, _ := standard.(map[string]any)
		// Values of the chart for a subchart may have nulls, which remove defaults of the subchart later.
		later := nulls || given && subcharts[key]
		if !later {
			clean(defaults)
		}
		switch {
		case !given && (standard != nil || nulls):
			values[key] = standard
		case given && value == nil && !nulls:
			delete(values, key)
		case table != nil && defaults != nil:
			merge(table, defaults, later)
		}
	}
}

// clean takes nulls out of a table and the tables in it.
func clean(table map[string]any) {
	for key, value := range table {
		if value == nil {
			delete(table, key)
		} else if inner, ok := value.(map[string]any); ok {
			clean(inner)
		}
	}
}

// merge lays a table over defaults. A null in it stays where there is no default to take away. The defaults learn of nulls.
func merge(table, defaults map[string]any, nulls bool) {
	for key, standard := range defaults {
		value, given := table[key]
		switch {
		case !given:
			table[key] = standard
		case value == nil:
			if !nulls && standard != nil {
				delete(table, key)
			}
			defaults[key] = nil
		case isTable(value) && isTable(standard):
			merge(value.(map[string]any), standard.(map[string]any), nulls)
		}
	}
	for key, value := range table {
		if value == nil {
			defaults[key] = nil
		}
	}
}

// shareGlobals gives the globals of a chart to a subchart, over those that the subchart has.
func shareGlobals(own, values map[string]any) {
	globals, ok := tableOrNew(own, "global")
	if !ok {
		return
	}
	shared, ok := tableOrNew(values, "global")
	if !ok {
		return
	}
	for key, value := range shared {
		have, taken := globals[key]
		table, ok := value.(map[string]any)
		switch {
		case ok && taken && !isTable(have), !ok && isTable(have): // a table and something else do not mix
			continue
		case ok:
			table = maps.Clone(table)
			if taken {
				merge(table, have.(map[string]any), keepNulls)
			}
			globals[key] = table
		default:
			globals[key] = value
		}
	}
	own["global"] = globals
}

// tableOrNew returns a table of values, a new one when there is none. It is not ok when there is something else.
func tableOrNew(values map[string]any, key string) (table map[string]any, ok bool) {
	value, ok := values[key]
	if !ok {
		return map[string]any{}, true
	}
	table, ok = value.(map[string]any)
	return table, ok
}

func copyTable(table map[string]any) map[string]any {
	copied := make(map[string]any, len(table))
	for key, value := range table {
		copied[key] = copyValue(value)
	}
	return copied
}

func copyValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return copyTable(value)
	case []any:
		copied := make([]any, len(value))
		for i := range value {
			copied[i] = copyValue(value[i])
		}
		return copied
	}
	return value
}
