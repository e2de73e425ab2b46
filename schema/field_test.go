package schema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/schema"
)

// TestParseValue: what is shown of a value is read as the same value.
func TestParseValue(t *testing.T) {
	for _, test := range []struct {
		kind, text string
		want       any
	}{
		{"string", "8080", "8080"},
		{"string", "", ""},
		{"integer", "3", int64(3)},
		{"number", "1.5", 1.5},
		{"boolean", "true", true},
		{"any", "gold", "gold"},
		{"any", `"8080"`, "8080"},
		{"any", "8080", 8080.0},
		{"integer or string", "http", "http"},
		{"list of string", "a b\n8080\ntrue", []any{"a b", "8080", "true"}},
		{"list of string", `["","a\nb"]`, []any{"", "a\nb"}},
		{"list of string", "[]", []any{}},
		{"list of string", `["[a]"]`, []any{"[a]"}},
		{"list of integer", "1\n2", []any{int64(1), int64(2)}},
		{"list of integer or string", "1\nhttp", []any{1.0, "http"}},
		{"list of object", `[{"name":"a"}]`, []any{map[string]any{"name": "a"}}},
		{"map of string", `{"a":"b"}`, map[string]any{"a": "b"}},
	} {
		got, err := schema.ParseValue(test.kind, test.text)
		if diff := cmp.Diff(got, test.want); diff != "" || err != nil {
			t.Errorf("%s %q: %v (-got +want)\n%s", test.kind, test.text, err, diff)
		}
		f := schema.AppField{Type: test.kind}
		if text := f.Text(test.want); text != test.text {
			t.Errorf("%s: shown as %q, want %q", test.kind, text, test.text)
		}
	}
	for _, test := range []struct{ kind, text, want string }{
		{"integer", "many", `"many" is not a whole number`},
		{"list of integer", "1\nb", `"b" is not a whole number`},
		{"number", "x", `"x" is not a number`},
		{"boolean", "maybe", `"maybe" is neither true nor false`},
		{"object", "{", `"{" is neither YAML nor JSON`},
	} {
		if _, err := schema.ParseValue(test.kind, test.text); err == nil || err.Error() != test.want {
			t.Errorf("%s %q: %v", test.kind, test.text, err)
		}
	}
	for text, want := range map[string][]any{"\r\na\r\n\r\nb": {"a", "b"}, "- a\n- b": {"a", "b"}} {
		if got, err := schema.ParseValue("list of string", text); err != nil || !cmp.Equal(got, any(want)) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
