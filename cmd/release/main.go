// Command release makes what users download out of compiled programs:
//
//	go run ./cmd/release -version 0.1.0 [-created SECONDS] [-commit HASH] [-key FILE] -nfpm FILE INPUT DIRECTORY
//
// INPUT has the programs (bin/OS-ARCHITECTURE), manual pages (man/), completions (completions/), units for systemd (units/), LICENSE and
// CHANGELOG.md: .ci/release makes it. DIRECTORY gets an archive for each platform, a deb, an rpm and an apk for each architecture of
// Linux, a bill of materials, the provenance of everything that lies in DIRECTORY, and SHA256SUMS. With a key SHA256SUMS and
// the provenance are signed. The same input gives the same bytes, except for signatures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/Masterminds/semver/v3"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "release: error:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be stopped
	}
}

// release has the inputs of one release.
type release struct {
	version    string // without a leading v
	created    time.Time
	commit     string // "" where the source is not in git
	nfpm       string // program that makes packages
	input, dir string
	log        io.Writer
}

func run(ctx context.Context, args []string, log io.Writer) error {
	r := release{log: log}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.StringVar(&r.version, "version", "", "`VERSION` of the release, without a leading v")
	created := flags.Int64("created", 0, "time of the release, in `SECONDS` since 1970")
	flags.StringVar(&r.commit, "commit", "", "`HASH` of the commit that is released")
	flags.StringVar(&r.nfpm, "nfpm", "bin/nfpm", "the program nfpm, a `FILE`")
	key := flags.String("key", "", "sign with the private key in `FILE`; SOLUTIONCTL_PASSWORD has its password")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 2 {
		return errors.New("usage: go run ./cmd/release -version VERSION [-key FILE] INPUT DIRECTORY")
	}
	if _, err := semver.StrictNewVersion(r.version); err != nil {
		return fmt.Errorf("version %q: %w", r.version, err)
	}
	r.created = time.Unix(*created, 0).UTC()
	r.input, r.dir = flags.Arg(0), flags.Arg(1)
	signer, err := loadKey(*key, os.Getenv("SOLUTIONCTL_PASSWORD"))
	if err != nil {
		return err
	}
	return r.make(ctx, signer)
}
