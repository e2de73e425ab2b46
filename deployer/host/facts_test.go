package host

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/build/sbom"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/key"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// attest writes a provenance of an archive beside it.
func (w *world) attest(path string, signer *key.Signer) {
	w.t.Helper()
	sum := sha256.Sum256(w.read(path))
	s := &schema.ProvenanceStatement{Type: schema.StatementType, PredicateType: schema.ProvenanceType}
	s.Subject = []schema.ResourceDescriptor{{Name: "demo.iso", Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])}}}
	s.Predicate.RunDetails.Builder = schema.ProvenanceBuilderInfo{ID: schema.ArchiveBuilderID, Version: map[string]string{"solutionctl": "1.2.3"}}
	s.Predicate.BuildDefinition = schema.ProvenanceDefinition{
		BuildType: schema.ArchiveBuildType, ExternalParameters: map[string]any{"version": "1.0.0"}, InternalParameters: map[string]any{"fileTime": "2026-01-02T03:04:05Z"},
		ResolvedDependencies: []schema.ResourceDescriptor{
			{Name: "image ui:1.0.0", URI: "oci://ghcr.io/acme/ui:1.0.0", Digest: map[string]string{"sha256": "aa"}},
			{Name: "file solution.yaml", Digest: map[string]string{"sha256": "bb"}},
			{Name: "file ui/a.yaml", Digest: map[string]string{"sha256": "cc"}},
		},
	}
	payload, err := bundle.MarshalProvenance(s)
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := bundle.Attest(w.t.Context(), signer, payload)
	if err == nil {
		err = os.WriteFile(sign.BundleName(path, sign.ProvenanceSigner), data, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

const acmeStates = `{"@context": "https://openvex.dev/ns/v0.2.0", "author": "Acme", "statements": [
  {"vulnerability": {"name": "CVE-1"}, "status": "not_affected", "justification": "component_not_present",
   "products": [{"@id": "pkg:oci/ui", "subcomponents": [{"@id": "pkg:npm/lodash"}, {"@id": "pkg:npm/left-pad"}]}]}]}`

// TestFacts reads the provenance, the statements and the kept packages of an archive: before its import, after it, and beside a newer version.
func TestFacts(t *testing.T) {
	w := newWorld(t)
	path := w.archive("1.0.0", "vex/acme.json", acmeStates)
	w.attest(path, w.acme)
	states := func(product string) schema.ProductStatement {
		return schema.ProductStatement{Product: product, VendorStatement: schema.VendorStatement{
			Vulnerability: "CVE-1", Status: "not_affected", Justification: "component_not_present", Author: "Acme", File: "vex/acme.json",
		}}
	}
	want := &schema.ArchiveFacts{
		Solution: "demo", Version: "1.0.0",
		Provenance: &schema.ProvenanceFacts{
			Builder: schema.ArchiveBuilderID + ", solutionctl 1.2.3", Signer: "acme", FileTime: "2026-01-02T03:04:05Z", Options: []string{`version: "1.0.0"`},
			Materials: []schema.ResourceFacts{{Name: "image ui:1.0.0", Origin: "oci://ghcr.io/acme/ui:1.0.0", Digest: "sha256:aa"}}, Files: 2,
		},
		Statements: []schema.ProductStatement{states("pkg:npm/lodash in pkg:oci/ui"), states("pkg:npm/left-pad in pkg:oci/ui")},
	}
	w.options.Archives = []string{path}
	examined, err := w.Examine(t.Context(), w.options)
	if diff := cmp.Diff(want, examined.Facts); diff != "" || err != nil || examined.Verdict.Provenance != nil {
		t.Errorf("before the import: %v (-want +got):\n%s", err, diff)
	}
	if _, err = w.do(path, w.archive("1.1.0")); err != nil {
		t.Fatal(err)
	}
	got, err := w.Facts(t.Context(), w.options, "demo", "1.0.0")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("after it: %v (-want +got):\n%s", err, diff)
	}
	query, err := sbom.ParseQuery("pkg:npm/lodash")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = w.Affected(t.Context(), AffectedOptions{Search: query.Search}); err != nil {
		t.Fatal(err)
	}
	want.Packages = &schema.PackageFacts{Images: []schema.ImageBills{}, Packages: []schema.ListedPackage{}}
	got, err = w.Facts(t.Context(), w.options, "demo", "1.0.0")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("with packages: %v (-want +got):\n%s", err, diff)
	}
	if got, err = w.Facts(t.Context(), w.options, "demo", "1.1.0"); err != nil || got.Provenance != nil || len(got.Statements) > 0 || len(got.Problems) > 0 {
		t.Errorf("without any: %+v, %v", got, err)
	}
	_, err = w.Facts(t.Context(), w.options, "demo", "9.9.9")
	checkCode(t, err, report.NotFound)
}

// TestForeignFacts shows no provenance that the policy does not allow, and why the signatures of an archive do not count any more.
func TestForeignFacts(t *testing.T) {
	w := newWorld(t)
	path := w.archive("1.0.0", "vex/acme.json", "not JSON")
	w.attest(path, w.mallory)
	if _, err := w.do(path); err != nil {
		t.Fatal(err)
	}
	got, err := w.Facts(t.Context(), w.options, "demo", "1.0.0")
	if err != nil || got.Provenance != nil || len(got.Problems) != 1 || !strings.Contains(got.Problems[0], "vex/acme.json") {
		t.Errorf("of another signer: %+v, %v", got, err)
	}
	w.options.Trusted = func() (*trust.Store, error) {
		return trust.Keys(map[string]*key.Public{"other": w.mallory.Public()}), nil
	}
	got, err = w.Facts(t.Context(), w.options, "demo", "1.0.0")
	if err != nil || got.Provenance != nil || len(got.Problems) != 2 || !strings.Contains(got.Problems[0], "trusted") {
		t.Errorf("of a key that is not trusted any more: %+v, %v", got, err)
	}
}

// TestServedStatements serves an archive to another host: statements are referrers of the archive, and the copy has them as well.
func TestServedStatements(t *testing.T) {
	first := newWorld(t)
	if _, err := first.do(first.archive("1.0.0", "vex/acme.json", acmeStates)); err != nil {
		t.Fatal(err)
	}
	from := first.serveStore("127.0.0.1:0")
	resolver, name := oci.NewResolver(oci.Options{}), from+"/archives/demo:1.0.0"
	found, err := resolver.Artifact(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	referrers, err := resolver.Referrers(t.Context(), name, found.Digest, sbom.StatementType)
	if err != nil || len(referrers) != 1 {
		t.Fatalf("%d referrers: %v", len(referrers), err)
	}
	if data, failure := oci.ReadBlob(t.Context(), referrers[0].Layers[0], 1<<20); failure != nil || string(data) != acmeStates {
		t.Errorf("%q, %v", data, failure)
	}
	second := first.second()
	if _, err = second.sync(SyncOptions{Source: "http://" + from}); err != nil {
		t.Fatal(err)
	}
	if got, failure := second.Facts(t.Context(), second.options, "demo", "1.0.0"); failure != nil || len(got.Statements) != 2 {
		t.Errorf("of the copy: %+v, %v", got, failure)
	}
}
