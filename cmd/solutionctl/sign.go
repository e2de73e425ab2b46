package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/key"
)

// signOptions are the flags of sign.
type signOptions struct {
	keyFlags
	as, bundle, format, expires  string
	certificate, attachTimestamp string
	statementOnly                bool
}

func newSignCommand(a *app) *cobra.Command {
	var o signOptions
	cmd := &cobra.Command{
		Use:   "sign FILE",
		Short: "Sign an archive",
		Long: `Sign an archive. The signature is written beside it as FILE.sigstore.json, a sigstore bundle that cosign reads too.

The archive is checked first: one of which two programs would read different content is not signed. Its provenance is signed too, if 'build
--provenance' has written FILE.provenance.json: as FILE.provenance.sigstore.json, unless --as names a further signer. With --format message
any file can be signed, as 'cosign sign-blob' does. See docs/guides/signing.md.`,
		Example: "  solutionctl sign --key acme-release.key example-solution-1.0.0.iso",
		Args:    cli.ExactArgs("FILE"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.sign(cmd.Context(), args[0], o) },
	}
	o.add(cmd, "private key: a `FILE`, or NAME://REF for the program sigstore-kms-NAME")
	cli.AddChoice(cmd, cmd.Flags(), &o.format, "format", "", "what is signed", "statement", "message")
	flags := cmd.Flags()
	flags.StringVar(&o.as, "as", "", "write FILE.`NAME`.sigstore.json, for a further signer")
	flags.StringVar(&o.bundle, "bundle", "", "write the signature to `FILE`")
	flags.StringVar(&o.expires, "expires", "", "refuse the signature after this `TIME` (2028-01-31 or RFC 3339)")
	flags.StringVar(&o.certificate, "certificate", "", "put the certificate of the key, a PEM `FILE`, into the signature")
	flags.StringVar(&o.attachTimestamp, "attach-timestamp", "", "add an RFC 3161 response, a `FILE`, to an existing signature")
	flags.BoolVar(&o.statementOnly, "statement-only", false, "print the statement instead of signing it")
	return cmd
}

func (a *app) sign(ctx context.Context, file string, o signOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	o.bundle = cmp.Or(o.bundle, sign.BundleName(file, o.as))
	if o.attachTimestamp != "" {
		return a.attachTimestamp(o)
	}
	f, err := media.OpenNoFollow(file)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // opened for reading
	if o.format == "message" {
		return a.signMessage(ctx, f, o)
	}
	if o.statementOnly {
		st, failure := a.statement(ctx, file, f, o)
		if failure != nil {
			return failure
		}
		return a.printStatement(st)
	}
	if _, err = a.expiry(o.expires); err != nil {
		return err
	}
	signer, certificate, err := a.signer(ctx, o) // before the work: the password may be wrong
	if err != nil {
		return err
	}
	st, err := a.statement(ctx, file, f, o)
	if err != nil {
		return err
	}
	if o.as == "" {
		if err = signProvenance(ctx, file, st, sealer{signer, certificate}); err != nil {
			return err
		}
	}
	data, err := bundle.SignStatement(ctx, signer, st)
	if err != nil {
		return err
	}
	return a.writeSignature(data, certificate, describeKey(o.key, signer.Public()), o)
}

// check refuses options that would have no effect, and names that are none of a signer.
func (o *signOptions) check() error {
	switch {
	case o.as == sign.ProvenanceSigner && o.attachTimestamp == "":
		return report.Errorf(report.Usage, "--as %s is the name of the provenance of an archive", o.as).WithHint("name the signer")
	case o.as != "" && !layout.IsSigner(o.as):
		return report.Errorf(report.Usage, "--as %q is not the name of a signer", o.as).WithHint("use at most 64 letters of ASCII, digits, '.', '_' and '-', such as --as site-a")
	case o.attachTimestamp != "" && o.statementOnly:
		return report.Errorf(report.Usage, "--attach-timestamp adds to a signature: there is no statement to print").WithHint("leave out --statement-only")
	case o.format == "message" && (o.expires != "" || o.statementOnly):
		return report.Errorf(report.Usage, "--format message signs the file alone: --expires and --statement-only are for statements").
			WithHint("leave them out, and unset SOLUTIONCTL_EXPIRES for this command")
	}
	return nil
}

// sealer is a key with its certificate, which is nil where none is named.
type sealer struct {
	*key.Signer
	certificate []byte
}

// signProvenance signs how the archive was made, if build has written it.
func signProvenance(ctx context.Context, file string, st *bundle.Statement, by sealer) error {
	payload, err := provenanceOf(file, st)
	if payload == nil || err != nil {
		return err
	}
	data, err := bundle.Attest(ctx, by.Signer, payload)
	if err == nil && by.certificate != nil {
		data, err = bundle.SetCertificate(data, by.certificate)
	}
	if err != nil {
		return err
	}
	return sign.WriteBundle(sign.BundleName(file, sign.ProvenanceSigner), data)
}
