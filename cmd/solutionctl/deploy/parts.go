package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// partsFlags say which components of a Solution are deployed, and with which values.
type partsFlags struct {
	flags                                      *pflag.FlagSet
	components, profiles, values, sets, rotate []string
	helm                                       []string
	restart                                    bool
}

// add adds the flags to a verb, for the components that live there.
func (f *partsFlags) add(v *verb, where schema.Scope) {
	flags := v.cmd.Flags()
	f.flags = flags
	flags.StringSliceVar(&f.components, "component", nil, "with this component, without it, or as if it was never named: `NAME[=false|=default]` (may be repeated)")
	flags.StringSliceVar(&f.profiles, "profile", nil, "with the components of this `PROFILE` (may be repeated; '' for none)")
	flags.StringArrayVar(&f.values, "values", nil, "YAML `FILE` with the values of charts, below the names of their components; - is standard input")
	flags.StringArrayVar(&f.sets, "set", nil, "one value of a chart, with a backslash before a dot in a key: `COMPONENT.KEY[.KEY]=VALUE`; secrets belong into a file")
	flags.StringSliceVar(&f.rotate, "rotate", nil, "generate the passwords and certificates of this `COMPONENT` again (may be repeated)")
	flags.StringSliceVar(&f.helm, "adopt-helm", nil, "adopt the release of Helm that this `COMPONENT[=NAMESPACE/RELEASE]` was installed as (may be repeated)")
	flags.BoolVar(&f.restart, "accept-restart", false, "accept that pods of what is adopted from Helm restart")
	for flag, names := range partNames {
		cli.Must(v.cmd.RegisterFlagCompletionFunc(flag, v.completeParts(where, names)))
	}
}

// partNames lists the completions of flags that select parts of a Solution.
var partNames = map[string]func(*schema.ComponentGraph) []string{
	"profile": func(g *schema.ComponentGraph) []string { return g.Profiles },
	"component": func(g *schema.ComponentGraph) []string {
		return nodeNames(g, func(n schema.ComponentNode) bool { return n.Path != "" && n.Reason != schema.SelectedAlways })
	},
	"rotate": func(g *schema.ComponentGraph) []string {
		return nodeNames(g, func(n schema.ComponentNode) bool { return n.Kind == schema.ComponentChart })
	},
}

func nodeNames(g *schema.ComponentGraph, fits func(schema.ComponentNode) bool) []string {
	var names []string
	for _, n := range g.Components {
		if fits(n) {
			names = append(names, n.Name)
		}
	}
	return names
}

// completeParts completes the last of a list of names by those that the Solution has which the arguments name.
func (f *clusterFlags) completeParts(where schema.Scope, names func(*schema.ComponentGraph) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		found, directive := f.completeList(cmd, prefix, func(ctx context.Context, c *cluster.Cluster) ([]string, error) {
			var o deployer.SelectionOptions
			if where == schema.ScopeEnvironment && len(args) > 0 {
				o.Environment, args = args[0], args[1:]
			}
			if len(args) == 0 || where == schema.ScopeEnvironment && o.Environment == "" {
				return nil, nil
			}
			if o.Solution = args[0]; len(args) > 1 {
				o.Version = args[1]
			}
			graph, err := f.deployerOn(c).Selection(ctx, o)
			if err != nil {
				return nil, err
			}
			graph.Components = slices.DeleteFunc(graph.Components, func(n schema.ComponentNode) bool { return n.Scope != where })
			return names(graph), nil
		})
		return found, directive | cobra.ShellCompDirectiveNoSpace
	}
}

// selection is the flag for some components of what is deployed.
type selection struct{ components []string }

func (s *selection) addComponents(cmd *cobra.Command, f *clusterFlags) {
	cmd.Flags().StringSliceVar(&s.components, "component", nil, "only this `NAME` of what the Solution is made of (may be repeated)")
	cli.Must(cmd.RegisterFlagCompletionFunc("component", f.completeSelected()))
}

// completeSelected completes the names of components that are deployed.
func (f *clusterFlags) completeSelected() cobra.CompletionFunc {
	return f.completeParts(schema.ScopeEnvironment, func(g *schema.ComponentGraph) []string {
		return nodeNames(g, func(n schema.ComponentNode) bool { return n.Selected })
	})
}

// of returns the selection of the arguments and the flag.
func (s *selection) of(args []string) (survey.Selection, error) {
	selected := survey.Selection{Environment: args[0], Solution: args[1], Components: s.components}
	if len(s.components) > 0 && selected.Solution == "" {
		return selected, report.Errorf(report.Usage, "--component needs the Solution: ENVIRONMENT SOLUTION")
	}
	return selected, nil
}

