package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/key"
)

const (
	name       = "solutionctl"
	repository = "https://github.com/solutionctl/solutionctl"
	sumsFile   = "SHA256SUMS"
)

// platform is one that the program was compiled for.
type platform struct{ os, architecture string }

func (p platform) String() string { return p.os + "-" + p.architecture }

// program is the compiled program in the input.
func (r release) program(p platform) string { return filepath.Join(r.input, "bin", p.String()) }

// platforms returns those in the input, sorted.
func (r release) platforms() ([]platform, error) {
	entries, err := os.ReadDir(filepath.Join(r.input, "bin"))
	if err != nil {
		return nil, err
	}
	var platforms []platform
	for _, entry := range entries {
		system, architecture, ok := strings.Cut(entry.Name(), "-")
		if !ok {
			return nil, fmt.Errorf("bin/%s is not named OS-ARCHITECTURE", entry.Name())
		}
		platforms = append(platforms, platform{system, architecture})
	}
	if len(platforms) == 0 {
		return nil, errors.New("the input has no programs")
	}
	return platforms, nil
}

// make writes the files of the release. What lies in the directory already, such as the image, belongs to the release too.
func (r release) make(ctx context.Context, signer *key.Signer) error {
	platforms, err := r.platforms()
	if err != nil {
		return err
	}
	for _, p := range platforms {
		if err = r.writeArchive(p); err != nil {
			return fmt.Errorf("archive for %s: %w", p, err)
		}
		if p.os == "linux" {
			if err = r.writePackages(ctx, p); err != nil {
				return fmt.Errorf("packages for %s: %w", p, err)
			}
		}
	}
	if err = r.writeSBOM(platforms); err != nil {
		return err
	}
	sums, err := r.sums()
	if err != nil {
		return err
	}
	provenance, err := r.provenance(sums)
	if err != nil {
		return err
	}
	provenanceFile := r.path(".intoto.json")
	if err = os.WriteFile(provenanceFile, provenance, 0o644); err != nil {
		return err
	}
	if sums, err = r.sums(); err != nil {
		return err
	}
	var text strings.Builder
	for _, s := range sums {
		fmt.Fprintf(&text, "%s  %s\n", s.digest, s.name)
	}
	sumsPath := filepath.Join(r.dir, sumsFile)
	if err = os.WriteFile(sumsPath, []byte(text.String()), 0o644); err != nil {
		return err
	}
	if signer == nil {
		fmt.Fprintln(r.log, "release: SHA256SUMS and the provenance are not signed: no key was given")
		return nil
	}
	return errors.Join(signFile(ctx, signer, sumsPath), attest(ctx, signer, provenance, provenanceFile))
}

// path returns the path of a file of the release as a whole.
func (r release) path(suffix string) string { return filepath.Join(r.dir, name+"-"+r.version+suffix) }

// sum is the SHA-256 digest of a file.
type sum struct{ name, digest string }

// sums returns the digests of all files of the release but SHA256SUMS and signatures, sorted by name.
func (r release) sums() ([]sum, error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, err
	}
	var sums []sum
	for _, entry := range entries {
		if entry.Name() == sumsFile || strings.HasSuffix(entry.Name(), bundle.Suffix) {
			continue
		}
		digest, err := digestOf(filepath.Join(r.dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		sums = append(sums, sum{entry.Name(), digest})
	}
	return sums, nil
}

func digestOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // opened for reading
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}
