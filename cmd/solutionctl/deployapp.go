package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// newAppCommand returns the commands for those who run applications and need not know Kubernetes.
func newAppCommand(a *app) *cobra.Command {
	group := newGroup("app", "Create, change and look after the applications of an environment",
		newAppFieldsCommand(a),
		newAppCreateCommand(a),
		newAppListCommand(a),
		newAppGetCommand(a),
		newAppSetCommand(a),
		newAppScaleCommand(a),
		newAppDeleteCommand(a),
	)
	group.Long = `Create, change and look after the applications that the Solutions of an environment run: the custom resources of their
operators. What can be filled in, with which limits and defaults, comes from the Solution itself: see 'app fields'. Values
are checked before they are sent.`
	return group
}

// appFlags are the flags that all commands for applications have.
type appFlags struct {
	*clusterFlags
	o apps.Options
}

func (a *app) addAppFlags(cmd *cobra.Command) *appFlags {
	f := &appFlags{clusterFlags: a.addClusterFlags(cmd)}
	cmd.Flags().StringVar(&f.o.Namespace, "namespace", "", "a `NAMESPACE` of the environment, where it has several or you may see no other")
	cmd.Flags().StringVar(&f.o.Kind, "kind", "", "`KIND` of application, where there are several")
	cmd.ValidArgsFunction = f.completeApps
	return f
}

// addAppChangeFlags adds the flags of a command that changes an application.
func (a *app) addAppChangeFlags(cmd *cobra.Command) *appFlags {
	f := a.addAppFlags(cmd)
	f.addWaitFlags(cmd)
	cmd.Flags().BoolVar(&f.o.NoWait, "no-wait", false, "do not wait until it is done")
	return f
}

// do connects, does something with the application that the arguments ENVIRONMENT and NAME name, and shows it.
func (f *appFlags) do(args []string, work func(*deployer.Deployer) (*schema.App, error)) error {
	f.o.Environment, f.o.Name, f.o.Timeout = args[0], args[1], f.timeout
	d, err := f.deployer()
	if err != nil {
		return err
	}
	one, err := work(d)
	return emit(f.app, one, err, printApp)
}

func newAppListCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list ENVIRONMENT", Short: "List the applications of an environment", Args: exactArgs("ENVIRONMENT"),
		Example: "  solutionctl deploy app list test",
	}
	f := a.addAppFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return f.list(cmd.Context(), args[0]) }
	return cmd
}

func (f *appFlags) list(ctx context.Context, environment string) error {
	f.o.Environment = environment
	d, err := f.deployer()
	if err != nil {
		return err
	}
	list, err := d.Apps.List(ctx, f.o)
	return emit(f.app, list, err, func(w *console.Stream, list *schema.AppList) error { return printApps(w, list, environment) })
}

func printApps(w *console.Stream, apps *schema.AppList, environment string) error {
	if len(apps.Apps) == 0 {
		_, err := fmt.Fprintf(w, "there is no application in environment %s\nNext: solutionctl deploy app create %s NAME\n", environment, environment)
		return err
	}
	table := &console.Table{Columns: []string{"NAME", "KIND", "NAMESPACE", "HEALTH", "REASON"}}
	for _, one := range apps.Apps {
		table.Add(one.Name, one.Kind, one.Namespace, string(one.Health), console.Clean(strings.Join(one.Reasons, "; ")))
	}
	return table.Print(w)
}

func newAppGetCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "get ENVIRONMENT NAME", Short: "Show an application: its values, how it is and what belongs to it",
		Args: exactArgs("ENVIRONMENT", "NAME"), Example: "  solutionctl deploy app get test shop",
	}
	f := a.addAppFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return f.do(args, func(d *deployer.Deployer) (*schema.App, error) { return d.Apps.Get(cmd.Context(), f.o) })
	}
	return cmd
}

var appStyles = map[schema.AppHealth]console.Style{
	schema.AppReady: console.Green, schema.AppProgressing: console.Yellow, schema.AppFailed: console.Red, schema.AppDeleting: console.Yellow,
}

// printApp draws what belongs to an application as a tree below it.
func printApp(w *console.Stream, one *schema.App) error {
	fmt.Fprintf(w, "%s in namespace %s: %s\n", w.Paint(console.Bold, console.Clean(one.Kind+" "+one.Name)), one.Namespace,
		w.Paint(appStyles[one.Health], string(one.Health)))
	for _, reason := range one.Reasons {
		fmt.Fprintf(w, "  %s\n", console.Clean(reason))
	}
	for _, line := range valueLines("", one.Values) {
		fmt.Fprintf(w, "  %s\n", console.Clean(line))
	}
	for i, object := range one.Objects {
		text := w.Paint(appStyles[object.Health], string(object.Health))
		if object.Reason != "" {
			text += ": " + console.Clean(object.Reason)
		}
		fmt.Fprintf(w, "%s%s %s  %s\n", branch(one.Objects, i), object.Kind, console.Clean(object.Name), text)
	}
	return nil
}

// branch draws the lines of a tree that lead to an object.
func branch(objects []schema.AppObject, at int) string {
	var lines strings.Builder
	for depth := 1; depth <= objects[at].Depth; depth++ {
		more := false // another branch from this depth follows
		for _, next := range objects[at+1:] {
			if next.Depth <= depth {
				more = next.Depth == depth
				break
			}
		}
		last := depth == objects[at].Depth
		switch {
		case last && more:
			lines.WriteString("├─ ")
		case last:
			lines.WriteString("└─ ")
		case more:
			lines.WriteString("│  ")
		default:
			lines.WriteString("   ")
		}
	}
	return lines.String()
}

