package lint

import (
	"bytes"
	"path"

	"github.com/solutionctl/solutionctl/kube/manifest"
	"github.com/solutionctl/solutionctl/schema"
)

// fixScope adds corrections to the findings about a component that is deployed in environments: Namespaces and the
// namespace of its objects are removed, and CustomResourceDefinitions move to the directory of activation. Objects of
// several namespaces stay: without them, two objects could have one name.
func (t *subject) fixScope(c *schema.Component, found []*Found) {
	if c.Scope == schema.ScopeCluster || len(found) == 0 {
		return
	}
	spaces := map[string]bool{}
	for _, o := range t.objectsOf(c) {
		if o.Rendered() {
			return // of a chart
		}
		if o.Namespace != "" {
			spaces[o.Namespace] = true
		}
	}
	if len(spaces) > 1 {
		return
	}
	fixes := map[string][]Edit{}
	for _, f := range found {
		edits, known := fixes[f.Path]
		if !known {
			edits = t.withoutPlaces(f.Path)
			fixes[f.Path] = edits
		}
		f.Fix(edits...)
	}
}

// withoutPlaces are the edits that take namespaces and definitions out of a file; nil when there is nothing to change.
func (t *subject) withoutPlaces(file string) []Edit {
	data, err := t.Text(file)
	if err != nil {
		return nil
	}
	documents, err := manifest.Parse(file, data)
	if err != nil {
		return nil
	}
	var kept []manifest.Document
	var edits []Edit
	for _, d := range documents {
		name, _ := lookup(d.Value, "metadata", "name").(string)
		switch {
		case d.Value["kind"] == "Namespace" && d.Value["apiVersion"] == "v1":
			continue
		case d.Value["kind"] == "CustomResourceDefinition" && name != "" && path.Base(name) == name:
			to := path.Join("operator", "deploy", "crds", name+"_crd.yaml")
			if t.Has(to) {
				return nil
			}
			edits = append(edits, Edit{Path: to, Data: manifest.Join([]manifest.Document{d})})
			continue
		}
		if d.Text, err = manifest.WithoutField(d.Text, "metadata", "namespace"); err != nil {
			return nil
		}
		kept = append(kept, d)
	}
	if len(kept) == 0 {
		return append(edits, Edit{Path: file})
	}
	if fixed := manifest.Join(kept); !bytes.Equal(fixed, data) {
		edits = append(edits, Edit{Path: file, Data: fixed})
	}
	return edits
}
