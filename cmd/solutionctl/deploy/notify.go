package deploy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/support/notify"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newNotifyCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "notify --notify-url URL",
		Short: "Send problems of this host and the cluster to a webhook",
		Long: `Check this host and the cluster as 'deploy doctor' and 'deploy status' do, and post what has changed since the last run to a
webhook: problems that began, and problems that have ended. Each is sent once. A deployment that is not ready yet, and an operation
that has not ended, are sent when that lasts (--after). Where nothing has changed, nothing is sent.

--print-timer prints a timer for systemd that does it every five minutes, and --print-timer=service what it starts. Sites with
Prometheus have the same as alerts: see 'deploy serve --print-monitoring'.

With --format alertmanager the body has the form in which Alertmanager posts to webhooks: its receivers for chats and tickets can be used.
Secrets belong into files that only root can read: --header-file has fields such as "Authorization: Bearer …", and --notify-url @FILE
reads an address that is secret itself.`,
		Example: `  solutionctl deploy notify --notify-url https://hooks.example.com/solutions --dry-run
  solutionctl deploy notify --notify-url https://hooks.example.com/solutions --kubeconfig /etc/kubernetes/admin.conf --print-timer`,
	}
	c := &notifying{hostFlags: &hostFlags{clusterFlags: addClusterFlags(a, cmd)}}
	c.addPlaces(cmd)
	flags := cmd.Flags()
	flags.StringVar(&c.webhook, "notify-url", "", "post to this `URL`, or to the one in a file: @FILE")
	cli.AddChoice(cmd, flags, &c.format, "format", "", "form of what is posted", string(notify.FormatJSON), string(notify.FormatAlertmanager))
	flags.StringVar(&c.header, "header-file", "", "add the header of this `FILE` to each request, a line for each field")
	flags.StringVar(&c.ca, "ca", "", "trust the certificates in this `FILE`, in place of those of the host")
	flags.StringVar(&c.state, "notified", filepath.Join(store.DefaultDir, store.NotificationsFile), "`FILE` in which this host records what was sent")
	flags.DurationVar(&c.after, "after", 10*time.Minute, "send what can be normal for a while when it has lasted for `DURATION`")
	flags.BoolVar(&c.dryRun, "dry-run", false, "print what would be sent, and send nothing")
	cli.AddChoice(cmd, flags, &c.timer, "print-timer", "", "print units for systemd that run this command every five minutes, and do nothing else", "", "timer", "service")
	flags.Lookup("print-timer").NoOptDefVal = "timer"
	cli.Must(cmd.MarkFlagRequired("notify-url"))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if c.timer != "" {
			return c.printTimer(cmd.Flags())
		}
		return c.run(cmd.Context())
	}
	return cmd
}

// notifying is a run of 'deploy notify'.
type notifying struct {
	*hostFlags
	hook                                      notify.Webhook
	webhook, format, header, ca, state, timer string
	after                                     time.Duration
	dryRun                                    bool
}

func (c *notifying) run(ctx context.Context) error {
	if err := c.readFiles(); err != nil {
		return err
	}
	journal, err := c.readJournal()
	if err != nil {
		return err
	}
	n, err := c.compare(ctx, journal)
	if err != nil {
		return err
	}
	if len(n.Problems) > 0 && !c.dryRun {
		if err = c.hook.Send(ctx, n); err == nil {
			journal.Confirm(n.Problems)
		}
	}
	if !c.dryRun { // with the problems that are not sent yet
		err = errors.Join(err, c.writeJournal(journal))
	}
	return cli.Emit(c.App, n, err, c.print)
}

// compare returns what has changed since the last run.
func (c *notifying) compare(ctx context.Context, journal *notify.Journal) (*schema.Notification, error) {
	x, err := c.examine(ctx)
	if err != nil {
		return nil, err
	}
	found := notify.Observed{Diagnosis: x.diagnosis}
	n := &schema.Notification{Sent: c.Now().UTC(), Problems: []schema.ReportedProblem{}}
	if n.Host, err = os.Hostname(); err != nil {
		return nil, err
	}
	if x.Deployer != nil {
		n.Cluster = x.Deployer.Cluster.Server()
		if found.Status, err = x.Deployer.Survey.Status(ctx, survey.StatusOptions{}); err != nil {
			found.Status = nil // the doctor has a check of the cluster
		}
	}
	n.Problems = append(n.Problems, journal.Compare(found, n.Sent, c.after)...)
	return n, ctx.Err()
}

