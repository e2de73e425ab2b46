package environments

import (
	"fmt"

	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Confirmation returns the question before a cluster is purged.
func (o PurgeOptions) Confirmation() report.Confirmation {
	if o.DryRun {
		return report.Confirmation{}
	}
	return report.Confirmation{Question: "purge the cluster"}
}

// Confirmation returns the question before namespaces are deleted. If they are in use, the user has to type a name.
func (o DeleteOptions) Confirmation() report.Confirmation {
	if o.DryRun {
		return report.Confirmation{}
	}
	part, all := "environment "+o.Environment, "every namespace of environment "+o.Environment
	if o.Namespace != "" {
		part = fmt.Sprintf("namespace %s of environment %s", o.Namespace, o.Environment)
		all = part
	}
	if len(o.Release)+len(o.Others) == 0 && o.Data != plan.DeleteData {
		return report.Confirmation{Question: "delete " + all}
	}
	c := report.Confirmation{Question: "Everything in " + part + " will be deleted", Name: o.Environment}
	if len(o.Others) > 0 {
		c.Lists = append(c.Lists, report.ConfirmationList{
			Title: "This is not part of a Solution, and will be deleted without an export", Items: survey.OtherTexts(o.Others),
		})
	}
	if len(o.Release) > 0 {
		list := report.ConfirmationList{Title: "These finalizers will be removed, and what they stand for is not cleaned up"}
		for _, held := range o.Release {
			list.Items = append(list.Items, held.String())
		}
		c.Lists = append(c.Lists, list)
	}
	return c
}
