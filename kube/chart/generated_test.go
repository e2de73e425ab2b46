package chart_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/schema/report"
)

// secrets is a chart that calls every function whose result is random.
func secrets() map[string]string {
	files := web()
	files["web/templates/secret.yaml"] = `apiVersion: v1
kind: Secret
metadata: {name: "{{ uuidv4 }}", annotations: {at: "{{ now | date "2006-01-02T15:04:05" }}"}}
stringData:
{{- if .Values.before }}
  before: {{ randAlphaNum 8 }}
{{- end }}
  a: {{ randAlphaNum 20 }}
  b: {{ randAlphaNum 20 }}
  c: "{{ randAlpha 9 }}{{ randNumeric 9 }}{{ randBytes 9 }}{{ randInt 3 9999999 }}"
  ascii: {{ randAscii 9 | quote }}
  shuffled: {{ shuffle "abcdefghijklmnop" }}
  user: {{ htpasswd "u" "p" }}
  hash: {{ bcrypt "p" }}
  sealed: {{ encryptAES "k" "text" }}
  key: {{ genPrivateKey "ecdsa" | b64enc }}
{{- $ca := genCA "ca" 365 }}
{{- $cert := genSignedCert "server" nil (list "server.example") 30 $ca }}
  ca: {{ $ca.Cert | b64enc }}
  cert: {{ $cert.Cert | b64enc }}
  certKey: {{ $cert.Key | b64enc }}
  self: {{ (genSelfSignedCert "self" nil nil 365).Cert | b64enc }}
`
	return files
}

// content is the Secret of a rendering.
func content(t *testing.T, r *chart.Rendering) map[string]any {
	t.Helper()
	for _, m := range r.Manifests {
		if m.Object["kind"] == "Secret" {
			return m.Object["stringData"].(map[string]any)
		}
	}
	t.Fatal("there is no Secret")
	return nil
}

func TestValuesAreGeneratedOnce(t *testing.T) {
	now := time.Now()
	first := render(t, secrets(), chart.Options{Now: now})
	data, err := json.Marshal(first.Generated)
	generated := &chart.GeneratedValues{}
	if err = errors.Join(err, json.Unmarshal(data, generated)); err != nil {
		t.Fatal(err)
	}
	second := render(t, secrets(), chart.Options{Now: now.Add(time.Hour), Generated: generated})
	if !reflect.DeepEqual(first, second) {
		t.Errorf("the second rendering differs: %v\n%v", content(t, first), content(t, second))
	}
	other := content(t, render(t, secrets(), chart.Options{Now: now}))
	for name, value := range content(t, first) {
		if other[name] == value {
			t.Errorf("another release has the same %s: %v", name, value)
		}
	}
}

// A new value before others changes none of them, unless it comes from the same function with the same arguments.
func TestMemoSurvivesChanges(t *testing.T) {
	first := render(t, secrets(), chart.Options{})
	next := render(t, secrets(), chart.Options{Generated: first.Generated, Upgrade: true, Values: map[string]any{"before": true, "replicas": 7}})
	have, want := content(t, next), content(t, first)
	for name, value := range want {
		if have[name] != value {
			t.Errorf("%s has changed", name)
		}
	}
	if have["before"] == nil {
		t.Error("the new value is missing")
	}
	back := render(t, secrets(), chart.Options{Generated: next.Generated})
	again := render(t, secrets(), chart.Options{Generated: back.Generated, Values: map[string]any{"before": true}})
	if content(t, again)["before"] != have["before"] {
		t.Error("a value that was not asked for in between is forgotten")
	}
}

func TestCertificatesAreRenewed(t *testing.T) {
	now := time.Now()
	first := render(t, secrets(), chart.Options{Now: now})
	checkPair(t, content(t, first))
	later := render(t, secrets(), chart.Options{Now: now.AddDate(0, 0, 21), Generated: first.Generated}) // of 30 days
	if fmt.Sprint(later.Renewed) != "[server]" {
		t.Errorf("renewed: %v", later.Renewed)
	}
	have, want := content(t, later), content(t, first)
	if have["cert"] == want["cert"] || have["ca"] != want["ca"] || have["a"] != want["a"] {
		t.Error("not the certificate of the server alone was made again")
	}
	checkPair(t, have)
	muchLater := render(t, secrets(), chart.Options{Now: now.AddDate(0, 0, 300), Generated: later.Generated})
	if fmt.Sprint(muchLater.Renewed) != "[ca self server]" {
		t.Errorf("renewed: %v", muchLater.Renewed)
	}
}