func (c *notifying) print(w *console.Stream, n *schema.Notification) {
	for _, p := range n.Problems {
		style := console.Red
		if p.State == schema.ProblemResolved {
			style = console.Green
		}
		fmt.Fprintf(w, "%s %s: %s\n", w.Paint(style, string(p.State)), console.Line(p.Subject), console.Line(p.Summary))
	}
	if len(n.Problems) == 0 {
		fmt.Fprintln(w, "nothing has changed")
	}
}

// readFiles reads the header and the certificates.
func (c *notifying) readFiles() error {
	c.hook.Format, c.hook.URL = notify.Format(c.format), c.webhook
	if file, ok := strings.CutPrefix(c.webhook, "@"); ok {
		data, err := os.ReadFile(file)
		if err != nil {
			return report.As(report.Usage, err)
		}
		c.hook.URL = strings.TrimSpace(string(data))
	}
	if c.header != "" {
		data, err := os.ReadFile(c.header)
		if err != nil {
			return report.As(report.Usage, err).WithHint("write one field in a line, such as Authorization: Bearer TOKEN")
		}
		fields, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(append(bytes.TrimSpace(data), "\n\n"...)))).ReadMIMEHeader()
		if err != nil {
			return report.Errorf(report.Usage, "%s is not a header", c.header).WithHint("write one field in a line, such as Authorization: Bearer TOKEN")
		}
		c.hook.Header = http.Header(fields)
	}
	if c.ca != "" {
		data, err := os.ReadFile(c.ca)
		if err != nil {
			return report.As(report.Usage, err)
		}
		c.hook.CA = x509.NewCertPool()
		if !c.hook.CA.AppendCertsFromPEM(data) {
			return report.Errorf(report.Usage, "%s has no certificate in PEM", c.ca)
		}
	}
	return nil
}

func (c *notifying) readJournal() (*notify.Journal, error) {
	data, err := os.ReadFile(c.state)
	if errors.Is(err, fs.ErrNotExist) {
		return &notify.Journal{}, nil
	}
	if err != nil {
		return nil, err
	}
	kept, err := schema.ParseStored[schema.Notifications]("notifications", c.state, data)
	if journal := notify.Recover(data); report.CodeOf(err) == report.Corrupt && journal != nil {
		return journal, c.keepDamaged(data, len(journal.Problems), err)
	}
	if err != nil {
		return nil, err
	}
	return &notify.Journal{Notifications: *kept}, nil
}

// keepDamaged reports that the record is damaged, and keeps it beside the one that replaces it.
func (c *notifying) keepDamaged(data []byte, recovered int, why error) error {
	place := c.state + store.DamagedSuffix
	c.Sink.Emit(report.Event{Step: "recover", Name: c.state, State: report.Warning, Note: fmt.Sprintf(
		"the record of sent problems is damaged: %v; %s recovered, others are sent again; the damaged file is kept as %s", why, report.Count(recovered, "problem"), place)})
	if c.dryRun {
		return nil
	}
	return durable.WriteFile(place, data, 0o600)
}

func (c *notifying) writeJournal(journal *notify.Journal) error {
	journal.Stamp = schema.NewStamp("notifications", c.Version)
	data, err := schema.MarshalStored(&journal.Notifications)
	if err != nil {
		return err
	}
	return durable.WriteFile(c.state, data, 0o600)
}

// printTimer prints a timer for systemd, or the service that it starts, which checks and sends.
func (c *notifying) printTimer(flags *pflag.FlagSet) error {
	if file, inFile := strings.CutPrefix(c.webhook, "@"); inFile {
		whole, err := cli.Absolute(file)
		if err != nil {
			return err
		}
		c.webhook = "@" + whole
	}
	unit, err := c.unitOf("notify", &c.state, flags)
	if err != nil {
		return err
	}
	unit.Description = "Problems of deployed Solutions for a webhook"
	return printUnit(c.App, unit, c.timer)
}
