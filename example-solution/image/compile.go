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

// compile builds every program for every architecture into the directory bin, in the order of solution.yaml.
func compile(ctx context.Context, root, bin string, r release, errOut io.Writer) ([]executable, error) {
	var all []executable
	for _, p := range r.programs {
		for _, architecture := range architectures {
			file := filepath.Join(bin, p.name+"-"+architecture)
			if err := goBuild(ctx, root, p, architecture, r, file, errOut); err != nil {
				return nil, fmt.Errorf("build %s for linux/%s: %w", p.name, architecture, err)
			}
			all = append(all, executable{p, architecture, file})
		}
	}
	return all, nil
}

// goBuild compiles one static executable. Its flags, and the variables it clears, keep the machine out of the result.
func goBuild(ctx context.Context, root string, p program, architecture string, r release, file string, errOut io.Writer) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-tags="+strings.Join(r.tags, ","),
		"-ldflags=-s -w -buildid= -X main.version="+r.version, "-o", file, "./"+p.ref)
	build.Dir = root
	build.Stdout, build.Stderr = errOut, errOut
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+architecture, "CGO_ENABLED=0",
		"GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off")
	return build.Run()
}
