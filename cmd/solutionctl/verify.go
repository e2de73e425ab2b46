package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/sign"
)

func newVerifyCommand(a *app) *cobra.Command {
	var o cli.TrustFlags
	var full bool
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Verify the signature and the content of an archive",
		Long: `Check an archive against the signatures beside it, FILE.sigstore.json and FILE.*.sigstore.json, and against the trust
store. No network is used. The exit status tells what is wrong: 4 not trusted, 5 altered, 6 refused; see
'solutionctl help errors' and docs/guides/verifying.md.`,
		Example: "  solutionctl verify --key acme-release.pub example-solution-1.0.0.iso",
		Args:    cli.ExactArgs("FILE"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.verify(cmd.Context(), args[0], o, full) },
	}
	o.Add(cmd)
	cmd.Flags().BoolVar(&full, "full", false, "compute the digest of the whole file too")
	return cmd
}

func (a *app) verify(ctx context.Context, file string, o cli.TrustFlags, full bool) error {
	f, err := sign.Open(file)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // opened for reading
	bundles, err := sign.ReadBundles(file, o.Bundles)
	if err != nil {
		return err
	}
	state, store, err := a.Trusted(o)
	if err != nil {
		return err
	}
	verdict, _, err := sign.Verify(ctx, f, f.Size, bundles, sign.Options{
		Store: store, State: state, Now: a.Now(), Path: file, Device: f.Device, Unchanged: f.Unchanged, Identify: sign.Identify,
		Examine: func(r io.ReaderAt, size int64) error { return sign.CheckStructure(r, f, size) }, Locate: sign.Locate(f, f.Size),
		Full: full, AllowDowngrade: o.Downgrade, Workers: runtime.GOMAXPROCS(0), Sink: a.Sink, ToolVersion: a.Version,
	})
	printed := a.EmitResult(verdict, func(w *console.Stream) error { return printVerdict(w, verdict) })
	if err = errors.Join(err, printed); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

func printVerdict(w *console.Stream, v *sign.Verdict) error {
	if v.Verified {
		if _, err := fmt.Fprintf(w, "verified %s: %s\n", v.Archive.Path, v.Solution); err != nil {
			return err
		}
	}
	for _, s := range v.Signatures {
		text := string(s.Status) + " " + s.File
		if s.KeyName != "" {
			text += "  " + s.KeyName + "  " + s.Fingerprint
		}
		if s.Reason != "" {
			text += ": " + s.Reason
		}
		if _, err := fmt.Fprintln(w, console.Clean(text)); err != nil {
			return err
		}
	}
	for _, t := range v.Tampered {
		if _, err := fmt.Fprintf(w, "altered bytes %d to %d: %s\n", t.From, t.To-1, console.Clean(cmp.Or(t.File, "unknown"))); err != nil {
			return err
		}
	}
	return nil
}
