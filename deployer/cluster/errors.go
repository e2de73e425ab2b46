package cluster

import "errors"

// What a caller can do something about; use errors.Is.
var (
	// ErrExists means that an object that was to be created is there already.
	ErrExists = errors.New("it exists already")
	// ErrChanged means that an object is gone or no longer what it was when it was read: read it again.
	ErrChanged = errors.New("it was changed meanwhile")
)
