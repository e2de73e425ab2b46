// Package crd judges CustomResourceDefinitions: one alone, one against the one it replaces, and one against the
// objects that are stored.
//
// [Parse] reads a file and says what is wrong with it as a file; [Definition.Judge] says what is wrong with the
// definition, with the very code that the API server runs when it is created. [Compare] lists what changes when one
// definition replaces another, graded by what it does to objects and clients. A [Checker] tells for each stored object
// whether it stays valid and which of its fields the API server would drop.
//
// The package decides and does nothing else: it opens no file and talks to no cluster. All paths are those of the
// API server, as spec.versions[0].schema.openAPIV3Schema.properties[spec].
package crd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	maxSize  = 4 << 20 // of a file
	maxDepth = 256     // of nested YAML; an embedded pod template needs about 60
	hugeSize = 1 << 20 // what etcd still takes with room for status and managed fields
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
	LargeDocument Reason = "large-document" // close to what etcd takes
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
	internal  *apiextensions.CustomResourceDefinition
}

// Parse reads one file. A definition is returned whenever the file holds one, however bad; nil when it does not, and
// then at least one problem tells why.
func Parse(data []byte) (*Definition, []Problem) {
	if len(data) > maxSize {
		return nil, []Problem{{Reason: Unreadable, Severity: report.SeverityError, Message: "the file is larger than 4 MiB"}}
	}
	problems := jinja(data)
	first, count, err := documents(data)
	switch {
	case err != nil:
		return nil, append(problems, Problem{Reason: Unreadable, Severity: report.SeverityError, Message: err.Error()})
	case count == 0:
		return nil, append(problems, Problem{Reason: Documents, Severity: report.SeverityError, Message: "the file is empty"})
	case count > 1:
		problems = append(problems, Problem{
			Reason: Documents, Severity: report.SeverityError,
			Message: fmt.Sprintf("the file holds %d documents, expected one", count),
			Hint:    "write each definition to a file of its own: MetalK8s reads only one document of a file",
		})
	}
	definition, problem := decode(first)
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
	if len(data) > hugeSize {
		problems = append(problems, Problem{
			Reason: LargeDocument, Severity: report.SeverityWarning,
			Message: fmt.Sprintf("the definition has %d KiB; etcd refuses requests above 1.5 MiB", len(data)>>10),
			Hint:    "leave out descriptions: controller-gen crd:maxDescLen=0",
		})
	}
	return definition, problems
}

// New wraps a definition that was read from a cluster. Defaults are filled in; crd itself is not changed.
func New(crd *apiextensionsv1.CustomResourceDefinition) (*Definition, error) {
	d := &Definition{CustomResourceDefinition: crd.DeepCopy(), internal: &apiextensions.CustomResourceDefinition{}}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(d.CustomResourceDefinition)
	// The conversion to the internal form keeps references to its input and edits the versions' slice.
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
		d.DeepCopy(), d.internal, nil)
	if err != nil {
		return nil, report.Errorf(report.Invalid, "custom resource definition %s: %w", crd.Name, err)
	}
	return d, nil
}

// documents returns the first YAML document as text and the number of documents that are not empty.
func documents(data []byte) (first []byte, count int, err error) {
	decoder := yamlv3.NewDecoder(bytes.NewReader(data))
	for {
		var node yamlv3.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return first, count, nil
		}
		if err != nil {
			return nil, 0, fmt.Errorf("the file is not YAML: %w", err)
		}
		if len(node.Content) == 0 || node.Content[0].Tag == "!!null" {
			continue
		}
		if count++; count > 1 {
			continue
		}
		if depth(&node) > maxDepth {
			return nil, 0, errors.New("the document is nested too deeply")
		}
		if first, err = yamlv3.Marshal(node.Content[0]); err != nil {
			return nil, 0, fmt.Errorf("the file is not YAML: %w", err)
		}
	}
}

func depth(node *yamlv3.Node) int {
	deepest := 0
	for _, child := range node.Content {
		deepest = max(deepest, depth(child))
	}
	return deepest + 1
}

func decode(data []byte) (*Definition, *Problem) {
	unreadable := func(err error) (*Definition, *Problem) {
		return nil, &Problem{Reason: Unreadable, Severity: report.SeverityError, Message: err.Error()}
	}
	var head struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(data, &head); err != nil {
		return unreadable(err)
	}
	current, beta := apiextensionsv1.SchemeGroupVersion.String(), v1beta1.SchemeGroupVersion.String()
	if head.Kind != "CustomResourceDefinition" || head.APIVersion != current && head.APIVersion != beta {
		return nil, &Problem{
			Reason: WrongKind, Severity: report.SeverityError, Path: "kind",
			Message: fmt.Sprintf("expected a CustomResourceDefinition of %s, got %q of %q", current, head.Kind, head.APIVersion),
		}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	var err error
	if head.APIVersion == beta {
		err = decodeBeta(data, crd)
	} else {
		err = yaml.Unmarshal(data, crd)
	}
	if err != nil {
		return unreadable(err)
	}
	d, err := New(crd)
	if err != nil {
		return unreadable(err)
	}
	d.Converted = head.APIVersion == beta
	return d, nil
}

func decodeBeta(data []byte, crd *apiextensionsv1.CustomResourceDefinition) error {
	old := &v1beta1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(data, old); err != nil {
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

// jinja finds what Salt's renderer would take for a template, once a line.
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

// Judge says what is wrong with the definition, in the order of the API server's own validation.
func (d *Definition) Judge(ctx context.Context) []Problem {
	var problems []Problem
	for _, err := range validation.ValidateCustomResourceDefinition(ctx, d.internal.DeepCopy()) {
		problems = append(problems, Problem{
			Reason: Refused, Severity: report.SeverityError, Path: d.path(err.Field), Message: refusal(err), Hint: remedy(err),
		})
	}
	problems = append(problems, d.versions()...)
	if len(problems) == 0 {
		problems = append(problems, d.conversion()...)
	}
	return problems
}

// path undoes what the conversion to the internal form does: what is equal in all versions is moved up to the spec.
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

// versions finds what the API server accepts and nobody wants.
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
	for i, from := range d.Spec.Versions {
		for j, to := range d.Spec.Versions {
			if i == j || !from.Served && !from.Storage || !to.Served && !to.Storage {
				continue
			}
			changes := compareSchemas(schemaOf(&from), schemaOf(&to), from.Name+" -> "+to.Name)
			if bad, ok := worst(changes); ok {
				problems = append(problems, Problem{
					Reason: NoConversion, Severity: report.SeverityError, Path: fmt.Sprintf("spec.versions[%d]", j),
					Message: fmt.Sprintf("objects written as %s do not fit %s: %s", from.Name, to.Name, bad),
					Hint:    "make the schemas agree or set spec.conversion.strategy to Webhook",
				})
			}
		}
	}
	return problems
}
