package deployer_test

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
)

// generates is a Solution with everything that is new in each plan: certificates of a webhook, which version 1.1.0 brings, and the
// passwords, identifiers, times and certificates of a chart.
func generates(t *testing.T, webhook bool) deployertest.Content {
	t.Helper()
	secret := `apiVersion: v1
kind: Secret
metadata: {name: db-password, annotations: {made: {{ now | date "2006-01-02T15:04:05.999999999" | quote }}}}
stringData: {password: {{ randAlphaNum 20 }}}
`
	if webhook { // the upgrade generates more
		secret += `---
{{- $ca := genCA "db" 365 }}
apiVersion: v1
kind: ConfigMap
metadata: {name: db-authority, labels: {run: {{ uuidv4 | quote }}}}
data: {ca.crt: {{ $ca.Cert | quote }}}
`
	}
	c := deployertest.Content{
		Files:    map[string]string{"charts/db.tgz": deployertest.Chart(t, "db", map[string]string{"templates/db.yaml": secret})},
		Manifest: "components:\n  - {name: db, chart: charts/db.tgz}\n",
	}
	if webhook {
		c.Images = []string{shop + "-webhook"}
		c.Conversion = "{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: somewhere, name: shop-webhook, path: /convert}}}}"
		c.Files["operator/cluster/webhook.yaml"] = `apiVersion: v1
kind: Service
metadata: {name: shop-webhook}
spec: {selector: {app: shop-webhook}, ports: [{port: 443, targetPort: 9443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop-webhook}
spec:
  selector: {matchLabels: {app: shop-webhook}}
  template:
    metadata: {labels: {app: shop-webhook}}
    spec:
      containers: [{name: webhook, image: "{{ repository }}/shop-webhook:1.1.0"}]
      volumes: [{name: cert, secret: {secretName: serving}}]
`
	}
	return c
}

