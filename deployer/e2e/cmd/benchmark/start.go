//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// starts is the number of pairs in which the start is measured: it is short, and the machine disturbs it most.
const starts = 20

// named are the packages of the libraries that the product is made with, as far as it uses them: none of them can be left out.
var named = []string{
	"github.com/spf13/cobra",
	"github.com/diskfs/go-diskfs/backend/file", "github.com/diskfs/go-diskfs/filesystem/iso9660",
	"github.com/google/go-containerregistry/pkg/authn", "github.com/google/go-containerregistry/pkg/name",
	"github.com/google/go-containerregistry/pkg/v1/remote/transport",
	"github.com/santhosh-tekuri/jsonschema/v6",
	"github.com/sigstore/sigstore-go/pkg/verify",
	"github.com/Masterminds/semver/v3",
	"k8s.io/client-go/rest", "k8s.io/client-go/tools/clientcmd",
}

// benchmarkStart compares the start of the program with that of an empty Go program, and of one that only links the named libraries.
func benchmarkStart(ctx context.Context, s settings) error {
	contestants := []contestant{{name: "an empty Go program (floor)"}, {name: "the seven named libraries, unused"}, {"solutionctl version", []string{s.binary, "version"}, nil}}
	for i, imports := range [][]string{nil, named} {
		program := filepath.Join(s.dir, fmt.Sprint("start", i))
		if err := buildIdle(ctx, program, imports); err != nil {
			return err
		}
		contestants[i].command = []string{program}
	}
	samples, err := compare(ctx, starts, contestants...)
	if err != nil {
		return err
	}
	fmt.Printf("\nStart\n\n| | wall | to the first | CPU | to the first | peak RssAnon |\n|---|---|---|---|---|---|\n")
	for i, c := range contestants {
		walls, cpus := seconds(samples[i], wall), seconds(samples[i], cpu)
		fmt.Printf("| %s | %.1f ms | %.1f | %.1f ms | %.1f | %.1f MiB |\n", c.name,
			median(walls)*1e3, median(ratios(walls, seconds(samples[0], wall))),
			median(cpus)*1e3, median(ratios(cpus, seconds(samples[0], cpu))), median(anon(samples[i])))
	}
	return nil
}

// buildIdle builds a program that links packages and does nothing.
func buildIdle(ctx context.Context, program string, imports []string) error {
	var source strings.Builder
	source.WriteString("package main\n\n")
	for _, name := range imports {
		fmt.Fprintf(&source, "import _ %q\n", name)
	}
	source.WriteString("\nfunc main() {}\n")
	if err := os.WriteFile(program+".go", []byte(source.String()), 0o600); err != nil {
		return err
	}
	// As .ci/build does: without cgo, and without the traces of grpc.
	return inModule(ctx, "env", "CGO_ENABLED=0", "go", "build", "-tags", "grpcnotrace", "-trimpath", "-ldflags", "-s -w", "-o", program, program+".go")
}
