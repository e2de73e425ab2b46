package lint

import (
	"context"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Rule is one thing that is expected of a Solution.
type Rule struct {
	ID       string          `json:"id"`   // "SOL301"; never changes and is never used again
	Name     string          `json:"name"` // "removed-api"; a few words joined by hyphens
	Group    Group           `json:"group"`
	Severity report.Severity `json:"severity"`
	Summary  string          `json:"summary"` // the requirement, one sentence
	// Explanation has the reason for the rule and the correction; paragraphs are separated by empty lines.
	Explanation string `json:"explanation"`
	Bad         string `json:"bad"`                // a short example of what breaks the rule, as it stands in a file
	Good        string `json:"good"`               // the same as it should be
	Fixable     bool   `json:"fixable,omitempty"`  // its findings may carry edits
	Optional    bool   `json:"optional,omitempty"` // runs only when it is enabled by id or group

	check func(ctx context.Context, t *subject, r *reporter) // nil for those that come up elsewhere
}

// Group is a part of the catalogue.
type Group string

// The groups, in the order of their identifiers.
const (
	GroupArchive      Group = "archive"      // SOL1xx
	GroupDocuments    Group = "documents"    // SOL2xx
	GroupKubernetes   Group = "kubernetes"   // SOL3xx
	GroupOperator     Group = "operator"     // SOL4xx
	GroupMonitoring   Group = "monitoring"   // SOL5xx
	GroupCompleteness Group = "completeness" // SOL6xx
	GroupUpgrade      Group = "upgrade"      // SOL7xx
)

// Groups returns every group, in the order of the catalogue.
func Groups() []Group {
	return []Group{
		GroupArchive, GroupDocuments, GroupKubernetes, GroupOperator, GroupMonitoring, GroupCompleteness, GroupUpgrade,
	}
}