// fromProject is the archive of a project of this repository, with images of no content.
func fromProject(t *testing.T, dir string) (version string, c deployertest.Content) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "solution.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	build, err := schema.ParseSolutionBuild("solution.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	version = build.Spec.Version
	c = deployertest.Content{Bare: true, Files: filesBelow(t, filepath.Join(dir, "archive"))}
	for name, content := range c.Files {
		if strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "testdata/") {
			delete(c.Files, name)
		}
		c.Files[name] = strings.ReplaceAll(content, "{{ version }}", version) // as a build does
	}
	charts, err := filepath.Glob(filepath.Join(dir, "charts", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, chart := range charts {
		name := filepath.Base(chart)
		c.Files["charts/"+name+".tgz"] = deployertest.Chart(t, name, filesBelow(t, chart))
	}
	var refs []schema.ImageRef
	for _, image := range build.Spec.Images {
		c.Images = append(c.Images, image.Name)
		refs = append(refs, build.Spec.ImageRef(image))
	}
	manifest, err := build.Solution(refs, time.Now()).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	c.Files["manifest.yaml"] = string(manifest)
	return version, c
}

func filesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestPlanTwice checks for every verb that two plans of the same state have the same digest, whatever values they generate, and that the
// run does what its plan shows.
func TestPlanTwice(t *testing.T) {
	for _, test := range []struct {
		name, solution, profile string
		long                    string // the test that checks the most important part in short mode
		versions                func(t *testing.T, b *deployertest.Bed) (first, second string)
	}{
		{"what generates values", shop, "", "", func(t *testing.T, b *deployertest.Bed) (string, string) {
			t.Helper()
			b.Imported(shop, "1.0.0", generates(t, false))
			b.Imported(shop, "1.1.0", generates(t, true))
			return "1.0.0", "1.1.0"
		}},
		{"example-solution to 1.1.0", "example-solution", "", "", imported("../example-solution", "../example-solution/releases/1.1.0")},
		{"example-solution to 2.0.0", "example-solution", "", "example-solution to 1.1.0", imported("../example-solution/releases/1.1.0", "../example-solution/releases/2.0.0")},
		{"example-cloud", "cloud", "", "example-cloud of charts", imported("../example-cloud")},
		{"example-cloud of services", "cloud", "service", "example-cloud of charts", imported("../example-cloud")},
		{"example-cloud of microservices", "cloud", "microservice", "example-cloud of charts", imported("../example-cloud")},
		{"example-cloud of charts", "cloud", "charts", "", imported("../example-cloud")},
	} {
		t.Run(test.name, func(t *testing.T) {
			if testing.Short() && test.long != "" {
				t.Skipf("a long test: in short mode there is %s", test.long)
			}
			b := deployertest.New(t)
			first, second := test.versions(t, b)
			for _, step := range lifeOf(test.solution, first, second, test.profile) {
				if !t.Run(step.name, func(t *testing.T) { plansTwice(t, b, step.run) }) {
					return // what follows begins here
				}
			}
		})
	}
}

// imported imports the archives of one or two projects.
func imported(dirs ...string) func(*testing.T, *deployertest.Bed) (first, second string) {
	return func(t *testing.T, b *deployertest.Bed) (string, string) {
		t.Helper()
		var versions []string
		for _, dir := range dirs {
			version, c := fromProject(t, dir)
			b.Imported(map[bool]string{true: "cloud", false: "example-solution"}[strings.Contains(dir, "cloud")], version, c)
			versions = append(versions, version)
		}
		return versions[0], versions[len(versions)-1]
	}
}

// lifeOf are the verbs from the first activation of a Solution to its end; second may be first.
func lifeOf(solution, first, second, profile string) []step {
	yes := true
	choice := components.Choice{}
	if profile != "" {
		choice.Profiles = []string{profile}
	}
	parts := plan.Parts{Choice: choice}
	rendering := plan.Rendering{ClusterWide: &yes, AcceptHazards: nil, Parts: parts}
	activation := func(version string) verb {
		return func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
			return d.Activate(ctx, deployer.ActivateOptions{Options: o, Solution: solution, Version: version, ClusterWide: &yes})
		}
	}
	changing := func(to records.Direction, version string) verb {
		return func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
			return d.Change(ctx, deployer.ChangeOptions{Options: o, Environment: site, Solution: solution, Version: version, Direction: to, Rendering: rendering})
		}
	}
	steps := []step{
		{name: "activate", run: activation(first)},
		{name: "add", run: func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
			return d.Add(ctx, deployer.AddOptions{Options: o, Environment: site, Solution: solution, Version: first, Rendering: rendering})
		}},
		{name: "add again", run: func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
			return d.Add(ctx, deployer.AddOptions{Options: o, Environment: site, Solution: solution, Version: first, Rendering: rendering})
		}},
	}
	if second != first {
		steps = append(
			steps,
			step{name: "activate the next", run: activation(second)},
			step{name: "upgrade", run: changing(records.Up, second)},
			step{name: "downgrade", run: changing(records.Down, first)},
			step{name: "rollback", run: func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
				return d.Rollback(ctx, deployer.RollbackOptions{Options: o, Environment: site, Solution: solution})
			}},
		)
	}
	return append(
		steps,
		step{name: "repair", run: func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
			return d.Repair(ctx, deployer.RepairOptions{Options: o, Selection: survey.Selection{Environment: site, Solution: solution}})
		}},
		step{name: "remove", run: remove(solution)},
		step{name: "deactivate", run: deactivate(solution)},
		step{name: "env delete", run: deleteSite(plan.RefuseData)},
	)
}

// plansTwice plans a verb twice, and carries out the first plan.
func plansTwice(t *testing.T, b *deployertest.Bed, run verb) {
	t.Helper()
	var digest string
	for range 2 {
		planned, err := run(t.Context(), b.Deployer, plan.Options{DryRun: true, NoWait: true})
		if err != nil {
			t.Fatal(err)
		}
		if digest = cmp.Or(digest, planned.Digest); planned.Digest != digest {
			t.Fatalf("two plans have the digests %s and %s", digest, planned.Digest)
		}
	}
	if _, err := run(t.Context(), b.Deployer, plan.Options{Expect: digest, NoWait: true}); err != nil {
		t.Fatal(err)
	}
}
