package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// withoutImages leaves out the rules that want to know what the images are for: the archives measured here hold random
// ones.
const withoutImages = "--disable=operator,monitoring,completeness"

const (
	linted      = 1000 // objects
	kubeconform = "github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0"
	kubernetes  = "k8s.io/kubernetes@v1.30.14" // whose OpenAPI description kubeconform gets
)

// benchmarkLint judges many objects beside kubeconform.
func benchmarkLint(ctx context.Context, s settings) error {
	dir := filepath.Join(s.dir, "objects")
	size, err := writeManifests(dir, linted)
	if err != nil {
		return err
	}
	schemas := filepath.Join(s.dir, "schemas")
	if err = writeSchemas(ctx, schemas); err != nil {
		return err
	}
	install := exec.CommandContext(ctx, "go", "install", kubeconform)
	install.Env, install.Stderr = append(os.Environ(), "GOBIN="+s.dir), os.Stderr
	if err = install.Run(); err != nil {
		return fmt.Errorf("install kubeconform: %w", err)
	}
	contestants := []contestant{
		{"kubeconform", []string{
			filepath.Join(s.dir, "kubeconform"), "-strict", "-schema-location", filepath.Join(schemas, "{{.ResourceKind}}{{.KindSuffix}}.json"),
			filepath.Join(dir, "components"),
		}, nil},
		{"solutionctl lint", []string{s.binary, "lint", withoutImages, "--kubernetes-version=1.30", dir}, nil},
	}
	samples, err := compare(ctx, max(s.rounds, 9), contestants...)
	if err != nil {
		return err
	}
	printComparison(fmt.Sprintf("Lint, %d Kubernetes objects", linted), size, contestants, samples)
	return nil
}

const objectManifest = `apiVersion: solutions.metalk8s.scality.com/v1alpha1
kind: Solution
metadata: {name: objects}
spec: {version: 1.0.0, images: []}
`

// objectTemplates are objects such as applications have; %d is a number.
var objectTemplates = []string{`apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-%[1]d
  labels: {app.kubernetes.io/name: web, app.kubernetes.io/instance: web-%[1]d}
spec:
  replicas: 2
  selector:
    matchLabels: {app.kubernetes.io/instance: web-%[1]d}
  template:
    metadata:
      labels: {app.kubernetes.io/instance: web-%[1]d}
    spec:
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: web
          image: registry.example.com/web:1.0.0
          imagePullPolicy: IfNotPresent
          ports: [{name: http, containerPort: 8080}]
          env:
            - {name: PORT, value: "8080"}
            - name: POD_NAMESPACE
              valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
          resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}
          readinessProbe: {httpGet: {path: /ready, port: http}}
          livenessProbe: {httpGet: {path: /live, port: http}, initialDelaySeconds: 10}
          volumeMounts: [{name: config, mountPath: /etc/web}]
      volumes:
        - name: config
          configMap: {name: web-%[1]d}
`, `apiVersion: v1
kind: Service
metadata:
  name: web-%[1]d
  labels: {app.kubernetes.io/name: web}
spec:
  selector: {app.kubernetes.io/instance: web-%[1]d}
  ports:
    - {name: http, port: 80, targetPort: http, protocol: TCP}
`, `apiVersion: v1
kind: ConfigMap
metadata:
  name: web-%[1]d
data:
  web.conf: |
    listen 8080
    workers 4
  mode: production
`}

// writeManifests writes an archive with so many objects, one in each file, and returns their bytes.
func writeManifests(dir string, count int) (size int64, err error) {
	files := map[string]string{"manifest.yaml": objectManifest}
	for i := range count {
		text := fmt.Sprintf(objectTemplates[i%len(objectTemplates)], i/len(objectTemplates))
		files[fmt.Sprintf("components/object-%05d.yaml", i)] = text
		size += int64(len(text))
	}
	if err := os.MkdirAll(filepath.Join(dir, "components"), 0o755); err != nil {
		return 0, err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return 0, err
		}
	}
	return size, nil
}

// writeSchemas writes a complete JSON Schema for each kind that is used, as kubeconform's own collection has them.
func writeSchemas(ctx context.Context, dir string) error {
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", kubernetes)
	download.Dir = os.TempDir() // outside of any module
	out, err := download.Output()
	if err != nil {
		return fmt.Errorf("download %s: %w", kubernetes, err)
	}
	var module struct{ Dir string }
	if err = json.Unmarshal(out, &module); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(module.Dir, "api", "openapi-spec", "swagger.json"))
	if err != nil {
		return err
	}
	var description struct{ Definitions map[string]object }
	if err := json.Unmarshal(data, &description); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for file, definition := range map[string]string{
		"deployment-apps-v1": "io.k8s.api.apps.v1.Deployment", "service-v1": "io.k8s.api.core.v1.Service", "configmap-v1": "io.k8s.api.core.v1.ConfigMap",
	} {
		data, err := json.Marshal(inlined(description.Definitions, description.Definitions[definition]))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file+".json"), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// inlined replaces references by what they refer to and forbids unknown fields.
func inlined(definitions map[string]object, value any) any {
	switch value := value.(type) {
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = inlined(definitions, item)
		}
		return list
	case object:
		if reference, ok := value["$ref"].(string); ok {
			return inlined(definitions, definitions[strings.TrimPrefix(reference, "#/definitions/")])
		}
		if value["format"] == "int-or-string" {
			return object{"oneOf": []any{object{"type": "string"}, object{"type": "integer"}}}
		}
		result := object{}
		for key, item := range value {
			result[key] = inlined(definitions, item)
		}
		if _, fields := value["properties"].(object); fields {
			result["additionalProperties"] = false
		}
		return result
	default:
		return value
	}
}
