package lint

import (
	"cmp"
	"embed"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Rules returns every rule, ordered by identifier.
func Rules() []Rule {
	rules := append(table(), isoRules()...)
	slices.SortFunc(rules, func(a, b Rule) int { return cmp.Compare(a.ID, b.ID) })
	for i := range rules {
		rules[i].describe()
	}
	return rules
}

// texts are the words of each rule: the summary, the explanation and an example of each kind.
//
//go:embed rules/*.md
var texts embed.FS

// describe fills in the text of a rule. Those of package iso have theirs already.
func (r *Rule) describe() {
	data, err := texts.ReadFile("rules/" + r.ID + ".md")
	if err != nil {
		return // a test makes sure that every rule has a text
	}
	text, examples, _ := strings.Cut(string(data), "\n\nBad:\n\n")
	bad, good, _ := strings.Cut(examples, "\n\nGood:\n\n")
	paragraphs := strings.Split(text, "\n\n")
	for i, paragraph := range paragraphs {
		paragraphs[i] = strings.ReplaceAll(paragraph, "\n", " ")
	}
	r.Summary, r.Explanation = paragraphs[0], strings.Join(paragraphs[1:], "\n\n")
	r.Bad, r.Good = outdented(bad), outdented(good)
}

// outdented removes the indentation of an example.
func outdented(text string) string {
	const margin = "    "
	return strings.ReplaceAll(strings.TrimPrefix(strings.TrimSuffix(text, "\n"), margin), "\n"+margin, "\n")
}

// choose returns the rules that the options name.
func choose(o Options) ([]Rule, error) {
	known := ruleNames()
	for _, name := range slices.Concat(o.Enable, o.Disable) {
		if !known[name] {
			return nil, report.Errorf(report.Usage, "there is no rule or group %q", name).
				WithHint("'solutionctl lint --rules' lists them")
		}
	}
	names := func(list []string, rule Rule) (byID, byGroup bool) {
		return slices.Contains(list, rule.ID), slices.Contains(list, string(rule.Group))
	}
	return slices.DeleteFunc(Rules(), func(rule Rule) bool {
		enabled, groupEnabled := names(o.Enable, rule)
		disabled, groupDisabled := names(o.Disable, rule)
		switch {
		case enabled || disabled:
			return !enabled
		case groupDisabled:
			return true
		default:
			return rule.Optional && !groupEnabled
		}
	}), nil
}

// ruleNames returns the identifiers of all rules and the names of all groups.
func ruleNames() map[string]bool {
	names := map[string]bool{}
	for _, group := range Groups() {
		names[string(group)] = true
	}
	for _, rule := range append(table(), isoRules()...) {
		names[rule.ID] = true
	}
	return names
}

// Find returns a rule by its identifier.
func Find(id string) (Rule, error) {
	rules := Rules()
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == id })
	if i < 0 {
		return Rule{}, report.Errorf(report.Usage, "there is no rule %s", id).
			WithHint("the rules are %s to %s; 'solutionctl lint --rules' lists them", rules[0].ID, rules[len(rules)-1].ID)
	}
	return rules[i], nil
}

// knownNames returns those of the names that are rules or groups. A rule reports the others when they come from a project.
func knownNames(names []string) []string {
	known := ruleNames()
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !known[name] })
}