func (f *partsFlags) options() (plan.Parts, error) {
	parts := plan.Parts{Values: map[string]plan.SiteValues{}, Rotate: f.rotate, Helm: map[string]plan.HelmRelease{}, Restart: f.restart}
	profiles := f.profiles
	if f.flags.Changed("profile") && len(profiles) == 0 {
		profiles = []string{""} // none, in place of those of before
	}
	var err error
	if parts.Choice, err = components.ParseChoice(profiles, f.components); err != nil {
		return parts, err
	}
	for _, text := range f.helm {
		component, release, err := plan.ParseHelmRelease(text)
		if err != nil {
			return parts, err
		}
		parts.Helm[component] = release
	}
	for _, name := range f.values {
		if err := readSiteValues(name, parts.Values); err != nil {
			return parts, err
		}
	}
	for _, text := range f.sets {
		if err := setSiteValue(text, parts.Values); err != nil {
			return parts, err
		}
	}
	return parts, nil
}

// maxSiteValues bounds a file with values.
const maxSiteValues = 1 << 20

// readSiteValues reads the values of charts from a file. They replace the site's earlier values of the charts in the file.
func readSiteValues(name string, values map[string]plan.SiteValues) error {
	var r io.Reader = os.Stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return report.As(report.NotFound, err)
		}
		defer file.Close() //nolint:errcheck // read only
		r = file
	}
	data, err := io.ReadAll(io.LimitReader(r, maxSiteValues+1))
	if err != nil {
		return err
	}
	if len(data) > maxSiteValues {
		return report.Errorf(report.Usage, "%s is larger than %d MiB", name, maxSiteValues>>20)
	}
	var charts map[string]map[string]any
	if err = schema.ReadDocument(name, data, &charts); err != nil {
		return report.As(report.Usage, err).WithHint("write one document with the names of components, and below each the values of its chart")
	}
	for component, own := range charts {
		said := plan.SiteValues{Reset: true}
		said.Add(values[component].Values)
		said.Add(own)
		values[component] = said
	}
	return nil
}

// setSiteValue reads COMPONENT.KEY[.KEY]=VALUE.
func setSiteValue(text string, values map[string]plan.SiteValues) error {
	place, scalar, ok := strings.Cut(text, "=")
	keys := chart.SplitPath(place)
	if !ok || len(keys) < 2 || slices.Contains(keys, "") {
		return report.Errorf(report.Usage, "--set %q is not COMPONENT.KEY[.KEY]=VALUE", text).WithHint("a dot in a key has a backslash before it; what is more than one value belongs into a file: --values FILE")
	}
	if strings.Contains(place, "[") {
		return report.Errorf(report.Usage, "--set %s: an item of a list cannot be set alone", place).WithHint("set the whole list, or write it into a file: --values FILE")
	}
	value, err := typedValue(scalar)
	switch {
	case errors.Is(err, errAmbiguous):
		quoted := report.ShellWord(fmt.Sprintf("%s=%q", place, scalar))
		return report.Errorf(report.Usage, "--set %s: %w", text, err).WithHint("write true, false or null, or the text in quotes: --set %s", quoted)
	case err != nil:
		return report.Errorf(report.Usage, "--set %s: the value is not YAML: %w", place, err)
	}
	for _, key := range slices.Backward(keys[1:]) {
		value = map[string]any{key: value}
	}
	said := values[keys[0]]
	said.Add(value.(map[string]any)) //nolint:forcetypeassert // made above
	values[keys[0]] = said
	return nil
}

// errAmbiguous is about a value of --set that is not a text in a file of values, and would be one with Helm: templates take the text "no" for true.
var errAmbiguous = errors.New("the value is a boolean or null in YAML, and text in Helm")

// typedValue returns the value of --set as Helm reads it: booleans, null and whole numbers without a zero before them; everything else is text.
// What begins as a list, a table or a quoted text is YAML. Other booleans of YAML, such as no, are refused.
func typedValue(text string) (any, error) {
	if text != "" && strings.Contains(`{["'`, text[:1]) {
		return schema.ParseValue("any", text)
	}
	switch strings.ToLower(text) {
	case "true", "false":
		return strings.EqualFold(text, "true"), nil
	case "null":
		return nil, nil //nolint:nilnil // it is a value
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && (text == "0" || text[0] != '0') {
		return n, nil
	}
	value, _ := schema.ParseValue("any", text)
	if _, isBool := value.(bool); isBool || text == "~" {
		return nil, errAmbiguous
	}
	return text, nil
}

// printSiteValues prints values as the file that readSiteValues reads.
func printSiteValues(w *console.Stream, values map[string]map[string]any) {
	data, err := yaml.Marshal(values)
	if err != nil {
		w.Fail(err)
	}
	fmt.Fprintf(w, "%s", data)
}
