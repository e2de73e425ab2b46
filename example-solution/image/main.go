// Image builds the container images of this Solution without a container engine: it compiles each program statically for
// each platform and writes one OCI image layout, which solution.yaml then names as the source of the images.
//
//	go run ./image                     # build/images, version as in solution.yaml
//	go run ./image -version 1.0.1-dev
//
// The same source gives the same bytes, on any machine with the same Go: no clock, path, user or version control state
// goes in.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// programs are the images: what solution.yaml calls them in the layout, and the program inside.
var programs = []program{
	{ref: "operator", name: "example-solution-operator", pkg: "./operator"},
	{ref: "server", name: "example-solution-server", pkg: "./server"},
	{ref: "ui", name: "example-solution-ui", pkg: "./ui"},
}

// architectures are the Linux platforms that every image is built for.
var architectures = []string{"amd64", "arm64"}

type program struct {
	ref  string // reference in the layout
	name string // of the image and of the executable
	pkg  string // Go package
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], ".", os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "image: error:", err)
		os.Exit(1)
	}
}

// run builds the module at root.
func run(ctx context.Context, args []string, root string, out, errOut io.Writer) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.SetOutput(errOut)
	version := flags.String("version", "", "version of the programs (default that of solution.yaml)")
	layout := flags.String("out", filepath.Join(root, "build", "images"), "directory of the image layout; replaced when it exists")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *version == "" {
		v, err := solutionVersion(filepath.Join(root, "solution.yaml"))
		if err != nil {
			return err
		}
		*version = v
	}
	bin, err := os.MkdirTemp("", "image-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(bin) }()
	executables, err := compile(ctx, root, bin, *version, errOut)
	if err != nil {
		return err
	}
	return writeLayout(*layout, executables, *version, out)
}

func solutionVersion(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var solution struct {
		Spec struct{ Version string }
	}
	if err := yaml.Unmarshal(data, &solution); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	if solution.Spec.Version == "" {
		return "", fmt.Errorf("%s: spec.version is missing", file)
	}
	return solution.Spec.Version, nil
}
