package metalk8s

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Solutions holds the content of ConfigMap metalk8s-solutions.
type Solutions struct {
	// Versions are the imported versions of each Solution.
	Versions map[string][]schema.ImportedSolution
	// Problems are the keys whose values cannot be parsed, sorted.
	Problems []Problem
}

// Find returns an imported version of a Solution.
func (s *Solutions) Find(solution, version string) (schema.ImportedSolution, bool) {
	i := indexOf(s.Versions[solution], version)
	if i < 0 {
		return schema.ImportedSolution{}, false
	}
	return s.Versions[solution][i], true
}

// Active returns the active version of a Solution, "" when it has none. Where several say that they are, it is the first
// one, as it is for MetalK8s.
func (s *Solutions) Active(solution string) string {
	for _, entry := range s.Versions[solution] {
		if entry.Active {
			return entry.Version
		}
	}
	return ""
}

func indexOf(list []schema.ImportedSolution, version string) int {
	return slices.IndexFunc(list, func(entry schema.ImportedSolution) bool { return entry.Version == version })
}

// solutionsWhere is the name of the ConfigMap in messages.
const solutionsWhere = "ConfigMap " + SolutionsNamespace + "/" + SolutionsConfigMap

// Solutions reads the imported versions in the record of MetalK8s. Without the ConfigMap there are none.
func (d *Documents) Solutions(ctx context.Context) (*Solutions, error) {
	object, err := d.Cluster.Get(ctx, cluster.ConfigMapKind, SolutionsNamespace, SolutionsConfigMap)
	if err != nil {
		return nil, err
	}
	return parseSolutions(dataOf(object)), nil
}

func parseSolutions(data map[string]string) *Solutions {
	s := &Solutions{Versions: map[string][]schema.ImportedSolution{}}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		list, err := schema.ParseImportedSolutions(data[name])
		if err != nil {
			s.Problems = append(s.Problems, Problem{Where: solutionsWhere + ", key " + name, Err: err})
			continue
		}
		s.Versions[name] = list
	}
	return s
}

// PutVersion records an imported version of a Solution. Its active flag stays as it was, and so do unknown fields.
func (d *Documents) PutVersion(ctx context.Context, solution string, entry schema.ImportedSolution) error {
	if err := d.ensureNamespace(ctx); err != nil {
		return err
	}
	return d.editData(ctx, SolutionsNamespace, SolutionsConfigMap, nil, putVersion(solution, entry))
}

// CheckVersion returns the error that [Documents.PutVersion] would end with, and writes nothing.
func (d *Documents) CheckVersion(ctx context.Context, solution string, entry schema.ImportedSolution) error {
	object, err := d.Cluster.Get(ctx, cluster.ConfigMapKind, SolutionsNamespace, SolutionsConfigMap)
	if err != nil {
		return err
	}
	data := map[string]string{}
	maps.Copy(data, dataOf(object))
	return putVersion(solution, entry)(data)
}

func putVersion(solution string, entry schema.ImportedSolution) func(data map[string]string) error {
	put := editVersion(solution, entry)
	return func(data map[string]string) error {
		before := sizeOf(data)
		if err := put(data); err != nil {
			return err
		}
		if size := sizeOf(data); size > max(cluster.MaxData, before) {
			return full(data, solution, entry)
		}
		return nil
	}
}

// full is the error of the ConfigMap when it has no room for the manifest of a version.
func full(data map[string]string, solution string, entry schema.ImportedSolution) error {
	if len(entry.Manifest) > cluster.MaxData {
		return report.Errorf(report.Refused, "the manifest of %s has %d KiB, and %s, which has the manifest of each imported version, can have %d KiB",
			entry.ID, len(entry.Manifest)>>10, solutionsWhere, cluster.MaxData>>10).
			WithHint("its vendor can distribute the components over several Solutions")
	}
	var largest schema.ImportedSolution
	var of string
	versions := 0
	solutions := parseSolutions(data).Versions
	for _, name := range slices.Sorted(maps.Keys(solutions)) {
		for _, one := range solutions[name] {
			versions++
			if !one.Active && (name != solution || one.Version != entry.Version) && len(one.Manifest) > len(largest.Manifest) {
				largest, of = one, name
			}
		}
	}
	err := report.Errorf(report.Refused, "%s has the manifest of each imported version. With %s these would be %d versions of %d KiB, and it can have %d KiB",
		solutionsWhere, entry.ID, versions, sizeOf(data)>>10, cluster.MaxData>>10)
	if of == "" {
		return err.WithHint("unimport versions that nothing uses: %s", report.Run("deploy unimport", "SOLUTION", "VERSION"))
	}
	return err.WithHint("unimport versions that nothing uses; the largest that is not active has %d KiB: %s", len(largest.Manifest)>>10,
		report.Run("deploy unimport", of, largest.Version))
}