// valueLines writes values as they would be set, one a line.
func valueLines(prefix string, values map[string]any) []string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if inner, ok := values[key].(map[string]any); ok && len(inner) > 0 {
			lines = append(lines, valueLines(prefix+key+".", inner)...)
		} else {
			lines = append(lines, fmt.Sprintf("%s%s = %v", prefix, key, values[key]))
		}
	}
	return lines
}

func newAppFieldsCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "fields ENVIRONMENT [KIND]", Short: "Show what can be filled in for an application", Args: optionalArgs([]string{"ENVIRONMENT"}, "KIND"),
		Example: "  solutionctl deploy app fields test",
	}
	f := &appFlags{clusterFlags: a.addClusterFlags(cmd)}
	cmd.Flags().StringVar(&f.o.Namespace, "namespace", "", "a `NAMESPACE` of the environment, where versions differ or you may see no other")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return f.fields(cmd.Context(), args[0], append(args, "")[1])
	}
	return cmd
}

func (f *appFlags) fields(ctx context.Context, environment, kind string) error {
	d, err := f.deployer()
	if err != nil {
		return err
	}
	f.o.Environment, f.o.Kind = environment, kind
	found, err := d.Apps.Kind(ctx, f.o)
	if err != nil {
		return err
	}
	form := found.Description()
	return f.emitResult(form, func(w *console.Stream) error { return printFields(w, form.Fields) })
}

func printFields(w *console.Stream, fields []schema.AppField) error {
	table := &console.Table{Columns: []string{"FIELD", "TYPE", "DEFAULT", "WHAT IT IS"}}
	for _, field := range fields {
		preset := field.Default
		if field.Required {
			preset = "(required)"
		}
		table.Add(field.Path, field.Type, preset, console.Clean(explain(field)))
	}
	return table.Print(w)
}

func newAppCreateCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create ENVIRONMENT NAME",
		Short: "Create an application and wait until it is ready",
		Long: `Create an application and wait until it is ready. Values come from a file, from --set, or where neither is given and
somebody sits at the terminal, from answers to questions.`,
		Args: exactArgs("ENVIRONMENT", "NAME"),
		Example: `  solutionctl deploy app create test shop --set title=Shop --set replicas=2
  solutionctl deploy app create test shop --values shop.yaml`,
	}
	c := &appCreation{appFlags: a.addAppChangeFlags(cmd)}
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
		if c.person && c.file == "" && len(c.sets) == 0 {
			if c.sets, err = c.askApp(ctx, d, c.o); err != nil {
				return nil, err
			}
		}
		return d.Apps.Create(ctx, apps.CreateOptions{Options: c.o, Values: values, Set: c.sets})
	})
}

// maxValues bounds a file with values; etcd takes no larger object.
const maxValues = 1 << 20

func (a *app) readValues(file string) ([]byte, error) {
	in := a.in
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

func newAppSetCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set ENVIRONMENT NAME FIELD=VALUE...",
		Short: "Change values of an application and wait until it is ready with them",
		Long:  "Change values of an application and wait until it is ready with them. FIELD- takes a value away.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 3 {
				return fmt.Errorf("argument %s is missing", []string{"ENVIRONMENT", "NAME", "FIELD=VALUE"}[len(args)])
			}
			return nil
		},
		Example: "  solutionctl deploy app set test shop theme=Dark replicas=3",
	}
	f := a.addAppChangeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return f.do(args, func(d *deployer.Deployer) (*schema.App, error) {
			return d.Apps.Set(cmd.Context(), apps.SetOptions{Options: f.o, Set: args[2:]})
		})
	}
	return cmd
}

func newAppScaleCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "scale ENVIRONMENT NAME REPLICAS", Short: "Change how many servers an application has",
		Args: exactArgs("ENVIRONMENT", "NAME", "REPLICAS"), Example: "  solutionctl deploy app scale test shop 3",
	}
	f := a.addAppChangeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		replicas, err := strconv.ParseInt(args[2], 10, 32)
		if err != nil || replicas < 0 {
			return report.Errorf(report.Usage, "REPLICAS %q is not a number of at least 0", args[2])
		}
		return f.do(args, func(d *deployer.Deployer) (*schema.App, error) {
			return d.Apps.Scale(cmd.Context(), apps.ScaleOptions{Options: f.o, Replicas: replicas})
		})
	}
	return cmd
}

func newAppDeleteCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete ENVIRONMENT NAME", Short: "Delete an application with everything that belongs to it",
		Args: exactArgs("ENVIRONMENT", "NAME"), Example: "  solutionctl deploy app delete test shop --yes",
	}
	f := a.addAppChangeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return f.do(args, func(d *deployer.Deployer) (*schema.App, error) { return f.delete(cmd.Context(), d) })
	}
	return cmd
}

// delete asks before the application goes with what came of it.
func (f *appFlags) delete(ctx context.Context, d *deployer.Deployer) (*schema.App, error) {
	one, err := d.Apps.Get(ctx, f.o)
	if err != nil {
		return nil, err
	}
	if err := f.confirm(ctx, apps.ConfirmDeletion(one)); err != nil {
		return nil, err
	}
	one.Health, one.Objects, one.Values = schema.AppDeleting, nil, nil
	return one, d.Apps.Delete(ctx, f.o)
}
