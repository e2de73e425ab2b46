package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// RoleFile holds the roles of the operator; an archive may have none.
const RoleFile = "operator/deploy/role.yaml"

// CRDDescription is one CustomResourceDefinition of an archive.
type CRDDescription struct {
	Name     string       `json:"name"`
	Kind     string       `json:"kind"`
	Scope    string       `json:"scope"`
	Versions []CRDVersion `json:"versions"`
	File     string       `json:"file"`
}

// CRDVersion is one version of a CustomResourceDefinition.
type CRDVersion struct {
	Name    string `json:"name"`
	Served  bool   `json:"served"`
	Storage bool   `json:"storage"`

	schema string // canonical JSON, to be compared
}

func (v CRDVersion) String() string {
	var marks []string
	if v.Storage {
		marks = append(marks, "storage")
	}
	if !v.Served {
		marks = append(marks, "not served")
	}
	if len(marks) == 0 {
		return v.Name
	}
	return v.Name + " (" + strings.Join(marks, ", ") + ")"
}

// RoleDescription is one Role or ClusterRole of an archive.
type RoleDescription struct {
	// Operator is the directory of a further operator whose role this is; "" for the Solution's own.
	Operator string `json:"operator,omitempty"`

	Kind  string       `json:"kind"`
	Name  string       `json:"name"`
	Rules []PolicyRule `json:"rules"`
}

// id identifies a role in an archive.
func (r RoleDescription) id() string {
	return strings.TrimPrefix(r.Operator+"/"+r.Kind+"/"+r.Name, "/")
}

// PolicyRule is a rule of a role, in the shape of Kubernetes' rbac.authorization.k8s.io/v1.
type PolicyRule struct {
	APIGroups       []string `json:"apiGroups,omitempty"`
	Resources       []string `json:"resources,omitempty"`
	ResourceNames   []string `json:"resourceNames,omitempty"`
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
	Verbs           []string `json:"verbs"`
}

func (r PolicyRule) String() string {
	what := r.NonResourceURLs
	for _, resource := range r.Resources {
		for _, group := range r.APIGroups {
			name := resource
			if group != "" {
				name += "." + group
			}
			what = append(what, name)
		}
	}
	text := strings.Join(r.Verbs, ",") + " " + strings.Join(what, ",")
	if len(r.ResourceNames) > 0 {
		text += " named " + strings.Join(r.ResourceNames, ",")
	}
	return text
}

// crdObject is the part of a CustomResourceDefinition that a description needs.
type crdObject struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Scope string `json:"scope"`
		Names struct {
			Kind string `json:"kind"`
		} `json:"names"`
		Versions []struct {
			Name    string `json:"name"`
			Served  bool   `json:"served"`
			Storage bool   `json:"storage"`
			Schema  any    `json:"schema"`
		} `json:"versions"`
		Version string `json:"version"` // of apiextensions.k8s.io/v1beta1, instead of a list
	} `json:"spec"`
}

// crds describes the CustomResourceDefinitions, sorted by name.
func (a *Archive) crds() ([]CRDDescription, error) {
	names, err := a.crdFiles()
	if err != nil {
		return nil, err
	}
	crds := []CRDDescription{}
	total := 0
	for _, name := range names {
		documents, err := a.documents(name, &total)
		if err != nil {
			return nil, err
		}
		for _, document := range documents {
			var object crdObject
			if err := decode(document, &object); err != nil {
				return nil, err
			}
			crds = append(crds, describeCRD(object, name))
		}
	}
	slices.SortFunc(crds, func(a, b CRDDescription) int { return strings.Compare(a.Name, b.Name) })
	return crds, nil
}

func describeCRD(object crdObject, file string) CRDDescription {
	d := CRDDescription{
		Name: object.Metadata.Name, Kind: object.Spec.Names.Kind, Scope: object.Spec.Scope, Versions: []CRDVersion{}, File: file,
	}
	for _, v := range object.Spec.Versions {
		text, err := json.Marshal(v.Schema)
		if err != nil {
			panic(fmt.Sprintf("archive: decoded YAML does not encode as JSON: %v", err))
		}
		d.Versions = append(d.Versions, CRDVersion{v.Name, v.Served, v.Storage, string(text)})
	}
	if len(d.Versions) == 0 && object.Spec.Version != "" {
		d.Versions = append(d.Versions, CRDVersion{Name: object.Spec.Version, Served: true, Storage: true})
	}
	return d
}

// roles describes the roles of all operators, sorted by operator, kind and name.
func (a *Archive) roles() ([]RoleDescription, error) {
	files, err := fs.Glob(a, "operators/*/role.yaml")
	if err != nil {
		return nil, err
	}
	roles := []RoleDescription{}
	total := 0
	for _, file := range append([]string{RoleFile}, files...) {
		found, err := a.rolesIn(file, &total)
		if err != nil {
			return nil, err
		}
		roles = append(roles, found...)
	}
	slices.SortFunc(roles, func(a, b RoleDescription) int { return strings.Compare(a.id(), b.id()) })
	return roles, nil
}

// rolesIn describes the roles of a file, which need not be there.
func (a *Archive) rolesIn(file string, total *int) ([]RoleDescription, error) {
	documents, err := a.documents(file, total)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	operator := ""
	if file != RoleFile {
		operator = path.Dir(file)
	}
	var roles []RoleDescription
	for _, document := range documents {
		var object struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Rules []PolicyRule `json:"rules"`
		}
		if err := decode(document, &object); err != nil {
			return nil, err
		}
		roles = append(roles, RoleDescription{operator, object.Kind, object.Metadata.Name, object.Rules})
	}
	return roles, nil
}

// decode reads the fields of a document that the target has; lint judges the rest.
func decode(document *schema.Document, target any) error {
	data, err := json.Marshal(document.Value())
	if err == nil {
		err = json.Unmarshal(data, target)
	}
	if err != nil {
		return report.Errorf(report.Invalid, "%s: %w", document.File(), err).
			WithHint("check the archive with: solutionctl lint")
	}
	return nil
}
