package page

import (
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Problem is a refusal or failure, in the words of the command line.
type Problem struct {
	Code    report.Code
	Message string
	Hints   []string // remedies in words
	// Remedies are the remedies with a page in the console.
	Remedies []Action
	// Rule is the missing rule of a role, in YAML.
	Rule string
	// Command is for the command line of the host: the console has nothing in its place.
	Command string
}

// ProblemOf returns the description of an error, nil for none.
func ProblemOf(err error) *Problem {
	if err == nil {
		return nil
	}
	p := &Problem{Code: report.CodeOf(err), Message: err.Error(), Hints: report.Hints(err)}
	if p.Code == report.Unauthenticated && len(p.Hints) > 0 {
		p.Hints = []string{Text("problem.login")} // the others name files of the server
	}
	if p.Code == report.Downgrade && len(p.Hints) > 0 {
		p.Hints = []string{Text("problem.downgrade")} // the flag that they name is for the command line
		p.Command = report.Run("deploy import", "FILE.iso").With("allow-downgrade", "").String()
	}
	for _, r := range report.RemediesOf(err) {
		if a := remedyAction(r); a != nil {
			p.Remedies = append(p.Remedies, *a)
		}
	}
	return p
}

// Unseen is a problem with rights as something that is not shown, with the rules that are missing.
func (p *Problem) Unseen(what string) schema.Unseen {
	u := schema.Unseen{What: what}
	for _, hint := range p.Hints {
		if _, rules, found := strings.Cut(hint, "\n"); found {
			u.Rules = rules
		}
	}
	return u
}

// remedyAction leads to the page for a remedy, nil where there is none: placeholders, and options without a page, are
// for the command line. Options that a page offers are accepted there.
func remedyAction(r report.Remedy) *Action {
	if slices.ContainsFunc(r.Arguments, func(a string) bool { return strings.Trim(a, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" }) {
		return nil
	}
	namespace := ""
	var choice []string
	for _, o := range r.Options {
		switch o.Name {
		case "namespace":
			namespace = o.Value
		case "component", "profile":
			choice = append(choice, o.Name, o.Value)
		case "adopt", "cluster-wide", "delete-data", "delete-others", "wait":
		default:
			return nil
		}
	}
	argument := func(i int) string {
		if i < len(r.Arguments) {
			return r.Arguments[i]
		}
		return ""
	}
	verb := strings.TrimPrefix(r.Verb, "deploy ")
	o := schema.Operation{Operation: verb}
	switch verb {
	case "activate", "deactivate":
		o.Solution, o.Version = argument(0), argument(1)
		return &Action{Label: o.Heading(), URL: Query(URL("solutions", o.Solution, "plan", verb), append(choice, "version", o.Version)...)}
	case "add", "upgrade", "downgrade", "remove", "rollback":
		o.Environment, o.Solution, o.Version = argument(0), argument(1), argument(2)
		return &Action{Label: o.Heading(), URL: Query(URL("environments", o.Environment, "plan", verb),
			append(choice, "solution", o.Solution, "version", o.Version, "namespace", namespace)...)}
	case "env delete":
		o.Operation, o.Environment = "delete", argument(0)
		return &Action{Label: o.Heading(), URL: Query(URL("environments", o.Environment, "plan", "delete"), "namespace", namespace)}
	case "env create":
		return &Action{Label: Text("newenvironment.title"), URL: Query(URL("environments", "new"), "name", argument(0), "namespace", namespace)}
	case "app list", "app get", "app set":
		return &Action{Label: Text("apps.title", argument(0)), URL: Query(URL("environments", argument(0), "apps"), "q", argument(1))}
	case "compatibility":
		return &Action{Label: Text("solution.versions", argument(0)), URL: URL("solutions", argument(0))}
	case "history":
		return &Action{Label: Text("section.history"), URL: Query(URL("history"), "environment", argument(0), "solution", argument(1))}
	case "status":
		return &Action{Label: Text("section.overview"), URL: URL()}
	case "loader start", "loader status", "loader repair", "loader logs", "loader stop":
		return &Action{Label: Text("loader.title"), URL: URL("loader")}
	case "doctor":
		return &Action{Label: Text("section.doctor"), URL: URL("doctor")}
	case "resume":
		return &Action{Label: Text("section.operations"), URL: URL("operations")}
	}
	return nil
}
