package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/build/delta"
	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
)

func newDeltaCommand(a *app) *cobra.Command {
	return cli.NewGroup("delta", "Make an archive from older ones and the bytes that are new", newDeltaCreateCommand(a), newDeltaApplyCommand(a))
}

func newDeltaCreateCommand(a *app) *cobra.Command {
	var to string
	var whole bool
	cmd := &cobra.Command{
		Use:   "create OLD... NEW",
		Short: "Write what a site needs to make a new archive from older ones",
		Long: `Write a delta: the parts of NEW that are in none of the archives OLD. The signatures beside NEW travel with it. The delta is applied
before it has its name, and what it makes is compared with NEW.

A changed layer travels as a patch of an older one, if this program can compress it to the same bytes: layers that the tools of Docker, containerd,
Podman, crane and this program have compressed, and layers that are not compressed. Others travel as a whole.`,
		Example: "  solutionctl delta create example-solution-1.0.0.iso example-solution-1.1.0.iso",
		Args:    cli.AtLeastArgs("OLD", "NEW"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.createDelta(cmd.Context(), args, to, whole) },
	}
	cmd.Flags().BoolVar(&whole, "no-patches", false, "write changed layers as a whole: the delta is larger, and is made and applied in less time")
	cmd.Flags().StringVar(&to, "to", "", "write the delta to this `FILE` or directory, NAME-VERSION.delta by default")
	return cmd
}

func newDeltaApplyCommand(a *app) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "apply [OLD...] DELTA",
		Short: "Make the new archive",
		Long: `Write the archive that a delta makes, and its signatures beside it. It has every byte of the archive of the vendor, or nothing is
written. Its signatures prove its origin: verify it before it is used. 'solutionctl deploy import DELTA' does all of this with
archives that were imported before.`,
		Example: "  solutionctl delta apply example-solution-1.0.0.iso example-solution-1.1.0.delta",
		Args:    cli.AtLeastArgs("DELTA"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.applyDelta(cmd.Context(), args, to) },
	}
	cmd.Flags().StringVar(&to, "to", "", "write the archive to this `FILE` or directory, NAME-VERSION.iso by default")
	return cmd
}

// sources are opened archives.
type sources struct {
	list []layout.Source
	open []*media.Image
	made *delta.Made // of them; nil: nothing was made yet
}

// openSources opens archives that others are made from, or compared with.
func openSources(names []string) (s *sources, err error) {
	s = &sources{}
	archives, more := media.Arguments(names)
	for _, name := range archives {
		image, err := media.Open(name, more...)
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.open = append(s.open, image)
		s.list = append(s.list, layout.Source{Name: name, ReaderAt: image, Size: image.Size})
	}
	return s, nil
}

func (s *sources) close() error {
	var failures []error
	if s.made != nil {
		failures = append(failures, s.made.Close())
	}
	for _, image := range s.open {
		failures = append(failures, image.Close())
	}
	return errors.Join(failures...)
}

func (a *app) createDelta(ctx context.Context, names []string, to string, whole bool) error {
	r, err := a.makeDelta(ctx, names, to, whole)
	if err != nil {
		return err
	}
	return cli.Emit(a.App, r, nil, printDelta)
}

// makeDelta writes a delta of older archives and a new one, the last; whole is without patches.
func (a *app) makeDelta(ctx context.Context, names []string, to string, whole bool) (*deltaReport, error) {
	s, err := openSources(names)
	if err != nil {
		return nil, err
	}
	defer s.close() //nolint:errcheck // opened for reading
	last := len(s.list) - 1
	if last == 0 {
		return nil, report.Errorf(report.Usage, "a delta is between two archives, and these are parts of one").WithHint("name the older archive first: solutionctl delta create OLD.iso NEW.iso")
	}
	for _, source := range s.list {
		if err = delta.Refuse(source, source.Name); err != nil {
			return nil, err
		}
	}
	o := delta.CreateOptions{New: s.list[last], Old: s.list[:last], Whole: whole, WrittenBy: a.Version, Sink: a.Sink}
	if o.Bundles, err = bundlesBeside(o.New.Name); err != nil {
		return nil, err
	}
	identity, err := sign.Identify(o.New, o.New.Size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.New.Name, err)
	}
	if to, err = outputFile(to, schema.DeltaBase{Name: identity.Name, Version: identity.Version}.ID()+".delta"); err != nil {
		return nil, err
	}
	if err = refuseInputs(to, names); err != nil {
		return nil, err
	}
	d, err := delta.Create(ctx, to, o)
	if err != nil {
		return nil, err
	}
	r := newDeltaReport(to, d)
	r.wrote = "wrote " + to + ": "
	return r, nil
}

