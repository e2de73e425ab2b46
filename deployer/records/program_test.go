package records_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestProgramImage finds the image of solutionctl in the Solution of its own and in one that brings it along.
func TestProgramImage(t *testing.T) {
	b := deployertest.New(t)
	own := deployertest.Content{Bare: true, Images: []string{schema.ProgramImage}}
	b.Imported("solutionctl", "1.9.0", own)
	b.Imported("solutionctl", "1.10.0", own)
	b.Imported("preview", "1.0.0-rc.1", own)
	b.Imported(shop, "2.0.0", deployertest.Content{Images: []string{schema.ProgramImage, "solutionctl-x"}})
	b.Imported("plain", "1.0.0", plain)
	for _, test := range []struct {
		solution, version string
		image             string
		notice            string
		code              report.Code
	}{
		{solution: "solutionctl", image: "solutionctl-1.10.0/solutionctl:1.10.0"},
		{solution: "solutionctl", version: "1.9.0", image: "solutionctl-1.9.0/solutionctl:1.9.0"},
		{solution: "preview", image: "preview-1.0.0-rc.1/solutionctl:1.0.0-rc.1", notice: "there is no release"},
		{solution: shop, version: schema.ActiveLatest, image: "shop-2.0.0/solutionctl:2.0.0"},
		{solution: "plain", code: report.NotFound},
		{solution: "solutionctl", version: "3.0.0", code: report.NotImported},
		{solution: "absent", code: report.NotImported},
	} {
		got, notice, err := b.Records.ProgramImage(t.Context(), test.solution, test.version)
		if report.CodeOf(err) != test.code || !strings.Contains(notice, test.notice) {
			t.Errorf("%s %s: %q, %v", test.solution, test.version, notice, err)
		}
		want := "^$"
		if test.image != "" {
			want = "^" + regexp.QuoteMeta("registry.solutionctl.invalid/"+test.image) + "@sha256:[0-9a-f]{64}$"
		}
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s %s: %s, want %s", test.solution, test.version, got, want)
		}
	}

	// Without a record of where images are, they are where the first import would say.
	b.Deleted("ConfigMap", cluster.SystemNamespace, records.RegistryName)
	if got, _, err := b.Records.ProgramImage(t.Context(), "solutionctl", ""); err != nil || !strings.HasPrefix(got, schema.RegistryHostOwn+"/") {
		t.Errorf("%s, %v", got, err)
	}
}

// TestImagesAlone: a Solution with nothing but images is served, and may go through all the verbs although it brings the cluster
// nothing.
func TestImagesAlone(t *testing.T) {
	b := deployertest.New(t)
	alone := deployertest.Content{Bare: true, Images: []string{schema.ProgramImage}}
	b.Added(shop, "1.0.0", alone)
	b.Imported(shop, "1.1.0", alone)
	if _, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: shop, Version: "1.1.0"}); err != nil {
		t.Error(err)
	}
	if _, err := b.Change(t.Context(), deployer.ChangeOptions{Environment: site, Solution: shop, Direction: records.Up}); err != nil {
		t.Error(err)
	}
	if _, err := b.Remove(t.Context(), deployer.RemoveOptions{Environment: site, Solution: shop}); err != nil {
		t.Error(err)
	}
	if _, err := b.Deactivate(t.Context(), deployer.DeactivateOptions{Solution: shop}); err != nil {
		t.Error(err)
	}
	for _, version := range []string{"1.0.0", "1.1.0"} {
		if err := b.RecordUnimport(t.Context(), deployer.UnimportOptions{ID: shop + "-" + version}); err != nil {
			t.Error(err)
		}
	}
}
