package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// confirm asks before something that cannot be taken back. The default answer is no. --yes answers for the user; where
// nobody can answer, nothing is asked and the command line has to say it.
func (a *app) confirm(question string) error {
	switch {
	case a.yes:
		return nil
	case !a.person:
		return report.Errorf(report.Usage, "%s: this has to be confirmed", question).WithHint("add --yes")
	}
	fmt.Fprintf(a.err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil && answer == "" {
		return report.Errorf(report.Cancelled, "no answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return report.Errorf(report.Cancelled, "not confirmed")
}

// confirmName asks for the name of what will be destroyed, so that nobody answers without reading. --yes answers for the
// user.
func (a *app) confirmName(warning, name string) error {
	switch {
	case a.yes:
		return nil
	case !a.person:
		return report.Errorf(report.Usage, "%s: this has to be confirmed", warning).WithHint("add --yes")
	}
	fmt.Fprintf(a.err, "%s. Type %s to go on: ", warning, name)
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil && answer == "" {
		return report.Errorf(report.Cancelled, "no answer: %w", err)
	}
	if strings.TrimSpace(answer) != name {
		return report.Errorf(report.Cancelled, "not confirmed")
	}
	return nil
}
