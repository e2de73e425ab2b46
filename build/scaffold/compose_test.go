package scaffold

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/solutionctl/solutionctl/schema/report"
)

// expanded is a text as the kubelet expands it, when each variable has a value.
func expanded(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch end := strings.IndexByte(rest, ')'); {
		case strings.HasPrefix(rest, "$$"):
			b.WriteByte('$')
			i++
		case strings.HasPrefix(rest, "$(") && end > 0:
			b.WriteString("VALUE")
			i += end
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

// TestEscaped: the kubelet expands an escaped text to the text itself.
func TestEscaped(t *testing.T) {
	for _, text := range []string{"a$$b", "$$(x)", "$(x)", "$x", "$", "$$$", "a$(b)$c$$(d)$", "${x}"} {
		if got := expanded(escaped(text)); got != text {
			t.Errorf("%q is %q, which becomes %q", text, escaped(text), got)
		}
	}
	if got := escaped("a$b"); got != "a$b" {
		t.Errorf("without need: %q", got)
	}
}

// TestBuiltImages: a service that compose builds has its own image, also beside one with a longer name.
func TestBuiltImages(t *testing.T) {
	for _, test := range []struct {
		project, images, service, want string // an empty image is refused
	}{
		{"shop", "shop-api:latest shop-web-api:latest", "api", "shop-api:latest"},
		{"shop", "shop-api:latest shop-web-api:latest", "web-api", "shop-web-api:latest"},
		{"other", "shop-api:latest shop-web-api:latest", "api", "shop-api:latest"},
		{"shop-web", "shop-web-api:latest shop-web-web-api:latest", "api", "shop-web-api:latest"},
		{"other", "shop-api:latest shop-api:latest old-web-api:latest", "api", "shop-api:latest"},
		{"other", "shop-api:latest old-api:latest", "api", ""},
		{"other", "docker.io/library/nginx:1", "api", "other-api"},
	} {
		c := &composer{project: &types.Project{Name: test.project, Services: types.Services{"api": {Name: "api"}, "web-api": {Name: "web-api"}}}}
		c.builder = &builder{}
		for image := range strings.FieldsSeq(test.images) {
			c.options.Images = append(c.options.Images, Available{Origin: image})
		}
		image, err := c.image(c.project.Services[test.service])
		if image != test.want || (err != nil) != (test.want == "") || err != nil && report.CodeOf(err) != report.Invalid {
			t.Errorf("%+v: %s, %v", test, image, err)
		}
	}
}

// FuzzEnvironmentFile: a file of variables that is read statement by statement has the values that compose reads, or is refused as well.
func FuzzEnvironmentFile(f *testing.F) {
	f.Add("# it's \"\nexport A='x\ny'  B=\"${A}\\\"\n$$\" # 'c\nC: ${B:-z}${D}${A:+\"}\nA=$A$A\nD\n\n A = it's")
	f.Add("A='x\n\n'\nB='x\n")
	f.Add("A=\u2000'x\nB=y'\nOUT\nexport\nC")
	f.Add("A=\\\nB=\"\\\\\"\nC")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 500 || strings.Count(text, "$") > 10 {
			return // it takes long: see maxReferences
		}
		outer := map[string]string{"OUT": "out", "D": "d"}
		want, wantErr := dotenv.ParseWithLookup(strings.NewReader(text), func(key string) (string, bool) { value, ok := outer[key]; return value, ok })
		c := &composer{source: Source{Path: "compose.yaml", Files: fstest.MapFS{".env": {Data: []byte(text)}}}, variables: maxVariables}
		got, err := c.environmentFile(".env", outer)
		if (err != nil) != (wantErr != nil) || err == nil && !maps.Equal(got, want) {
			t.Errorf("%q: got %q, %v; want %q, %v", text, got, err, want, wantErr)
		}
	})
}
