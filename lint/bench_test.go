package lint_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/solutionctl/solutionctl/lint"
)

// BenchmarkObjects judges a thousand objects in as many files.
func BenchmarkObjects(b *testing.B) {
	files := readExample(b, "base.txtar").files
	for i := range 1000 {
		files[fmt.Sprintf("components/object-%04d.yaml", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-%[1]d
  labels: {app.kubernetes.io/name: web}
spec:
  replicas: 2
  selector:
    matchLabels: {app: web-%[1]d}
  template:
    metadata:
      labels: {app: web-%[1]d}
    spec:
      containers:
        - name: web
          image: registry.example.com/web:1.0.0
          env: [{name: PORT, value: "8080"}]
          resources: {requests: {cpu: 100m, memory: 64Mi}}
          readinessProbe: {httpGet: {path: /ready, port: http}}
`, i)}
	}
	for b.Loop() {
		_, err := lint.Run(b.Context(), openDirectory(b, files).Target, lint.Options{Disable: []string{"operator", "monitoring", "completeness"}})
		check(b, err)
	}
}
