package iso

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
)

func TestCompareDiskFSAgrees(t *testing.T) {
	for name, files := range map[string][]File{"small": smallTree(), "patch": patchTree(), "empty": nil} {
		data := imageBytes(t, files)
		for _, f := range CompareDiskFS(bytes.NewReader(data), int64(len(data))) {
			t.Errorf("%s: %s: %s", name, f.Rule, f)
		}
	}
}

// TestCompareDiskFSManyDirectories has as many images as an archive can have. If go-diskfs asked for the list of all on the way to each, these
// would be more bytes than it can have.
func TestCompareDiskFSManyDirectories(t *testing.T) {
	var files []File
	for i := range 5000 {
		files = append(files, textFile(fmt.Sprintf("images/image-%04d/1.0.0/manifest.json", i), "x"))
	}
	data := imageBytes(t, files)
	for _, f := range CompareDiskFS(bytes.NewReader(data), int64(len(data))) {
		t.Errorf("%s: %s", f.Rule, f)
	}
}

// TestCompareDiskFSGaps has names that go-diskfs misreads: they are warnings, and nothing else differs.
func TestCompareDiskFSGaps(t *testing.T) {
	data := imageBytes(t, stressTree(100))
	var got []string
	for _, f := range CompareDiskFS(bytes.NewReader(data), int64(len(data))) {
		if f.Rule != ruleSecondGap || f.Severity != report.SeverityWarning {
			t.Errorf("%s: %s", f.Rule, f)
		}
		got = append(got, f.Path)
	}
	if want := []string{"odd/a;1", "odd/x.", "odd/x.."}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestCompareDiskFSDisagrees makes images that both sides read, each in its own way.
func TestCompareDiskFSDisagrees(t *testing.T) {
	for _, test := range []struct {
		name, message string
		patch         func(p *patched)
	}{
		{"path table outside", "cannot read the image", func(p *patched) {
			binary.LittleEndian.PutUint32(p.data[p.descriptor(primaryTree)+140:], 1<<20)
		}},
		{"refused by Open", "cannot be compared", func(p *patched) { p.data[p.descriptor(primaryTree)+1] = 'X' }},
		{"index panics", "it panics", func(p *patched) {
			at := p.pathTable(primaryTree, false)
			p.data[at] = 255
			for _, d := range []tree{primaryTree} {
				p.put32(p.descriptor(d)+132, 20)
			}
		}},
	} {
		t.Run(strings.ReplaceAll(test.name, " ", "-"), func(t *testing.T) {
			p := newPatched(t)
			test.patch(p)
			findings := CompareDiskFS(p.reader())
			if len(findings) != 1 || findings[0].Rule != ruleSecondOpinion || !strings.Contains(findings[0].Message, test.message) {
				t.Errorf("got %v, want one finding with %q", findings, test.message)
			}
		})
	}
}

// TestComparison changes our own index, one property at a time: each difference must be found, and only that.
func TestComparison(t *testing.T) {
	p := newPatched(t)
	r, size := p.reader()
	child := func(d *node, name string) *node {
		return d.children[slices.IndexFunc(d.children, func(n *node) bool { return n.name == name })]
	}
	for name, change := range map[string]func(pair *node){
		"name":     func(pair *node) { child(pair, "good").name = "gone" },
		"size":     func(pair *node) { child(pair, "good").size++ },
		"extent":   func(pair *node) { child(pair, "good").sections[0].Offset += 4096 },
		"mode":     func(pair *node) { child(pair, "good").mode = 0o777 },
		"kind":     func(pair *node) { child(pair, "good").dir = true },
		"location": func(pair *node) { pair.extent++ },
		"missing":  func(pair *node) { pair.children = pair.children[:len(pair.children)-1] },
		"extra":    func(pair *node) { pair.children = append(pair.children, &node{name: "x", path: "pair/x", records: 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			ours := newScan(r, size, false)
			tree, _, err := ours.index()
			if err != nil {
				t.Fatal(err)
			}
			change(child(tree.root, "pair"))
			c := &comparison{verdict: &verdict{strict: true}}
			if err := c.run(ours, tree); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(c.counts, map[string]int{ruleSecondOpinion: 1}) {
				t.Errorf("got %v", c.findings)
			}
		})
	}
}
