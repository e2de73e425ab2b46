package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// executable is a program compiled for one architecture.
type executable struct {
	program
	architecture string
	file         string
}

// compiler compiles the programs of the module at root into the directory bin.
type compiler struct {
	release
	root, bin string
	errOut    io.Writer
}

// compile builds every program for every architecture, in the order of solution.yaml.
func (c compiler) compile(ctx context.Context) ([]executable, error) {
	var all []executable
	for _, p := range c.programs {
		for _, architecture := range architectures {
			e := executable{p, architecture, filepath.Join(c.bin, p.name+"-"+architecture)}
			if err := c.build(ctx, e); err != nil {
				return nil, fmt.Errorf("build %s for linux/%s: %w", p.name, architecture, err)
			}
			all = append(all, e)
		}
	}
	return all, nil
}

// build compiles one static executable. Its flags, and the variables it clears, keep the machine out of the result.
func (c compiler) build(ctx context.Context, e executable) error {
	file, err := filepath.Abs(e.file)
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-tags="+strings.Join(c.tags, ","),
		"-ldflags=-s -w -buildid= -X main.version="+c.version, "-o", file, "./"+e.ref)
	build.Dir = c.root
	build.Stdout, build.Stderr = c.errOut, c.errOut
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+e.architecture, "CGO_ENABLED=0",
		"GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off")
	return build.Run()
}
