package deployer

import (
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Confirmation returns the question to ask before a Solution is removed.
func (o RemoveOptions) Confirmation() report.Confirmation {
	return confirmData(o.DryRun, o.Data, o.Solution)
}

// Confirmation returns the question to ask before a Solution is deactivated.
func (o DeactivateOptions) Confirmation() report.Confirmation {
	return confirmData(o.DryRun, o.Data, o.Solution)
}

func confirmData(dryRun bool, data plan.DataPolicy, solution string) report.Confirmation {
	if dryRun || data != plan.DeleteData {
		return report.Confirmation{}
	}
	return report.Confirmation{Question: "Every custom resource of it will be deleted", Name: solution}
}
