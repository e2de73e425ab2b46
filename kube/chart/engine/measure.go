package engine

import (
	"fmt"
	"math"
	"reflect"
	"time"
)

// maxDepth bounds tables and lists in each other where a function looks through them. A table that contains itself has no end.
const maxDepth = 1000

// The printed size of values besides texts and tables, and of the text around a value.
const (
	scalarSize = 24
	valueSize  = 8
)

// size is the size of a printed value: everything in it counts as often as it occurs.
type size struct {
	bytes   int64 // of texts and keys
	raw     int64 // bytes of files, which are printed as numbers
	values  int64 // among them tables and lists
	longest int64 // text
	deep    bool  // it is nested more than maxDepth deep, or contains itself
	limit   int64 // where measuring stops
}

// measure looks through a value until it is larger than the limit.
func measure(value any, limit int64) size {
	s := size{limit: limit}
	s.add(value, 0)
	return s
}

// printed estimates the size of the value in a text.
func (s *size) printed() int64 { return s.bytes + s.values*valueSize + 4*s.raw }

func (s *size) full() bool { return s.deep || s.bytes+s.values*valueSize+s.raw > s.limit }

func (s *size) text(length int) {
	s.bytes += int64(length)
	s.longest = max(s.longest, int64(length))
}

// count returns how many values are in a table, itself included.
func count(table map[string]any) (int64, error) {
	s := measure(table, math.MaxInt64)
	if s.deep {
		return 0, tooMuch("values are nested more than %d deep", maxDepth)
	}
	return s.values, nil
}

// enter reports whether the content of a table or list counts.
func (s *size) enter(depth int) bool {
	if depth > maxDepth {
		s.deep = true
	}
	return !s.full()
}

func (s *size) add(value any, depth int) {
	s.values++
	switch value := value.(type) {
	case nil:
	case string:
		s.text(len(value))
	case bool, int, int64, float64:
		s.bytes += scalarSize
	case map[string]any:
		s.table(value, depth)
	case Values:
		s.table(value, depth)
	case []any:
		for i := 0; i < len(value) && s.enter(depth); i++ {
			s.add(value[i], depth+1)
		}
	case []string:
		for i := 0; i < len(value) && s.enter(depth); i++ {
			s.values++
			s.text(len(value[i]))
		}
	case []byte:
		s.raw += int64(len(value))
	case time.Time, error:
		s.bytes += 100
	default:
		s.reflected(reflect.ValueOf(value), depth)
	}
}

func (s *size) table(table map[string]any, depth int) {
	for key, value := range table {
		if !s.enter(depth) {
			return
		}
		s.text(len(key))
		s.add(value, depth+1)
	}
}

// reflected adds values of other types.
func (s *size) reflected(v reflect.Value, depth int) {
	if !s.enter(depth) {
		return
	}
	switch v.Kind() {
	case reflect.String:
		s.text(v.Len())
	case reflect.Map:
		for i := v.MapRange(); i.Next() && s.enter(depth); {
			s.values++
			s.reflected(i.Key(), depth+1)
			s.reflected(i.Value(), depth+1)
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			s.raw += int64(v.Len())
			return
		}
		for i := 0; i < v.Len() && s.enter(depth); i++ {
			s.values++
			s.reflected(v.Index(i), depth+1)
		}
	case reflect.Struct:
		for i := 0; i < v.NumField() && s.enter(depth); i++ {
			s.values++
			s.reflected(v.Field(i), depth+1)
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			s.reflected(v.Elem(), depth+1)
		}
	default:
		s.bytes += scalarSize
	}
}

// look measures the arguments of a function, and refuses those that are too large or endless.
func (b *budget) look(name string, values ...any) (size, error) {
	s := size{limit: maxText}
	for _, value := range values {
		if text, ok := value.(string); ok { // most are
			s.values++
			s.text(len(text))
			continue
		}
		s.add(value, 0)
	}
	return s, b.judge(name, &s)
}

func (b *budget) judge(name string, s *size) error {
	if err := b.spend(callCost + s.values*30 + (s.bytes+s.raw)/8); err != nil {
		return err
	}
	switch {
	case s.deep:
		return excess(fmt.Sprintf("%s: a value contains itself or is nested more than %d deep", name, maxDepth))
	case s.full():
		return excess(fmt.Sprintf("%s: a value is larger than %d MiB", name, maxText>>20))
	}
	return nil
}

// endless reports whether a value contains itself. Unlike [measure] it looks at each table and list once.
func endless(value any) bool {
	const under, done = 1, 2
	states := map[uintptr]int{}
	type step struct {
		value any
		leave bool
	}
	for stack := []step{{value: value}}; len(stack) > 0; {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		v := reflect.ValueOf(at.value)
		if k := v.Kind(); k != reflect.Map && k != reflect.Slice || v.Len() == 0 {
			continue
		}
		start := v.Pointer()
		if at.leave {
			states[start] = done
			continue
		}
		switch states[start] {
		case under:
			return true
		case done:
			continue
		}
		states[start] = under
		stack = append(stack, step{at.value, true})
		if v.Kind() == reflect.Map {
			for i := v.MapRange(); i.Next(); {
				stack = append(stack, step{value: i.Value().Interface()})
			}
			continue
		}
		for i := range v.Len() {
			stack = append(stack, step{value: v.Index(i).Interface()})
		}
	}
	return false
}
