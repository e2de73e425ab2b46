package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// executable is a program compiled for one architecture.
type executable struct {
	program
	architecture string
	file         string
}

// compile builds every program for every architecture into the directory bin, in the order of the tables.
func compile(ctx context.Context, root, bin, version string, errOut io.Writer) ([]executable, error) {
	var all []executable
	for _, p := range programs {
		for _, architecture := range architectures {
			file := filepath.Join(bin, p.name+"-"+architecture)
			if err := goBuild(ctx, root, p.pkg, architecture, version, file, errOut); err != nil {
				return nil, fmt.Errorf("build %s for linux/%s: %w", p.pkg, architecture, err)
			}
			all = append(all, executable{p, architecture, file})
		}
	}
	return all, nil
}

// goBuild compiles one static executable. Its flags, and the variables it clears, keep the machine out of the result.
func goBuild(ctx context.Context, root, pkg, architecture, version, file string, errOut io.Writer) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -buildid= -X main.version="+version, "-o", file, pkg)
	build.Dir = root
	build.Stdout, build.Stderr = errOut, errOut
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+architecture, "CGO_ENABLED=0",
		"GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off")
	return build.Run()
}
