package artifact_test

import (
	"context"
	"fmt"

	"github.com/solutionctl/solutionctl/build/artifact"
	"github.com/solutionctl/solutionctl/build/layout/layouttest"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Example makes the artifact of an archive: its frame and its blobs are layers.
func Example() {
	data, err := layouttest.Make("1.0.0", make([]byte, 100_000))
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := artifact.New(context.Background(), source(data), nil, report.Discard)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, b := range a.Image.Blobs {
		fmt.Println(b.MediaType)
	}
	// Output:
	// application/vnd.solutionctl.archive.layout.v1+json
	// application/vnd.solutionctl.archive.frame.v1+zstd
	// application/octet-stream
}
