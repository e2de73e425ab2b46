package powers_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/kube/powers"
)

// FuzzJudge judges whatever decodes: without a panic, and twice the same.
func FuzzJudge(f *testing.F) {
	files, err := filepath.Glob("testdata/rows/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range archive.Files {
			if strings.HasSuffix(part.Name, ".yaml") {
				for _, o := range read(f, part.Name, part.Data) {
					data, err := json.Marshal(o.Object)
					if err != nil {
						f.Fatal(err)
					}
					f.Add(data)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var object map[string]any
		if json.Unmarshal(data, &object) != nil {
			return
		}
		objects := []powers.Object{{File: "a.yaml", Unstructured: &unstructured.Unstructured{Object: object}}}
		first := powers.Judge(acme(), objects)
		if second := powers.Judge(acme(), objects); !reflect.DeepEqual(first, second) {
			t.Errorf("judged twice: %+v and %+v", first, second)
		}
		powers.Summarize(first)
		powers.Uncovered(first, first)
	})
}

// BenchmarkJudge judges the largest role and the largest workload of the rows many times; an object is to take less than 5 ms.
func BenchmarkJudge(b *testing.B) {
	for _, name := range []string{"pod-on-node", "read-secrets", "intercepts-requests"} {
		data, err := os.ReadFile("testdata/rows/" + name + ".txtar")
		if err != nil {
			b.Fatal(err)
		}
		var objects []powers.Object
		for _, part := range txtar.Parse(data).Files {
			if strings.HasSuffix(part.Name, ".yaml") {
				objects = append(objects, read(b, part.Name, part.Data)...)
			}
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				powers.Judge(acme(), objects)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(objects)), "µs/object")
		})
	}
}
