package loader

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// unlisted returns the loaded Solutions that left the configuration. progress is nil where nothing is known of it.
func unlisted(progress *schema.LoadProgress, p *schema.LoadParameters) []schema.LoadedContent {
	list := []schema.LoadedContent{}
	if progress == nil {
		return list
	}
	for _, loaded := range progress.Loaded {
		if !slices.Contains(contents(p), loaded) {
			list = append(list, loaded)
		}
	}
	return list
}

// unlistedTexts describes the Solutions that left the configuration, a line for each.
func unlistedTexts(unlisted []schema.LoadedContent) []string {
	lines := make([]string, len(unlisted))
	for i, at := range unlisted {
		lines[i] = fmt.Sprintf("Solution %s in environment %s is not in the configuration any more and stays; to remove it: %s",
			at.Solution, at.Environment, report.Run("deploy loader start").With("prune", ""))
	}
	return lines
}

// contents are the Solutions of parameters.
func contents(p *schema.LoadParameters) []schema.LoadedContent {
	var list []schema.LoadedContent
	for _, e := range p.Environments {
		for _, s := range e.Solutions {
			list = append(list, schema.LoadedContent{Environment: e.Name, Solution: s.Name})
		}
	}
	return list
}

// prune removes the loaded Solutions that left the configuration, or plans it: the last loaded first, and all of an
// environment in one plan. Solutions that others need stay, and those with custom resources are an error. Solutions
// that a user added stay.
func (l *Launcher) prune(ctx context.Context, progress *schema.LoadProgress, p *schema.LoadParameters, dry bool) ([]*schema.Operation, error) {
	gone := unlisted(progress, p)
	var environments []string
	names := map[string][]string{}
	for _, at := range slices.Backward(gone) {
		if names[at.Environment] == nil {
			environments = append(environments, at.Environment)
		}
		names[at.Environment] = append(names[at.Environment], at.Solution)
	}
	done := []*schema.Operation{}
	for _, environment := range environments {
		if _, err := l.Deployer.Records.Namespaces(ctx, environment, ""); report.CodeOf(err) == report.NotFound {
			continue // with the environment all of it is gone
		} else if err != nil {
			return done, err
		}
		operation, err := l.Deployer.Ensure(ctx, deployer.EnsureOptions{
			Options:     plan.Options{DryRun: dry, Timeout: time.Duration(p.Timeout) * time.Second},
			Environment: environment, Others: plan.RemoveOthers, Going: names[environment],
		})
		if err != nil {
			return done, fmt.Errorf("remove Solutions that left the configuration: environment %s: %w", environment, err)
		}
		if !operation.Empty() {
			done = append(done, operation)
		}
	}
	if dry || len(gone) == 0 {
		return done, nil
	}
	dropDeleted(progress, gone)
	return done, l.announce(ctx, progress)
}

// dropDeleted removes deleted Solutions from the record of the last run.
func dropDeleted(progress *schema.LoadProgress, gone []schema.LoadedContent) {
	progress.Loaded = slices.DeleteFunc(progress.Loaded, func(at schema.LoadedContent) bool { return slices.Contains(gone, at) })
	progress.Parts = slices.DeleteFunc(progress.Parts, func(part schema.LoadPart) bool {
		return slices.Contains(gone, schema.LoadedContent{Environment: part.Environment, Solution: part.Solution})
	})
	texts := unlistedTexts(gone)
	progress.Notices = slices.DeleteFunc(progress.Notices, func(text string) bool { return slices.Contains(texts, text) })
	progress.Ready = readyParts(progress)
}
