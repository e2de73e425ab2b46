package schema_test

import (
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func imports() *schema.Imports {
	digest := strings.Repeat("0123456789abcdef", 4)
	return &schema.Imports{Stamp: schema.NewStamp("imports", "1.0.0"), Imports: map[string]schema.Import{"db-1.0.0": {
		Name: "db", Version: "1.0.0", Payload: "sha256:" + digest,
		Archive:    schema.ImportedArchive{Path: "/srv/db.iso", SHA256: digest, Size: 4096},
		Images:     map[string]string{"db-operator:1.0.0": "sha256:" + digest},
		ImportedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), ImportedBy: "admin",
	}}}
}

func TestStoredDocumentsComeBack(t *testing.T) {
	data, err := schema.MarshalStored(imports())
	if err != nil {
		t.Fatal(err)
	}
	back, err := schema.ParseStored[schema.Imports]("imports", "Secret imports", data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(imports(), back); diff != "" {
		t.Error(diff)
	}
}

func TestStoredDocumentsAreRefused(t *testing.T) {
	good, err := schema.MarshalStored(imports())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, old, new string
		code           report.Code
		message, hint  string
	}{
		{"newer format", `"formatVersion": 2`, `"formatVersion": 3`, report.Refused, "reads up to 2", "solutionctl 1.0.0 or newer"},
		{"no format", `"formatVersion": 2,`, ``, report.Corrupt, "formatVersion", "backup"},
		{"unknown field", `"name": "db"`, `"name": "db", "more": 1`, report.Corrupt, "more", "backup"},
		{"bad digest", `"sha256:01`, `"md5:01`, report.Corrupt, "payload", "backup"},
		{"cut off", `"imports": {`, ``, report.Corrupt, "Secret imports", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			bad := strings.Replace(string(good), test.old, test.new, 1)
			_, err := schema.ParseStored[schema.Imports]("imports", "Secret imports", []byte(bad))
			if report.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.message) {
				t.Fatalf("got %s: %v", report.CodeOf(err), err)
			}
			if hints := strings.Join(report.Hints(err), " "); !strings.Contains(hints, test.hint) {
				t.Errorf("hints: %q", hints)
			}
		})
	}
}

func TestEveryStoredSchemaIsInTheTable(t *testing.T) {
	files, err := fs.Glob(schema.Files, "stored/*.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(path.Base(file), ".schema.json"))
	}
	if diff := cmp.Diff(names, schema.StoredDocuments()); diff != "" {
		t.Error(diff)
	}
}
