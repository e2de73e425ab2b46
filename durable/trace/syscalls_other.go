//go:build linux && !amd64

package trace

// oldChanges are system calls that only older processors have.
var oldChanges map[uint64]change
