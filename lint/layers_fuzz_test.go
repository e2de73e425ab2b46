package lint

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/solutionctl/solutionctl/build/oci"
)

// FuzzLayer offers any bytes as a layer: they are read within bounds, or refused.
func FuzzLayer(f *testing.F) {
	f.Add([]byte("\x28\xb5\x2f\xfd"))
	f.Add([]byte("\x1f\x8b\x08\x00"))
	f.Fuzz(func(t *testing.T, layer []byte) {
		blob := oci.Blob{Open: func(context.Context, int64) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer)), nil }}
		v := variant{layers: []oci.Blob{blob, blob}}
		v.config.Architecture = "amd64"
		once, twice := v.search(t.Context(), "demo-operator"), v.search(t.Context(), "demo-operator")
		if once != twice {
			t.Errorf("got %q, then %q", once, twice)
		}
	})
}
