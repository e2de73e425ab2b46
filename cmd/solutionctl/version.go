package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
)

// version is set by the linker (-X main.version=1.2.3); without it the build information of the Go toolchain serves.
var version string

type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  solutionctl version --output json",
		RunE: func(*cobra.Command, []string) error {
			info := readVersion()
			return a.EmitResult(info, func(w *console.Stream) {
				text := "solutionctl " + info.Version
				if info.Commit != "" {
					text += " (" + info.Commit + ")"
				}
				fmt.Fprintf(w, "%s, %s, %s\n", text, info.Go, info.Platform)
			})
		},
	}
}

func readVersion() versionInfo {
	info := versionInfo{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	info.Version = cmp.Or(info.Version, build.Main.Version)
	for _, setting := range build.Settings {
		switch {
		case setting.Key == "vcs.revision":
			info.Commit = setting.Value + info.Commit
		case setting.Key == "vcs.modified" && setting.Value == "true":
			info.Commit += "-modified"
		}
	}
	return info
}
