package records

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Where the catalogue lies, in namespace [cluster.SystemNamespace].
const (
	ImportsName  = "imports" // Secret
	importsKey   = "imports.json"
	RegistryName = "registry" // ConfigMap
	registryKey  = "registry.json"
)

// Catalog lists the versions that were imported into a cluster. Only these can be activated and added.
type Catalog struct {
	imports map[string]schema.Import // by id
	// Damage is why the record of what was imported cannot be read. Then nothing is known.
	Damage error
}

// Unread says that the record of what was imported cannot be read, and what helps.
func (c *Catalog) Unread() string {
	return fmt.Sprintf("what was imported cannot be read, and nothing of it can be deployed: %v: %s", c.Damage, strings.Join(report.Hints(c.Damage), "; "))
}

// Imports returns what was imported, ordered by name and version.
func (c *Catalog) Imports() []schema.Import {
	list := slices.Collect(maps.Values(c.imports))
	slices.SortFunc(list, func(a, b schema.Import) int {
		if byName := strings.Compare(a.Name, b.Name); byName != 0 {
			return byName
		}
		return VersionOf(a).Compare(VersionOf(b))
	})
	return list
}

// VersionOf is the version of an import; the catalogue holds no other than what was checked at the import.
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

// Find returns one imported version. "latest" and "" stand for the highest release; the notice says when there is none.
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

// Catalog reads what was imported into the cluster.
func (r *Records) Catalog(ctx context.Context) (*Catalog, error) {
	catalog, err := r.LookUp(ctx)
	if err == nil {
		err = catalog.Damage
	}
	if err != nil {
		return nil, err
	}
	return catalog, nil
}

// LookUp is [Records.Catalog] for those who can do without: a record that cannot be read is an empty catalogue, with its Damage.
func (r *Records) LookUp(ctx context.Context) (*Catalog, error) {
	imports, secret, err := r.readImports(ctx)
	switch {
	case err != nil && secret != nil:
		return &Catalog{Damage: err}, nil
	case err != nil:
		return nil, err
	}
	return &Catalog{imports: imports.Imports}, nil
}

// Imports lists what was imported into the cluster, ordered by name and version.
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
	empty := &schema.Imports{Stamp: schema.NewStamp(r.Version), Imports: map[string]schema.Import{}}
	secret, err := r.Cluster.Get(ctx, cluster.SecretKind, cluster.SystemNamespace, ImportsName)
	if err != nil || secret == nil {
		return empty, nil, err
	}
	imports, err := parseImports(secret)
	if report.CodeOf(err) == report.Corrupt {
		err = report.Errorf(report.Corrupt, "%w", err).
			WithHint("import every archive again, on the host that has the files: %s", report.Run("deploy import", "FILE..."))
	}
	return imports, secret, err
}

