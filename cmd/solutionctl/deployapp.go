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
	"github.com/solutionctl/solutionctl/deployer/cluster"
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

func (a *app) addAppFlags(cmd *cobra.Command, waits bool) *appFlags {
	f := &appFlags{clusterFlags: a.addClusterFlags(cmd)}
	cmd.Flags().StringVar(&f.o.Namespace, "namespace", "", "a `NAMESPACE` of the environment, where it has several or you may see no other")
	cmd.Flags().StringVar(&f.o.Kind, "kind", "", "`KIND` of application, where there are several")
	if waits {
		f.addWaitFlags(cmd)
		cmd.Flags().BoolVar(&f.o.NoWait, "no-wait", false, "do not wait until it is done")
	}
	cmd.ValidArgsFunction = a.completeApps(f)
	return f
}

// deployer connects and completes the options.
func (f *appFlags) deployer(a *app, args []string) (*deployer.Deployer, error) {
	f.o.Environment, f.o.Timeout = args[0], f.timeout
	if len(args) > 1 {
		f.o.Name = args[1]
	}
	return a.deployer(f.clusterFlags)
}

func newAppListCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list ENVIRONMENT", Short: "List the applications of an environment", Args: exactArgs("ENVIRONMENT"),
		Example: "  solutionctl deploy app list test",
	}
	f := a.addAppFlags(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := f.deployer(a, args)
		if err != nil {
			return err
		}
		apps, err := d.Apps.List(cmd.Context(), f.o)
		if err != nil {
			return err
		}
		return a.emitResult(apps, func(w *console.Stream) error { return printApps(w, apps, args[0]) })
	}
	return cmd
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
	f := a.addAppFlags(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.runApp(f, args, func(d *deployer.Deployer) (*schema.App, error) { return d.Apps.Get(cmd.Context(), f.o) })
	}
	return cmd
}

// runApp connects, does something with an application and shows it.
func (a *app) runApp(f *appFlags, args []string, work func(*deployer.Deployer) (*schema.App, error)) error {
	d, err := f.deployer(a, args)
	if err != nil {
		return err
	}
	one, err := work(d)
	if err != nil {
		return err
	}
	return a.emitResult(one, func(w *console.Stream) error { return printApp(w, one) })
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
	f := a.addClusterFlags(cmd)
	var o apps.Options
	cmd.Flags().StringVar(&o.Namespace, "namespace", "", "a `NAMESPACE` of the environment, where versions differ or you may see no other")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := a.deployer(f)
		if err != nil {
			return err
		}
		o.Environment, o.Kind = args[0], append(args, "")[1]
		kind, err := d.Apps.Kind(cmd.Context(), o)
		if err != nil {
			return err
		}
		description := kind.Description()
		return a.emitResult(description, func(w *console.Stream) error { return printFields(w, description.Fields) })
	}
	return cmd
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
	c := &appCreation{app: a, appFlags: a.addAppFlags(cmd, true)}
	cmd.Flags().StringArrayVar(&c.sets, "set", nil, "fill in a field: `FIELD=VALUE` (may be repeated)")
	cmd.Flags().StringVar(&c.file, "values", "", "a `FILE` with values, or with a whole custom resource; - is standard input")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) }
	return cmd
}

// appCreation is a run of 'deploy app create'.
type appCreation struct {
	*app
	*appFlags
	sets []string
	file string
}

func (c *appCreation) run(ctx context.Context, args []string) error {
	values, err := c.readValues(c.file)
	if err != nil {
		return err
	}
	return c.runApp(c.appFlags, args, func(d *deployer.Deployer) (*schema.App, error) {
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
	f := a.addAppFlags(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.runApp(f, args[:2], func(d *deployer.Deployer) (*schema.App, error) {
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
	f := a.addAppFlags(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		replicas, err := strconv.ParseInt(args[2], 10, 32)
		if err != nil || replicas < 0 {
			return report.Errorf(report.Usage, "REPLICAS %q is not a number of at least 0", args[2])
		}
		return a.runApp(f, args[:2], func(d *deployer.Deployer) (*schema.App, error) {
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
	f := a.addAppFlags(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.runApp(f, args, func(d *deployer.Deployer) (*schema.App, error) {
			one, err := d.Apps.Get(cmd.Context(), f.o)
			if err != nil {
				return nil, err
			}
			if err := a.confirm(cmd.Context(), apps.ConfirmDeletion(one)); err != nil {
				return nil, err
			}
			one.Health, one.Objects, one.Values = schema.AppDeleting, nil, nil
			return one, d.Apps.Delete(cmd.Context(), f.o)
		})
	}
	return cmd
}

// completeApps completes the name of an environment and then that of an application in it.
func (a *app) completeApps(f *appFlags) cobra.CompletionFunc {
	environments := a.completeDeployment(f.clusterFlags)
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return environments(cmd, args, prefix)
		}
		return a.completeFromCluster(f.clusterFlags, func(ctx context.Context, c *cluster.Cluster) ([]string, error) {
			if len(args) > 1 {
				return nil, nil
			}
			list, err := a.deployerOn(c, f.clusterFlags).Apps.List(ctx, apps.Options{Environment: args[0]})
			if err != nil {
				return nil, err
			}
			var names []string
			for _, one := range list.Apps {
				names = append(names, one.Name)
			}
			return names, nil
		})(cmd, args, prefix)
	}
}
