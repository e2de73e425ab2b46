package sbom

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
)

// packageKey names a package in two archives.
type packageKey struct{ image, typ, name string }

// Compare returns the packages that changed between two lists. Images are the same if they have the same name, whatever their tags are.
func Compare(from, to *schema.PackageList) *schema.PackageDifference {
	d := &schema.PackageDifference{From: from.Solution + "-" + from.Version, To: to.Solution + "-" + to.Version, Changes: []schema.PackageChange{}}
	before, after := versionsOf(from), versionsOf(to)
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, key := range slices.SortedFunc(maps.Keys(all), comparePackageKeys) {
		gone, came := subtract(before[key], after[key]), subtract(after[key], before[key])
		for i := range max(len(gone), len(came)) {
			change := schema.PackageChange{Image: key.image, Type: key.typ, Name: key.name}
			if i < len(gone) {
				change.From = gone[i]
			}
			if i < len(came) {
				change.To = came[i]
			}
			d.Changes = append(d.Changes, change)
		}
	}
	for _, image := range to.Images {
		d.Unread = append(d.Unread, image.Unread...)
	}
	return d
}

// withoutVersion stands for the version of a package that has none.
const withoutVersion = "(none)"

// versionsOf lists the versions of each package, sorted.
func versionsOf(list *schema.PackageList) map[packageKey][]string {
	all := map[packageKey][]string{}
	for _, image := range list.Images {
		name, _, _ := strings.Cut(image.Image, ":")
		for _, p := range image.Packages {
			key := packageKey{name, p.Type, p.Name}
			all[key] = append(all[key], cmp.Or(p.Version, withoutVersion))
		}
	}
	for key, versions := range all { // platforms and architectures have the same versions
		slices.Sort(versions)
		all[key] = slices.Compact(versions)
	}
	return all
}

func subtract(versions, without []string) []string {
	return slices.DeleteFunc(slices.Clone(versions), func(version string) bool { return slices.Contains(without, version) })
}

func comparePackageKeys(a, b packageKey) int {
	return cmp.Or(cmp.Compare(a.image, b.image), cmp.Compare(a.typ, b.typ), cmp.Compare(a.name, b.name))
}
