// Package crd checks CustomResourceDefinitions: one alone, one compared with the one that it replaces, and one with the
// stored objects.
//
// [Parse] reads a file and returns its faults as a file; [Definition.Judge] returns the faults of the definition, with
// the same code that the API server runs when it is created. [Compare] lists the changes when one definition replaces
// another, graded by their effect on objects and clients. A [Checker] reports for each stored object whether it stays
// valid, and which of its fields the API server would drop.
//
// The package has no side effects: it opens no file and makes no requests. All paths have the form of the API server's,
// such as spec.versions[0].schema.openAPIV3Schema.properties[spec].
package crd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	hugeSize = 1 << 20 // the limit of etcd, with room for status and managed fields
)

// Reason is the kind of a problem. Reasons are stable.
type Reason string

// The reasons.
const (
	Unreadable    Reason = "unreadable"     // not YAML, or too large or too deep
	Documents     Reason = "documents"      // none, or more than one document in the file
	Jinja         Reason = "jinja"          // text that MetalK8s' Salt would take for a template
	WrongKind     Reason = "wrong-kind"     // not a CustomResourceDefinition
	OldAPI        Reason = "old-api"        // apiextensions.k8s.io/v1beta1
	Refused       Reason = "refused"        // the API server would refuse it
	NoConversion  Reason = "no-conversion"  // versions with different schemas and no webhook
	NotServed     Reason = "not-served"     // no version is served
	PreservesAll  Reason = "preserves-all"  // the schema takes anything, so nothing is ever checked
	LargeDocument Reason = "large-document" // close to the limit of etcd
)

// Problem is one thing that is wrong with a definition. Either Path leads to the field or Line and Column, which count
// from 1, to the text.
type Problem struct {
	Reason       Reason
	Severity     report.Severity
	Path         string
	Line, Column int
	Message      string
	Hint         string
}

// Definition is a CustomResourceDefinition as apiextensions.k8s.io/v1, defaults filled in as the API server does.
type Definition struct {
	*apiextensionsv1.CustomResourceDefinition
	Converted bool // it was written as v1beta1
}

// Parse reads one file. It returns a definition whenever the file holds one, however bad. Otherwise it returns nil and
// at least one problem.
func Parse(data []byte) (*Definition, []Problem) {
	documents, err := schema.ParseKubernetes("definition", data)
	if err != nil {
		problems := jinja(data)
		for _, f := range schema.Problems(err) {
			problems = append(problems, Problem{
				Reason: Unreadable, Severity: report.SeverityError, Line: f.Line, Column: f.Column, Message: f.Message, Hint: f.Hint,
			})
		}
		return nil, problems
	}
	return Read(data, documents)
}

// Read is [Parse] for a file that was taken apart already.
func Read(data []byte, documents []*schema.Document) (*Definition, []Problem) {
	problems := jinja(data)
	documents = slices.DeleteFunc(slices.Clone(documents), func(d *schema.Document) bool { return d.Value() == nil })
	count := len(documents)
	switch {
	case count == 0:
		return nil, append(problems, Problem{Reason: Documents, Severity: report.SeverityError, Message: "the file is empty"})
	case count > 1:
		problems = append(problems, Problem{
			Reason: Documents, Severity: report.SeverityError,
			Message: fmt.Sprintf("the file holds %d documents, expected one", count),
			Hint:    "write each definition to a file of its own: MetalK8s reads only one document of a file",
		})
	}
	definition, problem := decode(documents[0].Value())
	if problem != nil {
		return nil, append(problems, *problem)
	}
	if definition.Converted {
		problems = append(problems, Problem{
			Reason: OldAPI, Severity: report.SeverityError, Path: "apiVersion",
			Message: "apiextensions.k8s.io/v1beta1 is not served since Kubernetes 1.22",
			Hint:    "write apiextensions.k8s.io/v1 and move schema, subresources and additionalPrinterColumns into each of spec.versions",
		})
	}
	if size := storedSize(documents[0], data); size > hugeSize {
		problems = append(problems, Problem{
			Reason: LargeDocument, Severity: report.SeverityWarning,
			Message: fmt.Sprintf("the definition has %d KiB; etcd refuses requests above 1.5 MiB", size>>10),
			Hint:    "leave out descriptions: controller-gen crd:maxDescLen=0",
		})
	}
	return definition, problems
}

