package deploy

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer/support/bundle"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newSupportBundleCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "support-bundle [FILE]",
		Short: "Collect states, versions and events for the support team",
		Long: `Write a .tar.gz with the data that a support team needs for a diagnosis: findings of the doctor, versions, imports, environments,
records of deployments, and the states of workloads, pods and definitions with their events. It can be read without this
program; its README.txt describes the files.

It is put together field by field. There are no values of Secrets and ConfigMaps in it, no environment, arguments or
commands of containers, no annotations, nothing out of custom resources and no text that a program has written. There are
names in it: of objects, hosts, users, images and paths. --logs adds what containers have written and the messages of all
events, which may be anything: look through it before you pass it on.

Only you can read the file. Without a name it is solutionctl-support-TIME.tar.gz; nothing is replaced.`,
		Example: `  solutionctl deploy support-bundle
  solutionctl deploy support-bundle --logs case-4711.tar.gz`,
		Args: cli.OptionalArgs(nil, "FILE"),
	}
	c := &supportBundle{hostFlags: hostFlags{clusterFlags: addClusterFlags(a, cmd)}}
	c.addPlaces(cmd)
	cmd.Flags().BoolVar(&c.logs, "logs", false, "add what containers have written, and the messages of all events")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), append(args, "")[0]) }
	return cmd
}

// supportBundle is a run of 'deploy support-bundle'.
type supportBundle struct {
	hostFlags
	logs bool
}

func (c *supportBundle) run(ctx context.Context, file string) error {
	if file == "-" {
		return report.Errorf(report.Usage, "a support bundle is a file, not standard output").WithHint("name a file, such as case.tar.gz")
	}
	now := c.Now()
	path, err := filepath.Abs(cmp.Or(file, "solutionctl-support-"+now.UTC().Format("20060102T150405Z")+".tar.gz"))
	if err != nil {
		return err
	}
	x, err := c.examine(ctx)
	if err != nil {
		return err
	}
	archives, _ := x.Store.Entries() // what is wrong with the store is in the diagnosis
	b, err := bundle.Collect(ctx, bundle.Options{
		Diagnosis: x.diagnosis, Archives: archives, Deployer: x.Deployer, Tool: c.Version, Now: now, Logs: c.logs,
	})
	if err != nil {
		return err
	}
	if err := cli.WriteNew(path, func(w io.Writer) error { return bundle.Write(w, b.Files, now) }); err != nil {
		return err
	}
	return c.emitBundle(path, b)
}

func (f *clusterFlags) emitBundle(path string, b *bundle.Bundle) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	result := &schema.SupportReport{Path: path, Size: info.Size(), Files: []string{}, Missing: b.Document.Missing}
	for _, file := range b.Files {
		result.Files = append(result.Files, file.Name)
	}
	return f.EmitResult(result, func(w *console.Stream) {
		fmt.Fprintf(w, "%s: %s, %s\n", console.Clean(path), report.Bytes(result.Size), report.Count(len(result.Files), "file"))
		console.PrintEach(w, console.Yellow, "not collected:", result.Missing)
	})
}
