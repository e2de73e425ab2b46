//go:build unix

package trust_test

import (
	"syscall"
	"testing"
)

func mkfifo(t *testing.T, name string) {
	t.Helper()
	check(t, syscall.Mkfifo(name, 0o644))
}