// checkPair checks that the certificate is signed by the authority beside it, and that its key belongs to it.
func checkPair(t *testing.T, secret map[string]any) {
	t.Helper()
	text := func(name string) []byte {
		data, err := base64.StdEncoding.DecodeString(secret[name].(string))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	pair, err := tls.X509KeyPair(text("cert"), text("certKey"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text("ca"))
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "server.example"}); err != nil {
		t.Error(err)
	}
}

func TestHostileMemo(t *testing.T) {
	if (&chart.GeneratedValues{Values: []chart.GeneratedValue{{Function: strings.Repeat("a", 1<<20)}}}).Check() == nil {
		t.Error("too large: accepted")
	}
	first := render(t, secrets(), chart.Options{})
	for i := range first.Generated.Values {
		first.Generated.Values[i].Value = json.RawMessage(`[1]`)
	}
	_, err := load(t, pack(secrets())).Render(t.Context(), chart.Options{Generated: first.Generated, Now: time.Now()})
	if err == nil || !strings.Contains(err.Error(), "the remembered result of") {
		t.Errorf("err = %v", err)
	}
}

func TestLookup(t *testing.T) {
	files := web()
	files["web/templates/NOTES.txt"] = `{{ (lookup "v1" "Secret" "prod" "db").data.password }}{{ (lookup "v1" "Secret" "prod" "db").data.password }}{{ len (lookup "v1" "Pod" "" "") }}`
	var asked []string
	password := "old"
	o := chart.Options{Now: time.Now(), Lookup: func(_ context.Context, apiVersion, kind, namespace, name string) (map[string]any, error) {
		asked = append(asked, fmt.Sprintf("%s %s %s/%s", apiVersion, kind, namespace, name))
		if name == "" {
			return map[string]any{}, nil
		}
		return map[string]any{"data": map[string]any{"password": password}}, nil
	}}
	first := render(t, files, o)
	if want := []string{"v1 Secret prod/db", "v1 Pod /"}; first.Notes != "oldold0" || !reflect.DeepEqual(asked, want) {
		t.Errorf("notes %q, asked for %q", first.Notes, asked)
	}
	same := render(t, files, o)
	password = "new"
	if other := render(t, files, o); !reflect.DeepEqual(first, same) || other.Notes != "newnew0" {
		t.Errorf("the same again gives %+v; another answer %q", same, other.Notes)
	}
	o.Lookup = func(context.Context, string, string, string, string) (map[string]any, error) {
		return nil, errors.New("forbidden")
	}
	if _, err := load(t, pack(files)).Render(t.Context(), o); err == nil || !strings.Contains(err.Error(), "look up v1 Secret prod/db: forbidden") {
		t.Errorf("err = %v", err)
	}
	files["web/templates/NOTES.txt"] = `{{ range until 2000 }}{{ lookup "v1" "Secret" "a" (printf "s%d" .) }}{{ end }}`
	o.Lookup = func(context.Context, string, string, string, string) (map[string]any, error) {
		return map[string]any{}, nil
	}
	if _, err := load(t, pack(files)).Render(t.Context(), o); err == nil || !strings.Contains(err.Error(), "more than 1000 objects") {
		t.Errorf("err = %v", err)
	}
}

func TestRenderEnds(t *testing.T) {
	files := web()
	files["web/templates/NOTES.txt"] = `{{ range until 600000 }}{{ range until 600000 }}{{ range until 600000 }}{{ end }}{{ end }}{{ end }}`
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := load(t, pack(files)).Render(ctx, chart.Options{Now: time.Now()})
	if report.CodeOf(err) != report.Timeout || !strings.Contains(err.Error(), "render chart web: web/templates/") || // on a busy machine, another template than the endless one
		!strings.Contains(err.Error(), ": it did not end in time") {
		t.Errorf("err = %v", err)
	}
}
