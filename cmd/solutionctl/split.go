package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/build/delta"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

func newSplitCommand(a *app) *cobra.Command {
	var size, to string
	cmd := &cobra.Command{
		Use:   "split ARCHIVE",
		Short: "Divide an archive into parts for media of limited size",
		Long: `Write the parts ARCHIVE.001, ARCHIVE.002 and so on, each at most SIZE, cut where the pieces of the signature end: so each one can be
verified on its own. inspect, lint, verify and import read parts where they lie, from several media at once; 'cat' joins them.

Put the signature, ARCHIVE.sigstore.json, on each medium.`,
		Example: `  solutionctl split example-solution-1.0.0.iso --size 4GiB-1
  solutionctl split example-solution-1.0.0.iso --size dvd --to parts`,
		Args:              cli.ExactArgs("ARCHIVE"),
		ValidArgsFunction: completeArchive(false),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.split(cmd.Context(), args[0], size, to) },
	}
	cmd.Flags().StringVar(&size, "size", "", "the most that a part may have: 4GiB-1 for FAT file systems, dvd, or another `SIZE`")
	cmd.Flags().StringVar(&to, "to", "", "write the parts, and copies of the signatures, into this `directory`")
	return cmd
}

func (a *app) split(ctx context.Context, name, size, to string) error {
	if size == "" {
		return report.Errorf(report.Usage, "--size is missing").WithHint("such as --size 4GiB-1 for FAT file systems, or --size dvd")
	}
	most, err := media.ParseSize(size)
	if err != nil {
		return err
	}
	image, err := media.Open(name)
	if err != nil {
		return err
	}
	defer image.Close() //nolint:errcheck // opened for reading
	if err = delta.Refuse(image, name); err != nil {
		return err
	}
	if _, err = sign.Identify(image, image.Size); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	bundles, err := sign.FindBundles(name)
	if err != nil {
		return err
	}
	archive := name
	if to != "" {
		archive = filepath.Join(to, filepath.Base(name))
		if err = durable.MkdirAll(to, 0o755); err != nil {
			return err
		}
	}
	parts, err := image.Split(ctx, archive, media.SplitOptions{Size: most, Chunk: chunkSize(bundles), Sink: a.Sink})
	if err != nil {
		return err
	}
	if to != "" {
		if err = copyBundles(bundles, to); err != nil {
			return err
		}
	}
	result := division{Archive: name, Size: image.Size, Parts: parts}
	return a.EmitResult(result, result.print)
}

func copyBundles(bundles []sign.NamedBundle, to string) error {
	for _, b := range bundles {
		if b.Problem != nil {
			continue
		}
		if err := durable.WriteFile(filepath.Join(to, filepath.Base(b.File)), b.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// chunkSize is the size of the pieces of an archive that its signatures are about.
func chunkSize(bundles []sign.NamedBundle) int64 {
	size := int64(chunk.DefaultSize)
	for _, b := range bundles {
		if parsed, err := bundle.Parse(b.Data); err == nil && parsed.Statement() != nil {
			size = max(size, parsed.Statement().Predicate.Chunks.ChunkSize) // powers of two
		}
	}
	return size
}

// division is an archive that was divided.
type division struct {
	Archive string   `json:"archive"`
	Size    int64    `json:"size"`
	Parts   []string `json:"parts"`
}

func (d division) print(w *console.Stream) {
	for _, part := range d.Parts {
		fmt.Fprintf(w, "wrote %s\n", console.Clean(part))
	}
}
