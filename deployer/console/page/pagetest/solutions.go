package pagetest

import (
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
)

func sampleSearch(say func(string) string) *schema.SearchResult {
	r := &schema.SearchResult{}
	for _, name := range solutionNames {
		for i, version := range []string{"1.9.0", "1.10.0", "1.11.0-rc.1"} {
			v := schema.FoundVersion{
				Name: say(name), DisplayName: say(strings.ToUpper(name[:1]) + name[1:]), Version: say(version), ID: say(name + "-" + version),
				Active: i == 1, Imported: i < 2, Stored: true,
				Images: []schema.FoundImage{{Image: say(name + "-operator:" + version), Digest: "sha256:" + strings.Repeat("ab", 32), Origin: say("registry.example.com/acme/" + name + "-operator:" + version), Matches: i == 1 && name == "shop"}},
			}
			if i < 2 && name == "shop" {
				v.Signers = []string{say("acme-release")}
			}
			if i < 2 {
				v.Environments = []string{say("production"), say("staging")}
			}
			r.Versions = append(r.Versions, v)
		}
	}
	return r
}

func sampleSolution(say func(string) string) *page.Solution {
	status := Status(say, 0).Solutions[0]
	status.Versions = []schema.ImportedVersion{
		{Version: say("1.8.3"), ImportedAt: new(ago(900 * time.Hour)), ImportedBy: say("joe@bootstrap-1")},
		{Version: say("1.9.0"), SupportedUntil: "2028-12-31", ImportedAt: new(ago(300 * time.Hour)), ImportedBy: say("joe@bootstrap-1")},
		{Version: say("1.10.0"), Active: true, ImportedAt: new(ago(30 * time.Hour)), ImportedBy: say("jane@bootstrap-1"), Signers: []string{say("acme-release")}},
	}
	denied := &page.Denial{Reason: say("You do not have permission to import or unimport archives."), Rule: say("- apiGroups: [archives.solutionctl.io]\n  resources: [archives]\n  verbs: [unimport]")}
	return &page.Solution{
		Status: status, Versions: sampleSearch(say).Versions[:3],
		Compatibility: &schema.Compatibility{Solution: say("shop"), Active: say("1.10.0"), Versions: []schema.VersionCompatibility{
			{Version: say("1.8.3"), Verdict: schema.CompatibilityLoss, Losses: []string{say("shops.example.com: spec.storage.tier of 14 objects would be lost")}},
			{Version: say("1.9.0"), Verdict: schema.CompatibilityKeeps, Notices: []string{say("shops.example.com keeps v1alpha1 for production")}},
			{Version: say("1.10.0"), Verdict: schema.CompatibilityYes},
		}},
		Needs: map[string][]schema.Dependency{say("1.10.0"): {{Solution: say("object-storage"), Version: ">= 1.9"}}},
		VersionActions: map[string][]page.Action{
			say("1.8.3"): {{Label: "Activate", URL: "/solutions/shop/plan/activate?version=1.8.3"}, {Label: "Unimport", URL: "/solutions/shop/unimport?version=1.8.3", Denied: denied}},
			say("1.9.0"): {{Label: "Activate", URL: "/solutions/shop/plan/activate?version=1.9.0"}, {Label: "Unimport", URL: "/solutions/shop/unimport?version=1.9.0", Denied: denied}},
		},
		Actions: []page.Action{{Label: "Add to an environment", URL: "/solutions/shop/add", Weight: page.WeightPrimary}, {Label: "Deactivate", URL: "/solutions/shop/plan/deactivate", Weight: page.WeightDanger}},
	}
}

func sampleFacts(say func(string) string) *schema.ArchiveFacts {
	digest := "sha256:" + strings.Repeat("ab", 32)
	states := func(vulnerability, product, status, justification string) schema.ProductStatement {
		return schema.ProductStatement{Product: say(product), VendorStatement: schema.VendorStatement{
			Vulnerability: say(vulnerability), Status: status, Justification: justification, Author: say("Acme"), File: say("vex/acme.json"),
		}}
	}
	return &schema.ArchiveFacts{
		Solution: say("shop"), Version: say("1.11.0"),
		Provenance: &schema.ProvenanceFacts{
			Builder: say("https://solutionctl.io/builder/solutionctl, solutionctl 1.2.3"), Signer: say("acme-release"), SignedAt: new(ago(50 * time.Hour)),
			FileTime: say("2026-10-01T00:00:00Z"), Options: []string{say(`version: "1.11.0"`)}, Files: 42, MoreMaterials: 3,
			Materials: []schema.ResourceFacts{
				{Name: say("image shop-operator:1.11.0"), Origin: say("oci://registry.example.com/acme/shop-operator:1.11.0"), Digest: say(digest)},
				{Name: say("image shop-ui:1.11.0"), Digest: say(digest)},
			},
		},
		Statements: []schema.ProductStatement{
			states("CVE-2021-23337", "pkg:npm/lodash@4.17.20", "not_affected", say("vulnerable_code_not_present")),
			states("CVE-2026-0001", "pkg:deb/debian/openssl in pkg:oci/shop-operator", "under_investigation", ""),
		},
		MoreStatements: 1,
	}
}

