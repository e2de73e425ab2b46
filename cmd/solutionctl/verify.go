package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/key"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// verifyOptions are the flags of verify.
type verifyOptions struct {
	keys, bundles   []string
	trustDir, state string
	full, downgrade bool
}

func newVerifyCommand(a *app) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check who has signed an archive, and that it was not changed",
		Long: `Check an archive against the signatures beside it, FILE.sigstore.json and FILE.*.sigstore.json, and against the trust
store. No network is used. The exit status tells what is wrong: 4 not trusted, 5 altered, 6 refused; see
'solutionctl help errors' and docs/guides/verifying.md.`,
		Example: "  solutionctl verify --key acme-release.pub example-solution-1.0.0.iso",
		Args:    exactArgs("FILE"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.verify(cmd.Context(), args[0], o) },
	}
	o.add(cmd)
	cmd.Flags().BoolVar(&o.full, "full", false, "compute the digest of the whole file too")
	return cmd
}

// add adds the flags of every command that decides whether an archive is trusted.
func (o *verifyOptions) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&o.keys, "key", nil, "trust this public key, a `FILE`, instead of the trust store (may be repeated)")
	flags.StringSliceVar(&o.bundles, "bundle", nil, "the signature, a `FILE`, if it is not beside the archive (may be repeated)")
	flags.StringVar(&o.trustDir, "trust-dir", "", "the trust store, a `DIRECTORY`")
	flags.StringVar(&o.state, "state", "/var/lib/solutionctl/state.json", "what was imported before, a `FILE`")
	flags.BoolVar(&o.downgrade, "allow-downgrade", false, "accept a version older than what was imported before")
}

func (a *app) verify(ctx context.Context, file string, o verifyOptions) error {
	f, err := sign.Open(file)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // opened for reading
	bundles, err := sign.ReadBundles(file, o.bundles)
	if err != nil {
		return err
	}
	state, store, err := a.trusted(o)
	if err != nil {
		return err
	}
	verdict, _, err := sign.Verify(ctx, f, f.Size, bundles, sign.Options{
		Store: store, State: state, Now: a.now(), Path: file, Device: f.Device, Unchanged: f.Unchanged, Identify: sign.Identify,
		Examine: func(r io.ReaderAt, size int64) error { return sign.CheckStructure(r, f, size) }, Locate: sign.Locate(f, f.Size),
		Full: o.full, AllowDowngrade: o.downgrade, Workers: runtime.GOMAXPROCS(0), Sink: a.sink, ToolVersion: readVersion().Version,
	})
	printed := a.emitResult(verdict, func(w *console.Stream) error { return printVerdict(w, verdict) })
	if err = errors.Join(err, printed); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// trusted returns the trust store, or one that consists of the keys of the command line.
func (a *app) trusted(o verifyOptions) (*trust.State, *trust.Store, error) {
	if o.keys != nil {
		keys, err := readKeys(o.keys)
		return nil, trust.Keys(keys), err
	}
	return a.trustStore(o)
}

func (a *app) trustStore(o verifyOptions) (*trust.State, *trust.Store, error) {
	state, err := trust.LoadState(o.state)
	if err != nil {
		return nil, nil, err
	}
	store, err := trust.Load(a.trustDirs(o.trustDir), state)
	return state, store, err
}

// trustedToImport returns the trust store. Keys of the command line replace its keys and nothing else: the policy, the revocations and
// the versions that were imported before count for them, too.
func (a *app) trustedToImport(o verifyOptions) (*trust.Store, error) {
	_, store, err := a.trustStore(o)
	if err != nil || o.keys == nil {
		return store, err
	}
	keys, err := readKeys(o.keys)
	if err != nil {
		return nil, err
	}
	return store.WithKeys(keys)
}

// readKeys reads public keys. Each is named like its file.
func readKeys(files []string) (map[string]*key.Public, error) {
	keys := map[string]*key.Public{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		k, err := key.ParsePublic(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".pub")
		if other := keys[name]; other != nil && !other.Equal(k) {
			return nil, report.Errorf(report.Usage, "--key names two different keys %s", name).WithHint("rename one of the files, so that messages tell them apart")
		}
		keys[name] = k
	}
	return keys, nil
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
