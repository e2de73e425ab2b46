package build_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/build/oci"
)

// A project becomes a plan, and the plan an archive. Each step can be looked at before the next.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err = os.CopyFS(dir, os.DirFS("testdata/project")); err != nil {
		fmt.Println(err)
		return
	}

	project, err := build.Load(dir, build.Overrides{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = project.Close() }()
	resolver := oci.NewResolver(oci.Options{BaseDir: project.Dir})
	defer func() { _ = resolver.Close() }()
	plan, err := build.NewPlan(context.Background(), project, resolver, build.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, file := range plan.Files()[:2] {
		fmt.Println(file.Path, file.Size)
	}
	result, err := plan.Write(context.Background(), filepath.Join(dir, "demo.iso"), build.WriteOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Images, "images,", result.Size, "bytes")
	// Output:
	// manifest.yaml 488
	// operator/deploy/crds/projects_cr.yaml 100
	// 1 images, 135168 bytes
}
