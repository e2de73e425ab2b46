package deployer_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// importing is the message of an import of a version of a Solution that has an operator.
func importing(t *testing.T, name, version string) records.ImportRecord {
	t.Helper()
	config, layer := `{"os":"linux","architecture":"amd64","rootfs":{"type":"layers","diff_ids":[]}}`, "layer of "+version
	dir := "images/" + name + "-operator/" + version + "/"
	files := fstest.MapFS{
		"manifest.yaml":             text("apiVersion: %s\nkind: Solution\nmetadata: {name: %s}\nspec: {version: %s}\n", schema.APIVersion, name, version),
		"operator/deploy/role.yaml": text("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: %s-operator}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}", name),
		dir + "version":             text("Directory Transport Version: 1.1\n"),
		dir + digest(config):        text("%s", config),
		dir + digest(layer):         text("%s", layer),
		dir + "manifest.json": text(`{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json",
"config":{"mediaType":"application/vnd.docker.container.image.v1+json","digest":"sha256:%s","size":%d},
"layers":[{"mediaType":"application/vnd.docker.image.rootfs.diff.tar.gzip","digest":"sha256:%s","size":%d}]}`, digest(config), len(config), digest(layer), len(layer)),
	}
	a, err := archive.FromFS(files)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := render.FromArchive(a)
	if err != nil {
		t.Fatal(err)
	}
	return records.ImportRecord{Payload: payload, Path: "/srv/" + name + ".iso", SHA256: strings.Repeat("0", 64), Size: 4096}
}

func text(format string, args ...any) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, format, args...)}
}

func digest(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }

// putImports replaces the record of what was imported.
func putImports(t *testing.T, s *clustertest.Server, text string) {
	t.Helper()
	s.Put(t, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: %s}, immutable: true, data: {imports.json: %s}}",
		records.ImportsName, cluster.SystemNamespace, base64.StdEncoding.EncodeToString([]byte(text))))
}

// TestCorruptImports spoils the record of what was imported: only what needs it fails, and imports write it again.
func TestCorruptImports(t *testing.T) {
	s := clustertest.Start(t)
	d := connected(t, s)
	if _, err := d.RecordImport(t.Context(), importing(t, "bank", "1.0.0")); err != nil {
		t.Fatal(err)
	}
	putImports(t, s, `{"formatVersion": 1, "imp`)
	const cure = "solutionctl deploy import FILE..."

	_, err := d.Activate(t.Context(), deployer.ActivateOptions{Solution: "bank"})
	if report.CodeOf(err) != report.Corrupt || !strings.Contains(strings.Join(report.Hints(err), "\n"), cure) {
		t.Errorf("activate: %v, hints %q", err, report.Hints(err))
	}
	status, err := d.Survey.Status(t.Context(), survey.StatusOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(status.Solutions) != 1 || status.Solutions[0].Name != "bank" { // MetalK8s knows it, too
		t.Errorf("status: %+v", status.Solutions)
	}
	if len(status.Problems) != 1 || !strings.Contains(status.Problems[0], "what was imported cannot be read") || !strings.Contains(status.Problems[0], cure) {
		t.Errorf("problems: %q", status.Problems)
	}
	broken, err := d.Broken(t.Context())
	if err != nil || len(broken) != 1 || !strings.Contains(broken[0].What, "Secret solutionctl-system/imports") || !strings.Contains(broken[0].Cure, cure) {
		t.Errorf("broken: %+v, %v", broken, err)
	}

	notices, err := d.RecordImport(t.Context(), importing(t, "shop", "1.0.0"))
	if err != nil || !strings.Contains(strings.Join(notices, "\n"), "begins again with shop-1.0.0: import every other archive again") {
		t.Fatalf("%q, %v", notices, err)
	}
	if notices, err = d.RecordImport(t.Context(), importing(t, "bank", "1.0.0")); err != nil || len(notices) > 0 {
		t.Fatalf("%q, %v", notices, err)
	}
	catalog, err := d.Records.Catalog(t.Context())
	if err != nil || strings.Join(catalog.Names(), " ") != "bank shop" {
		t.Errorf("%+v, %v", catalog, err)
	}
	if broken, err = d.Broken(t.Context()); err != nil || len(broken) > 0 {
		t.Errorf("broken: %+v, %v", broken, err)
	}
}

// TestRemovalWithoutImports checks that reads and removals work without the record of imports, and report that it is missing.
func TestRemovalWithoutImports(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", plain)
	const unknown, cure = "what was imported cannot be read", "solutionctl deploy import FILE..."
	tells := func(what string, sentences []string) {
		t.Helper()
		if text := strings.Join(sentences, "\n"); !strings.Contains(text, unknown) || !strings.Contains(text, cure) {
			t.Errorf("%s: %q", what, sentences)
		}
	}
	putImports(t, b.Server, `{"formatVersion": 99, "writtenBy": "9.0.0", "imports": {}}`)
	for _, run := range []verb{remove(shop), deleteSite(plan.DeleteData)} {
		_, err := run(t.Context(), b.Deployer, plan.Options{})
		deployertest.Refused(t, err, report.Refused, "9.0.0")
	}
	putImports(t, b.Server, `{"formatVersion": 1, "imp`)
	found, err := b.Records.Search(t.Context(), records.SearchOptions{})
	if err != nil || len(found.Versions) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	deployertest.Valid(t, "search", found)
	tells("search", found.Problems)
	tells("remove", must(b, remove(shop)).Notices)
	if names := b.Server.Names("Deployment"); len(names) > 0 {
		t.Errorf("left are %q", names)
	}
	tells("env delete", must(b, deleteSite(plan.DeleteData)).Notices)
	if b.Server.Object("Namespace", "", site) != nil {
		t.Error("the namespace is still there")
	}
}

// TestNewerImports has a record that a newer program wrote, which no import of this one replaces.
func TestNewerImports(t *testing.T) {
	s := clustertest.Start(t, "{apiVersion: v1, kind: Namespace, metadata: {name: solutionctl-system}}")
	d := connected(t, s)
	putImports(t, s, `{"formatVersion": 99, "writtenBy": "9.0.0", "imports": {}}`)
	before := s.Object("Secret", cluster.SystemNamespace, records.ImportsName)
	if _, err := d.RecordImport(t.Context(), importing(t, "bank", "1.0.0")); report.CodeOf(err) != report.Refused {
		t.Errorf("%v", err)
	}
	if after := s.Object("Secret", cluster.SystemNamespace, records.ImportsName); after == nil || after.GetUID() != before.GetUID() || after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("%v", after)
	}
}
