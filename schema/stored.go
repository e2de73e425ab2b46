package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Stamp names the format of a stored document and who wrote it.
type Stamp struct {
	FormatVersion int `json:"formatVersion" schema:"minimum=1"`
	// WrittenBy is the version of solutionctl that wrote the document and can read it.
	WrittenBy string `json:"writtenBy"`
}

// formatVersion is the format in which this program writes a stored document. It reads the one before as well and refuses newer
// ones.
func formatVersion(document string) int {
	switch document {
	case "deployment":
		return 3 // 1 knew no components, 2 no approvals
	case "imports":
		return 2 // 1 knew no signers
	case "delta":
		return 2 // 1 knew no patches
	default:
		return 1
	}
}

// NewStamp returns the stamp of a document that this program writes; writtenBy is its version.
func NewStamp(document, writtenBy string) Stamp {
	return Stamp{FormatVersion: formatVersion(document), WrittenBy: writtenBy}
}

// MarshalStored writes a document as it is stored in a cluster: the same bytes for the same value.
func MarshalStored(document any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// storedDocuments are the documents that are stored in a cluster or on a host, with their schemas, compiled when first needed.
var storedDocuments = map[string]func() *jsonschema.Schema{
	"applications":  compileStored("applications"),
	"archive":       compileStored("archive"),
	"artifact":      compileStored("artifact"),
	"clustername":   compileStored("clustername"),
	"delta":         compileStored("delta"),
	"deployment":    compileStored("deployment"),
	"host":          compileStored("host"),
	"imports":       compileStored("imports"),
	"monitoring":    compileStored("monitoring"),
	"load":          compileStored("load"),
	"notifications": compileStored("notifications"),
	"loadprogress":  compileStored("loadprogress"),
	"registry":      compileStored("registry"),
	"payload":       compileStored("payload"),
	"preload":       compileStored("preload"),
}

func compileStored(name string) func() *jsonschema.Schema {
	return sync.OnceValue(func() *jsonschema.Schema { return mustCompile("stored/" + name + ".schema.json") })
}

// StoredDocuments returns the names of the documents that are stored in a cluster, sorted.
func StoredDocuments() []string { return slices.Sorted(maps.Keys(storedDocuments)) }

// ParseStored reads a document that was stored in a cluster. Name is that of its schema, stored/<name>.schema.json; where
// names the source in messages, such as "Secret solutionctl-system/imports". Any user with write access there may have
// changed it, so the whole document is validated against the schema.
func ParseStored[T any](name, where string, data []byte) (*T, error) {
	var document any
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, report.Errorf(report.Corrupt, "%s: %w", where, err)
	}
	if stamp, newest := stampOf(document), formatVersion(name); stamp.FormatVersion > newest {
		return nil, report.Errorf(report.Refused, "%s has format %d, this program reads up to %d", where, stamp.FormatVersion, newest).
			WithHint("use solutionctl %s or newer, which wrote it", stamp.WrittenBy)
	}
	if err := storedDocuments[name]().Validate(document); err != nil {
		if failure, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
			err = firstCause(failure)
		}
		return nil, report.Errorf(report.Corrupt, "%s: %w", where, err).
			WithHint("the file was edited; restore it from a backup, or delete it and run the command that wrote it again")
	}
	value := new(T)
	if err := json.Unmarshal(data, value); err != nil {
		return nil, report.Errorf(report.Corrupt, "%s: %w", where, err)
	}
	return value, nil
}

// stampOf returns the stamp of a document, as far as it has a valid one.
func stampOf(document any) Stamp {
	fields, _ := document.(map[string]any)
	format, _ := fields["formatVersion"].(float64)
	writtenBy, _ := fields["writtenBy"].(string)
	return Stamp{FormatVersion: int(format), WrittenBy: writtenBy}
}

// firstCause is the innermost part of a refusal, which names one place.
func firstCause(failure *jsonschema.ValidationError) error {
	for len(failure.Causes) > 0 {
		failure = failure.Causes[0]
	}
	return errors.New(failure.Error())
}
