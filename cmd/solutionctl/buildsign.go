package main

import (
	"context"
	"encoding/hex"
	"io"
	"path/filepath"
	"time"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
	"github.com/solutionctl/solutionctl/sign/key"
)

// follower hashes an archive behind its writing.
type follower struct {
	*chunk.Follower
}

func (f follower) Wait() error {
	_, err := f.Sums()
	return err
}

// writeAndSum writes the archive and, where its digest or a signature is asked for, hashes it in the same pass.
func (a *app) writeAndSum(ctx context.Context, plan *build.Plan, path string, f buildFlags) (*build.Result, *chunk.Sums, error) {
	options := build.WriteOptions{Jobs: f.jobs, ImplantMD5: f.md5, Sink: a.sink}
	if !f.sha256sum && f.signing.key == "" {
		result, err := plan.Write(ctx, path, options)
		return result, nil, err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	var hashes *chunk.Follower
	options.Follow = func(r io.ReaderAt, size int64) (build.Follower, error) {
		var err error
		hashes, err = chunk.Follow(following, r, size, a.sink)
		return follower{hashes}, err
	}
	result, err := plan.Write(ctx, path, options)
	if err != nil {
		stop()
		if hashes != nil {
			_, _ = hashes.Sums() // it ends, as its context is cancelled; why it is cancelled is the error to tell
		}
		return nil, nil, err
	}
	sums, err := hashes.Sums()
	return result, sums, err
}

// signBuilt signs what was just written and hashed.
func (a *app) signBuilt(ctx context.Context, plan *build.Plan, path string, sums *chunk.Sums, signer *key.Signer, f buildFlags) (string, error) {
	expires, err := parseExpiry(f.expires)
	if err != nil {
		return "", err
	}
	statement, err := sign.NewStatement(sums, sign.Claims{
		Name: filepath.Base(path), CreatedAt: a.now().Truncate(time.Second), Expires: expires,
		Solution: bundle.Solution{Name: plan.Solution.Metadata.Name, Version: plan.Solution.Spec.Version},
	})
	if err != nil {
		return "", err
	}
	data, err := bundle.SignStatement(ctx, signer, statement)
	if err != nil {
		return "", err
	}
	name := sign.BundleName(path, "")
	return name, sign.WriteBundle(name, data)
}

func hexSHA256(sums *chunk.Sums) string { return hex.EncodeToString(sums.SHA256[:]) }
