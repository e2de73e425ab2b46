package engine

import (
	"fmt"
	"reflect"
	"slices"
	"text/template"
)

// cost describes a function whose result or work is larger than the default: a result as large as its texts, and the
// work of reading them twice.
type cost struct {
	grow    int64 // bytes of the result for each byte of the texts
	scratch int64 // bytes that it needs meanwhile, for each byte of the texts
	fixed   int64 // work of a call
	perByte int64 // work
	element int64 // work for each element of a list, or entry of a table
	shares  bool  // its result is a part of a text, or one of the values that it gets
	maxText int64 // bytes of one text
}

const maxKey = 8 << 10 // bytes of a private key: one of RSA with 8192 bits has 6,400

// costs has the functions with other costs. Growth is that of the worst text: escapes, and letters that are longer in
// another case.
var costs = map[string]cost{
	"trim": {shares: true}, "trimAll": {shares: true}, "trimall": {shares: true}, "trimPrefix": {shares: true}, "trimSuffix": {shares: true},
	"trunc": {shares: true}, "substr": {shares: true}, "base": {shares: true}, "ext": {shares: true},
	"coalesce": {shares: true}, "default": {shares: true}, "dig": {shares: true}, "first": {shares: true}, "get": {shares: true}, "last": {shares: true},
	"mustFirst": {shares: true}, "mustLast": {shares: true}, "required": {shares: true}, "ternary": {shares: true}, "unset": {shares: true},
	"upper": {grow: 2}, "lower": {grow: 2}, "title": {grow: 2}, "untitle": {grow: 2, scratch: 4, perByte: 10}, "swapcase": {grow: 2, scratch: 4, perByte: 10},
	"nospace": {grow: 2, perByte: 10}, "initials": {grow: 2, perByte: 10}, "snakecase": {grow: 3, perByte: 50}, "kebabcase": {grow: 3, perByte: 50},
	"camelcase": {grow: 3, perByte: 50}, "shuffle": {grow: 2, scratch: 4, perByte: 50},
	"quote": {grow: 4, perByte: 10}, "squote": {grow: 2}, "b32enc": {grow: 2}, "b64enc": {grow: 2}, "regexQuoteMeta": {grow: 2},
	"html": {grow: 6, scratch: 6, perByte: 10}, "js": {grow: 6, scratch: 6, perByte: 10}, "urlquery": {grow: 3, scratch: 3, perByte: 10}, "urlParse": {perByte: 10}, "urlJoin": {grow: 3, perByte: 10},
	"semver": {perByte: 100}, "semverCompare": {perByte: 200}, "date": {grow: 5}, "dateInZone": {grow: 5}, "date_in_zone": {grow: 5},
	"addf": decimal, "add1f": decimal, "subf": decimal, "mulf": decimal, "divf": decimal,
	"keys": {element: sortWork}, "values": {element: sortWork},
	"sha1sum": {perByte: 5}, "sha256sum": {perByte: 5}, "sha512sum": {perByte: 5}, "encryptAES": {grow: 2, perByte: 10}, "decryptAES": {perByte: 10},

	"bcrypt": {fixed: 60e6}, "htpasswd": {fixed: 60e6}, "derivePassword": {fixed: 250e6, scratch: 1},
	"genPrivateKey": {fixed: 100e6}, "buildCustomCert": {fixed: 5e6, maxText: 4 * maxKey},
	"genCA": {fixed: 40e6, maxText: maxKey}, "genSelfSignedCert": {fixed: 40e6, maxText: maxKey}, "genSignedCert": {fixed: 40e6, maxText: maxKey},
	"genCAWithKey": {fixed: 40e6, maxText: maxKey}, "genSelfSignedCertWithKey": {fixed: 40e6, maxText: maxKey}, "genSignedCertWithKey": {fixed: 40e6, maxText: maxKey},
}

// decimal is the cost of arithmetic with all digits of numbers, which may have six hundred.
var decimal = cost{fixed: 100_000, perByte: 1000}

