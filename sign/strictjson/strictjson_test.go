package strictjson_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/sign/strictjson"
)

func TestDecode(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`[`, n) + strings.Repeat(`]`, n) }
	for _, test := range []struct{ name, data, says string }{
		{"good", `{"a": 1, "b": {"a": 2}}`, ""},
		{"unknown field", `{"x": 1}`, "unknown field"},
		{"duplicate", `{"a": 1, "a": 1}`, "occurs twice"},
		{"duplicate in another case", `{"a": 1, "A": 1}`, "occurs twice"},
		{"duplicate written with an escape", `{"a": 1, "\u0061": 1}`, "occurs twice"},
		{"duplicate deep inside", `{"b": {"x": [{"y": 1, "y": 2}]}}`, "occurs twice"},
		{"name in another case", `{"A": 1}`, `"A", want "a"`},
		{"name in another case deep inside", `{"c": [{"x": {"Any": {"Y": 1}}, "T": "2027-01-01T00:00:00Z"}]}`, `"Y", want "y"`},
		{"names of a map", `{"b": {"A": 1, "X": {"Y": 1}}}`, ""},
		{"name that folds to another one", `{"\u212a": 1}`, `want "k"`},
		{"bytes that are not UTF-8", "{\"b\": {\"x\": \"\xff\"}}", "UTF-8"},
		{"name that is not UTF-8", "{\"b\": {\"\xff\": 1}}", "UTF-8"},
		{"half of a surrogate pair", `{"b": {"x": "\ud800"}}`, "UTF-8"},
		{"half of a surrogate pair in a name", `{"b": {"\udc00": 1}}`, "UTF-8"},
		{"a surrogate pair", `{"b": {"x": "\ud83d\ude00"}}`, ""},
		{"second document", `{} {}`, "after the end"},
		{"rubbish after it", `{}x`, "after the end"},
		{"white space after it", "{}\n", ""},
		{"truncated", `{"a": `, "unexpected EOF"},
		{"empty", ``, "unexpected EOF"},
		{"as deep as allowed", `{"b": {"x": ` + deep(31) + `}}`, ""},
		{"too deep", `{"b": {"x": ` + deep(32) + `}}`, "nested deeper"},
		{"far too deep", deep(1 << 20), "nested deeper"},
	} {
		var into struct {
			A int            `json:"a"`
			B map[string]any `json:"b"`
			C []*struct {
				X map[string]struct {
					Y int `json:"y"`
				} `json:"x"`
				T time.Time
			} `json:"c"`
			K int `json:"k,omitempty"`
		}
		err := strictjson.Decode([]byte(test.data), &into)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", test.name, err, test.says)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"a": [1, {"b": null}]}`))
	f.Add([]byte(`{"a": 1, "A": 2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var into any
		if strictjson.Check(data) == nil && strictjson.Decode(data, &into) != nil {
			t.Error("a document that is well-formed cannot be decoded")
		}
	})
}

func ExampleDecode() {
	var into struct {
		Size int `json:"size"`
	}
	fmt.Println(strictjson.Decode([]byte(`{"size": 1, "Size": 2}`), &into))
	// Output: field "Size" occurs twice
}
