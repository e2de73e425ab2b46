package oci

import (
	"iter"
	"sync"
)

// once is a value that is made for the first who needs it and shared by all others, who wait for it. A failure is not
// kept: the next one tries again. The zero value is ready to use.
type once[T any] struct {
	mu    sync.Mutex
	done  bool
	value T
}

func (o *once[T]) get(create func() (T, error)) (T, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		return o.value, nil
	}
	value, err := create()
	if err == nil {
		o.value, o.done = value, true
	}
	return value, err
}

// take removes the value, if there is one.
func (o *once[T]) take() (T, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	value, done := o.value, o.done
	var zero T
	o.value, o.done = zero, false
	return value, done
}

// onces is one such value for each key. The zero value is ready to use.
type onces[K comparable, T any] struct {
	mu     sync.Mutex
	values map[K]*once[T]
}

func (o *onces[K, T]) get(key K, create func() (T, error)) (T, error) {
	o.mu.Lock()
	if o.values == nil {
		o.values = map[K]*once[T]{}
	}
	value := o.values[key]
	if value == nil {
		value = &once[T]{}
		o.values[key] = value
	}
	o.mu.Unlock()
	return value.get(create)
}

// drain removes and yields every value.
func (o *onces[K, T]) drain() iter.Seq[T] {
	return func(yield func(T) bool) {
		o.mu.Lock()
		defer o.mu.Unlock()
		for key, v := range o.values {
			delete(o.values, key)
			if value, ok := v.take(); ok && !yield(value) {
				return
			}
		}
	}
}
