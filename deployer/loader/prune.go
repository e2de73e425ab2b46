package loader

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// unlisted is what was loaded and is not in the configuration any more. Progress is nil where nothing is known of it.
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

// toldOf are lines about what is not in the configuration any more.
func toldOf(unlisted []schema.LoadedContent) []string {
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

// prune removes what was loaded and is not in the configuration any more, or plans it: what was loaded last first, and of an environment
// all in one plan. What others need stays, and so does what has custom resources: that is an error. What somebody else has added stays.
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
		operation, err := l.Deployer.Ensure(ctx, deployer.EnsureOptions{
			Options:     deployer.Options{DryRun: dry, Timeout: time.Duration(p.Timeout) * time.Second},
			Environment: environment, Others: deployer.RemoveOthers, Going: names[environment],
		})
		switch {
		case report.CodeOf(err) == report.NotFound: // with the environment all of it is gone
		case err != nil:
			return done, fmt.Errorf("remove what is not in the configuration any more: environment %s: %w", environment, err)
		case !operation.Empty():
			done = append(done, operation)
		}
	}
	if dry || len(gone) == 0 {
		return done, nil
	}
	forget(progress, gone)
	return done, l.announce(ctx, progress)
}

// forget takes what was removed out of what is known of the last run.
func forget(progress *schema.LoadProgress, gone []schema.LoadedContent) {
	progress.Loaded = slices.DeleteFunc(progress.Loaded, func(at schema.LoadedContent) bool { return slices.Contains(gone, at) })
	progress.Parts = slices.DeleteFunc(progress.Parts, func(part schema.LoadPart) bool {
		return slices.Contains(gone, schema.LoadedContent{Environment: part.Environment, Solution: part.Solution})
	})
	told := toldOf(gone)
	progress.Notices = slices.DeleteFunc(progress.Notices, func(text string) bool { return slices.Contains(told, text) })
	progress.Ready = readyParts(progress)
}
