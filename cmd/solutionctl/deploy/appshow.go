package deploy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/schema"
)

func newAppListCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list ENVIRONMENT", Short: "List the applications of an environment", Args: cli.ExactArgs("ENVIRONMENT"),
		Example: "  solutionctl deploy app list test",
	}
	f := addAppFlags(a, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f.o.Environment = args[0]
		print := func(w *console.Stream, list *schema.AppList) { printApps(w, list, args[0]) }
		return show(f.clusterFlags, print, func(d *deployer.Deployer) (*schema.AppList, error) { return d.Apps.List(cmd.Context(), f.o) })
	}
	return cmd
}

func printApps(w *console.Stream, apps *schema.AppList, environment string) {
	table := &console.Table{Columns: []string{"NAME", "KIND", "NAMESPACE", "HEALTH", "REASON"}}
	for _, one := range apps.Apps {
		table.Add(one.Name, one.Kind, one.Namespace, string(one.Health), console.Line(strings.Join(one.Reasons, "; ")))
	}
	if len(apps.Apps) > 0 {
		table.Print(w)
	} else {
		fmt.Fprintf(w, "there is no application in environment %s\n", environment)
	}
	if len(apps.Apps)+len(apps.Notices) == 0 {
		fmt.Fprintf(w, "Next: solutionctl deploy app create %s NAME\n", environment)
	}
	console.PrintEach(w, console.Yellow, "note:", apps.Notices)
}

func newAppGetCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "get ENVIRONMENT NAME", Short: "Show an application: its values, health and objects",
		Args: cli.ExactArgs("ENVIRONMENT", "NAME"), Example: "  solutionctl deploy app get test shop --events",
	}
	f := addAppFlags(a, cmd)
	events := false
	cmd.Flags().BoolVar(&events, "events", false, "show the events of Kubernetes about it during the last day")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return f.do(args, func(d *deployer.Deployer) (*schema.App, error) {
			one, err := d.Apps.Get(cmd.Context(), f.o)
			if err == nil && events {
				one.Events, err = d.Apps.Events(cmd.Context(), one, a.Now())
			}
			return one, err
		})
	}
	return cmd
}

var appStyles = map[schema.AppHealth]console.Style{
	schema.AppReady: console.Green, schema.AppProgressing: console.Yellow, schema.AppFailed: console.Red, schema.AppDeleting: console.Yellow,
}

// printApp draws what belongs to an application as a tree below it.
func printApp(w *console.Stream, one *schema.App) {
	fmt.Fprintf(w, "%s in namespace %s: %s\n", w.Paint(console.Bold, console.Line(one.Kind+" "+one.Name)), one.Namespace,
		w.Paint(appStyles[one.Health], string(one.Health)))
	for _, reason := range one.Reasons {
		fmt.Fprintf(w, "  %s\n", console.Line(reason))
	}
	for _, line := range valueLines("", one.Shown) {
		fmt.Fprintf(w, "  %s\n", console.Line(line))
	}
	for i, object := range one.Objects {
		text := w.Paint(appStyles[object.Health], string(object.Health))
		if object.Reason != "" {
			text += ": " + console.Line(object.Reason)
		}
		fmt.Fprintf(w, "%s%s %s  %s\n", branch(one.Objects, i), object.Kind, console.Line(object.Name), text)
	}
	printEvents(w, one.Events)
}

func printEvents(w *console.Stream, events []schema.ObjectEvent) {
	if len(events) == 0 {
		return
	}
	fmt.Fprintln(w)
	table := &console.Table{Columns: []string{"WHEN", "TYPE", "REASON", "TIMES", "OBJECT", "MESSAGE"}}
	for _, e := range events {
		table.Add(e.Last.Format(time.RFC3339), e.Type, e.Reason, strconv.FormatInt(e.Count, 10), e.Kind+" "+e.Name, strings.Join(strings.Fields(e.Message), " "))
	}
	table.Print(w)
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

func newAppFieldsCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "fields ENVIRONMENT [KIND]", Short: "Show the fields of an application", Args: cli.OptionalArgs([]string{"ENVIRONMENT"}, "KIND"),
		Example: "  solutionctl deploy app fields test",
	}
	f := addClusterFlags(a, cmd)
	var o apps.Options
	cmd.Flags().StringVarP(&o.Namespace, "namespace", "n", "", "a `NAMESPACE` of the environment, where versions differ, or you can see no other one")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return show(f, printFields, func(d *deployer.Deployer) (*schema.AppForm, error) {
			o.Environment, o.Kind = args[0], append(args, "")[1]
			kind, err := d.Apps.Kind(cmd.Context(), o)
			if err != nil {
				return nil, err
			}
			return kind.Description(), nil
		})
	}
	return cmd
}

func printFields(w *console.Stream, form *schema.AppForm) {
	table := &console.Table{Columns: []string{"FIELD", "TYPE", "DEFAULT", "WHAT IT IS"}}
	for _, field := range form.Fields {
		preset := field.Default
		if field.Required {
			preset = "(required)"
		}
		table.Add(field.Path, field.Type, preset, console.Line(explain(field)))
	}
	table.Print(w)
}
