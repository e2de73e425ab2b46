package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newApplyCommand(a *app, planOnly bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Import, activate and remove what a SolutionsConfiguration says",
		Long: `Make this host and the cluster have what a SolutionsConfiguration says: import the archives that it lists, activate the
versions that it names, deactivate the Solutions that it does not name, and unimport what it does not list. Both forms of the
file are understood.

All guards of these commands are asked before the first change: a version that an environment uses stays, and so do
definitions of which there are objects. Solutions that need each other are judged as they will be: a file that names both
changes both. Stored objects that would lose data are named, as 'solutionctl deploy activate' does.`,
		Example: "  solutionctl deploy apply -f /etc/metalk8s/solutions.yaml",
		Args:    exactArgs(),
	}
	h := a.addHostFlags(cmd)
	f := &verbFlags{clusterFlags: h.clusterFlags, planOnly: planOnly}
	f.add(cmd)
	f.addReplace(cmd)
	var o importOptions
	o.add(cmd)
	var loss lossFlags
	loss.add(cmd)
	var file string
	flags := cmd.Flags()
	flags.StringVarP(&file, "filename", "f", "", "the SolutionsConfiguration, a `FILE`")
	flags.DurationVar(&h.timeout, "timeout", defaultTimeout, "wait for `DURATION` until what was deployed is ready")
	if err := cmd.MarkFlagFilename("filename", "yaml", "yml"); err != nil {
		panic(err) // the flag was added above
	}
	if err := cmd.MarkFlagRequired("filename"); err != nil {
		panic(err) // the flag was added above
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := readConfiguration(file)
		if err != nil {
			return err
		}
		on, err := a.openHost(h)
		if err != nil {
			return err
		}
		plan, err := on.converge(cmd.Context(), c, o, deployer.ConvergeOptions{Options: f.options(), AcceptDataLoss: loss.accepted, AcceptInvalid: loss.invalid}, loss.export)
		if err != nil {
			return a.explain(err)
		}
		if err := a.emitResult(plan, func(w *console.Stream) error { return printConvergence(w, plan) }); err != nil {
			return err
		}
		if f.exitStatus && !plan.Empty() {
			return report.Errorf(report.Changes, "there is something to do")
		}
		return nil
	}
	return cmd
}

func readConfiguration(file string) (*schema.SolutionsConfiguration, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, report.Errorf(report.Failure, "%w", err)
	}
	c, _, err := schema.ParseSolutionsConfiguration(file, data)
	return c, err
}

// converge makes this host and its cluster have what a configuration says.
func (h *host) converge(ctx context.Context, c *schema.SolutionsConfiguration, o importOptions, d deployer.ConvergeOptions, export string) (*schema.Convergence, error) {
	if !d.DryRun {
		if err := errors.Join(h.configuration.Check(), h.store.Tidy(ctx, h.flags.lockWait, h.app.sink)); err != nil {
			return nil, err
		}
	}
	here := &converging{host: h, o: o}
	plan, err := h.deployer.PlanConvergence(ctx, c, here)
	if err != nil {
		return nil, err
	}
	d.Export = func(solution string) deployer.Export {
		return h.app.export(exportFile(export, solution, len(plan.Activate)), solution)
	}
	flat, _, err := c.Flat(here.Identify)
	if err != nil {
		return nil, err
	}
	if err = h.deployer.Converge(ctx, plan, here, d); err != nil {
		return nil, err
	}
	plan.Notices = append(plan.Notices, here.notices...)
	if d.DryRun {
		return plan, nil
	}
	edited, err := h.configuration.Edit(ctx, func(now *schema.SolutionsConfiguration) { now.Active = maps.Clone(flat.Active) })
	if err != nil {
		return plan, fmt.Errorf("the cluster is changed, but not its configuration: %w", err)
	}
	plan.Notices = append(plan.Notices, edited.Notes...)
	return plan, nil
}

// exportFile is where the custom resources of one of several Solutions go.
func exportFile(file, solution string, solutions int) string {
	if file == "" || solutions < 2 {
		return file
	}
	extension := filepath.Ext(file)
	return strings.TrimSuffix(file, extension) + "-" + solution + extension
}

// converging is the host during a convergence.
type converging struct {
	*host
	o       importOptions
	notices []string
}

// Identify returns the manifest of what was imported from a path, even when nothing is there any more, or of what is there
// now.
func (c *converging) Identify(path string) (*schema.Solution, error) {
	path, err := c.find(path)
	if err != nil {
		return nil, err
	}
	return identifyArchive(path)
}

// find returns where an archive is by now.
func (c *converging) find(path string) (string, error) {
	entries, err := c.store.Entries()
	if err != nil {
		return "", err
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if slices.Contains([]string{e.Original, e.Path}, full) {
			return e.Path, nil
		}
	}
	return path, nil
}

func (c *converging) Payload(path string) (*render.Payload, error) {
	path, err := c.find(path)
	if err != nil {
		return nil, err
	}
	archive, file, err := openArchive(path)
	if err != nil {
		return nil, err
	}
	p, err := render.FromArchive(archive)
	return p, errors.Join(err, file.Close())
}

func (c *converging) Stored() ([]schema.SolutionAt, error) {
	entries, err := c.store.Entries()
	stored := make([]schema.SolutionAt, len(entries))
	for i, e := range entries {
		stored[i] = schema.SolutionAt{Solution: e.Name, Version: e.Version}
	}
	return stored, err
}

func (c *converging) Judge(ctx context.Context, paths ...string) error {
	return c.judgeImport(ctx, paths, c.o)
}

func (c *converging) Import(ctx context.Context, paths ...string) error {
	done, err := c.importArchives(ctx, paths, c.o)
	if done != nil {
		c.notices = append(c.notices, done.Notices...)
	}
	return err
}

func (c *converging) Unimport(ctx context.Context, id string) error {
	done, err := c.unimportArchive(ctx, id)
	if done != nil {
		c.notices = append(c.notices, done.Notices...)
	}
	return err
}

func printConvergence(w *console.Stream, c *schema.Convergence) error {
	line := func(style console.Style, mark, verb, what string) {
		fmt.Fprintf(w, "  %s %s %s\n", w.Paint(style, mark), verb, console.Clean(what))
	}
	for _, i := range c.Import {
		line(console.Green, "+", "import", i.ID()+" from "+i.Path)
	}
	for _, s := range c.Activate {
		line(console.Green, "+", "activate", s.ID())
	}
	for _, s := range c.Deactivate {
		line(console.Red, "-", "deactivate", s.ID())
	}
	for _, s := range c.Unimport {
		line(console.Red, "-", "unimport", s.ID())
	}
	if c.Empty() {
		fmt.Fprintln(w, "nothing to do")
	}
	for _, notice := range c.Notices {
		fmt.Fprintf(w, "%s %s\n", w.Paint(console.Yellow, "note:"), console.Clean(notice))
	}
	return nil
}
