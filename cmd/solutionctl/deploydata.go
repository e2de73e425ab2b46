package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/deployer"
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

// dataPolicy asks for confirmation where data is to be deleted.
func (a *app) dataPolicy(ctx context.Context, f *dataFlags, dryRun bool, name, confirm string) (deployer.DataPolicy, deployer.Export, error) {
	switch {
	case f.keep:
		return deployer.KeepData, nil, nil
	case !f.remove:
		return deployer.RefuseData, nil, nil
	case dryRun:
		return deployer.DeleteData, nil, nil
	}
	if err := a.confirmName(ctx, "Every custom resource of it will be deleted", confirm); err != nil {
		return deployer.RefuseData, nil, err
	}
	return deployer.DeleteData, a.export(f.export, name), nil
}

// lossFlags accept that custom resources lose data.
type lossFlags struct {
	accepted []string
	export   string
}

func (f *lossFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.accepted, "accept-data-loss", nil, "export the objects of these custom resource definitions, `NAME,...`, and let them lose data")
	flags.StringVar(&f.export, "export", "", "where --accept-data-loss writes custom resources to, a new `FILE` (default NAME-TIME.json)")
}

// export writes custom resources to a new file. What is in it is about to be deleted.
func (a *app) export(file, name string) deployer.Export {
	return func(write func(io.Writer) error) error {
		path, err := filepath.Abs(cmp.Or(file, name+"-"+a.now().UTC().Format("20060102T150405Z")+".json"))
		if err != nil {
			return err
		}
		if err := writeNew(path, write); err != nil {
			return err
		}
		a.sink.Emit(report.Event{Step: "export", Name: path, State: report.Done})
		return nil
	}
}

// writeNew writes a file that only the user can read. It appears, complete and durable, when all of it was written; nothing
// that is there is replaced.
func writeNew(path string, write func(io.Writer) error) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, error(report.Errorf(report.Usage, "%s exists", path).WithHint("name another file")))
	}
	partial, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // readable for its owner only
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(partial)
	err = write(buffered)
	if err == nil {
		err = errors.Join(buffered.Flush(), partial.Sync())
	}
	if err = errors.Join(err, partial.Close()); err == nil {
		err = os.Rename(partial.Name(), path)
	}
	if err != nil {
		return errors.Join(err, removeFile(partial.Name()))
	}
	if err := syncDirectory(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func removeFile(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncDirectory makes a rename in the directory durable.
func syncDirectory(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // it cannot sync directories
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
