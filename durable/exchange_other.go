//go:build !linux

package durable

import (
	"errors"
	"fmt"
)

// Exchange lets two names lead to what the other one led to, at once: a reader of either finds one of the two at any moment. Not
// every system and file system can.
func Exchange(a, b string) error {
	return fmt.Errorf("exchange %s and %s: %w", a, b, errors.ErrUnsupported)
}
