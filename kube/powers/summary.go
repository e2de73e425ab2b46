package powers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/solutionctl/solutionctl/schema"
)

// maxLines is how many lines a person reads.
const maxLines = 12

// Summarize describes powers in at most twelve lines: effect, object and subject, widest reach first. Objects with the same power and
// subject share a line with their number. If that is still too long, the subjects of one power share a line, and the last line
// names the remaining powers without their objects.
func Summarize(powers []schema.Power) []string {
	var groups [][]schema.Power
	for _, key := range []func(schema.Power) string{exactly, bySubject, byName} {
		if groups = group(powers, key); len(groups) <= maxLines {
			break
		}
	}
	var left []string
	if len(groups) > maxLines {
		for _, g := range groups[maxLines-1:] {
			left = append(left, phrase(g[0]))
		}
		groups = groups[:maxLines-1]
	}
	lines := make([]string, 0, maxLines)
	for _, g := range groups {
		lines = append(lines, line(g))
	}
	if len(left) > 0 {
		lines = append(lines, enumerateFew(left)+": see solutionctl inspect --powers -o json")
	}
	return lines
}

// Describe describes all powers with all their effects, for a person who approves them. Objects with the same power and subject share a line.
func Describe(powers []schema.Power) []string {
	var lines []string
	for _, g := range group(powers, exactly) {
		lines = append(lines, line(g))
	}
	return lines
}

func exactly(p schema.Power) string {
	return strings.Join([]string{string(p.Need), string(p.Name), string(p.Reach), p.Subject, p.Why}, "\x00")
}

func bySubject(p schema.Power) string {
	return strings.Join([]string{string(p.Need), string(p.Name), p.Subject, phrase(p)}, "\x00")
}

func byName(p schema.Power) string { return string(p.Need) + "\x00" + string(p.Name) }

// phrase returns the effect of a power without the details in parentheses.
func phrase(p schema.Power) string {
	text, _, _ := strings.Cut(p.Why, " (")
	return text
}

// group puts together the powers of each key. Those that are refused are first, then those with the widest reach, else they are in
// the order in which keys first occur.
func group(powers []schema.Power, key func(schema.Power) string) [][]schema.Power {
	powers = slices.Clone(powers)
	slices.SortStableFunc(powers, func(a, b schema.Power) int { return cmp.Or(needRank(a)-needRank(b), reachRank(a)-reachRank(b)) })
	groups := map[string][]schema.Power{}
	var order []string
	for _, p := range powers {
		k := key(p)
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], p)
	}
	list := make([][]schema.Power, len(order))
	for i, k := range order {
		list[i] = groups[k]
	}
	return list
}

// line describes the powers of one group.
func line(powers []schema.Power) string {
	first := powers[0]
	text := first.Why
	if slices.ContainsFunc(powers, func(p schema.Power) bool { return p.Why != first.Why }) {
		text = phrase(first)
	}
	text += ": " + objects(powers)
	if rules := ruleText(first.Field); len(powers) == 1 && rules != "" {
		text += ", " + rules
	}
	if subjects := subjectsOf(powers); len(subjects) > 0 {
		text += ", for " + enumerateFew(subjects)
	}
	switch first.Need {
	case schema.NeedRefused:
		text += " (no approval can allow this)"
	case schema.NeedShown:
		text += " (not asked for)"
	}
	return text
}

// objects names the objects of powers, with their number when there are several.
func objects(powers []schema.Power) string {
	var names []string
	seen := map[string]bool{}
	for _, p := range powers {
		if name := p.Object.String(); !seen[name] {
			seen[name], names = true, append(names, name)
		}
	}
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("%d objects, %s", len(names), enumerateFew(names))
}

func subjectsOf(powers []schema.Power) []string {
	var list []string
	seen := map[string]bool{}
	for _, p := range powers {
		subject := strings.Replace(p.Subject, rbacv1.ServiceAccountKind+" ", "account ", 1)
		if subject != "" && !seen[subject] {
			seen[subject], list = true, append(list, subject)
		}
	}
	return list
}

// enumerateFew joins words; of many it gives the first ones and a count.
func enumerateFew(words []string) string {
	const most = 3
	if len(words) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
	}
	return strings.Join(words, ", ")
}

// ruleText returns "rule 3" for rules[2], and "" for other fields.
func ruleText(field string) string {
	var numbers []string
	for part := range strings.SplitSeq(field, ", ") {
		var n int
		if _, err := fmt.Sscanf(part, "rules[%d]", &n); err != nil {
			return ""
		}
		numbers = append(numbers, fmt.Sprint(n+1))
	}
	if len(numbers) == 1 {
		return "rule " + numbers[0]
	}
	return "rules " + enumerate(numbers)
}
