package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
	"github.com/solutionctl/solutionctl/sign/key"
)

// statement checks the archive and returns the statement to sign.
func (a *app) statement(ctx context.Context, file string, f *media.Image, o signOptions) (*bundle.Statement, error) {
	expires, err := a.expiry(o.expires)
	if err != nil {
		return nil, err
	}
	if err = iso.Refusal(append(iso.Check(f, f.Size), iso.CompareDiskFS(f, f.Size)...)); err != nil {
		return nil, report.Errorf(report.CodeOf(err), "%s: %w", file, err).
			WithHint("build the archive again with solutionctl build; another kind of file can be signed with --format message")
	}
	identity, err := sign.Identify(f, f.Size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if opened, failure := archive.Open(f, f.Size); failure == nil { // sign judges the form of an archive, lint what is in it
		a.warnOfEmptyImages(file, opened.Solution, opened.Images.Images())
	}
	sums, err := chunk.Sum(ctx, f, f.Size, a.Sink)
	if err != nil {
		return nil, err
	}
	if err := f.Unchanged(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return sign.NewStatement(sums, sign.Claims{
		Name: filepath.Base(file), Solution: identity.Solution, ManifestDigest: identity.ManifestDigest,
		CreatedAt: a.Now().Truncate(time.Second), Expires: expires,
	})
}

// warnOfEmptyImages warns of an operator that cannot start, before customers meet it: its image is still the placeholder of a new
// project.
func (a *app) warnOfEmptyImages(file string, s *schema.Solution, images []*oci.Image) {
	operators := []schema.ImageRef{s.OperatorImage()}
	for i := range s.Spec.Components {
		if c := &s.Spec.Components[i]; c.Operator != "" {
			operators = append(operators, s.ComponentImage(c))
		}
	}
	for _, image := range images {
		if slices.Contains(operators, image.Ref) && image.IsEmpty() {
			a.Sink.Emit(report.Event{
				Step: "sign", Name: file, State: report.Warning,
				Note: fmt.Sprintf("the operator's image %s has no layers and cannot start: solutionctl lint %s", image.Ref, report.ShellFile(file)),
			})
		}
	}
}

func (a *app) printStatement(st *bundle.Statement) error {
	payload, err := st.Marshal()
	if err != nil {
		return err
	}
	return a.EmitText(string(payload))
}

// expiry returns the end of a signature that is made now; it has to be in the future.
func (a *app) expiry(text string) (time.Time, error) {
	moment, err := parseExpiry(text)
	if err == nil && !moment.IsZero() && !moment.After(a.Now()) {
		err = report.Errorf(report.Usage, "--expires %s is in the past: the signature would be rejected", text).WithHint("name a future date")
	}
	return moment, err
}

func parseExpiry(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1).Add(-time.Second), nil
	}
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return moment, report.Errorf(report.Usage, "--expires %q, want a day (2028-01-31) or an RFC 3339 time", text)
	}
	return moment, nil
}

type signed struct {
	File string    `json:"file"`
	Key  publicKey `json:"key"`
}

func (s signed) print(w *console.Stream) {
	fmt.Fprintf(w, "wrote %s\nsigned by %s  %s\n", s.File, s.Key.Name, s.Key.Fingerprint)
}

func (a *app) signMessage(ctx context.Context, f *media.Image, o signOptions) error {
	signer, certificate, err := a.signer(ctx, o)
	if err != nil {
		return err
	}
	data, err := sign.FileBundle(ctx, f, f.Size, signer, a.Sink)
	if err != nil {
		return err
	}
	if err := f.Unchanged(); err != nil {
		return err
	}
	return a.writeSignature(data, certificate, describeKey(o.key, signer.Public()), o)
}

// provenanceOf returns the statement of how the archive was made that is to be signed, where build has written one.
func provenanceOf(file string, st *bundle.Statement) ([]byte, error) {
	written, err := sign.ReadBundle(sign.ProvenanceName(file))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	made, err := bundle.ParseProvenanceStatement(written.Data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", written.File, err)
	}
	digest := st.SHA256()
	if !bundle.IsAbout(made, hex.EncodeToString(digest[:])) {
		return nil, report.Errorf(report.Mismatch, "%s is about another archive than %s", written.File, file).
			WithHint("remove it, or build the archive again with --provenance")
	}
	return bundle.MarshalProvenance(made)
}

// signer returns the key and its certificate, nil where none is named. Both are looked at before the work.
func (a *app) signer(ctx context.Context, o signOptions) (*key.Signer, []byte, error) {
	var certificate []byte
	if o.certificate != "" {
		var err error
		if certificate, err = os.ReadFile(o.certificate); err != nil {
			return nil, nil, err
		}
	}
	signer, err := a.load(ctx, o.keyFlags)
	if err == nil && certificate != nil {
		err = bundle.CheckCertificate(certificate, signer.Public())
	}
	return signer, certificate, err
}

func (a *app) attachTimestamp(o signOptions) error {
	b, err := sign.ReadBundle(o.bundle)
	if err != nil {
		return err
	}
	response, err := os.ReadFile(o.attachTimestamp)
	if err != nil {
		return err
	}
	data, err := bundle.AddTimestamp(b.Data, response)
	if err != nil {
		return err
	}
	return sign.WriteBundle(o.bundle, data)
}

func (a *app) writeSignature(data, certificate []byte, k publicKey, o signOptions) error {
	if certificate != nil {
		var err error
		if data, err = bundle.SetCertificate(data, certificate); err != nil {
			return err
		}
	}
	a.warnOfReplaced(o.bundle, k.KeyID)
	if err := sign.WriteBundle(o.bundle, data); err != nil {
		return err
	}
	result := signed{File: o.bundle, Key: k}
	return a.EmitResult(result, result.print)
}

// warnOfReplaced warns of a signature of another key that is about to be replaced.
func (a *app) warnOfReplaced(name, keyID string) {
	present, err := sign.ReadBundle(name)
	if err != nil {
		return
	}
	if b, err := bundle.Parse(present.Data); err == nil && b.KeyID() != keyID {
		a.Sink.Emit(report.Event{
			Step: "sign", Name: name, State: report.Warning, Note: fmt.Sprintf("replaces the signature of key %.50q; --as NAME keeps both", b.KeyID()),
		})
	}
}
