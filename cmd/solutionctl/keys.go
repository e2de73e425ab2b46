package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/key"
)

// keyFlags name a private key and where its password is.
type keyFlags struct {
	key, passwordFile string
	known             []byte // the password, where the key was made a moment ago
}

func (f *keyFlags) add(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVar(&f.key, "key", "", usage)
	f.addPassword(cmd)
}

func (f *keyFlags) addPassword(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.passwordFile, "password-file", "", "read the password of the key from `FILE`")
}

// load returns the signer of a key file or of a reference to a key that is somewhere else.
func (a *app) load(ctx context.Context, f keyFlags) (*key.Signer, error) {
	signer, err := loadKey(ctx, f.key, func() ([]byte, error) { return a.password(ctx, f, false) })
	if err == nil {
		a.warnOfReaders(f.key)
	}
	return signer, err
}

// warnOfReaders warns of a private key that others may read.
func (a *app) warnOfReaders(name string) {
	info, err := os.Stat(name)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return
	}
	a.Sink.Emit(report.Event{
		Step: "key", Name: name, State: report.Warning,
		Note: fmt.Sprintf("mode %04o lets others than its owner at it: chmod 600", info.Mode().Perm()),
	})
}

func loadKey(ctx context.Context, name string, password key.PasswordFunc) (*key.Signer, error) {
	if name == "" {
		return nil, report.Errorf(report.Usage, "no key is given").WithHint("name a key file with --key; solutionctl keygen makes one")
	}
	if key.IsReference(name) {
		return key.Open(ctx, name)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	signer, err := key.Load(data, password)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", name, err)
	}
	return signer, nil
}

// password reads a password: from the file, else from the environment, else from the person at the terminal.
func (a *app) password(ctx context.Context, f keyFlags, isNew bool) ([]byte, error) {
	if f.known != nil {
		return f.known, nil
	}
	if f.passwordFile != "" {
		a.warnOfReaders(f.passwordFile)
		data, err := os.ReadFile(f.passwordFile)
		return bytes.TrimRight(data, "\r\n"), err
	}
	for _, name := range []string{"SOLUTIONCTL_PASSWORD", "COSIGN_PASSWORD"} {
		if value := a.Getenv(name); value != "" {
			return []byte(value), nil
		}
	}
	if !a.Interactive {
		return nil, report.Errorf(report.Usage, "the password of the key is missing, and there is no terminal to ask for it").
			WithHint("set SOLUTIONCTL_PASSWORD, or name a file with --password-file")
	}
	first, err := a.AskSecret(ctx, "Password of the key: ")
	if err != nil || !isNew {
		return first, err
	}
	second, err := a.AskSecret(ctx, "The same again: ")
	if err == nil && !bytes.Equal(first, second) {
		err = report.Errorf(report.Usage, "the two passwords differ")
	}
	return first, err
}
