package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// trustImport is a run of 'trust import'.
type trustImport struct {
	*app
	flags           *storeFlags
	replace, dryRun bool
}

func newTrustImportCommand(a *app, f *storeFlags) *cobra.Command {
	c := &trustImport{app: a, flags: f}
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Import an exported trust store, or newer revocations",
		Long: `Import what 'solutionctl trust export' has written, or a list of revocations, FILE.json, with its signature FILE.json.sigstore.json.
Everything that changes is printed; --dry-run changes nothing.

Revocations are signed by the root key of the trust store. They are added to what was revoked before: nothing is ever taken back.

Where there is no trust store yet, the exported one is taken as it is: compare the fingerprints with those of the vendor. Later
changes need a signature or --replace. A release key (--endorsed-by NAME) can add keys, and no more. The root key (--endorsed-by root) can
replace the store: its keys, its policy and the root key. So can an administrator of this host who has looked at the changes:
--replace, which asks before it does so.`,
		Example: "  solutionctl trust import revocations.json\n  solutionctl trust import --replace --dry-run trust.tar",
		Args:    cli.ExactArgs("FILE"),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	f.addEndorsedBy(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&c.replace, "replace", false, "replace the trust store of this host by the exported one, regardless of its signer")
	flags.BoolVar(&c.dryRun, "dry-run", false, "show what would change, and change nothing")
	return cmd
}

// trustChange lists the changes of a trust store.
type trustChange struct {
	Serial  int64    `json:"serial,omitempty"` // of the revocation list
	Changes []string `json:"changes"`
	Notes   []string `json:"notes,omitempty"`
	DryRun  bool     `json:"dryRun,omitempty"`
}

func (t *trustChange) print(w *console.Stream, done string) {
	for _, change := range t.Changes {
		fmt.Fprintln(w, console.Clean(change))
	}
	console.PrintEach(w, console.Yellow, "note:", t.Notes)
	fmt.Fprintln(w, done)
}

func (c *trustImport) run(ctx context.Context, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	state, err := trust.LoadState(c.flags.state)
	if err != nil {
		return err
	}
	transfer, what, err := c.prepare(file, data, state)
	if err != nil {
		return err
	}
	result := trustChange{Serial: transfer.Serial, Changes: append([]string{}, transfer.Changes...), Notes: transfer.Notes, DryRun: c.dryRun}
	if c.dryRun {
		return c.EmitResult(result, func(w *console.Stream) { result.print(w, "would import "+what) })
	}
	if c.replace && len(transfer.Changes) > 0 {
		err = c.Confirm(ctx, report.Confirmation{
			Lists: []report.ConfirmationList{{Title: "This changes the trust store " + c.trustDir(c.flags), Items: transfer.Changes}}, Question: "Trust the content of " + file + "?",
		})
	}
	if err == nil {
		err = transfer.Apply()
	}
	if err != nil {
		return err
	}
	return errors.Join(c.noteSerials(c.flags), c.EmitResult(result, func(w *console.Stream) { result.print(w, "imported "+what) }))
}

func (c *trustImport) prepare(file string, data []byte, state *trust.State) (*trust.Transfer, string, error) {
	dir := c.trustDir(c.flags)
	if !strings.HasSuffix(file, ".json") {
		endorsed, err := c.endorsement(c.flags, file)
		if err != nil {
			return nil, "", err
		}
		t, err := trust.PrepareImport(dir, data, trust.ImportOptions{State: state, Endorsed: endorsed, Replace: c.replace})
		return t, "the trust store", err
	}
	if c.replace || c.flags.endorsedBy != "" {
		return nil, "", report.Errorf(report.Usage, "--replace and --endorsed-by are for an exported trust store: revocations are signed by the root key").
			WithHint("leave them out")
	}
	signature, err := os.ReadFile(file + bundle.Suffix)
	if err != nil {
		return nil, "", report.As(report.Unsigned, err)
	}
	t, err := trust.PrepareRevocations(dir, data, signature, state)
	if err != nil {
		return nil, "", err
	}
	return t, fmt.Sprintf("revocations.json with serial %d", t.Serial), nil
}

// noteSerials remembers how new the revocations of the trust store are, so that their loss is noticed.
func (a *app) noteSerials(f *storeFlags) error {
	err := trust.UpdateState(f.state, func(state *trust.State) error {
		store, err := trust.Load([]string{a.trustDir(f)}, state)
		if err == nil {
			state.RecordSerials(store)
		}
		return err
	})
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		// A trust store of one's own is nothing for a file of all users.
		a.Sink.Emit(report.Event{Step: "remember", Name: f.state, State: report.Warning, Note: "cannot be written: a loss of revocations will not be noticed"})
		return nil
	}
	return err
}
