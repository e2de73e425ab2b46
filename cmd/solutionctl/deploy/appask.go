package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// askApp asks for the values of a new application, field by field, and prints the flags that supply them without questions.
func (f *clusterFlags) askApp(ctx context.Context, d *deployer.Deployer, o apps.Options) ([]string, error) {
	kind, _, err := d.Apps.New(ctx, o)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(f.Err, "A new %s. Enter takes the value in brackets, or none; Ctrl-C leaves everything as it is.\n", console.Clean(kind.Kind))
	var sets, shown []string
	without := "without questions"
	for _, field := range kind.Fields() {
		answer, err := f.askField(ctx, kind, field)
		if err != nil {
			return nil, err
		}
		set := field.Path + "=" + answer
		switch {
		case answer == "":
			continue
		case field.Secret:
			without = "without questions and secrets"
		default:
			shown = append(shown, set)
		}
		sets = append(sets, set)
	}
	if len(sets) > 0 {
		fmt.Fprintf(f.Err, "\nThe same %s:\n  %s\n\n", without, console.Clean(createCommand(o, shown)))
	}
	return sets, nil
}

// askField asks until the answer is one that the field takes; the empty answer leaves it to its default.
func (f *clusterFlags) askField(ctx context.Context, kind *apps.Kind, field schema.AppField) (string, error) {
	explanation := explain(field)
	if strings.Contains(field.Type, " of ") || field.Type == "object" || field.Type == "any" {
		explanation += " (" + field.Type + ", written as YAML or JSON)"
	}
	fmt.Fprintf(f.Err, "\n%s\n", f.Err.Paint(console.Faint, console.Clean(explanation)))
	question := field.Path
	if field.Default != "" {
		question += " [" + plain(field.Default) + "]"
	}
	for {
		answer, err := f.ask(ctx, question+": ", field.Secret)
		if err != nil {
			return "", err
		}
		complaint := "it needs a value"
		if answer != "" {
			err := kind.Try(ctx, field.Path+"="+answer)
			if err == nil {
				return answer, nil
			}
			complaint = err.Error()
		} else if !field.Required {
			return "", nil
		}
		fmt.Fprintln(f.Err, f.Err.Paint(console.Red, console.Clean(complaint)))
	}
}

// ask asks a question; the answer is not shown if it is secret.
func (f *clusterFlags) ask(ctx context.Context, question string, secret bool) (string, error) {
	if !secret {
		return f.Ask(ctx, console.Clean(question))
	}
	answer, err := f.AskSecret(ctx, console.Clean(question))
	return string(answer), err
}

// explain describes a field in a few words: its purpose, its limits and its default.
func explain(f schema.AppField) string {
	var takes []string
	if len(f.Choices) > 0 {
		takes = append(takes, strings.Join(f.Choices, " or "))
	}
	if f.Limits != "" {
		takes = append(takes, f.Limits)
	}
	what := strings.TrimSuffix(f.Description, ".")
	if what != "" && len(takes) > 0 {
		what += ": "
	}
	return what + strings.Join(takes, ", ")
}

// plain is a JSON value as a person types it.
func plain(value string) string {
	var text string
	if json.Unmarshal([]byte(value), &text) == nil {
		return text
	}
	return value
}

// createCommand is the command line that creates an application with these values.
func createCommand(o apps.Options, sets []string) string {
	words := []string{"solutionctl deploy app create", o.Environment, o.Name}
	for _, flag := range [][2]string{{"--kind", o.Kind}, {"--namespace", o.Namespace}} {
		if flag[1] != "" {
			words = append(words, flag[0], flag[1])
		}
	}
	for _, set := range sets {
		words = append(words, "--set", report.ShellWord(set))
	}
	return strings.Join(words, " ")
}
