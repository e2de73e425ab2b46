package schema_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/schema"
)

// TestLeaves: a change of a long value shows only the parts that differ.
func TestLeaves(t *testing.T) {
	long := strings.Repeat("x", 90)
	for name, test := range map[string]struct {
		from, to string
		want     []string // path, from, to
	}{
		"short":            {`{"a":1}`, `{"a":2}`, []string{`spec {"a":1} {"a":2}`}},
		"a map":            {`{"a":1,"l":"` + long + `","s":true}`, `{"b":null,"l":"` + long + `","s":false}`, []string{`spec.a 1 `, `spec.b  null`, `spec.s true false`}},
		"a key with a dot": {`{"l":"` + long + `"}`, `{"l":"` + long + `","a.b":1}`, []string{`spec[a.b]  1`}},
		"new":              {``, `{"a":{"b":1,"c":[]},"l":"` + long + `"}`, []string{`spec.a  {"b":1,"c":[]}`, `spec.l  "` + long + `"`}},
		"gone":             {`["` + long + `",{"a":1}]`, ``, []string{`spec[0] "` + long + `" `, `spec[1] {"a":1} `}},
		"elements with names": {
			`[{"name":"a","v":1},{"name":"b","v":"` + long + `"}]`, `[{"name":"c","v":1},{"name":"b","v":"` + long + `","w":2}]`,
			[]string{`spec[name=a] {"name":"a","v":1} `, `spec[name=b].w  2`, `spec[name=c]  {"name":"c","v":1}`},
		},
		"elements with numbers": {
			`[{"port":1,"v":1},{"port":2,"v":"` + long + `"}]`, `[{"port":1,"v":2},{"port":2,"v":"` + long + `"}]`, []string{`spec[port=1].v 1 2`},
		},
		"one more in the middle": {`["` + long + `","b"]`, `["` + long + `","n","b"]`, []string{`spec[1]  "n"`}},
		"another in the middle":  {`["` + long + `","a","c"]`, `["` + long + `","b","c"]`, []string{`spec[1] "a" "b"`}},
		"another type":           {`{"a":"` + long + `"}`, `[1]`, []string{`spec {"a":"` + long + `"} [1]`}},
		"large numbers":          {`{"a":12345678901234567890,"l":"` + long + `"}`, `{"a":12345678901234567891,"l":"` + long + `"}`, []string{`spec.a 12345678901234567890 12345678901234567891`}},
		"no JSON":                {long, `(hidden)`, []string{`spec ` + long + ` (hidden)`}},
		"nothing to nothing":     {`{"l":"` + long + `"}`, `{ "l": "` + long + `" }`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			since := time.Unix(1e9, 0)
			leaves, more := schema.FieldChange{Path: "spec", From: test.from, To: test.to, Manager: "m", Since: &since}.Leaves(10)
			var got []string
			for _, l := range leaves {
				got = append(got, l.Path+" "+l.From+" "+l.To)
				if l.Manager != "m" || l.Since != &since {
					t.Errorf("%s belongs to %q since %v", l.Path, l.Manager, l.Since)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" || more != 0 {
				t.Errorf("%d more, (-want +got)\n%s", more, diff)
			}
		})
	}
	var fields []string
	for i := range 50 {
		fields = append(fields, fmt.Sprintf(`"f%02d":%d`, i, i))
	}
	leaves, more := schema.FieldChange{To: "{" + strings.Join(fields, ",") + "}"}.Leaves(20)
	if len(leaves) != 20 || more != 30 || leaves[0].Path != "f00" {
		t.Errorf("%d and %d more, the first %v", len(leaves), more, leaves[:1])
	}
}
