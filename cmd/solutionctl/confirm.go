package main

import (
	"context"
	"strings"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema/report"
)

// confirm asks before something that cannot be taken back. The default answer is no. --yes answers for the user; where
// nobody can answer, nothing is asked and the command line has to say it.
func (a *app) confirm(ctx context.Context, question string) error {
	switch {
	case a.yes:
		return nil
	case !a.person:
		return report.Errorf(report.Usage, "%s: this has to be confirmed", question).WithHint("add --yes")
	}
	answer, err := console.Ask(ctx, a.in, a.err, question+" [y/N] ")
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return report.Errorf(report.Cancelled, "not confirmed")
}

// confirmName asks for the name of what will be destroyed, so that nobody answers without reading. --yes answers for the
// user.
func (a *app) confirmName(ctx context.Context, warning, name string) error {
	switch {
	case a.yes:
		return nil
	case !a.person:
		return report.Errorf(report.Usage, "%s: this has to be confirmed", warning).WithHint("add --yes")
	}
	answer, err := console.Ask(ctx, a.in, a.err, warning+". Type "+name+" to go on: ")
	if err != nil {
		return err
	}
	if strings.TrimSpace(answer) != name {
		return report.Errorf(report.Cancelled, "not confirmed")
	}
	return nil
}
