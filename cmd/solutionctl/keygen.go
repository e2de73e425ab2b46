package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/sign/key"
)

// publicKey describes a key in the output of commands.
type publicKey struct {
	Name        string `json:"name"`
	Algorithm   string `json:"algorithm"`
	Fingerprint string `json:"fingerprint"`
	KeyID       string `json:"keyID"`
	Revoked     bool   `json:"revoked,omitempty"`
}

func describeKey(name string, k *key.Public) publicKey {
	return publicKey{Name: name, Algorithm: k.Algorithm(), Fingerprint: k.Fingerprint(), KeyID: k.ID()}
}

func newKeygenCommand(a *app) *cobra.Command {
	var flags keyFlags
	cmd := &cobra.Command{
		Use:   "keygen NAME",
		Short: "Create a key pair for signing archives",
		Long: `Make an ECDSA P-256 key pair: NAME.key, which is encrypted with a password and readable by you only, and NAME.pub,
which you give to those who verify. Both have cosign's format. Existing files are never overwritten.

The password is taken from --password-file, SOLUTIONCTL_PASSWORD or COSIGN_PASSWORD, or asked for.`,
		Example: "  solutionctl keygen acme-release",
		Args:    cli.ExactArgs("NAME"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.keygen(cmd.Context(), args[0], flags) },
	}
	flags.addPassword(cmd)
	return cmd
}

func (a *app) keygen(ctx context.Context, name string, flags keyFlags) error {
	password, err := a.password(ctx, flags, true)
	if err != nil {
		return err
	}
	pair, err := key.Generate(password)
	if err != nil {
		return err
	}
	if err := pair.Write(name); err != nil {
		return err
	}
	info := describeKey(name, pair.Public)
	return a.EmitResult(info, func(w *console.Stream) {
		fmt.Fprintf(w, "wrote %s.key (keep it secret) and %s.pub\nfingerprint %s\n", name, name, info.Fingerprint)
	})
}