// storedSize is how large a definition is in etcd, which holds it as JSON: of a text with fewer bytes than are too many, its own size will do.
func storedSize(document *schema.Document, text []byte) int {
	if len(text) <= hugeSize {
		return len(text)
	}
	stored, err := document.JSON()
	if err != nil {
		return len(text)
	}
	return len(stored)
}

// FromObject decodes a definition, however bad; nil when the object is none.
func FromObject(object map[string]any) *Definition {
	definition, _ := decode(object)
	return definition
}

// New wraps a definition that was read from a cluster. Defaults are filled in; crd itself is not changed.
func New(crd *apiextensionsv1.CustomResourceDefinition) (*Definition, error) {
	return newDefinition(crd.DeepCopy())
}

// newDefinition fills in defaults; crd itself becomes the definition.
func newDefinition(crd *apiextensionsv1.CustomResourceDefinition) (*Definition, error) {
	d := &Definition{CustomResourceDefinition: crd}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
	if _, err := d.internal(); err != nil {
		return nil, err
	}
	return d, nil
}

// internal makes the form that the code of the API server works with. It is as large as the definition, and not kept.
func (d *Definition) internal() (*apiextensions.CustomResourceDefinition, error) {
	internal := &apiextensions.CustomResourceDefinition{}
	// The conversion keeps references to its input and edits the versions' slice.
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(d.DeepCopy(), internal, nil)
	if err != nil {
		return nil, report.Errorf(report.Invalid, "custom resource definition %s: %w", d.Name, err)
	}
	return internal, nil
}

func unreadable(err error) Problem {
	return Problem{Reason: Unreadable, Severity: report.SeverityError, Message: err.Error()}
}

