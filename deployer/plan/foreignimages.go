package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/kube/images"
	"github.com/solutionctl/solutionctl/schema/report"
)

// HazardForeignImages is the name by which images are accepted that no archive has.
const HazardForeignImages = "foreign-images"

// checkForeignImages refuses charts that name images which no archive has: without internet their pods, or those that an operator starts,
// would wait for ever. It reports all of them at once, with the lines for solution.yaml. Accepted images are recorded and a notice.
func (t *target) checkForeignImages() error {
	accepted := listed(t.release.Settings[settingImages])
	var names, lines, others, entries []string
	for _, component := range slices.Sorted(maps.Keys(t.of.foreign)) {
		for _, use := range t.of.foreign[component] {
			line := fmt.Sprintf("component %s: %s, %s: %s", component, use.Object, use.Path, use.Image)
			names, lines = append(names, use.Image), append(lines, line)
			if slices.Contains(accepted, use.Image) {
				continue
			}
			others = append(others, line)
			entry := "- name it in full: " + use.Image
			if reference, ok := images.ParseReference(use.Image); ok {
				entry = "- " + reference.Entry()
			}
			if !slices.Contains(entries, entry) {
				entries = append(entries, entry)
			}
		}
	}
	if len(lines) == 0 {
		return nil
	}
	if len(others) == 0 || slices.Contains(t.wanted.AcceptHazards, HazardForeignImages) {
		names = append(names, accepted...)
		slices.Sort(names)
		t.release.Settings[settingImages] = strings.Join(slices.Compact(names), ",")
		t.notice("images that the archive does not have are accepted:\n  " + strings.Join(lines, "\n  "))
		return nil
	}
	return report.Errorf(report.Refused, "charts of %s name images that are not in its archive, which nodes of a site cannot pull:\n  %s",
		t.of.ID(), strings.Join(others, "\n  ")).
		WithHint("ask the vendor to add to images in solution.yaml:\n  %s\nif nothing pulls them, or nodes have them: %s",
			strings.Join(entries, "\n  "), report.Accept("accept-hazard", HazardForeignImages).About(others...))
}

// mirrorNotice is about images of the archive that an operator assembles from parts, which keep their original names.
func mirrorNotice(component string, uses []images.Use) string {
	var lines []string
	for _, use := range uses {
		name := use.Image
		if reference, ok := images.ParseReference(name); ok {
			name = reference.String()
		}
		lines = append(lines, fmt.Sprintf("%s, %s: %s", use.Object, use.Path, name))
	}
	return fmt.Sprintf("component %s names images of the archive in parts, which keep their original names. Nodes need mirrors for them ('%s'):\n  %s",
		component, report.Run("deploy node config").With("mirror", "HOST"), strings.Join(lines, "\n  "))
}
