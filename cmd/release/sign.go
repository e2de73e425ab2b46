package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/key"
)

// loadKey reads the private key in file; without a file there is none.
func loadKey(file, password string) (*key.Signer, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // a release without signatures is valid
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	signer, err := key.Load(data, func() ([]byte, error) {
		if password == "" {
			return nil, errors.New("set SOLUTIONCTL_PASSWORD to the password of the key")
		}
		return []byte(password), nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return signer, nil
}

// signFile signs a file as 'solutionctl sign --format message' and 'cosign sign-blob' do.
func signFile(ctx context.Context, signer *key.Signer, path string) error {
	f, err := media.OpenNoFollow(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // opened for reading
	data, err := sign.FileBundle(ctx, f, f.Size, signer, report.Discard)
	if err != nil {
		return err
	}
	return sign.WriteBundle(sign.BundleName(path, ""), data)
}

// attest signs a statement of in-toto, for 'cosign verify-blob-attestation'.
func attest(ctx context.Context, signer *key.Signer, statement []byte, path string) error {
	data, err := bundle.Attest(ctx, signer, statement)
	if err != nil {
		return err
	}
	return sign.WriteBundle(sign.BundleName(path, ""), data)
}