func editVersion(solution string, entry schema.ImportedSolution) func(data map[string]string) error {
	return editSolution(solution, func(list []schema.ImportedSolution) ([]schema.ImportedSolution, error) {
		if i := indexOf(list, entry.Version); i >= 0 {
			active := list[i].Active
			list[i] = list[i].ReplacedBy(entry)
			list[i].Active = active
			return list, nil
		}
		entry.Active = false
		return append(list, entry), nil
	})
}

// RemoveVersion forgets an imported version of a Solution, and the Solution with its last version. A version that is not
// there is no error.
func (d *Documents) RemoveVersion(ctx context.Context, solution, version string) error {
	return d.editData(ctx, SolutionsNamespace, SolutionsConfigMap, nil, removeVersion(solution, version))
}

func removeVersion(solution, version string) func(data map[string]string) error {
	return editSolution(solution, func(list []schema.ImportedSolution) ([]schema.ImportedSolution, error) {
		return slices.DeleteFunc(list, func(entry schema.ImportedSolution) bool { return entry.Version == version }), nil
	})
}

// SetActive makes an imported version the only active one of a Solution; with version "" none is. The error has the code
// NotImported when there is no such version.
func (d *Documents) SetActive(ctx context.Context, solution, version string) error {
	return d.editData(ctx, SolutionsNamespace, SolutionsConfigMap, nil, setActive(solution, version))
}

func setActive(solution, version string) func(data map[string]string) error {
	return editSolution(solution, func(list []schema.ImportedSolution) ([]schema.ImportedSolution, error) {
		if version != "" && indexOf(list, version) < 0 {
			return nil, report.Errorf(report.NotImported, "%s does not have version %s of Solution %s", solutionsWhere, version, solution).
				WithHint("import its archive: %s", report.Run("deploy import", "FILE"))
		}
		for i := range list {
			list[i].Active = list[i].Version == version
		}
		return list, nil
	})
}

// editSolution is an edit of the list of one Solution; an empty list removes its key. A value that cannot be read is refused:
// it would be lost.
func editSolution(solution string, edit func([]schema.ImportedSolution) ([]schema.ImportedSolution, error)) func(data map[string]string) error {
	return func(data map[string]string) error {
		var list []schema.ImportedSolution
		if value, ok := data[solution]; ok {
			var err error
			if list, err = schema.ParseImportedSolutions(value); err != nil {
				return report.Errorf(report.Invalid, "%s, key %s: %w", solutionsWhere, solution, err).
					WithHint("it was written by another program; correct or remove the key: kubectl edit configmap -n %s %s",
						SolutionsNamespace, SolutionsConfigMap)
			}
		}
		before, err := schema.MarshalImportedSolutions(list)
		if err != nil {
			return err
		}
		if list, err = edit(list); err != nil {
			return err
		}
		value, err := schema.MarshalImportedSolutions(list)
		switch {
		case err != nil:
			return err
		case len(list) == 0:
			delete(data, solution)
		case value != before || data[solution] == "":
			data[solution] = value
		}
		return nil
	}
}

// ensureNamespace creates the namespace of the ConfigMap, as MetalK8s does. One that is there is left as it is.
func (d *Documents) ensureNamespace(ctx context.Context) error {
	namespace, err := d.Cluster.Get(ctx, cluster.NamespaceKind, "", SolutionsNamespace)
	if err != nil {
		return err
	}
	if namespace != nil {
		if namespace.GetDeletionTimestamp() != nil {
			return d.Terminating(ctx, SolutionsNamespace)
		}
		return nil
	}
	namespace = cluster.NewObject(cluster.NamespaceKind, "", SolutionsNamespace)
	namespace.SetLabels(map[string]string{
		"app.kubernetes.io/managed-by": "metalk8s",
		"app.kubernetes.io/part-of":    "metalk8s",
		"heritage":                     "metalk8s",
	})
	_, err = d.Cluster.Create(ctx, namespace, cluster.WriteOptions{})
	if errors.Is(err, cluster.ErrExists) {
		return nil
	}
	return err
}
