package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/key"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// TrustFlags are the flags of commands that decide whether an archive is trusted.
type TrustFlags struct {
	keys, Bundles   []string
	TrustDir, State string
	Downgrade       bool
}

// Add adds the flags to a command.
func (o *TrustFlags) Add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&o.keys, "key", nil, "trust this public key, a `FILE`, instead of the trust store (may be repeated)")
	flags.StringSliceVar(&o.Bundles, "bundle", nil, "the signature, a `FILE`, if it is not beside the archive (may be repeated)")
	flags.StringVar(&o.TrustDir, "trust-dir", "", "the trust store, a `DIRECTORY`")
	flags.StringVar(&o.State, "state", "/var/lib/solutionctl/state.json", "`FILE` with the versions that were imported before")
	flags.BoolVar(&o.Downgrade, "allow-downgrade", false, "accept a version older than what was imported before")
}

// Trusted returns the trust store, or one that consists of the keys of the command line.
func (a *App) Trusted(o TrustFlags) (*trust.State, *trust.Store, error) {
	if o.keys != nil {
		keys, err := readKeys(o.keys)
		return nil, trust.Keys(keys), err
	}
	return a.trustStore(o)
}

func (a *App) trustStore(o TrustFlags) (*trust.State, *trust.Store, error) {
	state, err := trust.LoadState(o.State)
	if err != nil {
		return nil, nil, err
	}
	store, err := trust.Load(a.TrustDirs(o.TrustDir), state)
	return state, store, err
}

// TrustedToImport returns a function that reads the trust store. Keys of the command line, which are read once, replace its keys and
// nothing else: the policy, the revocations and the versions that were imported before count for them, too.
func (a *App) TrustedToImport(o TrustFlags) func() (*trust.Store, error) {
	given := sync.OnceValues(func() (map[string]*key.Public, error) { return readKeys(o.keys) }) // a file may be a pipe
	return func() (*trust.Store, error) {
		_, store, err := a.trustStore(o)
		if err != nil || o.keys == nil {
			return store, err
		}
		keys, err := given()
		if err != nil {
			return nil, err
		}
		return store.WithKeys(keys)
	}
}

// TakeKeys returns the keys of --key, by name, and takes them out of the flags: the trust store counts without them.
func (o *TrustFlags) TakeKeys() (map[string]*key.Public, error) {
	keys, err := readKeys(o.keys)
	o.keys = nil
	return keys, err
}

// readKeys reads public keys. Each is named like its file.
func readKeys(files []string) (map[string]*key.Public, error) {
	keys := map[string]*key.Public{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		k, err := key.ParsePublic(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".pub")
		if other := keys[name]; other != nil && !other.Equal(k) {
			return nil, report.Errorf(report.Usage, "--key names two different keys %s", name).WithHint("rename one of the files, so that messages can distinguish them")
		}
		keys[name] = k
	}
	return keys, nil
}

// TrustDirs are the trust stores to read, the most important one first; the first one is the one to change.
func (a *App) TrustDirs(flag string) []string {
	if flag != "" {
		return []string{flag}
	}
	shared := []string{"/etc/solutionctl/trust", "/usr/share/solutionctl/trust"}
	dir := a.ConfigDir()
	if os.Geteuid() == 0 || dir == "" {
		return shared
	}
	return append([]string{filepath.Join(dir, "trust")}, shared...)
}