// decode makes a definition of an object.
func decode(object any) (*Definition, *Problem) {
	fields, _ := object.(map[string]any)
	kind, _ := fields["kind"].(string)
	apiVersion, _ := fields["apiVersion"].(string)
	current, beta := apiextensionsv1.SchemeGroupVersion.String(), v1beta1.SchemeGroupVersion.String()
	if kind != "CustomResourceDefinition" || apiVersion != current && apiVersion != beta {
		return nil, &Problem{
			Reason: WrongKind, Severity: report.SeverityError, Path: "kind",
			Message: fmt.Sprintf("expected a CustomResourceDefinition of %s, got %q of %q", current, kind, apiVersion),
		}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	var err error
	if apiVersion == beta {
		err = decodeBeta(object, crd)
	} else {
		err = into(object, crd)
	}
	var d *Definition
	if err == nil {
		d, err = newDefinition(crd)
	}
	if err != nil {
		problem := unreadable(err)
		return nil, &problem
	}
	d.Converted = apiVersion == beta
	return d, nil
}

// into decodes an object. Numbers and booleans in place of text count as text, as YAML's authors expect: a document
// that fails at first is decoded once more in a slower way.
func into(object, target any) error {
	data, err := json.Marshal(object)
	if err != nil {
		return err
	}
	if json.Unmarshal(data, target) == nil {
		return nil
	}
	return yaml.Unmarshal(data, target)
}

func decodeBeta(object any, crd *apiextensionsv1.CustomResourceDefinition) error {
	old := &v1beta1.CustomResourceDefinition{}
	if err := into(object, old); err != nil {
		return err
	}
	v1beta1.SetObjectDefaults_CustomResourceDefinition(old)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := v1beta1.Convert_v1beta1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(old, internal, nil); err != nil {
		return err
	}
	crd.APIVersion, crd.Kind = apiextensionsv1.SchemeGroupVersion.String(), old.Kind
	return apiextensionsv1.Convert_apiextensions_CustomResourceDefinition_To_v1_CustomResourceDefinition(internal, crd, nil)
}

// jinja finds text that Salt's renderer would take for a template, once a line.
func jinja(data []byte) []Problem {
	var problems []Problem
	number := 0
	for line := range bytes.Lines(data) {
		number++
		at := -1
		for _, delimiter := range []string{"{{", "{%", "{#"} {
			if i := bytes.Index(line, []byte(delimiter)); i >= 0 && (at < 0 || i < at) {
				at = i
			}
		}
		if at < 0 {
			continue
		}
		problems = append(problems, Problem{
			Reason: Jinja, Severity: report.SeverityError, Line: number, Column: at + 1,
			Message: fmt.Sprintf("%q is taken for a template by MetalK8s, which renders the file through Jinja", line[at:at+2]),
			Hint:    "reword the description, or put a space between the two characters",
		})
		if len(problems) == 20 {
			break
		}
	}
	return problems
}

// Judge returns the faults of the definition, at most twenty, in the order of the API server's own validation. A
// definition that would take too much time or memory has only that fault.
func (d *Definition) Judge(ctx context.Context) []Problem {
	if excess := d.tooLarge(); excess != "" {
		return []Problem{{
			Reason: Refused, Severity: report.SeverityError, Path: "spec.versions", Message: excess, Hint: "make several definitions of it",
		}}
	}
	var problems []Problem
	internal, err := d.internal()
	if err != nil {
		return []Problem{unreadable(err)}
	}
	errs := validation.ValidateCustomResourceDefinition(ctx, internal)
	for _, err := range errs[:min(len(errs), maxProblems)] { // the text of an error quotes a value, which may be large
		problems = append(problems, Problem{
			Reason: Refused, Severity: report.SeverityError, Path: d.path(err.Field), Message: refusal(err), Hint: remedy(err),
		})
	}
	problems = append(problems, d.versions()...)
	if len(problems) == 0 {
		problems = append(problems, d.conversion()...)
	}
	return problems[:min(len(problems), maxProblems)]
}

// path reverses the conversion to the internal form, which moves parts that are equal in all versions up to the spec.
func (d *Definition) path(path string) string {
	for _, moved := range [][2]string{
		{"spec.validation.", "schema."},
		{"spec.subresources.", "subresources."},
		{"spec.additionalPrinterColumns", "additionalPrinterColumns"},
		{"spec.selectableFields", "selectableFields"},
	} {
		if rest, ok := strings.CutPrefix(path, moved[0]); ok {
			return "spec.versions[0]." + moved[1] + rest
		}
	}
	path = strings.Replace(path, "spec.conversion.webhookClientConfig", "spec.conversion.webhook.clientConfig", 1)
	return strings.Replace(path, "spec.conversion.conversionReviewVersions", "spec.conversion.webhook.conversionReviewVersions", 1)
}

func refusal(err *field.Error) string {
	text := err.ErrorBody()
	if len(text) > 500 {
		text = text[:500] + "…"
	}
	return text
}

func remedy(err *field.Error) string {
	switch {
	case strings.HasSuffix(err.Field, "openAPIV3Schema") && err.Type == field.ErrorTypeRequired:
		return "generate the schema with controller-gen"
	case strings.Contains(err.Detail, "estimated rule cost"):
		return "bound the lists and strings that the rule reads: maxItems, maxLength, maxProperties"
	case err.Field == "metadata.annotations[api-approved.kubernetes.io]":
		return "use a group of your own instead of one below k8s.io or kubernetes.io"
	}
	return ""
}

// versions finds faults that the API server accepts.
func (d *Definition) versions() []Problem {
	var problems []Problem
	served := false
	for i, version := range d.Spec.Versions {
		served = served || version.Served
		if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			continue
		}
		root := version.Schema.OpenAPIV3Schema
		if root.XPreserveUnknownFields != nil && *root.XPreserveUnknownFields && len(root.Properties) == 0 {
			problems = append(problems, Problem{
				Reason: PreservesAll, Severity: report.SeverityWarning,
				Path:    fmt.Sprintf("spec.versions[%d].schema.openAPIV3Schema", i),
				Message: "the schema accepts anything, so mistakes in objects are never found",
				Hint:    "generate the schema with controller-gen",
			})
		}
	}
	if !served && len(d.Spec.Versions) > 0 {
		problems = append(problems, Problem{
			Reason: NotServed, Severity: report.SeverityError, Path: "spec.versions", Message: "no version is served",
		})
	}
	return problems
}

// conversion finds versions that lose fields because the API server only changes apiVersion between them.
func (d *Definition) conversion() []Problem {
	if d.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
		return nil
	}
	var problems []Problem
	left := maxSteps
	for i, from := range d.Spec.Versions {
		for j, to := range d.Spec.Versions {
			if i == j || !from.Served && !from.Storage || !to.Served && !to.Storage {
				continue
			}
			changes := compareSchemas(schemaOf(&from), schemaOf(&to), from.Name+" -> "+to.Name, &left)
			if bad, ok := worst(changes); ok {
				problems = append(problems, Problem{
					Reason: NoConversion, Severity: report.SeverityError, Path: fmt.Sprintf("spec.versions[%d]", j),
					Message: fmt.Sprintf("objects written as %s do not fit %s: %s", from.Name, to.Name, bad),
					Hint:    "make the schemas agree or set spec.conversion.strategy to Webhook",
				})
			}
			if len(problems) == maxProblems {
				return problems
			}
		}
	}
	return problems
}