// opaque are the functions that do not look into the values that they get, so that these may contain themselves.
var opaque = map[string]bool{
	"all": true, "any": true, "coalesce": true, "compact": true, "default": true, "dig": true, "empty": true, "first": true, "get": true,
	"hasKey": true, "include": true, "initial": true, "keys": true, "kindIs": true, "kindOf": true, "last": true, "list": true,
	"mustCompact": true, "mustFirst": true, "mustInitial": true, "mustLast": true, "mustRest": true, "mustReverse": true, "omit": true, "pick": true,
	"pluck": true, "required": true, "rest": true, "reverse": true, "ternary": true, "tpl": true, "tuple": true, "typeIs": true,
	"typeIsLike": true, "typeOf": true, "unset": true, "values": true,
}

// bounded returns the given functions within a budget. Results of functions from outside of the engine count for ever,
// as those functions may keep them.
func (b *budget) bounded(table template.FuncMap, remembered bool) template.FuncMap {
	result := make(template.FuncMap, len(table))
	for name, function := range table {
		c := costs[name]
		c.grow = max(c.grow, 1)
		c.perByte = max(c.perByte, 2)
		c.element = max(c.element, elementWork)
		result[name] = (&bounds{budget: b, name: name, cost: c, opaque: opaque[name], remembered: remembered}).bounded(function)
	}
	return result
}

// bounds are the bounds of one function.
type bounds struct {
	*budget
	cost

	name               string
	opaque, remembered bool
}

// bounded returns a function of the same kind that may fail. There are types that are called often, and all others.
func (c *bounds) bounded(function any) any {
	switch f := function.(type) {
	case func(string) string:
		return func(s string) (string, error) { return c.text1(f, s) }
	case func(string, string) string:
		return func(s, t string) (string, error) {
			if err := c.texts(len(s) + len(t)); err != nil {
				return "", err
			}
			return c.made(f(s, t))
		}
	case func(string, string) bool:
		return func(s, t string) (bool, error) {
			if err := c.texts(len(s) + len(t)); err != nil {
				return false, err
			}
			return f(s, t), nil
		}
	case func(int, string) string:
		return func(n int, s string) (string, error) {
			if err := c.texts(len(s)); err != nil {
				return "", err
			}
			return c.made(f(n, s))
		}
	case func(any) string:
		return func(v any) (string, error) { return withLook(c, v, f, c.keepText) }
	case func(any) bool:
		return func(v any) (bool, error) { return withLook(c, v, f, nil) }
	case func(any) int:
		return func(v any) (int, error) { return withLook(c, v, f, nil) }
	case func(any) int64:
		return func(v any) (int64, error) { return withLook(c, v, f, nil) }
	case func(string, any) bool:
		return func(s string, v any) (bool, error) {
			if err := c.values(s, v); err != nil {
				return false, err
			}
			return f(s, v), nil
		}
	case func(any, ...any) any:
		return func(v any, more ...any) (any, error) {
			if err := c.values(append(more, v)...); err != nil {
				return nil, err
			}
			return f(v, more...), nil
		}
	case func(any, any, bool) any:
		return func(v, w any, yes bool) (any, error) { return f(v, w, yes), c.values(v, w) }
	case func(map[string]any, string) any:
		return func(t map[string]any, key string) (any, error) { return f(t, key), c.spend(callCost) }
	case func(map[string]any, string) bool:
		return func(t map[string]any, key string) (bool, error) { return f(t, key), c.spend(callCost) }
	case func(...any) int64:
		return func(values ...any) (int64, error) {
			if err := c.values(values...); err != nil {
				return 0, err
			}
			return f(values...), nil
		}
	case func(...any) string:
		return func(values ...any) (string, error) {
			if err := c.values(values...); err != nil {
				return "", err
			}
			return c.made(f(values...))
		}
	case func(...any) []any:
		return func(values ...any) ([]any, error) {
			if err := c.values(values...); err != nil {
				return nil, err
			}
			list := f(values...)
			return list, keepList(c.budget, list)
		}
	}
	return c.reflected(reflect.ValueOf(function))
}

