package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

// AppField is one field of an [AppForm], or a value of a chart.
type AppField struct {
	Path        string   `json:"path"` // below spec: "storage.size"
	Title       string   `json:"title,omitempty"`
	Type        string   `json:"type"`
	Required    bool     `json:"required,omitempty"`
	Default     string   `json:"default,omitempty"` // JSON
	Choices     []string `json:"choices,omitempty"`
	Limits      string   `json:"limits,omitempty"` // in words
	Description string   `json:"description,omitempty"`

	// Details are the whole description, where that is only its first sentence.
	Details string `json:"details,omitempty"`
	// Min and Max bound a number, both included.
	Min *float64 `json:"min,omitempty"`
	Max *float64 `json:"max,omitempty"`
	// MinLength and MaxLength bound the characters of a text, or the items of a list.
	MinLength *int64 `json:"minLength,omitempty"`
	MaxLength *int64 `json:"maxLength,omitempty"`
	// Pattern is a regular expression that a text matches somewhere.
	Pattern string `json:"pattern,omitempty"`
	// Format is that of a text, such as date-time, as JSON Schema calls it.
	Format string `json:"format,omitempty"`
	// Secret is true when the value must not be shown on a screen.
	Secret bool `json:"secret,omitempty"`
	// Items is any item of a list, or any value of a map; it has no path.
	Items *AppField `json:"items,omitempty"`
	// Fields lists the fields of an item that is an object; their paths are relative to the item.
	Fields []AppField `json:"fields,omitempty"`
}

// Describe sets the description to the first sentence of a text, and the details to all of it, where that is more. Line breaks mean nothing.
func (f *AppField) Describe(text string) {
	text = strings.Join(strings.Fields(text), " ")
	f.Description, f.Details = text, ""
	if end := sentenceEnd.FindStringIndex(text); end != nil {
		f.Description, f.Details = text[:end[1]-2], text
	}
}

// sentenceEnd matches the end of a word, a point, and the begin of the next sentence: "e.g. " is not an end.
var sentenceEnd = lazyregexp.New(`[[:word:])"']{2}\. [[:upper:]("']`)

// IsSecretPath reports whether the last name of a path is that of a password, a token or a key, and not that of a Secret.
func IsSecretPath(path string) bool {
	name := strings.Map(func(r rune) rune {
		if r = unicode.ToLower(r); r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, path[strings.LastIndexByte(path, '.')+1:])
	return (secretName.MatchString(name) || strings.HasSuffix(path, "_SECRET_KEY")) && !strings.HasPrefix(name, "existing")
}

// secretName matches the name of a secret: its letters in lower case. Any other name before "secretkey", except in a variable, is that of a
// value in a Secret: userSecretKey.
var secretName = lazyregexp.New(`(password|passwd|passphrase|token|(api|private|access)key|clientsecret)$|^(s|aws|minio)?secretkey$`) // s3 without digits

// IsSecretField reports whether a field of an object has a secret, by its name, or as the value of an environment variable.
func IsSecretField(object map[string]any, name string) bool {
	if _, ok := object[name].(bool); ok {
		return false
	}
	variable, _ := object["name"].(string)
	return IsSecretPath(name) || name == "value" && IsSecretPath(variable)
}

// SetLimits sets the limits in words to the other limits of the field.
func (f *AppField) SetLimits() {
	var words []string
	number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	switch {
	case f.Min != nil && f.Max != nil:
		words = append(words, number(*f.Min)+" to "+number(*f.Max))
	case f.Min != nil:
		words = append(words, "at least "+number(*f.Min))
	case f.Max != nil:
		words = append(words, "at most "+number(*f.Max))
	}
	counted := "characters"
	if f.isList() {
		counted = "items"
	}
	if f.MinLength != nil && *f.MinLength > 1 {
		words = append(words, fmt.Sprintf("at least %d %s", *f.MinLength, counted))
	}
	if f.MaxLength != nil {
		words = append(words, fmt.Sprintf("at most %d %s", *f.MaxLength, counted))
	}
	if f.Pattern != "" {
		words = append(words, "like "+f.Pattern)
	}
	f.Limits = strings.Join(words, ", ")
}

func (f *AppField) isList() bool { return f.Type == "array" || strings.HasPrefix(f.Type, "list of ") }

// HasLines reports whether a person types the items of the field one per line: it is a list of texts or numbers.
func (f *AppField) HasLines() bool {
	item, list := strings.CutPrefix(f.Type, "list of ")
	return list && slices.Contains([]string{"string", "integer", "number", "boolean", "integer or string"}, item)
}

// ParseValue reads a value of a type, as [AppField] has it, from what a person types. Numbers are int64 or float64. A list of texts or
// numbers has one item per line, or is YAML in the form of a list; any other list, a map, and a value of more than one type is YAML.
func ParseValue(kind, text string) (any, error) {
	switch kind {
	case "string":
		return text, nil
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number", text)
		}
		return n, nil
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", text)
		}
		return n, nil
	case "boolean":
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("%q is neither true nor false", text)
		}
		return b, nil
	}
	if f := (AppField{Type: kind}); f.HasLines() && !looksLikeList(text) {
		return parseLines(strings.TrimPrefix(kind, "list of "), text)
	}
	value, err := readValue(text)
	if err != nil {
		return nil, fmt.Errorf("%q is neither YAML nor JSON", text)
	}
	return value, nil
}

// readValue reads a document with the scalars of Kubernetes. Numbers are as in JSON.
func readValue(text string) (value any, err error) {
	err = ReadDocument("value", []byte(text), &value)
	return value, err
}

// Parse reads a value of the field from what a person types, as [ParseValue] does. The error about a secret leaves out what was typed.
func (f *AppField) Parse(text string) (any, error) {
	value, err := ParseValue(f.Type, text)
	if err != nil && f.Secret {
		err = fmt.Errorf("cannot be read as a value of type %s", f.Type)
	}
	return value, err
}

func looksLikeList(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "[") || strings.HasPrefix(text, "- ")
}

// parseLines reads a list with one item per line; empty lines do not count.
func parseLines(kind, text string) (any, error) {
	items := []any{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		item, err := ParseValue(kind, line)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// Text returns a value of the field as a person types it: [ParseValue] reads it as the same value.
func (f *AppField) Text(value any) string {
	text, isText := value.(string)
	items, isList := value.([]any)
	switch {
	case value == nil:
		return ""
	case isText && (f.Type == "string" || readsAs(text)):
		return text
	case isList && f.HasLines():
		item := AppField{Type: strings.TrimPrefix(f.Type, "list of ")}
		var lines []string
		for _, value := range items {
			line := item.Text(value)
			if line == "" || line != strings.TrimSpace(line) || strings.Contains(line, "\n") {
				return encoded(items)
			}
			lines = append(lines, line)
		}
		if joined := strings.Join(lines, "\n"); len(lines) > 0 && !looksLikeList(joined) {
			return joined
		}
	}
	return encoded(value)
}

// readsAs reports whether a text is the same text as YAML, and not a number or a table, say.
func readsAs(text string) bool {
	value, err := readValue(text)
	return err == nil && value == any(text)
}

func encoded(value any) string {
	data, _ := json.Marshal(value) // it came as JSON
	return string(data)
}
