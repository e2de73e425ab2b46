package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"
	"weak"
)

// Bounds of one rendering. The largest public charts take a third of the memory and of the work.
const (
	maxText   = 10 << 20      // bytes of all results together, and of one value
	maxMemory = 40 << 20      // bytes of values that templates hold
	maxSmall  = 40 << 20      // bytes of all small values among them
	maxWork   = 2_500_000_000 // about nanoseconds of a processor, counted the same way on every machine

	largeValue = 4 << 10  // bytes from which the memory of a value counts only while it is in use
	costOfGC   = 20 << 20 // work of a collection of garbage
	callCost   = 500      // work of a call
	headerSize = 40       // bytes of a text or list beside its content
)

// excess is the error of templates that take more than a rendering may take.
type excess string

func (e excess) Error() string { return string(e) }

// IsExcess reports whether a rendering failed because its templates take more memory, time or depth than they may.
func IsExcess(err error) bool {
	_, ok := errors.AsType[excess](err)
	return ok
}

// budget counts the memory and work of one rendering. Functions reserve memory before they allocate it.
//
// Small values count until the rendering ends. Large ones are watched by weak pointers, so that a chart that makes many
// of them and drops them again is not refused, while one that holds them is.
type budget struct {
	ctx      context.Context //nolint:containedctx // templates have no other way to learn that their time is over
	work     int64           // left
	checked  int64           // work that was left when the context was looked at
	small    int64           // bytes
	large    int64           // bytes of watched values
	reserved int64           // bytes that functions under way take
	watched  []watched
}

// watched is the memory of a large value.
type watched struct {
	start weak.Pointer[byte]
	size  int64
}

func newBudget(ctx context.Context) *budget {
	return &budget{ctx: ctx, work: maxWork, checked: maxWork}
}

// spend takes work, and looks at the context about each millisecond.
func (b *budget) spend(work int64) error {
	if b.work -= work; b.work < 0 {
		return excess("templates take more time than a chart may take")
	}
	if b.checked-b.work < 1_000_000 {
		return nil
	}
	b.checked = b.work
	return b.inTime()
}

func (b *budget) inTime() error {
	if err := b.ctx.Err(); err != nil {
		return excess("it did not end in time: " + err.Error())
	}
	return nil
}

// room fails if so many bytes more are too many.
func (b *budget) room(bytes int64) error {
	if b.small > maxSmall {
		return excess(fmt.Sprintf("templates make more than %d MiB of small values", maxSmall>>20))
	}
	fits := func() bool { return b.small+b.large+b.reserved+bytes <= maxMemory }
	if fits() {
		return nil
	}
	if b.sweep(); fits() {
		return nil
	}
	if err := b.spend(costOfGC); err != nil {
		return err
	}
	runtime.GC()
	if b.sweep(); fits() {
		return nil
	}
	return excess(fmt.Sprintf("templates take more than %d MiB of memory", maxMemory>>20))
}

// sweep forgets values that are no longer in use.
func (b *budget) sweep() {
	kept := b.watched[:0]
	b.large = 0
	for _, w := range b.watched {
		if w.start.Value() != nil {
			kept = append(kept, w)
			b.large += w.size
		}
	}
	clear(b.watched[len(kept):])
	b.watched = kept
}

// reserve reserves memory for the time of a call; release frees it.
func (b *budget) reserve(bytes int64) (release func(), err error) {
	if err = b.room(bytes); err != nil {
		return nil, err
	}
	b.reserved += bytes
	return func() { b.reserved -= bytes }, nil
}

// result checks the size of a text before it is made.
func (b *budget) result(name string, bytes int64) error {
	if bytes > maxText {
		return excess(fmt.Sprintf("%s: the result would be larger than %d MiB", name, maxText>>20))
	}
	if bytes < largeValue {
		return nil
	}
	return b.room(bytes)
}

// keepText counts a text that a function has made.
func (b *budget) keepText(text string) error {
	if len(text) < largeValue {
		return b.keepSmall(headerSize + int64(len(text)))
	}
	return b.watch(unsafe.StringData(text), int64(len(text)))
}

// keepList counts a list that a function has made, not its elements.
func keepList[E any](b *budget, list []E) error {
	size := int64(cap(list)) * int64(unsafe.Sizeof(*new(E)))
	if size < largeValue {
		return b.keepSmall(headerSize + size)
	}
	return b.watch((*byte)(unsafe.Pointer(unsafe.SliceData(list))), size)
}

// keepTexts counts a list of texts, and the texts in it. Elements of the list that they come from are shared where these are texts already.
func (b *budget) keepTexts(made []string, of any) error {
	if !hasTexts(of) {
		for _, text := range made {
			if err := b.keepText(text); err != nil {
				return err
			}
		}
	}
	return keepList(b, made)
}

// hasTexts reports whether all elements of a list are texts.
func hasTexts(list any) bool {
	switch list := list.(type) {
	case []string:
		return true
	case []any:
		return !slices.ContainsFunc(list, func(element any) bool { _, ok := element.(string); return !ok })
	}
	return false
}

func (b *budget) watch(start *byte, size int64) error {
	b.watched = append(b.watched, watched{weak.Make(start), size})
	b.large += size
	return b.room(0)
}

// keepSmall counts memory until the rendering ends.
func (b *budget) keepSmall(bytes int64) error {
	b.small += bytes
	if b.small > maxSmall {
		return b.room(0)
	}
	return nil
}