func sampleContent(say func(string) string) *page.ArchiveContent {
	f := sampleFacts(say)
	f.Problems = []string{say("shop-1.11.0.iso.site.sigstore.json: it is damaged")}
	f.Packages = &schema.PackageFacts{
		Images: []schema.ImageBills{
			{Image: say("shop-operator:1.11.0"), Platform: &schema.Platform{OS: "linux", Architecture: "amd64"}, Unread: 1, Bills: []schema.PackageBill{
				{Origin: schema.OriginMade, Packages: 1}, {Origin: schema.OriginBrought, Format: say("SPDX-2.3"), Tool: say("syft-1.2.0"), Packages: 2, Only: 1},
			}},
		},
		Packages: []schema.ListedPackage{
			{Image: say("shop-operator:1.11.0"), Name: say("libssl3"), Version: say("3.0.11-1~deb12u2"), Type: "deb", License: say("Apache-2.0"), Origin: schema.OriginMade},
			{Image: say("shop-operator:1.11.0"), Name: say("serde"), Version: say("1.0.203"), Type: say("cargo"), Origin: schema.OriginBrought},
		},
		More: 12, MoreImages: 2,
	}
	return &page.ArchiveContent{Facts: f}
}

func sampleImport(say func(string) string) *page.Import {
	return &page.Import{
		Upload: &page.Form{Action: page.Action{Label: "Upload", URL: "/import", Post: true, Weight: page.WeightPrimary}},
		Path: &page.Form{
			Action: page.Action{Label: "Look at it", URL: "/import/path", Post: true},
			Inputs: []page.Input{{Name: "path", Label: "Path", Required: true, Value: say("/srv/archives/shop-1.11.0.iso")}},
		},
		Uploads: []page.Upload{
			{ID: "1", Name: say("shop-1.11.0.iso"), Received: 1 << 30, Size: 5 << 30, User: say("oidc:jane@example.com"), Changed: ago(20 * time.Second), Actions: []page.Action{{Label: "Discard", URL: "/import/1/discard", Post: true}}},
			{ID: "2", Name: say("identity-2.0.0.iso"), Received: 1 << 29, Size: 1 << 29, User: say("oidc:jane@example.com"), Changed: ago(time.Hour), Page: "/import/2"},
		},
	}
}

func sampleExamination(say func(string) string) *page.Examination {
	rule := 0
	return &page.Examination{
		Name: say("shop-1.11.0.iso"), Solution: say("shop"), Version: say("1.11.0"), Size: 5 << 30, Signers: []string{say("acme-release")},
		Verdict: &sign.Verdict{
			Verified: true, Archive: sign.ArchiveInfo{Path: say("/x"), Size: 5 << 30, SHA256: strings.Repeat("0123abcd", 8)},
			Policy:     sign.PolicyInfo{File: say("/etc/solutionctl/trust/policy.yaml"), Rule: &rule},
			Signatures: []sign.Signature{{File: say("shop-1.11.0.iso.sigstore.json"), Status: sign.Accepted, KeyName: say("acme-release"), SignedAt: new(ago(50 * time.Hour))}},
			Checks: []sign.Check{
				{Name: "signature", Result: sign.Passed, Detail: say("1 of 1 signers")},
				{Name: "revocation", Result: sign.Passed},
				{Name: "version", Result: sign.Passed, Detail: say("newer than 1.10.0")},
				{Name: "content", Result: sign.Deferred},
			},
		},
		Lint: &schema.LintTarget{Findings: []report.Finding{{
			Rule: "IMG003", Severity: report.SeverityWarning, Path: say("operator/cluster/webhook.yaml"), Line: 14, Object: say("Deployment/webhook"),
			Message: say("the container has no limit of memory"), Hint: say("set resources.limits.memory"),
		}}},
		ReleaseNotes: say("# shop 1.11.0\n\n- orders are packed twice as fast\n- a Shop may have an opening time"),
		Brings:       []string{say("3 images, 1 of them new since 1.10.0"), say("1 definition, 2 fields more")},
		Facts:        sampleFacts(say),
		Plan:         samplePlan(say).Operation,
		Form:         page.Form{Action: page.Action{Label: "Import", URL: "/import/2", Post: true, Weight: page.WeightPrimary}, Cancel: page.Link{URL: "/import"}},
	}
}
