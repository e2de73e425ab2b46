package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Confirm asks before an action that cannot be undone. The default answer is no. --yes answers for the user; without a
// terminal nothing is asked and the command line has to contain the answer.
func (a *App) Confirm(ctx context.Context, c report.Confirmation) error {
	a.pause()
	for _, list := range c.Lists {
		fmt.Fprintf(a.Err, "%s:\n", list.Title)
		for _, item := range list.Items {
			fmt.Fprintf(a.Err, "  %s\n", console.Clean(item))
		}
	}
	switch {
	case c.Question == "" || a.Yes:
		return nil
	case !a.Interactive:
		return report.Errorf(report.Usage, "%s: this has to be confirmed", c.Question).WithHint("add --yes")
	}
	question := c.Question + " [y/N] "
	if c.Name != "" {
		question = c.Question + ". Type " + c.Name + " to continue: "
	}
	answer, err := a.Ask(ctx, question)
	if err != nil {
		return err
	}
	answer = strings.TrimSpace(answer)
	agreed := answer == c.Name
	if c.Name == "" {
		agreed = strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes")
	}
	if !agreed {
		return report.Errorf(report.Cancelled, "not confirmed")
	}
	return nil
}

// Ask asks the user a question, below all progress that was reported before it, and returns the line that is typed.
func (a *App) Ask(ctx context.Context, question string) (string, error) {
	a.pause()
	return console.Ask(ctx, a.In, a.Err, question)
}

// AskSecret is like Ask for something that is not shown while it is typed.
func (a *App) AskSecret(ctx context.Context, question string) ([]byte, error) {
	a.pause()
	return console.AskSecret(ctx, a.In, a.Err, question)
}

// pause leaves the screen clean, if anything can be on it yet.
func (a *App) pause() {
	if a.Sink != nil {
		a.Sink.Pause()
	}
}
