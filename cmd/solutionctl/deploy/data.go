package deploy

import (
	"cmp"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema/report"
)

// dataFlags say what happens to custom resources.
type dataFlags struct {
	keep, remove bool
	export       string
}

func (f *dataFlags) add(cmd *cobra.Command, keep, usage string) {
	flags := cmd.Flags()
	flags.BoolVar(&f.keep, keep, false, usage)
	flags.BoolVar(&f.remove, "delete-data", false, "export and delete every custom resource")
	flags.StringVar(&f.export, "export", "", "where --delete-data writes custom resources to, a new `FILE` (default NAME-TIME.json)")
	cmd.MarkFlagsMutuallyExclusive(keep, "delete-data")
}

// policy returns the data policy of the flags and the export of custom resources that are to be deleted. Its file is called
// name, unless the flags name another.
func (f *dataFlags) policy(a *cli.App, name string) (plan.DataPolicy, definitions.Export) {
	switch {
	case f.keep:
		return plan.KeepData, nil
	case f.remove:
		return plan.DeleteData, export(a, f.export, name)
	default:
		return plan.RefuseData, nil
	}
}

// lossFlags accept that custom resources lose data, or are not valid any more.
type lossFlags struct {
	accepted, invalid []string
	export            string
}

func (f *lossFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.accepted, "accept-data-loss", nil, "export the objects of these custom resource definitions, `NAME,...`, and let them lose data")
	flags.StringSliceVar(&f.invalid, "accept-invalid", nil, "let objects of these custom resource definitions, `NAME,...`, become invalid")
	flags.StringVar(&f.export, "export", "", "where --accept-data-loss writes custom resources to, a new `FILE` (default NAME-TIME.json)")
}

// options returns what the flags accept, with an export to a file that is named after the Solution or environment by default.
func (f *lossFlags) options(a *cli.App, name string) definitions.Losses {
	return definitions.Losses{AcceptDataLoss: f.accepted, AcceptInvalid: f.invalid, Export: export(a, f.export, name)}
}

// export writes custom resources to a new file. What is in it is about to be deleted.
func export(a *cli.App, file, name string) definitions.Export {
	return func(write func(io.Writer) error) error {
		path, err := filepath.Abs(cmp.Or(file, name+"-"+a.Now().UTC().Format("20060102T150405Z")+".json"))
		if err != nil {
			return err
		}
		if err := cli.WriteNew(path, write); err != nil {
			return err
		}
		a.Sink.Emit(report.Event{Step: "export", Name: path, State: report.Done})
		return nil
	}
}
