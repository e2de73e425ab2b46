package sign_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// TestVerdictOfInterruption shows the exit status with which the program ends.
func TestVerdictOfInterruption(t *testing.T) {
	w := newWorld(t)
	store, err := trust.Load([]string{w.trustDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	verdict, _, err := sign.Verify(ctx, bytes.NewReader(w.data), int64(len(w.data)), w.bundles, sign.Options{Store: store, Now: now, Workers: 2})
	if !errors.Is(err, context.Canceled) || verdict.Verified || verdict.Code != report.Cancelled || verdict.Exit != 130 {
		t.Errorf("%v, code %s, exit %d", err, verdict.Code, verdict.Exit)
	}
}
