package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// storeFlags are the flags of all commands below trust.
type storeFlags struct{ dir, state, endorsedBy string }

func newTrustCommand(a *app) *cobra.Command {
	var f storeFlags
	group := cli.NewGroup("trust", "Manage the trusted keys",
		newTrustAddCommand(a, &f), newTrustListCommand(a, &f), newTrustExportCommand(a, &f),
		newTrustImportCommand(a, &f), newTrustRevokeCommand(a, &f), newTrustRemoveCommand(a, &f))
	group.PersistentFlags().StringVar(&f.dir, "trust-dir", "", "the trust store, a `DIRECTORY`")
	group.PersistentFlags().StringVar(&f.state, "state", "/var/lib/solutionctl/state.json", "`FILE` with the versions and revocations that were seen before")
	return group
}

func (a *app) trustDir(f *storeFlags) string { return a.TrustDirs(f.dir)[0] }

// endorsement reads FILE.sigstore.json when a key is named that has signed FILE.
func (a *app) endorsement(f *storeFlags, file string) (*trust.Endorsement, error) {
	if f.endorsedBy == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file + bundle.Suffix)
	return &trust.Endorsement{By: f.endorsedBy, Bundle: data, Now: a.Now(), Beside: a.TrustDirs(f.dir)[1:]}, err
}

func (f *storeFlags) addEndorsedBy(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.endorsedBy, "endorsed-by", "", "require FILE.sigstore.json, signed by the trusted key `NAME`, or by the root key: root")
}

func newTrustAddCommand(a *app, f *storeFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "add NAME FILE", Short: "Trust a public key",
		Example: "  solutionctl trust add acme-release acme-release.pub",
		Args:    cli.ExactArgs("NAME", "FILE"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.trustKey(f, args[0], args[1]) },
	}
	f.addEndorsedBy(cmd)
	return cmd
}

func (a *app) trustKey(f *storeFlags, name, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	endorsed, err := a.endorsement(f, file)
	if err != nil {
		return err
	}
	k, err := trust.Add(a.trustDir(f), name, data, endorsed)
	if err != nil {
		return err
	}
	info := describeKey(name, k)
	return a.EmitResult(info, func(w *console.Stream) {
		fmt.Fprintf(w, "added %s  %s  %s\n", info.Name, info.Algorithm, info.Fingerprint)
	})
}

func newTrustListCommand(a *app, f *storeFlags) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the trusted keys", Example: "  solutionctl trust list",
		RunE: func(*cobra.Command, []string) error { return a.listTrusted(f) },
	}
}

func (a *app) listTrusted(f *storeFlags) error {
	store, err := a.store(f)
	if err != nil {
		return err
	}
	list := []publicKey{}
	table := &console.Table{Columns: []string{"NAME", "ALGORITHM", "FINGERPRINT", "STATE"}}
	for _, k := range store.List() {
		info, state := describeKey(k.Name, k.Key), "trusted"
		if info.Revoked = k.Revoked; k.Revoked {
			state = "revoked"
		}
		list = append(list, info)
		table.Add(k.Name, info.Algorithm, info.Fingerprint, state)
	}
	return a.EmitResult(list, table.Print)
}

func (a *app) store(f *storeFlags) (*trust.Store, error) {
	state, err := trust.LoadState(f.state)
	if err != nil {
		return nil, err
	}
	return trust.Load(a.TrustDirs(f.dir), state)
}

func newTrustRemoveCommand(a *app, f *storeFlags) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Stop trusting a key", Example: "  solutionctl trust remove acme-release", Args: cli.ExactArgs("NAME"),
		ValidArgsFunction: cli.CompleteNames(func(*cobra.Command) ([]string, error) {
			store, err := a.store(f)
			if err != nil {
				return nil, err
			}
			var names []string
			for _, k := range store.List() {
				names = append(names, k.Name)
			}
			return names, nil
		}),
		RunE: func(_ *cobra.Command, args []string) error {
			removed := map[string]string{"name": args[0]}
			return cli.Emit(a.App, removed, trust.Remove(a.trustDir(f), args[0]), func(w *console.Stream, _ map[string]string) {
				fmt.Fprintln(w, "removed", args[0])
			})
		},
	}
}

func newTrustRevokeCommand(a *app, f *storeFlags) *cobra.Command {
	r := revocation{app: a, store: f}
	cmd := &cobra.Command{
		Use: "revoke", Short: "Issue the next revocation list, signed with the root key",
		Long: `Issue the next revocation list: the entries of the present list in the trust store, and those named
here. It is signed with the root key; others import it with 'solutionctl trust import'. What was revoked stays revoked.`,
		Example: "  solutionctl trust revoke --root-key root.key --minimum-version acme-db=1.4.0",
		RunE:    func(cmd *cobra.Command, _ []string) error { return r.issue(cmd.Context()) },
	}
	r.root.addPassword(cmd)
	flags := cmd.Flags()
	flags.StringVar(&r.root.key, "root-key", "", "private root key: a `FILE` or NAME://REF")
	flags.StringSliceVar(&r.more.Keys, "key-id", nil, "revoke the key with this `ID` (may be repeated)")
	flags.StringSliceVar(&r.more.Archives, "archive", nil, "revoke the archive with this `DIGEST`, sha256:… (may be repeated)")
	flags.StringToStringVar(&r.more.MinimumVersions, "minimum-version", nil, "revoke all versions below, `SOLUTION=VERSION`")
	flags.BoolVar(&r.dryRun, "dry-run", false, "show what would change, and issue nothing")
	return cmd
}

// revocation has the flags of 'trust revoke'.
type revocation struct {
	*app
	store  *storeFlags
	root   keyFlags
	more   trust.Revocations
	dryRun bool
}

func (r *revocation) issue(ctx context.Context) error {
	signer, err := r.load(ctx, r.root)
	if err != nil {
		return err
	}
	state, err := trust.LoadState(r.store.state)
	if err != nil && !errors.Is(err, fs.ErrPermission) { // of which record warns
		return err
	}
	draft, err := trust.Prepare(r.trustDir(r.store), r.more, signer.Public(), state)
	if err != nil {
		return err
	}
	result := trustChange{Serial: draft.Serial, Changes: append([]string{}, draft.Changes...), DryRun: r.dryRun}
	done := "would issue revocations.json"
	if !r.dryRun {
		if err = draft.Issue(ctx, signer); err != nil {
			return err
		}
		r.record(draft)
		done = "issued revocations.json"
	}
	if len(result.Changes) == 0 {
		done = "nothing changes, the list is the one"
	}
	done += fmt.Sprintf(" with serial %d", draft.Serial)
	return r.EmitResult(result, func(w *console.Stream) { result.print(w, done) })
}

// record notes the serial of a list. The list is issued already, so a failure is only reported.
func (r *revocation) record(draft *trust.Draft) {
	err := trust.UpdateState(r.store.state, func(state *trust.State) error {
		draft.Record(state)
		return nil
	})
	if err != nil {
		note := fmt.Sprintf("cannot be written, and a loss of the list with serial %d will not be noticed: %v", draft.Serial, err)
		r.Sink.Emit(report.Event{Step: "remember", Name: r.store.state, State: report.Warning, Note: note})
	}
}

func newTrustExportCommand(a *app, f *storeFlags) *cobra.Command {
	return &cobra.Command{
		Use: "export", Short: "Write the trust store to standard output, for another host",
		Example: "  solutionctl trust export > trust.tar",
		RunE:    func(*cobra.Command, []string) error { return trust.Export(a.trustDir(f), a.Out) },
	}
}