// bundlesBeside reads the signatures of an archive, for whom they are to travel with. One whose name cannot travel gets its digest as the name.
func bundlesBeside(name string) ([]layout.Bundle, error) {
	found, err := sign.FindBundles(name)
	if err != nil {
		return nil, err
	}
	whole, _, isPart := media.PartOf(name)
	if !isPart {
		whole = name
	}
	var bundles []layout.Bundle
	for _, b := range found {
		if b.Problem != nil || len(b.Data) == 0 || len(b.Data) > bundle.MaxSize {
			return nil, report.Errorf(report.BadBundle, "%s: %w", b.File, cmp.Or(b.Problem, errors.New("it is empty or too large"))).
				WithHint("remove it, or sign the archive again")
		}
		signer := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(b.File), filepath.Base(whole)), bundle.Suffix)
		signer = strings.TrimPrefix(signer, ".")
		if signer != "" && !layout.IsSigner(signer) {
			signer = fmt.Sprintf("%x", sha256.Sum256(b.Data))
		}
		bundles = append(bundles, layout.Bundle{Signer: signer, Data: b.Data})
	}
	return bundles, nil
}

// refuseInputs keeps a command from replacing what it reads.
func refuseInputs(to string, names []string) error {
	target, err := os.Stat(to)
	if err != nil {
		return nil //nolint:nilerr // there is nothing to be replaced
	}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && os.SameFile(info, target) {
			return report.Errorf(report.Usage, "%s would replace %s, which is read", to, name).WithHint("name another file with --to")
		}
	}
	return nil
}

func (a *app) applyDelta(ctx context.Context, names []string, to string) error {
	last := len(names) - 1
	image, err := media.Open(names[last])
	if err != nil {
		return err
	}
	defer image.Close() //nolint:errcheck // opened for reading
	d, err := openDelta(names[last], image)
	if err != nil {
		if first, _ := describeDelta(names[:1]); first != nil && last > 0 {
			return report.Errorf(report.Usage, "%s is a delta, and has to be the last argument", names[0]).WithHint("solutionctl delta apply %s %s", report.ShellFile(names[last]), report.ShellFile(names[0]))
		}
		return err
	}
	if last == 0 && len(d.Bases) > 0 {
		return missingBases(names[0], d).WithHint("name what it needs: solutionctl delta apply %s.iso %s", d.Bases[0].ID(), report.ShellFile(names[0]))
	}
	s, err := openSources(names[:last])
	if err != nil {
		return err
	}
	defer s.close() //nolint:errcheck // opened for reading
	for _, base := range s.list {
		if identity, failure := sign.Identify(base, base.Size); failure == nil && base.Size == d.Layout.Size && identity.Name == d.Layout.Name && identity.Version == d.Layout.Version {
			return report.Errorf(report.Usage, "%s is %s %s already, which %s makes", base.Name, identity.Name, identity.Version, names[last]).
				WithHint("use it as it is: solutionctl verify %s", report.ShellFile(base.Name))
		}
	}
	if to, err = outputFile(to, d.Layout.ID()+".iso"); err != nil {
		return err
	}
	if err = refuseInputs(to, names); err != nil {
		return err
	}
	if s.made, err = d.Archive(ctx, delta.Workspace{Dir: filepath.Dir(to), Spare: d.Layout.Size}, s.list...); err != nil {
		return media.WriteError(to, err)
	}
	bundles, err := d.Bundles()
	if err != nil {
		return err
	}
	if err = s.made.WriteFile(ctx, to, bundles, a.Sink); err != nil {
		return err
	}
	result := rebuilt{File: to, Solution: d.Layout.Name, Version: d.Layout.Version, SHA256: d.Layout.SHA256, Size: d.Layout.Size, Signatures: len(d.ArchiveDelta.Bundles)}
	return a.EmitResult(result, result.print)
}

// missingBases is the error for a delta that is named without the archives that it needs.
func missingBases(name string, d *delta.Delta) *report.Error {
	return report.Errorf(report.Usage, "%s is a delta: it makes %s %s from %s", name, d.Layout.Name, d.Layout.Version, d.Needs())
}

