package main

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
	"github.com/solutionctl/solutionctl/sign/key"
)

// follower hashes an archive behind its writing. The archive is published when its digest is known and it is signed.
type follower struct {
	*chunk.Follower
	prepare func(*chunk.Sums) error // what is published with the archive
}

func (f follower) Wait() error {
	sums, err := f.Sums()
	if err != nil {
		return err
	}
	return f.prepare(sums)
}

// pendingBundle returns the path of the signature until its archive is published. Readers find it there, too: at each moment the
// archive that is there has a signature beside it, and one of another archive beside that does no harm.
func pendingBundle(path string) string { return sign.BundleName(path, "partial") }

// product is an archive that is built.
type product struct {
	plan *build.Plan
	path string
	made *schema.ProvenanceStatement // without a subject; nil: not asked for
}

// provenanceFile returns the path of the provenance: that of a signature, or of a statement that sign is to sign.
func (p product) provenanceFile(signed bool) string {
	if signed {
		return sign.BundleName(p.path, sign.ProvenanceSigner)
	}
	return sign.ProvenanceName(p.path)
}

// written is an archive that has its name, and what is beside it and is to have its own now.
type written struct {
	result *build.Result
	sums   *chunk.Sums   // nil unless requested
	list   *durable.File // SHA256SUM, or nil
	signed bool          // its signature is a pendingBundle

	provenance string // a file that is to have the name of p.provenanceFile; "" for none
}

// writeAndSum writes the archive and, where its digest or a signature is asked for, hashes it in the same pass.
func (a *app) writeAndSum(ctx context.Context, p product, f buildFlags) (done written, err error) {
	options := build.WriteOptions{Jobs: f.jobs, ImplantMD5: f.md5, Sink: a.Sink}
	if !f.sha256sum && f.signing.key == "" && p.made == nil {
		done.result, err = p.plan.Write(ctx, p.path, options)
		return done, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	signer := a.loadAside(ctx, f.signing, stop)
	var hashes *chunk.Follower
	options.Follow = func(r io.ReaderAt, size int64) (build.Follower, error) {
		var unread error
		hashes, unread = chunk.Follow(ctx, r, size, a.Sink)
		return follower{hashes, func(sums *chunk.Sums) error {
			opened, failure := signer()
			if failure == nil && opened != nil {
				failure = a.signBuilt(ctx, p, sums, opened, f)
				done.signed = failure == nil
			}
			if failure == nil && p.made != nil {
				done.provenance, failure = p.writeProvenance(ctx, sums, opened)
			}
			if failure == nil && f.sha256sum {
				done.list, failure = openSums(p.path, hexSHA256(sums))
			}
			return failure
		}}, unread
	}
	done.result, err = p.plan.Write(ctx, p.path, options)
	if err == nil {
		done.sums, err = hashes.Sums()
	}
	if err == nil {
		return done, nil
	}
	stop()
	if hashes != nil {
		_, _ = hashes.Sums() // it ends, as its context is cancelled; the error to return is the cause of that
	}
	if _, keyErr := signer(); keyErr != nil && !errors.Is(keyErr, context.Canceled) {
		err = keyErr
	}
	if done.list != nil {
		err = errors.Join(err, done.list.Discard())
	}
	if done.signed {
		err = errors.Join(err, durable.Remove(pendingBundle(p.path)))
	}
	if done.provenance != "" {
		err = errors.Join(err, durable.Remove(done.provenance))
	}
	return done, err
}

// loadAside opens the signing key, if any, in the background: deriving the key of an encrypted file takes as long as hashing
// 300 MiB. It returns once no password has to be typed any more. If the key cannot be opened, it calls stop.
func (a *app) loadAside(ctx context.Context, f keyFlags, stop context.CancelFunc) func() (*key.Signer, error) {
	if f.key == "" {
		return func() (*key.Signer, error) { return nil, nil }
	}
	a.warnOfReaders(f.key)
	asked, loaded := make(chan struct{}), make(chan struct{})
	var signer *key.Signer
	var err error
	go func() {
		defer close(loaded)
		signer, err = loadKey(ctx, f.key, func() ([]byte, error) {
			defer close(asked)
			return a.password(ctx, f, false)
		})
		if err != nil {
			stop()
		}
	}()
	select {
	case <-asked:
	case <-loaded:
	}
	return func() (*key.Signer, error) {
		<-loaded
		return signer, err
	}
}

// signBuilt signs what was just written and hashed, and is not published yet.
func (a *app) signBuilt(ctx context.Context, p product, sums *chunk.Sums, signer *key.Signer, f buildFlags) error {
	expires, err := parseExpiry(f.expires)
	if err != nil {
		return err
	}
	a.warnOfEmptyImages(p.path, p.plan.Solution, p.plan.Images)
	statement, err := sign.NewStatement(sums, sign.Claims{
		Name: filepath.Base(p.path), CreatedAt: a.Now().Truncate(time.Second), Expires: expires,
		Solution:       bundle.Solution{Name: p.plan.Solution.Metadata.Name, Version: p.plan.Solution.Spec.Version},
		ManifestDigest: manifestDigest(p.plan),
	})
	if err != nil {
		return err
	}
	data, err := bundle.SignStatement(ctx, signer, statement)
	if err != nil {
		return err
	}
	return sign.WriteBundle(pendingBundle(p.path), data)
}

// writeProvenance writes the provenance of what was just written and hashed, with a signature if there is a signer. It returns the name that the file has
// until the archive is published.
func (p product) writeProvenance(ctx context.Context, sums *chunk.Sums, signer *key.Signer) (string, error) {
	p.made.Subject = []schema.ResourceDescriptor{{Name: filepath.Base(p.path), Digest: map[string]string{"sha256": hexSHA256(sums)}}}
	data, err := bundle.MarshalProvenance(p.made)
	if err != nil {
		return "", err
	}
	pending := p.path + ".partial.provenance.json"
	if signer != nil {
		if data, err = bundle.Attest(ctx, signer, data); err != nil {
			return "", err
		}
		pending = sign.BundleName(p.path, "partial."+sign.ProvenanceSigner)
	}
	return pending, sign.WriteBundle(pending, data)
}

func hexSHA256(sums *chunk.Sums) string { return hex.EncodeToString(sums.SHA256[:]) }

func manifestDigest(plan *build.Plan) string {
	files := plan.Files()
	return files[slices.IndexFunc(files, func(f build.File) bool { return f.Path == build.ManifestFile })].Digest
}
