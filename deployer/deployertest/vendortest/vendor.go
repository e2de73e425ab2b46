// Package vendortest has a vendor for tests, which makes archives of a Solution and signs them. It is apart from deployertest, whose users
// need no signatures, because what checks signatures is a fifth of a test program.
package vendortest

import (
	"bytes"
	"crypto/rand"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
	"github.com/solutionctl/solutionctl/sign/key"
	"github.com/solutionctl/solutionctl/sign/key/keytest"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// Vendor makes archives of Solution "demo", and signs them.
type Vendor struct {
	signer *key.Signer
	clocks bool
	api    bool
}

// AddAPI puts an aggregated API, and a Service without pods for it, into the archives that are made from now on.
func (v *Vendor) AddAPI() { v.api = true }

// AddClocks puts a definition of Clocks and a component with a ConfigMap into the archives that are made from now on.
func (v *Vendor) AddClocks() { v.clocks = true }

type archived struct {
	name    string
	content []byte
}

func (v *Vendor) files(version string, filling []byte) []archived {
	manifest := "apiVersion: solutions.metalk8s.scality.com/v1alpha1\nkind: Solution\nmetadata: {name: demo}\nspec:\n  version: " + version + "\n"
	list := []archived{
		{"docs/filling", filling},
		{"index.json", []byte(`{"schemaVersion":2,"manifests":[]}`)},
		{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)},
	}
	if v.clocks {
		manifest += "  components: [{name: settings, manifests: components/settings/}]\n"
		list = append(list,
			archived{"components/settings/settings.yaml", []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}\n")},
			archived{"operator/deploy/crds/clocks_crd.yaml", []byte(deployertest.Content{}.CRD("demo"))})
	}
	if v.api {
		manifest += "  customApiGroups: [demo.example.com]\n"
		list = append(list, archived{"operator/cluster/api.yaml", []byte(`apiVersion: v1
kind: Service
metadata: {name: api}
spec: {selector: {app: api}, ports: [{port: 443}]}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.demo.example.com}
spec: {group: demo.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100, service: {name: api, namespace: any}}
`)})
	}
	return append(list, archived{"manifest.yaml", []byte(manifest)})
}

// New returns a vendor with a new key.
func New(tb testing.TB) *Vendor {
	tb.Helper()
	return &Vendor{signer: keytest.New(tb)}
}

// Trusted returns a trust store with the vendor only.
func (v *Vendor) Trusted() (*trust.Store, error) {
	return trust.Keys(map[string]*key.Public{"vendor": v.signer.Public()}), nil
}

// Public is the vendor's key.
func (v *Vendor) Public() *key.Public { return v.signer.Public() }

// Archive writes a version that has some random bytes more, and its signature beside it. It returns the file.
func (v *Vendor) Archive(tb testing.TB, version string, more int) string {
	tb.Helper()
	filling := make([]byte, more)
	_, _ = rand.Read(filling)
	return v.write(tb, bundle.Solution{Name: "demo", Version: version}, v.files(version, filling))
}

// ArchiveOf writes a version of a Solution, with its images, and its signature beside it. It returns the file.
func (v *Vendor) ArchiveOf(tb testing.TB, solution, version string, c deployertest.Content) string {
	tb.Helper()
	var list []archived
	files := c.FS(solution, version)
	images, err := oci.Open(files)
	if err != nil {
		tb.Fatal(err)
	}
	config, err := oci.RegistryConfig(images.Images(), oci.Legacy)
	if err != nil {
		tb.Fatal(err)
	}
	files["registry-config.inc.j2"] = &fstest.MapFile{Data: config}
	for name, file := range files {
		list = append(list, archived{name, file.Data})
	}
	return v.write(tb, bundle.Solution{Name: solution, Version: version}, list)
}

// write writes an archive and its signature.
func (v *Vendor) write(tb testing.TB, of bundle.Solution, files []archived) string {
	tb.Helper()
	var list []iso.File
	for _, f := range files {
		list = append(list, iso.File{Path: f.name, Size: int64(len(f.content)), Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(f.content)), nil
		}})
	}
	image, err := iso.Layout(list, iso.Options{VolumeID: of.Name, ModTime: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		tb.Fatal(err)
	}
	var data bytes.Buffer
	if _, err = image.WriteTo(&data); err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), of.Name+"-"+of.Version+".iso")
	if err = os.WriteFile(path, data.Bytes(), 0o600); err != nil {
		tb.Fatal(err)
	}
	v.sign(tb, path, of)
	return path
}

// Sign signs what is in a file as a version of "demo".
func (v *Vendor) Sign(tb testing.TB, path, version string) {
	tb.Helper()
	v.sign(tb, path, bundle.Solution{Name: "demo", Version: version})
}

func (v *Vendor) sign(tb testing.TB, path string, of bundle.Solution) {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	sums, err := chunk.Sum(tb.Context(), bytes.NewReader(data), int64(len(data)), report.Discard)
	if err != nil {
		tb.Fatal(err)
	}
	st, err := sign.NewStatement(sums, sign.Claims{
		Name: filepath.Base(path), Solution: of, CreatedAt: time.Now().Add(-time.Hour),
	})
	if err != nil {
		tb.Fatal(err)
	}
	signed, err := bundle.SignStatement(tb.Context(), v.signer, st)
	if err == nil {
		err = sign.WriteBundle(sign.BundleName(path, ""), signed)
	}
	if err != nil {
		tb.Fatal(err)
	}
}
