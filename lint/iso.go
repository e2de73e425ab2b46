package lint

import (
	"context"
	"fmt"
	"sync"

	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema/report"
)

// isoIDs gives the rules of package iso their place in the catalogue. New ones go to the end.
var isoIDs = map[string]int{
	"iso-unreadable": 120, "iso-limits": 121, "iso-descriptor": 122, "iso-extra-descriptor": 123, "iso-el-torito": 124,
	"iso-volume-size": 125, "iso-trailing-data": 126, "iso-no-rock-ridge": 127, "iso-no-joliet": 128, "iso-both-endian": 129,
	"iso-path-table": 130, "iso-directory-record": 131, "iso-record-form": 132, "iso-dot-entries": 133, "iso-parent-entry": 134,
	"iso-directory-size": 135, "iso-directory-loop": 136, "iso-sort-order": 137, "iso-extent-bounds": 138,
	"iso-extent-overlap": 139, "iso-multi-extent": 140, "iso-susp": 141, "iso-susp-unknown": 142,
	"iso-relocated-directory": 143, "iso-file-type": 144, "iso-mode": 145, "iso-owner": 146, "iso-name": 147,
	"iso-primary-name": 148, "iso-duplicate-name": 149, "iso-tree-diverges": 150, "iso-hidden-data": 151,
	"iso-second-opinion": 152, "iso-second-opinion-gap": 153, "iso-other-format": 154,
}

// ImageRules returns the identifiers of the rules of package iso, for a caller that has checked the image already.
func ImageRules() []string {
	var ids []string
	for _, rule := range isoRules() {
		ids = append(ids, rule.ID)
	}
	return ids
}

// isoRules are the rules of package iso.
func isoRules() []Rule {
	var rules []Rule
	for _, format := range iso.Rules() {
		rules = append(rules, Rule{
			ID: fmt.Sprintf("SOL%d", isoIDs[format.ID]), Name: format.ID, Group: GroupArchive, Severity: format.Severity,
			Summary:     format.Doc,
			Explanation: isoExplanation(format),
			Bad:         "an image that was changed after it was made, or made by a program with other ideas",
			Good:        "what solutionctl build writes",
			check: func(ctx context.Context, t *subject, r *reporter) {
				for _, f := range isoFindings(ctx, t) {
					if f.Rule == format.ID {
						r.ReportAs(f.Severity, target.Place{File: f.Path, Object: f.Object}, f.Hint, "%s", f.Message)
					}
				}
			},
		})
	}
	return rules
}

func isoExplanation(format iso.Rule) string {
	if format.Refused {
		return "Programs read an ISO 9660 image in three ways: by its primary names, by Rock Ridge and by Joliet. " +
			"Where this does not hold they may see different files, so that what was verified is not what is used. Every command refuses such an image."
	}
	return "Programs read an ISO 9660 image in three ways: by its primary names, by Rock Ridge and by Joliet. " +
		"Where this does not hold, solutionctl can show what is in an image, other programs might not, or might show something else: " +
		"an error is reason enough not to sign, verify or import it."
}

// isoFindings examines the structure of the image: by our own parser and, where that succeeds, by go-diskfs.
var isoFindings = fact(func(_ context.Context, t *subject) []report.Finding {
	if t.Kind != target.ISO {
		return nil
	}
	if t.Broken != nil {
		return iso.Check(t.Reader, t.Size)
	}
	var ours []report.Finding
	var group sync.WaitGroup
	group.Go(func() { ours = iso.Check(t.Reader, t.Size) })
	theirs := iso.CompareDiskFS(t.Reader, t.Size)
	group.Wait()
	return append(ours, theirs...)
})
