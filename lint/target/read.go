package target

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// parsed is a YAML file: its documents, or why it could not be read.
type parsed struct {
	once      sync.Once
	data      []byte
	documents []*schema.Document
	err       error
}

// MaxText is the size of the largest file that rules read: that of the largest YAML document.
const MaxText = schema.MaxSize

// Text returns the content of a file of the archive, of [MaxText] at most, and of [oci.MaxRegistryConfig] if it is a registry configuration.
func (t *Target) Text(name string) ([]byte, error) {
	if PartOf(name) == "" {
		return t.read(name)
	}
	p := t.parse(name)
	if p.data != nil {
		return p.data, nil
	}
	return nil, p.err
}

func (t *Target) read(name string) ([]byte, error) {
	f, err := t.FS.Open(name)
	if err != nil {
		return nil, err
	}
	limit := MaxText
	if name == oci.RegistryConfigFile {
		limit = oci.MaxRegistryConfig
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(data) > limit {
		return nil, report.Errorf(report.Invalid, "%s is larger than %d bytes", name, limit)
	}
	return data, nil
}

// Documents returns the YAML documents of a file, read as Kubernetes does. In ui/ the places where MetalK8s fills in
// the repository hold a stand-in, which [Object] hides.
func (t *Target) Documents(name string) ([]*schema.Document, error) {
	p := t.parse(name)
	return p.documents, p.err
}

// parse reads a file once, however many rules ask for it at the same time.
func (t *Target) parse(name string) *parsed {
	t.mu.Lock()
	if t.texts == nil {
		t.texts = map[string]*parsed{}
	}
	p := t.texts[name]
	if p == nil {
		p = &parsed{}
		t.texts[name] = p
	}
	t.mu.Unlock()
	p.once.Do(func() {
		if p.data, p.err = t.read(name); p.err == nil {
			p.documents, p.err = schema.ParseKubernetes(name, withoutTemplates(name, p.data))
		}
	})
	return p
}

// repositoryVariable matches the variable that MetalK8s fills in in ui/.
var repositoryVariable = lazyregexp.New(`\{\{\s*repository\s*\}\}`)

// IsRepository reports whether a template is the variable that MetalK8s replaces in ui/.
func IsRepository(template string) bool { return repositoryVariable.MatchString(template) }

// standIn fills the place of one character of a template: a private one, which no manifest holds.
const standIn = "\ue000"

// withoutTemplates replaces the variable by as many characters that YAML takes for text, so that positions stay.
func withoutTemplates(name string, data []byte) []byte {
	if !strings.HasPrefix(name, "ui/") || !bytes.Contains(data, []byte("{{")) {
		return data
	}
	return repositoryVariable.ReplaceAllFunc(data, func(match []byte) []byte {
		return []byte(strings.Repeat(standIn, len(match)))
	})
}

var standIns = lazyregexp.New(standIn + "+")

// withTemplates puts the variable back.
func withTemplates(value any) any {
	switch value := value.(type) {
	case string:
		if strings.Contains(value, standIn) {
			return standIns.ReplaceAllString(value, "{{ repository }}")
		}
		return value
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = withTemplates(item)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, item := range value {
			object[key] = withTemplates(item)
		}
		return object
	default:
		return value
	}
}