// rebuilt is an archive that a delta made.
type rebuilt struct {
	File       string `json:"file"`
	Solution   string `json:"solution"`
	Version    string `json:"version"`
	SHA256     string `json:"sha256"`
	Size       int64  `json:"size"`
	Signatures int    `json:"signatures"`
}

func (r rebuilt) print(w *console.Stream) {
	fmt.Fprintf(w, "wrote %s: %s %s, %s, sha256:%s\nverify it: solutionctl verify %s\n",
		console.Clean(r.File), r.Solution, r.Version, report.Bytes(r.Size), r.SHA256, console.Clean(report.ShellFile(r.File)))
}

// openDelta reads an opened file as a delta.
func openDelta(name string, image *media.Image) (*delta.Delta, error) {
	d, err := delta.Open(image, image.Size)
	if err != nil {
		return nil, report.Errorf(report.CodeOf(err), "%s: %w", name, err)
	}
	return d, nil
}

// deltaReport describes a delta.
type deltaReport struct {
	File       string             `json:"file"`
	Size       int64              `json:"size"`
	Makes      schema.DeltaBase   `json:"makes"`
	Needs      []schema.DeltaBase `json:"needs"`
	NewBytes   int64              `json:"newBytes"` // of the layers and files that the delta has as a whole
	Patches    int                `json:"patches"`
	PatchBytes int64              `json:"patchBytes"` // of the patches
	Patched    int64              `json:"patched"`    // bytes of the layers that they make
	Signatures int                `json:"signatures"`

	wrote string
}

func newDeltaReport(name string, d *delta.Delta) *deltaReport {
	l := &d.Layout
	r := &deltaReport{
		File: name, Size: d.Size(), Makes: schema.DeltaBase{Name: l.Name, Version: l.Version, SHA256: l.SHA256, Size: l.Size},
		Needs: d.Bases, NewBytes: d.NewBytes(), Patches: len(d.Patches), Signatures: len(d.ArchiveDelta.Bundles),
	}
	r.PatchBytes, r.Patched = d.PatchBytes()
	return r
}

// needs lists the archives that the delta needs.
func (r *deltaReport) needs() string {
	names := []string{}
	for _, base := range r.Needs {
		names = append(names, base.ID())
	}
	return cmp.Or(strings.Join(names, " and "), "no other archive")
}

// describeDelta describes the file of the first argument if it is a delta; it returns nil for anything else.
func describeDelta(args []string) (*deltaReport, error) {
	if info, err := os.Stat(args[0]); err != nil || info.IsDir() {
		return nil, nil //nolint:nilerr // it is opened as an archive
	}
	image, err := media.Open(args[0])
	if err != nil {
		return nil, nil //nolint:nilerr // it is opened as an archive, with its parts
	}
	defer image.Close() //nolint:errcheck // opened for reading
	if !delta.IsDelta(image) {
		return nil, nil
	}
	if len(args) > 1 {
		return nil, report.Errorf(report.Usage, "%s is a delta: its archive has to be made before a file of it can be shown", args[0]).
			WithHint("solutionctl delta apply OLD.iso %s", report.ShellFile(args[0]))
	}
	d, err := openDelta(args[0], image)
	if err != nil {
		return nil, err
	}
	return newDeltaReport(args[0], d), nil
}

func printDelta(w *console.Stream, r *deltaReport) {
	fmt.Fprintf(w, "%sa delta of %s that makes %s %s (%s, sha256:%s)\n", console.Clean(r.wrote), report.Bytes(r.Size), r.Makes.Name, r.Makes.Version, report.Bytes(r.Makes.Size), r.Makes.SHA256)
	for _, b := range r.Needs {
		fmt.Fprintf(w, "needs %s %s (%s, sha256:%s)\n", b.Name, b.Version, report.Bytes(b.Size), b.SHA256)
	}
	if len(r.Needs) == 0 {
		fmt.Fprintln(w, "needs no other archive")
	}
	signed := "no signature of the new archive"
	if r.Signatures > 0 {
		signed = "its signatures"
	}
	patched := ""
	if r.Patches > 0 {
		patched = fmt.Sprintf(", %s of patches instead of %s of changed layers", report.Bytes(r.PatchBytes), report.Bytes(r.Patched))
	}
	fmt.Fprintf(w, "has %s of new layers and files%s, and %s\n", report.Bytes(r.NewBytes), patched, signed)
}
