package archive_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestReadDocument has files beyond 4 MiB: the registry configuration of an archive with thousands of images is one.
func TestReadDocument(t *testing.T) {
	for _, test := range []struct {
		name string
		size int
		want report.Code
	}{
		{archive.ManifestFile, 4 << 20, ""},
		{archive.ManifestFile, 4<<20 + 1, report.Invalid},
		{oci.RegistryConfigFile, 8 << 20, ""},
		{oci.RegistryConfigFile, oci.MaxRegistryConfig + 1, report.Invalid},
	} {
		fsys := fstest.MapFS{test.name: {Data: []byte(strings.Repeat("#", test.size))}}
		_, err := archive.ReadDocument(fsys, test.name)
		if got := report.CodeOf(err); err == nil != (test.want == "") || err != nil && got != test.want {
			t.Errorf("%s of %d bytes: %v", test.name, test.size, err)
		}
	}
}
