package page

import (
	"slices"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
)

func TestSegments(t *testing.T) {
	for _, test := range []struct {
		path string
		want []string
	}{
		{"spec.template.spec.containers[name=web].image", []string{"spec.", "template.", "spec.", "containers[name=web].", "image"}},
		{"metadata.labels[app.kubernetes.io/name]", []string{"metadata.", "labels[app.kubernetes.io/name]"}},
		{"spec", []string{"spec"}},
		{"", []string{""}},
	} {
		if got := segments(test.path); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q", test.path, got)
		}
	}
}

func TestPlain(t *testing.T) {
	for _, test := range []struct{ value, want string }{
		{`"shop"`, "shop"}, {`"5"`, `"5"`}, {"5", "5"}, {`"true"`, `"true"`}, {`""`, `""`}, {`" a"`, `" a"`}, {`"a\nb"`, `"a\nb"`}, {`{"a":1}`, `{"a":1}`},
	} {
		if got := plain(test.value); got != test.want {
			t.Errorf("%s: got %s, want %s", test.value, got, test.want)
		}
	}
}

func TestPartsOfShowsWhatIsLostFirst(t *testing.T) {
	change := func(a schema.Action) schema.Change { return schema.Change{Action: a} }
	parts := partsOf(&schema.Operation{Parts: []schema.OperationPart{{Changes: []schema.Change{
		change(schema.ActionNone), change(schema.ActionCreate), change(schema.ActionDelete), change(schema.ActionKeep), change(schema.ActionCreate),
	}}}})
	if p := parts[0]; len(p.Shown) != 3 || p.Shown[0].Action != schema.ActionDelete || len(p.Same) != 2 || !slices.Contains(p.Tally, schema.Tally{Action: schema.ActionCreate, Number: 2, Words: "created"}) {
		t.Errorf("%+v", p)
	}
}

func TestBarShowsEveryShare(t *testing.T) {
	laid := bar([]share{{Number: 10000}, {Number: 1}, {Number: 1}})
	x := 0
	for _, s := range laid {
		if s.X != x || s.Width < 5 {
			t.Errorf("%+v", laid)
		}
		x += s.Width
	}
	if x != barWidth {
		t.Errorf("the bar is %d wide", x)
	}
	if len(bar(nil)) != 0 {
		t.Error("a bar of nothing")
	}
}
