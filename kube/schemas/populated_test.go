package schemas_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/kube/schemas"
)

// The k8s.io/api module carries an object of every kind with every field set. None of these fields may be unknown, of
// the wrong type or missing; their values, such as "imagePullPolicyValue", are made up.
func TestPopulatedObjects(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "testdata/HEAD/*.yaml"))
	if err != nil || len(files) < 100 {
		t.Fatalf("only %d objects in %s: %v", len(files), dir, err)
	}
	r := release(t, "1.36")
	validated := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "WatchEvent.yaml") {
			continue // has no kind
		}
		problems := r.Validate(object(t, string(data)))
		if len(problems) == 1 && problems[0].Reason == schemas.UnknownKind {
			continue // of an API that is gone, or a list or a review that cannot be created
		}
		validated++
		for _, p := range problems {
			if p.Reason != schemas.WrongValue && p.Reason != schemas.Duplicate {
				t.Errorf("%s: %s: %v", filepath.Base(file), p.Reason, p)
			}
		}
	}
	if validated < 60 {
		t.Errorf("only %d objects were validated", validated)
	}
}
