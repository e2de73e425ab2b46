package records

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Where the catalogue lies, in namespace [cluster.SystemNamespace].
const (
	ImportsName  = "imports" // Secret
	importsKey   = "imports.json"
	RegistryName = "registry" // ConfigMap
	// MonitoringName is the ConfigMap with the labels that the site's Prometheus and Grafana select.
	MonitoringName = "monitoring"
	// LoaderName is the ConfigMap with the progress of the loader.
	LoaderName = "loader"
)

// Catalog lists the versions that were imported into a cluster. Only these can be activated and added.
type Catalog struct {
	imports map[string]schema.Import // by id
	// Damage is the error when the record of imports cannot be read; the catalogue is then empty.
	Damage error
}

// Unread returns the message that the record of imports cannot be read, with the remedy.
func (c *Catalog) Unread() string {
	return fmt.Sprintf("what was imported cannot be read, and nothing of it can be deployed: %v: %s", c.Damage, strings.Join(report.Hints(c.Damage), "; "))
}

// Imports returns the imported versions, ordered by name and version.
func (c *Catalog) Imports() []schema.Import {
	list := slices.Collect(maps.Values(c.imports))
	slices.SortFunc(list, func(a, b schema.Import) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), VersionOf(a).Compare(VersionOf(b)))
	})
	return list
}

// VersionOf parses the version of an import. It is valid, because import has checked it.
func VersionOf(i schema.Import) schema.Version {
	v, err := schema.ParseVersion(i.Version)
	if err != nil {
		return schema.Version{}
	}
	return v
}

// Of returns the imported versions of a Solution, lowest first.
func (c *Catalog) Of(solution string) []schema.Import {
	return slices.DeleteFunc(c.Imports(), func(i schema.Import) bool { return i.Name != solution })
}

// Get returns an imported version by its id.
func (c *Catalog) Get(id string) (schema.Import, bool) {
	i, ok := c.imports[id]
	return i, ok
}

// Put adds a version, or replaces it, as if it had been imported.
func (c *Catalog) Put(i schema.Import) {
	if c.imports == nil {
		c.imports = map[string]schema.Import{}
	}
	c.imports[i.ID()] = i
}

// Find returns one imported version. "latest" and "" mean the highest release; without a release it is the highest
// pre-release, and notice reports that.
func (c *Catalog) Find(solution, version string) (found schema.Import, notice string, err error) {
	list := c.Of(solution)
	if len(list) == 0 {
		e := report.Errorf(report.NotImported, "Solution %s was not imported", solution)
		if names := c.Names(); len(names) > 0 {
			return found, "", e.WithHint("imported are %s; '%s' imports an archive", strings.Join(names, ", "), report.Run("deploy import", "FILE"))
		}
		return found, "", e.WithHint("import its archive on the host that serves images: %s", report.Run("deploy import", "FILE"))
	}
	var versions []schema.Version
	var texts []string
	for _, i := range list {
		versions = append(versions, VersionOf(i))
		texts = append(texts, i.Version)
	}
	if version == "" || version == schema.ActiveLatest {
		latest, notice, _ := schema.Latest(versions, false)
		version = latest.String()
		return c.imports[solution+"-"+version], notice, nil
	}
	if i, ok := c.imports[solution+"-"+version]; ok {
		return i, "", nil
	}
	return found, "", report.Errorf(report.NotImported, "version %s of Solution %s was not imported", version, solution).
		WithHint("imported are %s; '%s' imports an archive", strings.Join(texts, ", "), report.Run("deploy import", "FILE"))
}

