//go:build unix

package store

import (
	"context"
	"testing"
)

// contextOfTests is that of the process which a test kills, too.
var contextOfTests = context.Background()

func cancelled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
