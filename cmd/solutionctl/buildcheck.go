package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/lint"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/key"
)

// beforeBuild checks what would make the archive useless or the work in vain: findings of lint, and a key that does not exist.
func (a *app) beforeBuild(ctx context.Context, project *build.Project, name string, f *buildFlags) error {
	if f.check && project.ReadsStdin() {
		return report.Errorf(report.Usage, "--check reads each image twice, and standard input can be read once").
			WithHint("save the image to a file: docker save --output image.tar IMAGE")
	}
	if !f.noLint && (filepath.Base(name) == build.ProjectFile || isDirectory(name)) { // lint reads projects by this name only
		if err := a.checkProject(ctx, project.Dir, f.Overrides); err != nil {
			return err
		}
	}
	return a.offerKey(ctx, &f.signing)
}

func isDirectory(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// checkProject refuses a project in which lint finds errors. What a build refuses by itself is left to it.
func (a *app) checkProject(ctx context.Context, dir string, overrides build.Overrides) error {
	judged, err := lint.Judge(ctx, []string{dir}, lint.Request{Overrides: overrides, Disable: []string{"SOL216"}})
	if err != nil {
		return err
	}
	if !judged.Failed {
		if judged.Warnings > 0 {
			a.Sink.Emit(report.Event{Step: "lint", Name: dir, State: report.Done, Note: fmt.Sprintf("%s: solutionctl lint %s", report.Count(judged.Warnings, "warning"), report.ShellFile(dir))})
		}
		return nil
	}
	a.Sink.Close()
	t := judged.Targets[0]
	for i, finding := range t.Findings {
		if finding.Severity == report.SeverityError || judged.Errors == 0 && finding.Severity == report.SeverityWarning {
			console.PrintFinding(a.Err, lintPlace(t, finding), judged.Lines[0][i])
		}
	}
	return report.Errorf(report.Findings, "the archive would have %s", lintCount(judged)).WithHint("correct the project, or build it all the same with: --no-lint")
}

// keyExtension ends the names of private keys that keygen writes.
const keyExtension = ".key"

// offerKey makes the key pair that is to sign and does not exist, when the user confirms it.
func (a *app) offerKey(ctx context.Context, f *keyFlags) error {
	name, isKey := strings.CutSuffix(f.key, keyExtension)
	_, err := os.Stat(f.key)
	if f.key == "" || key.IsReference(f.key) || !errors.Is(err, fs.ErrNotExist) {
		return nil // what else is wrong with a key is reported when it is read
	}
	if !a.Interactive || !isKey {
		return report.Errorf(report.NotFound, "there is no key %s", f.key).WithHint("make a key pair with: solutionctl keygen %s", report.ShellFile(strings.TrimSuffix(f.key, keyExtension)))
	}
	if err = a.Confirm(ctx, report.Confirmation{Question: fmt.Sprintf("There is no key %s. Make a key pair", f.key)}); err != nil {
		return err
	}
	if f.known, err = a.password(ctx, *f, true); err != nil {
		return err
	}
	pair, err := key.Generate(f.known)
	if err != nil {
		return err
	}
	if err = pair.Write(name); err != nil {
		return err
	}
	a.Sink.Emit(report.Event{
		Step: "key", Name: f.key, State: report.Done,
		Note: fmt.Sprintf("new; give %s.pub to those who verify, with its fingerprint %s", name, describeKey(name, pair.Public).Fingerprint),
	})
	return nil
}
