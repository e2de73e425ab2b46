package engine

import (
	"errors"
	"fmt"
	"reflect"
)

// eq is that of text/template, whose errors have the values in them, however large they are.
func (b *budget) eq(first reflect.Value, others ...reflect.Value) (bool, error) {
	if len(others) == 0 {
		return false, errors.New("missing argument for comparison")
	}
	first = concrete(first)
	for _, other := range others {
		other = concrete(other)
		work := int64(callCost)
		if other.Kind() == reflect.String {
			work += int64(other.Len()) / 4
		}
		if err := b.spend(work); err != nil {
			return false, err
		}
		same, err := equal(first, other)
		if same || err != nil {
			return same, err
		}
	}
	return false, nil
}

func (b *budget) ne(first, other reflect.Value) (bool, error) {
	same, err := b.eq(first, other)
	return !same, err
}

// concrete returns the value in an interface.
func concrete(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Interface && !v.IsNil() {
		return v.Elem()
	}
	if v.Kind() == reflect.Interface {
		return reflect.Value{}
	}
	return v
}

func equal(a, b reflect.Value) (bool, error) {
	switch {
	case a.CanInt() && b.CanUint():
		return a.Int() >= 0 && uint64(a.Int()) == b.Uint(), nil
	case a.CanUint() && b.CanInt():
		return b.Int() >= 0 && a.Uint() == uint64(b.Int()), nil
	case basic(a) != basic(b):
		if a.IsValid() && b.IsValid() {
			return false, fmt.Errorf("incompatible types for comparison: %v and %v", a.Type(), b.Type())
		}
		return false, nil
	}
	switch basic(a) {
	case reflect.Bool:
		return a.Bool() == b.Bool(), nil
	case reflect.Complex128:
		return a.Complex() == b.Complex(), nil
	case reflect.Float64:
		return a.Float() == b.Float(), nil
	case reflect.Int64:
		return a.Int() == b.Int(), nil
	case reflect.String:
		return a.String() == b.String(), nil
	case reflect.Uint64:
		return a.Uint() == b.Uint(), nil
	}
	switch {
	case a.Kind() != b.Kind() && a.IsValid() && b.IsValid():
		return false, fmt.Errorf("non-comparable types %v and %v", a.Type(), b.Type())
	case isNil(a) || isNil(b):
		return isNil(a) == isNil(b), nil
	case !b.Type().Comparable():
		return false, fmt.Errorf("non-comparable type %v", b.Type())
	}
	return a.Interface() == b.Interface(), nil
}

// basic is the largest kind of those that compare with each other, Invalid for all that are not basic.
func basic(v reflect.Value) reflect.Kind {
	switch {
	case v.Kind() == reflect.Bool, v.Kind() == reflect.String:
		return v.Kind()
	case v.CanInt():
		return reflect.Int64
	case v.CanUint():
		return reflect.Uint64
	case v.CanFloat():
		return reflect.Float64
	case v.CanComplex():
		return reflect.Complex128
	}
	return reflect.Invalid
}

func isNil(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Pointer, reflect.Slice:
		return v.IsNil()
	}
	return false
}
