package host

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/solutionctl/solutionctl/build/delta"
	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
)

// rebuild makes the archive that a delta describes the content, read from the delta and from the archives of the store that it needs.
// Nothing is written but what its patches make, into a file without a name, once its signatures allow that. Nothing of the delta is trusted: the
// archive is judged as one that is there as a whole.
func (d *admission) rebuild(ctx context.Context, c *admitted) error {
	opened, err := delta.Open(c.files, c.files.Size)
	if err != nil {
		return err
	}
	entries, err := d.Store.Entries()
	if err != nil {
		return err
	}
	var bases []layout.Source
	for _, base := range opened.Bases {
		entry, failure := findBase(entries, base, opened)
		if failure != nil {
			return failure
		}
		file, failure := d.Store.Open(*entry)
		if failure != nil {
			return failure
		}
		c.closers = append(c.closers, file)
		bases = append(bases, layout.Source{Name: "archive " + entry.ID() + " of the store", ReaderAt: file.File, Size: entry.Size})
	}
	if err = c.addBundles(opened, d.options.Bundles); err != nil {
		return err
	}
	if err = d.allowPatches(ctx, c, opened); err != nil {
		return err
	}
	if c.made, err = opened.Archive(ctx, delta.Workspace{Dir: d.Store.Dir(), Spare: opened.Layout.Size}, bases...); err != nil {
		return err
	}
	c.closers = append(c.closers, c.made)
	c.size, c.device = c.made.Size(), false
	c.source.Content, c.source.File = c.made, nil
	return nil
}

// allowPatches refuses a delta whose signatures do not count, before its patches take time and room on the disk.
func (d *admission) allowPatches(ctx context.Context, c *admitted, opened *delta.Delta) error {
	if d.options.SkipVerify || len(opened.Patches) == 0 {
		return nil
	}
	bundles, err := d.bundles(c)
	if err != nil {
		return err
	}
	verdict, _, err := d.judgeBundles(ctx, bundles, c.name)
	if err == nil && verdict.Archive.SHA256 != opened.Layout.SHA256 {
		return report.Errorf(report.Mismatch, "the delta makes an archive with the digest sha256:%s, and was signed for one with sha256:%s", opened.Layout.SHA256, verdict.Archive.SHA256).
			WithHint("get the delta again from its source")
	}
	return err
}

// addBundles makes the signatures in the delta count where none are named.
func (c *admitted) addBundles(opened *delta.Delta, named []string) error {
	if named != nil || len(c.bundles) > 0 {
		return nil
	}
	bundles, err := opened.Bundles()
	c.bundles = sign.NameBundles(filepath.Base(c.name), bundles)
	return err
}

// findBase finds an archive that a delta needs. The archive that the delta makes has everything, too.
func findBase(entries []store.Entry, base schema.DeltaBase, opened *delta.Delta) (*store.Entry, error) {
	var versions []string
	for i, e := range entries {
		if e.SHA256 == base.SHA256 || e.SHA256 == opened.Layout.SHA256 {
			return &entries[i], nil
		}
		if e.Name == base.Name {
			versions = append(versions, e.Version)
		}
	}
	present := "it has no version of it"
	if len(versions) > 0 {
		present = "it has " + strings.Join(versions, ", ")
	}
	for _, version := range versions {
		if version == base.Version {
			present = fmt.Sprintf("it has another archive of %s", version)
		}
	}
	return nil, report.Errorf(report.NotImported, "the delta makes %s %s from %s %s (sha256:%s), which is not in the store of this host: %s",
		opened.Layout.Name, opened.Layout.Version, base.Name, base.Version, base.SHA256, present).
		WithHint("import %s.iso before, or get the whole archive %s.iso from the vendor", base.ID(), opened.Layout.ID())
}

// explain names the damaged file when the content of an archive is not the signed one, and the archive is made by a delta or is in
// parts.
func (d *admission) explain(ctx context.Context, c *admitted, err error) error {
	switch report.CodeOf(err) {
	case report.Corrupt, report.Mismatch, report.Invalid: // a check of the structure may have met the damage
	default:
		return err
	}
	var cause error
	switch {
	case c.made != nil:
		cause = c.made.FindDamage(ctx)
	case len(c.files.Parts) > 1 && c.source.Chunks != nil:
		cause = sign.FindMisplaced(c.files, c.source.Chunks)
	case len(c.files.Parts) > 1 && !d.options.SkipVerify:
		bundles, failure := d.bundles(c)
		if failure != nil {
			return err
		}
		if _, list, failure := sign.Judge(ctx, bundles, d.signOptions(c.name)); failure == nil {
			cause = sign.FindMisplaced(c.files, list)
		}
	}
	return cmp.Or(cause, err)
}
