package notify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Format is the form of what is posted.
type Format string

// The formats.
const (
	FormatJSON         Format = "json"         // a [schema.Notification]
	FormatAlertmanager Format = "alertmanager" // as Alertmanager posts to a receiver of type webhook, version 4
)

// Webhook is where notifications are posted.
type Webhook struct {
	URL    string
	Format Format
	Header http.Header    // of each request, such as Authorization
	CA     *x509.CertPool // nil: the certificates that this host trusts
}

// Bounds of a request.
const (
	timeout   = 30 * time.Second
	maxAnswer = 1 << 10 // bytes of an answer that are shown
)

// Send posts a notification. The error names the host and no other part of the URL, which can hold a secret.
func (w *Webhook) Send(ctx context.Context, n *schema.Notification) error {
	target, err := url.Parse(w.URL)
	if err != nil || target.Host == "" || target.Scheme != "https" && target.Scheme != "http" {
		return report.Errorf(report.Usage, "the address of the webhook is not a URL").WithHint("write https://HOST/PATH")
	}
	body, err := w.Encode(n)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = w.Header.Clone()
	if request.Header == nil {
		request.Header = http.Header{}
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := w.client().Do(request)
	if failure, ok := errors.AsType[*url.Error](err); ok {
		err = failure.Err // without the URL
	}
	if err != nil {
		return report.Errorf(report.Unavailable, "webhook at %s: %w", target.Host, err).WithHint("the next run sends it again")
	}
	defer answer.Body.Close() //nolint:errcheck // read as far as needed
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	switch answer.StatusCode / 100 {
	case 2:
		return nil
	case 3:
		return report.Errorf(report.Unavailable, "webhook at %s: it answers with a redirect (%s), which is not followed", target.Host, answer.Status).
			WithHint("name the address that it leads to")
	}
	return report.Errorf(report.Unavailable, "webhook at %s: %s: %s", target.Host, answer.Status, strings.TrimSpace(string(text))).WithHint("the next run sends it again")
}

func (w *Webhook) client() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library has no other one
	transport.DisableKeepAlives = true
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: w.CA}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Encode returns the body of a request.
func (w *Webhook) Encode(n *schema.Notification) ([]byte, error) {
	var document any = n
	if w.Format == FormatAlertmanager {
		document = alertsOf(n)
	}
	return json.Marshal(document)
}

// alertGroup is the body that Alertmanager posts to a webhook (alertmanager/notify/webhook, version 4).
type alertGroup struct {
	Version           string            `json:"version"`
	GroupKey          string            `json:"groupKey"`
	TruncatedAlerts   int               `json:"truncatedAlerts"`
	Status            string            `json:"status"`
	Receiver          string            `json:"receiver"`
	GroupLabels       map[string]string `json:"groupLabels"`
	CommonLabels      map[string]string `json:"commonLabels"`
	CommonAnnotations map[string]string `json:"commonAnnotations"`
	ExternalURL       string            `json:"externalURL"`
	Alerts            []alert           `json:"alerts"`
}

type alert struct {
	Status       string            `json:"status"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"` // the zero time while it fires
	GeneratorURL string            `json:"generatorURL"`
	Fingerprint  string            `json:"fingerprint"`
}

// alertsOf writes a notification as Alertmanager does. The group fires while one of its alerts does.
func alertsOf(n *schema.Notification) alertGroup {
	g := alertGroup{
		Version: "4", GroupKey: fmt.Sprintf("{}:{cluster=%q}", n.Cluster), Status: string(schema.ProblemResolved), Receiver: "solutionctl",
		GroupLabels: map[string]string{}, CommonLabels: map[string]string{"cluster": n.Cluster}, CommonAnnotations: map[string]string{}, Alerts: []alert{},
	}
	for i := range n.Problems {
		p := &n.Problems[i]
		sum := sha256.Sum256([]byte(n.Cluster + "\n" + p.Key()))
		a := alert{
			Status: string(p.State), StartsAt: p.Since, Fingerprint: hex.EncodeToString(sum[:8]),
			Labels:      map[string]string{"alertname": "Solutionctl" + p.Name, "cluster": n.Cluster, "subject": p.Subject},
			Annotations: map[string]string{"summary": p.Summary},
		}
		for name, value := range map[string]string{"environment": p.Environment, "namespace": p.Namespace} {
			if value != "" {
				a.Labels[name] = value
			}
		}
		if p.Hint != "" {
			a.Annotations["description"] = p.Hint
		}
		if p.State == schema.ProblemFiring {
			g.Status = string(schema.ProblemFiring)
		} else {
			a.EndsAt = n.Sent
		}
		g.Alerts = append(g.Alerts, a)
	}
	return g
}