func withLook[T any](c *bounds, v any, f func(any) T, keep func(T) error) (result T, err error) {
	if err = c.values(v); err != nil {
		return result, err
	}
	result = f(v)
	if keep != nil {
		err = keep(result)
	}
	return result, err
}

func (c *bounds) text1(f func(string) string, s string) (string, error) {
	if err := c.texts(len(s)); err != nil {
		return "", err
	}
	return c.made(f(s))
}

// texts reserves the cost of a call with so many bytes of texts.
func (c *bounds) texts(bytes int) error {
	n := int64(bytes)
	if err := c.spend(callCost + c.fixed + n*c.perByte); err != nil {
		return err
	}
	if !c.shares && n*c.grow > largeValue {
		if n > maxText || n*c.grow > 2*maxText {
			return c.result(c.name, n*c.grow)
		}
		return c.room(n * (c.grow + c.scratch))
	}
	return nil
}

// made counts a text that was made.
func (c *bounds) made(text string) (string, error) {
	if c.shares {
		return text, nil
	}
	return text, c.keepText(text)
}

// values reserves the cost of a call with such values.
func (c *bounds) values(values ...any) error {
	if c.opaque {
		work := int64(callCost + len(values)*10)
		if !c.shares {
			for _, value := range values {
				work += int64(length(value)) * c.element
			}
		}
		return c.spend(work)
	}
	s, err := c.look(c.name, values...)
	if err != nil {
		return err
	}
	if c.maxText > 0 && s.longest > c.maxText {
		return excess(fmt.Sprintf("%s: a text is longer than %d bytes", c.name, c.maxText))
	}
	return c.texts(int(s.printed()))
}

// reflected bounds functions of any type.
func (c *bounds) reflected(f reflect.Value) any {
	kind := f.Type()
	in := slices.Collect(kind.Ins())
	fail := func(err error) []reflect.Value {
		return []reflect.Value{reflect.Zero(kind.Out(0)), reflect.ValueOf(&err).Elem()}
	}
	return reflect.MakeFunc(reflect.FuncOf(in, []reflect.Type{kind.Out(0), reflect.TypeFor[error]()}, kind.IsVariadic()), func(arguments []reflect.Value) []reflect.Value {
		values := make([]any, 0, len(arguments))
		for i, a := range arguments {
			if kind.IsVariadic() && i == len(arguments)-1 {
				for j := range a.Len() {
					values = append(values, a.Index(j).Interface())
				}
				break
			}
			values = append(values, a.Interface())
		}
		if err := c.values(values...); err != nil {
			return fail(err)
		}
		results := f.Call
		if kind.IsVariadic() {
			results = f.CallSlice
		}
		out := results(arguments)
		if len(out) > 1 && !out[1].IsNil() {
			return fail(out[1].Interface().(error))
		}
		if err := c.keep(out[0], values); err != nil {
			return fail(err)
		}
		return []reflect.Value{out[0], reflect.Zero(reflect.TypeFor[error]())}
	}).Interface()
}

// keep counts the result of a call.
func (c *bounds) keep(result reflect.Value, arguments []any) error {
	if c.remembered {
		s := measure(result.Interface(), maxText)
		for _, a := range arguments {
			s.add(a, 0)
		}
		return c.keepSmall(s.bytes + s.values*entrySize)
	}
	if c.shares {
		return nil
	}
	switch value := result.Interface().(type) {
	case string:
		_, err := c.made(value)
		return err
	case []any:
		return keepList(c.budget, value)
	case []string:
		if c.opaque { // its texts are parts of what it gets
			return keepList(c.budget, value)
		}
		return c.keepTexts(value, arguments[0])
	case nil:
		return nil
	}
	if result.Kind() == reflect.Map {
		return c.keepSmall(tableSize + int64(result.Len())*entrySize)
	}
	return nil
}

// The memory of a table, and of an entry; and the work for an element of a list, or an entry of a table.
const (
	tableSize   = 300
	entrySize   = 64
	elementWork = 80
	sortWork    = 600
)
