package records_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestFullRecords: an import for which a record has no room is refused before anything is written, with the command that makes room.
func TestFullRecords(t *testing.T) {
	manifest := func(size int) func(*records.ImportRecord) {
		return func(r *records.ImportRecord) {
			r.Payload.Solution.Metadata.Annotations["notes"] = strings.Repeat("x", size)
		}
	}
	images := func(count int) func(*records.ImportRecord) {
		return func(r *records.ImportRecord) {
			for i := range count {
				r.Payload.Images = append(r.Payload.Images, render.Image{
					Ref: schema.ImageRef{Name: fmt.Sprint("image-", i), Tag: "1.0.0"}, Digest: "sha256:" + strings.Repeat("0", 64),
				})
			}
		}
	}
	for _, test := range []struct {
		name          string
		change        func(*records.ImportRecord)
		fits          []string // versions that are imported before
		active        string
		message, hint string
	}{
		{"manifests", manifest(400 << 10), []string{"1.0.0", "1.1.0"}, "1.0.0", "would be 3 versions of 1201 KiB, and it can have 1024 KiB", "deploy unimport shop 1.1.0"},
		{"one manifest", manifest(1100 << 10), nil, "", "the manifest of shop-2.0.0 has 1100 KiB", "over several Solutions"},
		{"images of the catalogue", images(5000), []string{"1.0.0", "1.1.0"}, "", "would be 3 versions of 1360 KiB", "deploy unimport SOLUTION VERSION"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := deployertest.New(t)
			record := func(version string) records.ImportRecord {
				r := b.Record(shop, version, plain)
				if r.Payload.Solution.Metadata.Annotations == nil {
					r.Payload.Solution.Metadata.Annotations = map[string]string{}
				}
				test.change(&r)
				return r
			}
			for _, version := range test.fits {
				if _, err := b.RecordImport(t.Context(), record(version)); err != nil {
					t.Fatal(err)
				}
			}
			if test.active != "" {
				if err := b.Records.Documents.SetActive(t.Context(), shop, test.active); err != nil {
					t.Fatal(err)
				}
			}
			state := func() []string { return slices.Concat(b.Server.Names("Secret"), b.Server.Names("ConfigMap")) }
			before := state()
			_, err := b.RecordImport(t.Context(), record("2.0.0"))
			if report.CodeOf(err) != report.Refused || !strings.Contains(err.Error(), test.message) || !strings.Contains(strings.Join(report.Hints(err), "\n"), test.hint) {
				t.Errorf("%s: %v, %q", report.CodeOf(err), err, report.Hints(err))
			}
			if diff := cmp.Diff(before, state()); diff != "" {
				t.Errorf("something was written (-before +after):\n%s", diff)
			}
			if len(test.fits) == 0 {
				return
			}
			if err = b.Records.Unimport(t.Context(), "shop-1.1.0"); err != nil {
				t.Fatal(err)
			}
			if _, err = b.RecordImport(t.Context(), record("2.0.0")); err != nil {
				t.Errorf("after the hint: %v", err)
			}
		})
	}
}

// TestFullConfigMap has an object of another client that is larger than the API server accepts.
func TestFullConfigMap(t *testing.T) {
	b := deployertest.New(t)
	object := cluster.NewObject(cluster.ConfigMapKind, "default", "large")
	object.Object["data"] = map[string]any{"a": strings.Repeat("x", cluster.MaxData+1)}
	_, err := b.Cluster.Create(t.Context(), object, cluster.WriteOptions{})
	if report.CodeOf(err) != report.Invalid || !strings.Contains(err.Error(), "more than 1024 KiB together, which is all that a ConfigMap can have") {
		t.Errorf("%s: %v", report.CodeOf(err), err)
	}
}
