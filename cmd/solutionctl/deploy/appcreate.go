package deploy

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newAppCreateCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create ENVIRONMENT NAME",
		Short: "Create an application and wait until it is ready",
		Long: `Create an application and wait until it is ready. Values come from a file or from --set. Without either, the command asks
for them on a terminal.`,
		Args: cli.ExactArgs("ENVIRONMENT", "NAME"),
		Example: `  solutionctl deploy app create test shop --set title=Shop --set replicas=2
  solutionctl deploy app create test shop --values shop.yaml`,
	}
	c := &appCreation{appFlags: addAppChangeFlags(a, cmd)}
	cmd.Flags().StringArrayVar(&c.sets, "set", nil, "fill in a field: `FIELD=VALUE` (may be repeated)")
	cmd.Flags().StringVar(&c.file, "values", "", "a `FILE` with values, or with a whole custom resource; - is standard input")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) }
	return cmd
}

// appCreation is a run of 'deploy app create'.
type appCreation struct {
	*appFlags
	sets []string
	file string
}

func (c *appCreation) run(ctx context.Context, args []string) error {
	values, err := c.readValues(c.file)
	if err != nil {
		return err
	}
	return c.do(args, func(d *deployer.Deployer) (*schema.App, error) {
		if c.Interactive && c.file == "" && len(c.sets) == 0 {
			if c.sets, err = c.askApp(ctx, d, c.o); err != nil {
				return nil, err
			}
		}
		return d.Apps.Create(ctx, apps.CreateOptions{Options: c.o, Values: values, Set: c.sets})
	})
}

// maxValues bounds a file with values; etcd takes no larger object.
const maxValues = 1 << 20

func (f *clusterFlags) readValues(file string) ([]byte, error) {
	in := f.In
	switch file {
	case "":
		return nil, nil
	case "-":
	default:
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // opened for reading
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxValues+1))
	if err == nil && len(data) > maxValues {
		err = report.Errorf(report.Invalid, "%s is larger than %d bytes", file, maxValues)
	}
	return data, err
}