// Names returns the Solutions of which something was imported, sorted.
func (c *Catalog) Names() []string {
	names := map[string]bool{}
	for _, i := range c.imports {
		names[i.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// Catalog reads the imported versions from the cluster.
func (r *Records) Catalog(ctx context.Context) (*Catalog, error) {
	catalog, err := r.CatalogOrDamage(ctx)
	if err == nil {
		err = catalog.Damage
	}
	if err != nil {
		return nil, err
	}
	return catalog, nil
}

// CatalogOrDamage is like [Records.Catalog], but returns an empty catalogue with Damage set when the record is unreadable.
func (r *Records) CatalogOrDamage(ctx context.Context) (*Catalog, error) {
	imports, secret, err := r.readImports(ctx)
	switch {
	case err != nil && secret != nil:
		return &Catalog{Damage: err}, nil
	case err != nil:
		return nil, err
	}
	return &Catalog{imports: imports.Imports}, nil
}

// Imports lists the versions imported into the cluster, ordered by name and version.
func (r *Records) Imports(ctx context.Context) ([]schema.Import, error) {
	catalog, err := r.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	return catalog.Imports(), nil
}

// readImports returns the catalogue and the Secret it was read from, nil when there is none. The Secret is also returned when it
// cannot be read: [report.Corrupt], or [report.Refused] for one of a newer program.
func (r *Records) readImports(ctx context.Context) (*schema.Imports, *unstructured.Unstructured, error) {
	empty := &schema.Imports{Stamp: schema.NewStamp("imports", r.Version), Imports: map[string]schema.Import{}}
	secret, err := r.Cluster.Get(ctx, cluster.SecretKind, cluster.SystemNamespace, ImportsName)
	if err != nil || secret == nil {
		return empty, nil, err
	}
	imports, err := r.catalogs.parse(secret)
	if report.CodeOf(err) == report.Corrupt {
		err = report.As(report.Corrupt, err).
			WithHint("import every archive again, on the host that has the files: %s", report.Run("deploy import", "FILE..."))
	}
	return imports, secret, err
}

func parseImports(encoded string) (*schema.Imports, error) {
	where := "Secret " + cluster.SystemNamespace + "/" + ImportsName
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, report.Errorf(report.Corrupt, "%s: %w", where, err)
	}
	imports, err := schema.ParseStored[schema.Imports]("imports", where, data)
	if err != nil {
		return nil, err
	}
	for id, i := range imports.Imports {
		if id != i.ID() {
			return nil, report.Errorf(report.Corrupt, "%s: %s is listed as %s", where, i.ID(), id)
		}
		if _, err := schema.ParseVersion(i.Version); err != nil {
			return nil, report.Errorf(report.Corrupt, "%s: %s: %w", where, id, err)
		}
	}
	return imports, nil
}

// discardImports deletes a record that cannot be read, so that it can be written again. An update would not do: the Secret can have
// another type by now, or be immutable.
func (r *Records) discardImports(ctx context.Context) error {
	_, secret, err := r.readImports(ctx)
	if report.CodeOf(err) != report.Corrupt {
		return err
	}
	return r.Cluster.Delete(ctx, secret, cluster.DeleteOptions{})
}

// editImports changes the catalogue under the lock of the cluster.
func (r *Records) editImports(ctx context.Context, edit func(map[string]schema.Import)) error {
	imports, secret, err := r.readImports(ctx)
	if err != nil {
		return err
	}
	before := maps.Clone(imports.Imports)
	edit(imports.Imports)
	if secret != nil && maps.EqualFunc(before, imports.Imports, sameImport) {
		return nil
	}
	data, err := r.encodeImports(imports)
	if err != nil {
		return err
	}
	exists := secret != nil
	if !exists {
		secret = systemObject(cluster.SecretKind, ImportsName)
	}
	encoded := base64.StdEncoding.EncodeToString(data)
	if err := unstructured.SetNestedField(secret.Object, encoded, "data", importsKey); err != nil {
		return err
	}
	return r.write(ctx, secret, exists)
}

// encodeImports returns the catalogue as it is stored. It lists the images of each version, 110 bytes for each; without spaces 90.
func (r *Records) encodeImports(imports *schema.Imports) ([]byte, error) {
	imports.Stamp = schema.NewStamp("imports", r.Version)
	data, err := schema.MarshalStored(imports)
	if err == nil {
		data, err = compactDocument(data, cluster.MaxData)
	}
	if err == nil && len(data) > cluster.MaxData {
		err = report.Errorf(report.Refused, "Secret %s/%s has the images of each imported version. These would be %d versions of %d KiB, and it can have %d KiB",
			cluster.SystemNamespace, ImportsName, len(imports.Imports), len(data)>>10, cluster.MaxData>>10).
			WithHint("unimport versions that nothing uses: %s", report.Run("deploy unimport", "SOLUTION", "VERSION"))
	}
	return data, err
}

func sameImport(a, b schema.Import) bool {
	sameImages := maps.Equal(a.Images, b.Images)
	a.Images, b.Images = nil, nil
	return sameImages && slices.Equal(a.DependsOn, b.DependsOn) && a.Name == b.Name && a.Version == b.Version && a.Archive == b.Archive && a.Payload == b.Payload &&
		a.ImportedAt.Equal(b.ImportedAt) && a.ImportedBy == b.ImportedBy &&
		(a.Signers == nil) == (b.Signers == nil) && slices.Equal(a.Signers, b.Signers)
}

// write stores an object that was read, or a new one.
func (r *Records) write(ctx context.Context, object *unstructured.Unstructured, exists bool) error {
	var err error
	if exists {
		_, err = r.Cluster.Update(ctx, object, cluster.WriteOptions{})
	} else {
		_, err = r.Cluster.Create(ctx, object, cluster.WriteOptions{})
	}
	if errors.Is(err, cluster.ErrChanged) || errors.Is(err, cluster.ErrExists) {
		return report.Errorf(report.Conflict, "%s %s/%s was changed by another process in the meantime", object.GetKind(), object.GetNamespace(), object.GetName()).
			WithHint("run the command again")
	}
	return err
}

// systemObject is an object of our own in our own namespace.
func systemObject(kind kube.GroupVersionKind, name string) *unstructured.Unstructured {
	object := cluster.NewObject(kind, cluster.SystemNamespace, name)
	object.SetLabels(map[string]string{"app.kubernetes.io/managed-by": cluster.FieldManager})
	return object
}

// Payload reads the payload of an imported version.
func (r *Records) Payload(ctx context.Context, i schema.Import) (*render.Payload, error) {
	p := r.payloads.get(i.Payload)
	if p == nil {
		var err error
		if p, err = r.loadPayload(ctx, i); err != nil {
			return nil, err
		}
		r.payloads.put(i.Payload, p)
	}
	if p.Solution.ID() != i.ID() {
		return nil, report.Errorf(report.Corrupt, "payload of %s is that of %s", i.ID(), p.Solution.ID())
	}
	return p, nil
}

func (r *Records) loadPayload(ctx context.Context, i schema.Import) (*render.Payload, error) {
	data, err := r.Engine.LoadContent(ctx, ImportsName, i.Payload)
	if code := report.CodeOf(err); code == report.NotFound || code == report.Corrupt {
		return nil, report.Errorf(report.Corrupt, "payload of %s: %w", i.ID(), err).
			WithHint("import it again, on the host that has the file: %s", report.Run("deploy import", i.Archive.Path))
	}
	if err != nil {
		return nil, fmt.Errorf("payload of %s: %w", i.ID(), err)
	}
	p, err := render.DecodePayload(data)
	if err != nil {
		return nil, fmt.Errorf("payload of %s: %w", i.ID(), err)
	}
	return p, nil
}

// Payloads reads all imported versions of a Solution.
func (r *Records) Payloads(ctx context.Context, c *Catalog, solution string) ([]*render.Payload, error) {
	imports := c.Of(solution)
	all := make([]*render.Payload, len(imports))
	err := cluster.Each(len(imports), func(i int) (err error) {
		all[i], err = r.Payload(ctx, imports[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Direction of a change of versions: up or down.
type Direction string

// The directions; they are also the verbs.
const (
	Up   Direction = schema.VerbUpgrade
	Down Direction = schema.VerbDowngrade
)

// DirectionTo compares two versions. A change from an invalid version is an upgrade.
func DirectionTo(from string, to schema.Import) Direction {
	if v, err := schema.ParseVersion(from); err == nil && VersionOf(to).Compare(v) < 0 {
		return Down
	}
	return Up
}

// ChangeTo is the remedy that an environment gets another version of a Solution than it has.
func ChangeTo(environment, from string, to schema.Import) report.Remedy {
	return report.Run("deploy "+string(DirectionTo(from, to)), environment, to.Name, to.Version)
}
