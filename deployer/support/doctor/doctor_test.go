package doctor_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/support/doctor"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func ExampleExamine() {
	s, err := store.Open("/nowhere")
	if err != nil {
		panic(err)
	}
	d := doctor.Examine(context.Background(), doctor.Options{
		Store: s, Configuration: &store.Configuration{Path: "/nowhere/solutions.yaml"}, Root: "/", Now: time.Now,
		Absent: errors.New("no cluster is named"),
	})
	for _, c := range d.Checks {
		if c.Area == "cluster" {
			fmt.Println(c.Result, c.Name, c.Message)
		}
	}
	// Output: problem connection no cluster is named
}

// TestHost examines hosts without a cluster.
func TestHost(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	record, err := os.ReadFile("../../../schema/testdata/stored/archive-1.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		files map[string]string // below the directory of the test; DIR in them is that directory
		want  string            // a check
		hint  string            // of a check
	}{
		{name: "empty", want: "skipped store nothing was imported on this host"},
		{name: "no configuration", want: "skipped configuration DIR/solutions.yaml lists no archives"},
		{
			name: "unreadable record", files: map[string]string{"store/archives/demo-1.0.0.json": "{"},
			want: "problem store ",
		},
		{
			name: "bad configuration", files: map[string]string{"solutions.yaml": "kind: Other\n"},
			want: "problem configuration ",
		},
		{
			name:  "archive of the configuration is gone",
			files: map[string]string{"solutions.yaml": "apiVersion: solutions.metalk8s.scality.com/v1alpha1\nkind: SolutionsConfiguration\narchives: [DIR/gone.iso]\n"},
			want:  "warning configuration DIR/solutions.yaml lists DIR/gone.iso, which cannot be read",
		},
		{
			name: "good configuration",
			files: map[string]string{
				"solutions.yaml": "apiVersion: solutions.metalk8s.scality.com/v1alpha1\nkind: SolutionsConfiguration\narchives: [DIR/demo.iso]\n", "demo.iso": "x",
			},
			want: "ok configuration DIR/solutions.yaml is valid and lists 1 archive",
		},
		{name: "authority expires", files: map[string]string{"ca.crt": certificate(t, now.Add(20*24*time.Hour))}, want: "warning certificate the certificate authority of this host's registry expires on 2026-01-21"},
		{name: "authority has expired", files: map[string]string{"ca.crt": certificate(t, now.Add(-24*time.Hour))}, want: "problem certificate the certificate authority of this host's registry has expired on 2025-12-31"},
		{name: "sent problems are intact", files: map[string]string{"store/notifications.json": `{"formatVersion": 1, "writtenBy": "1.0.0", "problems": {}}`}, want: "ok notifications "},
		{name: "sent problems are damaged", files: map[string]string{"store/notifications.json": `{"formatVersion": 1, "prob`}, want: "warning notifications the record of sent problems is damaged"},
		{name: "sent problems were damaged", files: map[string]string{"store/notifications.json.damaged": ``}, want: "warning notifications the record of sent problems was damaged and written again; the damaged file is DIR/store/", hint: "then: rm 'DIR/store/notifications.json.damaged'"},
		{name: "others write to the store", files: map[string]string{"store/archives/db-1.0.0.json": string(record)}, want: "problem store others than root may write to", hint: "chmod go-w 'DIR/store/archives'"},
		{name: "authority is good", files: map[string]string{"ca.crt": certificate(t, now.Add(365*24*time.Hour))}, want: "ok certificate "},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "its files")
			for name, text := range test.files {
				file := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if strings.HasPrefix(test.name, "others write") {
				if err := os.Chmod(filepath.Join(dir, "store", "archives"), 0o777); err != nil { //nolint:gosec // what is reported
					t.Fatal(err)
				}
			}
			s, err := store.Open(filepath.Join(dir, "store"))
			if err != nil {
				t.Fatal(err)
			}
			d := doctor.Examine(t.Context(), doctor.Options{
				Store: s, Configuration: &store.Configuration{Path: filepath.Join(dir, "solutions.yaml")}, Authority: filepath.Join(dir, "ca.crt"), Root: dir,
				Now: func() time.Time { return now }, Absent: report.Errorf(report.Usage, "no cluster is named").WithHint("name one"),
			})
			data, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.ValidateOutput("diagnosis", data); err != nil {
				t.Error(err)
			}
			var text, hints strings.Builder
			for _, c := range d.Checks {
				fmt.Fprintf(&text, "%s %s %s\n", c.Result, c.Name, c.Message)
				hints.WriteString(c.Hint + "\n")
			}
			if want := strings.ReplaceAll(test.hint, "DIR", dir); !strings.Contains(hints.String(), want) {
				t.Errorf("no hint like %q in:\n%s", want, &hints)
			}
			if want := strings.ReplaceAll(test.want, "DIR", dir); !strings.Contains(text.String(), want) {
				t.Errorf("nothing like %q in:\n%s", want, &text)
			}
			if !strings.Contains(text.String(), "problem connection no cluster is named") {
				t.Errorf("nothing about the cluster in:\n%s", &text)
			}
		})
	}
}

func certificate(t *testing.T, until time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: until.Add(-time.Hour), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
