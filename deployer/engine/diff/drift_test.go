package diff

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDrift(t *testing.T) {
	const wanted = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}, finalizers: [a/b, c/d]}
spec:
  replicas: 1
  template:
    metadata: {annotations: {}}
    spec:
      nodeSelector: {}
      containers:
      - name: web
        args: [a, b]
        image: w:1
        ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]
        resources: {limits: {cpu: 1000m}}
`
	const live = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels: {app: web, theirs: x}
  finalizers: [a/b, c/d, e/f]
  managedFields:
  - manager: solutionctl
    operation: Apply
    fieldsType: FieldsV1
    fieldsV1: {"f:metadata": {"f:labels": {"f:app": {}}, "f:finalizers": {'v:"a/b"': {}, 'v:"c/d"': {}}}, "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:name": {}, "f:args": {}, "f:image": {}, "f:resources": {"f:limits": {"f:cpu": {}}}, "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}, 'k:{"containerPort":80,"protocol":"UDP"}': {".": {}, "f:containerPort": {}, "f:protocol": {}}}}}}}}}
  - manager: them
    operation: Update
    time: "2026-01-02T03:04:05Z"
    fieldsType: FieldsV1
    fieldsV1: {"f:metadata": {"f:labels": {"f:theirs": {}}}, "f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {"f:image": {}, "f:args": {}}}}}}}
spec:
  replicas: 1
  template:
    metadata: {}
    spec:
      containers:
      - name: web
        args: [a, b]
        image: w:1
        ports: [{containerPort: 80, protocol: TCP}, {containerPort: 80, protocol: UDP}]
        resources: {limits: {cpu: "1"}}
      - {name: theirs, image: x}
`
	const container = "spec.template.spec.containers[name=web]"
	// Each change takes some of our fields away, as the server does when another manager writes them.
	for name, test := range map[string]struct {
		changes []string // pairs: a text in the live object, and its replacement
		want    []string
	}{
		"nothing":            {},
		"a value":            {[]string{"image: w:1", "image: w:2", `"f:image": {}, "f:resources"`, `"f:resources"`}, []string{container + ".image (them)"}},
		"there and back":     {[]string{`"f:image": {}, "f:resources"`, `"f:resources"`}, nil},
		"a list as a whole":  {[]string{"args: [a, b]", "args: [b]", `"f:args": {}, "f:image"`, `"f:image"`}, []string{container + ".args (them)"}},
		"an element":         {[]string{", {containerPort: 80, protocol: UDP}", "", `, 'k:{"containerPort":80,"protocol":"UDP"}': {".": {}, "f:containerPort": {}, "f:protocol": {}}`, ""}, []string{container + ".ports (solutionctl)"}},
		"a label removed":    {[]string{"app: web, ", "", `"f:labels": {"f:app": {}}, "f:finalizers"`, `"f:finalizers"`}, []string{"metadata.labels.app"}},
		"a finalizer":        {[]string{"a/b, c/d, e/f", "a/b", `, 'v:"c/d"': {}`, ""}, []string{"metadata.finalizers (solutionctl)"}},
		"the container":      {[]string{"- name: web", "- name: other", `'k:{"name":"web"}': {"."`, `'k:{"name":"x"}': {"."`}, []string{container}},
		"scaled":             {[]string{"replicas: 1", "replicas: 3", `"f:replicas": {}, `, "", `"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {"f:image"`, `"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {"f:image"`}, nil},
		"scaled to nothing":  {[]string{"replicas: 1", "replicas: 0", `"f:replicas": {}, `, ""}, nil},
		"ownership is wiped": {[]string{"manager: solutionctl", "manager: gone"}, []string{"metadata.finalizers (gone)", container + ".ports (gone)", container + ".resources.limits.cpu (gone)"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := live
			for i := 0; i < len(test.changes); i += 2 {
				if !strings.Contains(text, test.changes[i]) {
					t.Fatalf("there is no %s", test.changes[i])
				}
				text = strings.Replace(text, test.changes[i], test.changes[i+1], 1)
			}
			var got []string
			for _, field := range Drift(object(t, wanted), object(t, text)) {
				line := field.Path
				if field.Manager != "" {
					line += " (" + field.Manager + ")"
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(got, test.want); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDriftInMaps: the server counts an entry of a map as ours even when all its fields belong to others by now.
func TestDriftInMaps(t *testing.T) {
	const wanted = `
apiVersion: example.com/v1
kind: Store
metadata: {name: store, namespace: shop}
spec:
  nodes: {a: {size: 1, zone: x}}
  secret: {name: s, optional: false, limit: 1000m}
`
	const live = `
apiVersion: example.com/v1
kind: Store
metadata:
  name: store
  namespace: shop
  managedFields:
  - {manager: solutionctl, operation: Apply, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:nodes": {"f:a": OURS}, "f:secret": {}}}}
  - {manager: them, operation: Update, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:nodes": {"f:a": THEIRS}}}}
spec:
  nodes: {a: NODE}
  secret: {name: s, limit: "1", key: default}
`
	const all, none = `{".": {}, "f:size": {}, "f:zone": {}}`, `{}`
	for name, test := range map[string]struct {
		ours, theirs, node string
		want               []string
	}{
		"nothing":                 {all, none, `{size: 1, zone: x, color: red}`, nil},
		"a value":                 {`{".": {}, "f:zone": {}}`, `{"f:size": {}}`, `{size: 2, zone: x}`, []string{"size (them)"}},
		"all values":              {none, `{"f:size": {}, "f:zone": {}}`, `{size: 2, zone: y}`, []string{"size (them)", "zone (them)"}},
		"there and back":          {none, `{"f:size": {}, "f:zone": {}}`, `{size: 1, zone: x}`, nil},
		"emptied":                 {none, none, `{}`, []string{"size", "zone"}},
		"emptied but a default":   {none, none, `{color: red}`, []string{"size", "zone"}},
		"emptied, and used again": {none, `{"f:color": {}}`, `{color: red}`, []string{"size", "zone"}},
		"not taken apart":         {none, none, `{size: "1", zone: x}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			changed := strings.NewReplacer("OURS", test.ours, "THEIRS", test.theirs, "NODE", test.node).Replace(live)
			var got []string
			for _, field := range Drift(object(t, wanted), object(t, changed)) {
				line := strings.TrimPrefix(field.Path, "spec.nodes.a.")
				if strings.Contains(field.Manager, "them") {
					line += " (" + field.Manager + ")"
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(got, test.want); diff != "" {
				t.Error(diff)
			}
		})
	}
}
