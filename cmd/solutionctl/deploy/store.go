package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/host/service"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newStoreCommand(a *cli.App) *cobra.Command {
	group := cli.NewGroup("store", "Keep the archives of several hosts the same", newStoreSyncCommand(a))
	group.Long = `Keep a second host with the same archives, so that nodes find images while one host is away. Each host verifies archives by its own
trust policy; keys never leave it.`
	return group
}

// storeSync is a run of 'deploy store sync'.
type storeSync struct {
	*hostFlags
	o       host.SyncOptions
	imports importFlags
	timer   string
}

func newStoreSyncCommand(a *cli.App) *cobra.Command {
	var c storeSync
	cmd := &cobra.Command{
		Use:   "sync [SOLUTION...]",
		Short: "Import the archives that another host has and this one lacks",
		Long: `Import the archives that 'solutionctl deploy serve' serves on another host, and that this one lacks. This host decides by its own
trust policy about each, by its signatures, before it is transferred. What archives of this host have in other versions is not
transferred. An archive that is refused stops no other one. After an interruption the same command continues.

The other host is trusted by the authority that the cluster has recorded for its endpoint, or by the file of --ca. Afterwards,
'solutionctl deploy registry add' records this host as a further endpoint, once.

--prune also removes versions that neither the other host nor the cluster has any more. --print-timer prints a timer for systemd that runs
this command every five minutes, and --print-timer=service the service that it starts.`,
		Example: `  solutionctl deploy store sync --from https://10.0.0.1:5000 --dry-run
  solutionctl deploy store sync --from https://10.0.0.1:5000
  solutionctl deploy store sync --from https://10.0.0.1:5000 --print-timer > /etc/systemd/system/solutionctl-sync.timer
  solutionctl deploy store sync --from https://10.0.0.1:5000 --print-timer=service > /etc/systemd/system/solutionctl-sync.service`,
	}
	c.hostFlags = addHostFlags(a, cmd)
	c.addNoCluster(cmd)
	c.imports.verify.Add(cmd)
	flags := cmd.Flags()
	cli.Must(flags.MarkHidden("bundle"))
	flags.StringVar(&c.o.Source, "from", "", "the registry of the other host, `https://HOST:PORT`")
	flags.StringVar(&c.o.CA, "ca", "", "`FILE` with the certificates by which the other host is trusted: tls/ca.crt in its store")
	flags.IntVar(&c.o.Jobs, "jobs", 4, "downloads at once")
	flags.BoolVar(&c.o.Prune, "prune", false, "remove versions that neither the other host nor the cluster has")
	flags.BoolVar(&c.o.DryRun, "dry-run", false, "change nothing, only show what would be imported and removed")
	cli.AddChoice(cmd, flags, &c.imports.mount, "mount", "", "mount archives: auto is where the kernel can", "auto", "always", "never")
	cli.AddChoice(cmd, flags, &c.imports.registryMode, "registry-mode", "", "who serves images; auto is MetalK8s where its nginx is", "auto", "own", "metalk8s")
	cli.AddChoice(cmd, flags, &c.timer, "print-timer", "", "print units for systemd that run this command every five minutes, and do nothing else", "", "timer", "service")
	flags.Lookup("print-timer").NoOptDefVal = "timer"
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, solutions []string) error {
		if c.o.Source == "" {
			return report.Errorf(report.Usage, "--from is missing").WithHint("name the registry of the other host, such as --from https://10.0.0.1:5000")
		}
		if c.timer != "" {
			return c.printTimer(cmd.Flags(), solutions)
		}
		if len(solutions) > 0 {
			c.o.Solutions = solutions
		}
		return c.run(cmd.Context())
	}
	return cmd
}

func (c *storeSync) run(ctx context.Context) error {
	h, _, err := c.open()
	if err != nil {
		return orWithoutCluster(err)
	}
	c.o.Import = c.imports.options(c.App)
	done, err := h.Sync(ctx, c.o)
	if done == nil {
		return err
	}
	return errors.Join(err, c.EmitResult(done, func(w *console.Stream) { printSync(w, done) }))
}

func printSync(w *console.Stream, r *schema.SyncReport) {
	counts := map[schema.SyncState]int{}
	for _, a := range r.Archives {
		counts[a.State]++
		id := console.Clean(a.Solution + "-" + a.Version)
		switch a.State {
		case schema.SyncImported:
			fmt.Fprintf(w, "%s: imported, %s of %s transferred\n", id, report.Bytes(a.Fetched), report.Bytes(a.Size))
			fmt.Fprintf(w, "  signed by %s\n", console.Clean(strings.Join(a.Signers, ", ")))
		case schema.SyncPresent:
			if len(a.Signers) > 0 {
				fmt.Fprintf(w, "%s: imported again, signed by %s\n", id, console.Clean(strings.Join(a.Signers, ", ")))
			}
		case schema.SyncMissing:
			fmt.Fprintf(w, "%s: would be imported, %s\n", id, report.Bytes(a.Size))
		case schema.SyncFailed:
			fmt.Fprintf(w, "%s: %s %s\n", id, w.Paint(console.Red, "failed:"), console.Clean(a.Reason))
		}
		console.PrintEach(w, console.Yellow, "note:", a.Notices)
	}
	verb := "removed"
	if r.DryRun {
		verb = "would be removed"
	}
	for _, at := range r.Removed {
		fmt.Fprintf(w, "%s-%s: %s\n", console.Clean(at.Solution), console.Clean(at.Version), verb)
	}
	fmt.Fprintf(w, "%s serves %s; %d were here already\n", console.Clean(r.Source), report.Count(len(r.Archives), "archive"), counts[schema.SyncPresent])
}

// printTimer prints a timer for systemd, or the service that it starts, which may write where archives are kept and named, and nowhere else.
func (c *storeSync) printTimer(flags *pflag.FlagSet, solutions []string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	words, err := cli.ServiceFlags(flags, "print-timer")
	if err != nil {
		return err
	}
	words = append([]string{program, "deploy", "store", "sync", "--progress", "plain"}, words...)
	if !flags.Changed("mount") {
		words = append(words, "--mount=never") // the service could not: it sees the host's mounts only
	}
	var writable []string
	for _, dir := range []string{c.places.Store, filepath.Dir(c.places.Configuration), filepath.Dir(c.imports.verify.State)} {
		writable = append(writable, "-"+service.Word(dir))
	}
	unit := service.Unit{
		Description: "Import what another host has", User: "root", Capabilities: "CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER", Every: "5min", Limit: "12h",
		Command: service.Command(append(words, solutions...)...), ReadWrite: strings.Join(writable, " "),
	}
	return printUnit(c.App, unit, c.timer)
}
