package deployer_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/rebuild"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestRecordsOfTheVersionBefore checks that every verb continues a record written before components existed, complete or not, and that the
// first change converts it to the present format.
func TestRecordsOfTheVersionBefore(t *testing.T) {
	resume := func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
		done, err := d.Resume(ctx, deployer.ResumeOptions{Options: o})
		if err == nil && (len(done.Operations) != 1 || !done.Operations[0].Finished) {
			err = fmt.Errorf("resumed %+v", done.Operations)
		}
		return nil, err
	}
	repair := func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
		return d.Repair(ctx, deployer.RepairOptions{Options: o})
	}
	for _, test := range []struct {
		name          string
		begun         verb // and not ended
		run           verb
		version       string
		there, format string
	}{
		{"the same again", nil, add("1.1.0"), "1.1.0", "", "1"},
		{"an upgrade to components", nil, upgrade("1.2.0"), "1.2.0", "api db db-password", "3"},
		{"a downgrade", nil, change(records.Down, "1.0.0"), "1.0.0", "", "3"},
		{"a rollback", nil, rollback(0), "1.0.0", "", "3"},
		{"a repair", nil, repair, "1.1.0", "", "1"},
		{"a removal", nil, remove(shop), "", "", "3"},
		{"an upgrade that was begun, resumed", upgrade("1.1.1"), resume, "1.1.1", "", "3"},
		{"an upgrade that was begun, taken back", upgrade("1.1.1"), rollback(0), "1.1.0", "", "3"},
		{"components instead of what was begun", upgrade("1.1.1"), upgrade("1.2.0"), "1.2.0", "api db db-password", "3"},
		{"a removal that was begun, resumed", remove(shop), resume, "", "", "3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := deployertest.New(t)
			b.Activated(shop, "1.0.0", plain)
			must(b, add("1.0.0"))
			for _, version := range []string{"1.1.0", "1.1.1"} {
				b.Imported(shop, version, plain)
			}
			b.Imported(shop, "1.2.0", parts(t, nil))
			must(b, upgrade("1.1.0"))
			if test.begun != nil {
				mend := endingAt(b, 3)
				_, err := test.begun(t.Context(), b.Deployer, plan.Options{})
				if mend(); err == nil || !anyBegun(b) {
					t.Fatalf("it was not begun: %v", err)
				}
			}
			if aged := write(b, "1"); aged != 2 { // that of the activation is one
				t.Fatalf("there are %d records", aged)
			}
			b.Deployer = b.Connect()
			if _, err := test.run(t.Context(), b.Deployer, plan.Options{}); err != nil {
				t.Fatal(err)
			}
			if got := versions(b)[shop]; got != test.version || there(b) != test.there {
				t.Errorf("there is %q with %q, want %q with %q", got, there(b), test.version, test.there)
			}
			if anyBegun(b) {
				t.Error("something is left to finish")
			}
			if record := recordOf(b, record.Key{Namespace: site, Name: shop}.SecretName()); !strings.Contains(record, `"formatVersion": `+test.format) {
				t.Errorf("the record is\n%s", record)
			}
		})
	}
}

// TestRecordsOfANewerProgram: what a newer program has put on record every verb reports and leaves alone.
func TestRecordsOfANewerProgram(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", plain)
	must(b, add("1.0.0"))
	b.Imported(shop, "1.1.0", plain)
	write(b, "9")
	b.Deployer = b.Connect()
	b.Writes()
	for name, v := range map[string]verb{"add": add("1.0.0"), "upgrade": upgrade("1.1.0"), "rollback": rollback(0), "remove": remove(shop), "rebuild": rebuildRecords} {
		_, err := v(t.Context(), b.Deployer, plan.Options{})
		t.Log(name)
		deployertest.Refused(t, err, report.Refused, "has format 9, this program reads up to 3", "use solutionctl 1.0.0 or newer")
	}
	for _, change := range b.Writes() {
		if !strings.Contains(change, "/leases") {
			t.Errorf("it writes %s", change)
		}
	}
	status, err := b.Survey.Status(t.Context(), survey.StatusOptions{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(status)
	if text := string(data); err != nil || !strings.Contains(text, "use solutionctl 1.0.0 or newer") || strings.Contains(text, "--records") {
		t.Errorf("%v\n%s", err, text)
	}
}

func rebuildRecords(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
	return d.RebuildRecords(ctx, rebuild.Options{Options: o, Selection: survey.Selection{Environment: site, Solution: shop}})
}

// write makes all records those of another format. An earlier program knew nothing of what they must not have.
func write(b *deployertest.Bed, format string) (count int) {
	b.Helper()
	for _, name := range b.Server.Names("Secret") {
		short, stored := strings.CutPrefix(name, cluster.SystemNamespace+"/")
		if !stored || !strings.HasPrefix(short, "state.") {
			continue
		}
		secret, record := b.Server.Object("Secret", cluster.SystemNamespace, short), recordOf(b, short)
		for _, none := range []string{`"component`, `"needs"`, `"approvals"`} {
			if strings.Contains(record, none) {
				b.Fatalf("%s has %s:\n%s", name, none, record)
			}
		}
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err := w.Write([]byte(strings.Replace(record, `"formatVersion": 3`, `"formatVersion": `+format, 1)))
		if err = errors.Join(err, w.Close()); err != nil {
			b.Fatal(err)
		}
		secret.Object["data"] = map[string]any{"state.json.gz": base64.StdEncoding.EncodeToString(packed.Bytes())}
		b.Put(secret)
		count++
	}
	return count
}

// recordOf returns the record of a release in a Secret.
func recordOf(b *deployertest.Bed, name string) string {
	b.Helper()
	packed, err := base64.StdEncoding.DecodeString(dataOf(b, "Secret", cluster.SystemNamespace, name)["state.json.gz"])
	if err != nil {
		b.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		b.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		b.Fatal(err)
	}
	return string(text)
}
