// Image builds the container images of this Solution without a container engine: it compiles each program statically for
// each platform and writes one OCI image layout, which solution.yaml then names as the source of the images.
//
//	go run ./image                     # build/images, version and programs as in solution.yaml
//	go run ./image -version 1.0.1-dev
//	go run ./image releases/2.0.0      # releases/2.0.0/build/images, as in releases/2.0.0/solution.yaml
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
)

// architectures are the Linux platforms that every image is built for.
var architectures = []string{"amd64", "arm64"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], ".", os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "image: error:", err)
		os.Exit(1)
	}
}

// run builds the images of one release from the module at root.
func run(ctx context.Context, args []string, root string, out, errOut io.Writer) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.SetOutput(errOut)
	version := flags.String("version", "", "version of the programs (default that of solution.yaml)")
	layout := flags.String("out", "", "directory of the image layout; replaced when it exists (default DIRECTORY/build/images)")
	flags.Usage = func() {
		fmt.Fprintln(errOut, "usage: go run ./image [flags] [DIRECTORY of a solution.yaml]")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 1 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(1))
	}
	dir := root
	if flags.NArg() == 1 {
		dir = flags.Arg(0)
	}
	r, err := readRelease(dir)
	if err != nil {
		return err
	}
	if *version != "" {
		r.version = *version
	}
	if *layout == "" {
		*layout = filepath.Join(dir, "build", "images")
	}
	bin, err := os.MkdirTemp("", "image-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(bin) }()
	executables, err := compiler{release: r, root: root, bin: bin, errOut: errOut}.compile(ctx)
	if err != nil {
		return err
	}
	return writeLayout(*layout, r, executables, out)
}
