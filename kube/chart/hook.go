package chart

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Hook is the role of an object in the hooks of a chart.
type Hook struct {
	Events         []string // pre-install, post-upgrade, test and so on, sorted
	Weight         int
	DeletePolicies []string // before-hook-creation by default
}

// Misread is something in a hook that Helm passes over in silence.
type Misread struct {
	Template string
	Line     int // of the document in the rendered template, from 1
	Object   string
	Message  string
	Hint     string
}

const (
	annotationHook   = "helm.sh/hook"
	annotationWeight = "helm.sh/hook-weight"
	annotationDelete = "helm.sh/hook-delete-policy"
)

func knownEvents() []string {
	return []string{
		"pre-install", "post-install", "pre-delete", "post-delete", "pre-upgrade", "post-upgrade", "pre-rollback", "post-rollback", "test", "test-success",
	}
}

func knownPolicies() []string {
	return []string{"before-hook-creation", "hook-succeeded", "hook-failed"}
}

// readHook reads annotations as Helm does. It returns nil for an ordinary object.
func readHook(annotations map[string]string) *Hook {
	events, ok := annotations[annotationHook]
	if !ok {
		return nil
	}
	h := &Hook{Events: list(events), DeletePolicies: []string{"before-hook-creation"}}
	if policies, ok := annotations[annotationDelete]; ok {
		h.DeletePolicies = list(policies)
	}
	h.Weight, _ = strconv.Atoi(annotations[annotationWeight]) // as in Helm, an invalid number is 0
	return h
}

// OnlyTests reports whether Helm applies the hook for a test alone, and so not when the chart is deployed.
func (h *Hook) OnlyTests() bool {
	return len(h.Events) > 0 && !slices.ContainsFunc(h.Events, func(event string) bool { return event != "test" && event != "test-success" })
}

// known reports whether Helm applies the hook: it passes over one of whose events it does not know, such as crd-install
// of Helm 2.
func (h *Hook) known() bool {
	return len(unknown(h.Events, knownEvents())) == 0
}

// misread returns the annotations of a hook that Helm interprets differently from what their author intended.
func (m *Manifest) misread() []Misread {
	h := m.Hook
	if h == nil {
		return nil
	}
	metadata, _ := m.Object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	var found []Misread
	add := func(hint, format string, args ...any) {
		object := fmt.Sprintf("%v/%v", m.Object["kind"], metadata["name"])
		found = append(found, Misread{m.Template, m.Line, object, fmt.Sprintf(format, args...), hint})
	}
	if wrong := unknown(h.Events, knownEvents()); wrong != "" {
		add("write one of "+strings.Join(knownEvents(), ", "), "%s: there is no event %s: the object is never applied", annotationHook, wrong)
	}
	if wrong := unknown(h.DeletePolicies, knownPolicies()); wrong != "" {
		add("write one of "+strings.Join(knownPolicies(), ", "), "%s: there is no policy %s: it deletes nothing", annotationDelete, wrong)
	}
	if weight, ok := annotations[annotationWeight].(string); ok {
		if _, err := strconv.Atoi(weight); err != nil {
			add("write a number in quotes", "%s: %q is not a number: the weight is 0", annotationWeight, weight)
		}
	}
	return found
}

// unknown returns the names that are not in known, in quotes.
func unknown(names, known []string) string {
	var others []string
	for _, name := range names {
		if !slices.Contains(known, name) {
			others = append(others, strconv.Quote(name))
		}
	}
	return strings.Join(others, ", ")
}

// list reads a comma-separated annotation. Empty entries stay, as for Helm: a hook with one is not applied.
func list(annotation string) []string {
	var entries []string
	for entry := range strings.SplitSeq(annotation, ",") {
		entries = append(entries, strings.ToLower(strings.TrimSpace(entry)))
	}
	slices.Sort(entries)
	return entries
}
