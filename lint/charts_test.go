package lint_test

import (
	"bytes"
	"testing"
	"testing/fstest"

	"github.com/solutionctl/solutionctl/build/iso"
)

// The files that Helm extracts from an archive are the deployed ones.
func TestChartOfAnotherFile(t *testing.T) {
	chart := func(values string) []byte {
		return packFiles(map[string]string{"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "web/values.yaml": values})
	}
	project := mutatedProject(t, func(files map[string]string) { files["charts/web.tgz"] = string(chart("a: 1\n")) })
	data := buildExample(t, project, exampleImages)
	if findings := run(t, openISO(t, data)); len(findings) > 0 {
		t.Errorf("findings:\n%s", text(findings))
	}
	image, err := iso.Open(bytes.NewReader(data), int64(len(data)))
	check(t, err)
	files := copyFS(t, image)
	files["charts/web.tgz"] = &fstest.MapFile{Data: chart("a: 2\n")}
	findings := of("SOL108", run(t, openDirectory(t, files)))
	if len(findings) != 1 || !matches(findings[0], "index.json: charts/web:1.0.0 is none of the files in charts/") {
		t.Errorf("findings:\n%s", text(findings))
	}
}
