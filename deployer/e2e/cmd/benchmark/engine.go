//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
)

const (
	solutions = 5 // of every environment
	extra     = 2 // of them have an object more, a Service
)

// file is a Solution in an environment.
type file struct {
	namespace, solution, text string
	chart                     string // directory of a Helm chart with the same objects
}

// writeFile writes the objects of a Solution, as a file for kubectl and as a chart for Helm.
func writeFile(dir, namespace, solution string, service bool) (file, error) {
	name := solution + "-operator"
	labels := "{app: " + name + ", app.kubernetes.io/name: " + name + ", app.kubernetes.io/part-of: " + solution + "}"
	text := fmt.Sprintf(`apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s, namespace: %[2]s, labels: %[3]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %[1]s, namespace: %[2]s, labels: %[3]s}
rules:
- {apiGroups: [""], resources: [configmaps, secrets, services], verbs: [get, list, watch, create, patch, delete]}
- {apiGroups: [apps], resources: [deployments], verbs: [get, list, watch, create, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s, namespace: %[2]s, labels: %[3]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}
subjects: [{kind: ServiceAccount, name: %[1]s, namespace: %[2]s}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: %[1]s-config, namespace: %[2]s, labels: %[3]s}
data: {operator.yaml: "repositories: {1.0.0: [{endpoint: registry.solutionctl.invalid/%[4]s-1.0.0, images: [operator:1.0.0]}]}"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: %[2]s, labels: %[3]s}
spec:
  replicas: 0
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: %[3]s, annotations: {release: "1"}}
    spec:
      serviceAccountName: %[1]s
      containers:
      - name: operator
        image: "registry.solutionctl.invalid/%[4]s-1.0.0/operator:1.0.0"
        command: [operator, --config=/etc/config/operator.yaml]
        env: [{name: WATCH_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}]
        resources: {requests: {cpu: 10m, memory: 64Mi}}
        volumeMounts: [{name: config, mountPath: /etc/config}]
      volumes: [{name: config, configMap: {name: %[1]s-config}}]
---
`, name, namespace, labels, solution)
	if service {
		text += fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: %[2]s, labels: %[3]s}
spec: {selector: {app: %[1]s}, ports: [{port: 80}]}
---
`, name, namespace, labels)
	}
	f := file{namespace: namespace, solution: solution, text: text, chart: filepath.Join(dir, "charts", namespace+"-"+solution)}
	templates := filepath.Join(f.chart, "templates")
	chart := fmt.Sprintf("apiVersion: v2\nname: %s\nversion: 1.0.0\n", solution)
	return f, errors.Join(
		os.WriteFile(filepath.Join(dir, namespace+"."+solution+".yaml"), []byte(text), 0o644),
		os.MkdirAll(templates, 0o755),
		os.WriteFile(filepath.Join(f.chart, "Chart.yaml"), []byte(chart), 0o644),
		os.WriteFile(filepath.Join(templates, "all.yaml"), []byte(text), 0o644),
	)
}

// timings are seconds.
type timings struct {
	Plan, Apply float64
	Written     int // objects
}

// deploy is the contestant: it plans and applies all files of a directory and prints what that took.
func deploy(ctx context.Context, kubeconfig, dir, version string) error {
	c, err := cluster.Connect(cluster.Options{Kubeconfig: kubeconfig, Now: time.Now})
	if err != nil {
		return err
	}
	e := &engine.Engine{Store: &record.Store{Cluster: c, Tool: "1.0.0"}, Now: time.Now, User: "benchmark"}
	releases, err := readReleases(dir, version)
	if err != nil {
		return err
	}
	var t timings
	started := time.Now()
	plans, err := e.PlanAll(ctx, releases, engine.PlanOptions{})
	if err != nil {
		return err
	}
	t.Plan = time.Since(started).Seconds()
	for _, plan := range plans {
		for _, change := range plan.Changes {
			if change.Action != schema.ActionNone {
				t.Written++
			}
		}
	}
	started = time.Now()
	if err := e.ApplyAll(ctx, plans, engine.ApplyOptions{NoWait: true}); err != nil {
		return err
	}
	t.Apply = time.Since(started).Seconds()
	return json.NewEncoder(os.Stdout).Encode(t)
}

func readReleases(dir, version string) ([]engine.Release, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var releases []engine.Release
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		data = bytes.ReplaceAll(data, []byte(`release: "1"`), []byte(`release: "`+version+`"`))
		namespace, solution, _ := strings.Cut(strings.TrimSuffix(filepath.Base(name), ".yaml"), ".")
		r := engine.Release{Key: record.Key{Namespace: namespace, Name: solution}, Version: version + ".0.0", Operation: "add"}
		reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
		for {
			document, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(document, &object.Object); err != nil {
				return nil, err
			}
			if len(object.Object) > 0 {
				r.Objects = append(r.Objects, object)
			}
		}
		releases = append(releases, r)
	}
	return releases, nil
}
