package engine

import (
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// listFunctions are the functions whose results or work do not follow from the size of their arguments.
func (b *budget) listFunctions() template.FuncMap {
	table := template.FuncMap{
		"until":     func(count int) ([]int, error) { return b.steps("until", 0, count, sign(count)) },
		"untilStep": func(start, stop, step int) ([]int, error) { return b.steps("untilStep", start, stop, step) },
		"seq":       b.seq,
		"dict":      b.dict, "set": b.set, "concat": b.concat,
		"split": func(separator, text string) (map[string]string, error) { return b.split("split", separator, -1, text) },
		"splitn": func(separator string, n int, text string) (map[string]string, error) {
			return b.split("splitn", separator, n, text)
		},
		"splitList": b.splitList,
		"eq":        b.eq, "ne": b.ne,
	}
	original := sprig.TxtFuncMap()
	for _, name := range []string{"append", "mustAppend", "push", "mustPush", "prepend", "mustPrepend"} {
		table[name] = b.grown(name, original[name])
	}
	for _, name := range []string{"chunk", "mustChunk"} {
		table[name] = b.chunk(name, original[name])
	}
	for _, name := range []string{"slice", "mustSlice"} {
		table[name] = b.slice(name, original[name])
	}
	for _, name := range []string{"merge", "mustMerge", "mergeOverwrite", "mustMergeOverwrite"} {
		table[name] = b.merge(name, original[name])
	}
	for _, name := range []string{"deepCopy", "mustDeepCopy"} {
		table[name] = b.deepCopy(name, original[name])
	}
	b.comparing(table, original)
	return table
}

// either calls a function of sprig, of which some have an error and some do not.
func either(function any, arguments ...any) (any, error) {
	switch f := function.(type) {
	case func(any) any:
		return f(arguments[0]), nil
	case func(any) (any, error):
		return f(arguments[0])
	}
	in := make([]reflect.Value, len(arguments))
	kind := reflect.TypeOf(function)
	for i, argument := range arguments {
		if in[i] = reflect.ValueOf(argument); argument == nil {
			in[i] = reflect.Zero(kind.In(min(i, kind.NumIn()-1)))
			if kind.IsVariadic() && i >= kind.NumIn()-1 {
				in[i] = reflect.Zero(kind.In(kind.NumIn() - 1).Elem())
			}
		}
	}
	out := reflect.ValueOf(function).Call(in)
	if len(out) > 1 && !out[1].IsNil() {
		return nil, out[1].Interface().(error)
	}
	return out[0].Interface(), nil
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

// length is that of a list or a table, 0 for everything else.
func length(list any) int {
	switch list := list.(type) {
	case []any:
		return len(list)
	case map[string]any:
		return len(list)
	case string, nil:
		return 0
	}
	v := reflect.ValueOf(list)
	if k := v.Kind(); k == reflect.Slice || k == reflect.Array || k == reflect.Map {
		return v.Len()
	}
	return 0
}

// list asks for a new list of so many elements.
func (b *budget) list(name string, elements, size int) error {
	if err := b.result(name, product(elements, size)); err != nil {
		return err
	}
	return b.spend(callCost + int64(elements)*elementWork)
}

func (b *budget) grown(name string, original any) any {
	return func(list, element any) ([]any, error) {
		if err := b.list(name, length(list)+1, 32); err != nil { // append doubles
			return nil, err
		}
		result, err := either(original, list, element)
		made, _ := result.([]any)
		if err != nil {
			return nil, err
		}
		return made, keepList(b, made)
	}
}

func (b *budget) concat(lists ...any) (any, error) {
	total := 0
	for _, list := range lists {
		total += length(list)
	}
	if err := b.list("concat", total, 32); err != nil {
		return nil, err
	}
	var joined []any
	for _, list := range lists {
		v := reflect.ValueOf(list)
		if k := reflect.TypeOf(list).Kind(); k != reflect.Slice && k != reflect.Array {
			return nil, fmt.Errorf("cannot concat type %s as list", k)
		}
		for i := range v.Len() {
			joined = append(joined, v.Index(i).Interface())
		}
	}
	return joined, keepList(b, joined)
}

func (b *budget) chunk(name string, original any) any {
	return func(size int, list any) ([][]any, error) {
		count := length(list)
		if size <= 0 {
			return nil, fmt.Errorf("%s: a chunk of %d elements is not possible", name, size)
		}
		size = min(size, max(count, 1)) // or its last chunk would be as large
		if err := b.list(name, count+2*(count/size+1), 24); err != nil {
			return nil, err
		}
		result, err := either(original, size, list)
		made, _ := result.([][]any)
		if err != nil {
			return nil, err
		}
		return made, b.keepSmall(int64(count)*16 + int64(len(made))*40)
	}
}

func (b *budget) slice(name string, original any) any {
	return func(list any, indices ...any) (any, error) {
		if _, err := b.look(name, indices...); err != nil {
			return nil, err
		}
		return either(original, append([]any{list}, indices...)...)
	}
}

// steps are the numbers from start until before stop.
func (b *budget) steps(name string, start, stop, step int) ([]int, error) {
	if step == 0 || stop < start && step > 0 || stop > start && step < 0 {
		return []int{}, nil
	}
	count := math.Abs(float64(stop)-float64(start))/math.Abs(float64(step)) + 1
	if err := b.list(name, int(min(count, math.MaxInt32)), 16); err != nil {
		return nil, err
	}
	list := []int{}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; {
		list = append(list, i)
		next := i + step
		if next > i != (step > 0) {
			break // it is beyond the range of integers
		}
		i = next
	}
	return list, keepList(b, list)
}

// seq is sprig's, which follows seq(1): LAST, FIRST LAST or FIRST INCREMENT LAST, both ends included.
func (b *budget) seq(params ...int) (string, error) {
	start, step := 1, 1
	var end int
	switch len(params) {
	case 1:
		end = params[0]
	case 2:
		start, end = params[0], params[1]
	case 3:
		start, step, end = params[0], params[1], params[2]
	default:
		return "", nil
	}
	if len(params) < 3 && end < start {
		step = -1
	}
	list, err := b.steps("seq", start, end+sign(step), step)
	if err != nil {
		return "", err
	}
	text := strings.Trim(fmt.Sprint(list), "[]")
	return text, b.keepText(text)
}

func (b *budget) split(name, separator string, n int, text string) (map[string]string, error) {
	parts, err := b.parts(name, separator, n, text, 128)
	if err != nil {
		return nil, err
	}
	table := make(map[string]string, len(parts))
	for i, part := range parts {
		table[fmt.Sprintf("_%d", i)] = part
	}
	return table, b.keepSmall(int64(len(parts)) * 100)
}

func (b *budget) splitList(separator, text string) ([]string, error) {
	parts, err := b.parts("splitList", separator, -1, text, 16)
	if err != nil {
		return nil, err
	}
	return parts, keepList(b, parts)
}

func (b *budget) parts(name, separator string, n int, text string, size int) ([]string, error) {
	count := strings.Count(text, separator) + 1
	if n >= 0 {
		count = min(count, n)
	}
	if err := b.spend(int64(len(text))); err != nil {
		return nil, err
	}
	if err := b.list(name, count, size); err != nil {
		return nil, err
	}
	return strings.SplitN(text, separator, n), nil
}

func (b *budget) dict(pairs ...any) (map[string]any, error) {
	table := make(map[string]any, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok {
			s, err := b.look("dict", pairs[i])
			if err == nil {
				err = b.room(s.printed())
			}
			if err != nil {
				return nil, err
			}
			key = text(pairs[i])
			if err = b.keepText(key); err != nil {
				return nil, err
			}
		}
		table[key] = ""
		if i+1 < len(pairs) {
			table[key] = pairs[i+1]
		}
	}
	if err := b.spend(callCost + int64(len(pairs))*50); err != nil {
		return nil, err
	}
	return table, b.keepSmall(tableSize + entrySize*int64(len(table)))
}

func (b *budget) set(table map[string]any, key string, value any) (map[string]any, error) {
	before := len(table)
	table[key] = value
	if err := b.spend(callCost); err != nil {
		return nil, err
	}
	return table, b.keepSmall(entrySize * int64(len(table)-before))
}

// merge checks the tables that both sides have: values of only one side are used unchanged, and may contain themselves.
func (b *budget) merge(name string, original any) any {
	return func(under map[string]any, over ...map[string]any) (any, error) {
		arguments := []any{under}
		for _, table := range over {
			if err := b.meet(name, under, table, 0); err != nil {
				return nil, err
			}
			if err := b.keepSmall(entrySize * int64(len(table))); err != nil {
				return nil, err
			}
			arguments = append(arguments, table)
		}
		return either(original, arguments...)
	}
}

func (b *budget) meet(name string, under, over map[string]any, depth int) error {
	if depth > maxDepth {
		return excess(fmt.Sprintf("%s: a value contains itself or is nested more than %d deep", name, maxDepth))
	}
	if err := b.spend(callCost + int64(len(over))*200); err != nil {
		return err
	}
	for key, value := range over {
		above, below := asTable(value), asTable(under[key])
		if above != nil && below != nil {
			if err := b.meet(name, below, above, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func asTable(value any) map[string]any {
	switch value := value.(type) {
	case map[string]any:
		return value
	case Values:
		return value
	}
	return nil
}

// copySize is the memory of a copied value, including tables with a few values.
const copySize = 80

func (b *budget) deepCopy(name string, original any) any {
	return func(value any) (any, error) {
		s, err := b.look(name, value)
		if err != nil {
			return nil, err
		}
		if err = b.spend(s.values * 1000); err != nil {
			return nil, err
		}
		release, err := b.reserve(s.values * entrySize)
		if err != nil {
			return nil, err
		}
		defer release()
		copied, err := either(original, value)
		if err != nil {
			return nil, err
		}
		return copied, b.keepSmall(s.values * copySize)
	}
}

// comparing bounds the functions that compare each element with all others.
func (b *budget) comparing(table, original template.FuncMap) {
	for _, name := range []string{"uniq", "mustUniq"} {
		table[name] = func(list any) (any, error) {
			return b.compared(name, original[name], length(list), list)
		}
	}
	for _, name := range []string{"without", "mustWithout"} {
		table[name] = func(list any, others ...any) (any, error) {
			return b.compared(name, original[name], len(others), append([]any{list}, others...)...)
		}
	}
	table["sortAlpha"] = func(list any) (any, error) {
		return b.compared("sortAlpha", original["sortAlpha"], 2*bits.Len(uint(length(list))), list)
	}
}

func (b *budget) compared(name string, original any, rounds int, arguments ...any) (any, error) {
	s, err := b.look(name, arguments...)
	if err != nil {
		return nil, err
	}
	if err = b.spend(product(rounds, int(s.values*50+s.bytes/8))); err != nil {
		return nil, err
	}
	if err = b.list(name, length(arguments[0]), 32); err != nil {
		return nil, err
	}
	result, err := either(original, arguments...)
	if err != nil {
		return nil, err
	}
	switch list := result.(type) {
	case []any:
		err = keepList(b, list)
	case []string:
		err = b.keepTexts(list, arguments[0])
	}
	return result, err
}

// texts are the elements of a list as sprig makes texts of them.
func texts(list any) []string {
	switch list := list.(type) {
	case nil:
		return nil
	case []string:
		return list
	}
	v := reflect.ValueOf(list)
	if k := v.Kind(); k != reflect.Slice && k != reflect.Array {
		return []string{text(list)}
	}
	result := make([]string, 0, v.Len())
	for i := range v.Len() {
		if element := v.Index(i).Interface(); element != nil {
			result = append(result, text(element))
		}
	}
	return result
}

func text(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case []byte:
		return string(value)
	case error:
		return value.Error()
	case fmt.Stringer:
		return value.String()
	}
	return fmt.Sprint(value)
}
