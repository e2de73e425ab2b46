package target_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/lint/target"
)

// TestText has files beyond the limit of documents: the registry configuration of an archive with thousands of images is one.
func TestText(t *testing.T) {
	for _, test := range []struct {
		name string
		size int
		ok   bool
	}{
		{"release-notes.md", target.MaxText, true},
		{"release-notes.md", target.MaxText + 1, false},
		{oci.RegistryConfigFile, 2 * target.MaxText, true},
		{oci.RegistryConfigFile, oci.MaxRegistryConfig + 1, false},
	} {
		fsys := fstest.MapFS{test.name: {Data: []byte(strings.Repeat("#", test.size))}}
		if _, err := (&target.Target{FS: fsys}).Text(test.name); err == nil != test.ok {
			t.Errorf("%s of %d bytes: %v", test.name, test.size, err)
		}
	}
}