func parseImports(secret *unstructured.Unstructured) (*schema.Imports, error) {
	where := "Secret " + cluster.SystemNamespace + "/" + ImportsName
	encoded, _, _ := unstructured.NestedString(secret.Object, "data", importsKey)
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

// discardImports deletes a record that cannot be read, so that it can be written anew: whatever it is by now, it may be of another
// type, or immutable.
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
	imports.Stamp = schema.NewStamp(r.Version)
	data, err := schema.MarshalStored(imports)
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

func sameImport(a, b schema.Import) bool {
	sameImages := maps.Equal(a.Images, b.Images)
	a.Images, b.Images = nil, nil
	return sameImages && slices.Equal(a.DependsOn, b.DependsOn) && a.Name == b.Name && a.Version == b.Version && a.Archive == b.Archive && a.Payload == b.Payload &&
		a.ImportedAt.Equal(b.ImportedAt) && a.ImportedBy == b.ImportedBy
}

// write stores an object of ours that was read as it is, or that is new.
func (r *Records) write(ctx context.Context, object *unstructured.Unstructured, exists bool) error {
	var err error
	if exists {
		_, err = r.Cluster.Update(ctx, object, cluster.WriteOptions{})
	} else {
		_, err = r.Cluster.Create(ctx, object, cluster.WriteOptions{})
	}
	if errors.Is(err, cluster.ErrChanged) || errors.Is(err, cluster.ErrExists) {
		return report.Errorf(report.Conflict, "%s %s/%s was changed by somebody else meanwhile", object.GetKind(), object.GetNamespace(), object.GetName()).
			WithHint("run the command again")
	}
	return err
}

// systemObject is an object of our own in our own namespace.
func systemObject(kind kube.GroupVersionKind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(cluster.SystemNamespace)
	object.SetName(name)
	object.SetLabels(map[string]string{"app.kubernetes.io/managed-by": cluster.FieldManager})
	return object
}

// ImportRecord is the message of an import to the cluster.
type ImportRecord struct {
	Payload *render.Payload
	// Path is where the archive is on this host, from now on.
	Path   string
	SHA256 string
	Size   int64
	// Registry is who serves the images, with the endpoints that are to be added; nil leaves it as it was recorded before.
	Registry *schema.ClusterRegistry
}

// Import writes down what was imported: the payload, the entry of the catalogue, and what MetalK8s knows of it. A version that was
// checked with [Records.CheckImport] is a condition. A catalogue that could not be read begins anew.
func (r *Records) Import(ctx context.Context, catalog *Catalog, record ImportRecord) error {
	if record.Registry != nil {
		_, err := r.EditRegistry(ctx, func(known *schema.ClusterRegistry) (*schema.ClusterRegistry, error) {
			return WithEndpoints(known, *record.Registry, false)
		})
		if err != nil {
			return err
		}
	}
	encoded, err := record.Payload.Encode()
	if err != nil {
		return err
	}
	digest, err := r.Engine.StoreContent(ctx, ImportsName, encoded)
	if err != nil {
		return err
	}
	entry := r.entry(ctx, record, digest)
	if previous, ok := catalog.imports[entry.ID()]; ok && previous.Archive == entry.Archive && previous.Payload == digest {
		entry.ImportedAt, entry.ImportedBy = previous.ImportedAt, previous.ImportedBy
	}
	if catalog.Damage != nil {
		if err := r.discardImports(ctx); err != nil {
			return err
		}
	}
	if err := r.editImports(ctx, func(imports map[string]schema.Import) { imports[entry.ID()] = entry }); err != nil {
		return err
	}
	if err := r.publish(ctx, record.Payload, record.Path); err != nil {
		return err
	}
	return r.collect(ctx)
}

// entry is what the catalogue says of an import.
func (r *Records) entry(ctx context.Context, record ImportRecord, digest string) schema.Import {
	entry := schema.Import{
		Name: record.Payload.Solution.Metadata.Name, Version: record.Payload.Solution.Spec.Version, Payload: digest,
		Archive:   schema.ImportedArchive{Path: record.Path, SHA256: record.SHA256, Size: record.Size},
		DependsOn: record.Payload.Solution.Spec.DependsOn,
		Images:    map[string]string{}, ImportedAt: r.Now().UTC().Truncate(time.Second), ImportedBy: r.Cluster.User(ctx),
	}
	for _, image := range record.Payload.Images {
		entry.Images[image.Ref.String()] = image.Digest
	}
	return entry
}

// Foresee returns the catalogue as it would be after an import, for plans of what may follow. Nothing is written.
func (r *Records) Foresee(ctx context.Context, catalog *Catalog, record ImportRecord) (*Catalog, error) {
	encoded, err := record.Payload.Encode()
	if err != nil {
		return nil, err
	}
	digest := engine.DigestOf(encoded)
	if _, err = r.payloads.load(digest, func() ([]byte, error) { return encoded, nil }); err != nil {
		return nil, err
	}
	entry := r.entry(ctx, record, digest)
	imports := maps.Clone(catalog.imports)
	if imports == nil {
		imports = map[string]schema.Import{}
	}
	imports[entry.ID()] = entry
	return &Catalog{imports: imports}, nil
}

// CheckImport refuses what would change the content under something that is deployed, and what could not be told apart.
func (r *Records) CheckImport(ctx context.Context, catalog *Catalog, record ImportRecord) (notices []string, err error) {
	id := record.Payload.Solution.ID()
	if catalog.Damage != nil {
		if report.CodeOf(catalog.Damage) != report.Corrupt {
			return nil, catalog.Damage // it is of a newer version of this program
		}
		notices = append(notices, fmt.Sprintf("the record of what was imported could not be read (%v) and begins anew with %s: import every other archive again",
			catalog.Damage, id))
	}
	if previous, ok := catalog.imports[id]; ok && previous.Archive.SHA256 != record.SHA256 {
		if schema.Replaceable(previous.Version) {
			notices, err = r.outdated(ctx, previous)
		} else {
			err = r.checkReleased(ctx, previous)
		}
		if err != nil {
			return nil, err
		}
	}
	return notices, catalog.checkNew(record.Payload.Solution)
}

func (r *Records) checkReleased(ctx context.Context, previous schema.Import) error {
	users, err := r.users(ctx, previous.Name, previous.Version)
	if err != nil || len(users) == 0 {
		return err
	}
	return report.Errorf(report.Replaced, "another archive of %s was imported before and is in use: %s", previous.ID(), strings.Join(users, ", ")).
		WithHint("give the new content a version of its own")
}

// outdated tells what still comes from an archive that is being replaced, and how each gets the new one. What runs goes on:
// it is rendered in our records. But its images are named by digests that no archive has any more, so that its pods start
// only where a node still has them.
func (r *Records) outdated(ctx context.Context, previous schema.Import) (notices []string, err error) {
	active, err := r.Active(ctx, previous.Name)
	if err != nil {
		return nil, err
	}
	if active == previous.Version {
		notices = append(notices, fmt.Sprintf("what %s has in the whole cluster is that of the archive imported before; bring the new one: %s",
			previous.ID(), report.Run("deploy activate", previous.Name, previous.Version)))
	}
	deployed, err := r.Deployments(ctx, previous.Name)
	if err != nil {
		return nil, err
	}
	for _, there := range deployed {
		if there.Version != previous.Version {
			continue
		}
		notice := fmt.Sprintf("%s runs %s as imported before, whose images new nodes may not be able to pull any more", there, previous.ID())
		if there.Environment != "" {
			notice += "; bring the new one: " + report.Run("deploy add", there.Environment, previous.Name, previous.Version).String()
		}
		notices = append(notices, notice)
	}
	return notices, nil
}

// collect throws payloads away that no import refers to any more.
func (r *Records) collect(ctx context.Context) error {
	imports, _, err := r.readImports(ctx)
	if err != nil {
		return err
	}
	var keep []string
	for _, i := range imports.Imports {
		keep = append(keep, i.Payload)
	}
	return r.Engine.CollectContent(ctx, ImportsName, keep...)
}

// checkNew refuses a version that cannot be told apart from one that is there.
func (c *Catalog) checkNew(s *schema.Solution) error {
	for _, other := range c.Of(s.Metadata.Name) {
		if other.Version != s.Spec.Version && schema.SamePrecedence(other.Version, s.Spec.Version) {
			return report.Errorf(report.Refused, "version %s of Solution %s has the same precedence as %s, which is imported",
				s.Spec.Version, s.Metadata.Name, other.Version).WithHint("unimport %s first", other.ID())
		}
	}
	return nil
}

// Unimport forgets a version, unless something uses it. One that is not known is no error.
func (r *Records) Unimport(ctx context.Context, id string) error {
	catalog, err := r.Catalog(ctx)
	if err != nil {
		return err
	}
	entry, ok := catalog.imports[id]
	if !ok {
		return r.finishUnimport(ctx, id)
	}
	if err := r.CheckUnused(ctx, entry.Name, entry.Version); err != nil {
		return err
	}
	if err := r.editImports(ctx, func(imports map[string]schema.Import) { delete(imports, id) }); err != nil {
		return err
	}
	// Somebody who added it at this moment either does not find it any more or is seen now.
	if err := r.CheckUnused(ctx, entry.Name, entry.Version); err != nil {
		return errors.Join(err, r.editImports(ctx, func(imports map[string]schema.Import) { imports[id] = entry }))
	}
	if err := r.Documents.RemoveVersion(ctx, entry.Name, entry.Version); err != nil {
		return err
	}
	return r.collect(ctx)
}

// finishUnimport removes what an unimport has left that was interrupted, and what MetalK8s has recorded itself.
func (r *Records) finishUnimport(ctx context.Context, id string) error {
	solutions, err := r.Documents.Solutions(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(solutions.Versions)) {
		for _, listed := range solutions.Versions[name] {
			if name+"-"+listed.Version != id {
				continue
			}
			if err := r.CheckUnused(ctx, name, listed.Version); err != nil {
				return err
			}
			if err := r.Documents.RemoveVersion(ctx, name, listed.Version); err != nil {
				return err
			}
		}
	}
	return r.collect(ctx)
}

// CheckUnused refuses, in-use, while a version is active or deployed in an environment, or while something runs its images.
func (r *Records) CheckUnused(ctx context.Context, solution, version string) error {
	users, err := r.users(ctx, solution, version)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		return report.Errorf(report.InUse, "version %s of Solution %s is in use: %s", version, solution, strings.Join(users, ", ")).
			WithHint("remove it from the environments ('%s') and deactivate it first", report.Run("deploy remove", "ENVIRONMENT", solution))
	}
	running, err := r.pullers(ctx, solution+"-"+version)
	if err != nil || len(running) == 0 {
		return err
	}
	return report.Errorf(report.InUse, "images of version %s of Solution %s run: %s", version, solution, strings.Join(running, ", ")).
		WithHint("let them run another version first; their pods could not start again")
}

// Payload reads what was in the archive of an imported version.
func (r *Records) Payload(ctx context.Context, i schema.Import) (*render.Payload, error) {
	data, err := r.payloads.load(i.Payload, func() ([]byte, error) { return r.Engine.LoadContent(ctx, ImportsName, i.Payload) })
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
	if p.Solution.ID() != i.ID() {
		return nil, report.Errorf(report.Corrupt, "payload of %s is that of %s", i.ID(), p.Solution.ID())
	}
	return p, nil
}

// Payloads reads all imported versions of a Solution.
func (r *Records) Payloads(ctx context.Context, c *Catalog, solution string) ([]*render.Payload, error) {
	var all []*render.Payload
	for _, i := range c.Of(solution) {
		p, err := r.Payload(ctx, i)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// Direction of a change of versions: up or down.
type Direction string

// The directions; they are also the verbs.
const (
	Up   Direction = "upgrade"
	Down Direction = "downgrade"
)

// DirectionTo is where going from a version to another leads; from one that is no version everything is an upgrade.
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
