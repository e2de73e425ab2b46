package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// deltaWith is the first file of a delta, with these segments.
func deltaWith(size int64, frame string, segments ...string) []byte {
	digest := strings.Repeat("0123456789abcdef", 4)
	return fmt.Appendf(nil, `{"formatVersion":1,"writtenBy":"1.0.0","bases":[],"layout":{"name":"demo","version":"1.0.0","size":%d,"sha256":%q,
"frame":%s,"segments":[%s]}}`, size, digest, frame, strings.Join(segments, ","))
}

func TestParseArchiveDelta(t *testing.T) {
	a, b := `"sha256":"`+strings.Repeat("a", 64)+`"`, `"sha256":"`+strings.Repeat("b", 64)+`"`
	const none, ten = `{"size":0,"blockSize":65536,"blocks":[]}`, `{"size":10,"blockSize":65536,"blocks":[20]}`
	many := strings.Split(strings.Repeat(`{"size":1},`, 1_000_000), ",")
	for _, test := range []struct {
		name string
		data []byte
		code report.Code // "": it is accepted
	}{
		{"frame and blobs", deltaWith(30, ten, `{"size":4}`, `{"size":15,`+a+`}`, `{"size":6}`, `{"size":5,`+b+`}`), ""},
		{"one blob", deltaWith(4, none, `{"size":4,`+a+`}`), ""},
		{"no segments", deltaWith(4, none), report.Invalid},
		{"a gap at the end", deltaWith(5, none, `{"size":4,`+a+`}`), report.Invalid},
		{"more than the archive", deltaWith(3, none, `{"size":4,`+a+`}`), report.Invalid},
		{"an overflow", deltaWith(2, none, `{"size":9223372036854775807,`+a+`}`, `{"size":9223372036854775807,`+b+`}`), report.Invalid},
		{"more than the frame", deltaWith(20, ten, `{"size":20}`), report.Invalid},
		{"unused frame", deltaWith(4, ten, `{"size":4,`+a+`}`), report.Invalid},
		{"a digest twice", deltaWith(8, none, `{"size":4,`+a+`}`, `{"size":4,`+a+`}`), report.Invalid},
		{"an empty segment", deltaWith(4, none, `{"size":4,`+a+`}`, `{"size":0,`+b+`}`), report.Corrupt},
		{"a negative segment", deltaWith(4, none, `{"size":5,`+a+`}`, `{"size":-1,`+b+`}`), report.Corrupt},
		{"an offset", deltaWith(4, none, `{"size":4,"offset":0,`+a+`}`), report.Corrupt},
		{"a million segments", deltaWith(1_000_000, ten, many[:len(many)-1]...), report.Corrupt},
		{"a block too many", deltaWith(10, `{"size":10,"blockSize":65536,"blocks":[20,20]}`, `{"size":10}`), report.Invalid},
		{"odd blocks", deltaWith(10, `{"size":10,"blockSize":65537,"blocks":[20]}`, `{"size":10}`), report.Invalid},
		{"huge blocks", deltaWith(10, `{"size":10,"blockSize":1073741824,"blocks":[20]}`, `{"size":10}`), report.Corrupt},
		{"not JSON", []byte("x"), report.Corrupt},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := schema.ParseArchiveDelta(test.data)
			if got := report.CodeOf(err); test.code != "" && got != test.code || (err == nil) != (test.code == "") || (d == nil) == (err == nil) {
				t.Errorf("%v (%s), want %q", err, got, test.code)
			}
		})
	}
}
