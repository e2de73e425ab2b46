package bundle_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/support/bundle"
	"github.com/solutionctl/solutionctl/schema"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

func ExampleCollect() {
	b, err := bundle.Collect(context.Background(), bundle.Options{Diagnosis: &schema.Diagnosis{Checks: []schema.Check{}}, Tool: "1.0.0", Now: now})
	if err != nil {
		panic(err)
	}
	for _, file := range b.Files {
		fmt.Println(file.Name)
	}
	if err := bundle.Write(io.Discard, b.Files, now); err != nil {
		panic(err)
	}
	// Output:
	// README.txt
	// bundle.json
	// diagnosis.json
}

func TestWithoutCluster(t *testing.T) {
	diagnosis := &schema.Diagnosis{Problems: 1, Checks: []schema.Check{
		{Area: "cluster", Name: "connection", Result: schema.CheckProblem, Message: "no cluster is named\nat all", Hint: "name one"},
	}}
	var archives [2]bytes.Buffer
	for i := range archives {
		b, err := bundle.Collect(t.Context(), bundle.Options{Diagnosis: diagnosis, Tool: "1.0.0", Now: now})
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(b.Document)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.ValidateOutput("supportbundle", data); err != nil {
			t.Error(err)
		}
		readme := string(b.Files[0].Data)
		for _, want := range []string{"problem  cluster connection: no cluster is named at all", "everything in the cluster: there is none", "Collected 2026-01-02T03:04:05Z"} {
			if !strings.Contains(readme, want) {
				t.Errorf("nothing like %q in:\n%s", want, readme)
			}
		}
		if err := bundle.Write(&archives[i], b.Files, now); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0].Bytes(), archives[1].Bytes()) {
		t.Error("the same files made two archives")
	}
}
