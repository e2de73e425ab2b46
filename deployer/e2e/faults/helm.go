//go:build linux

package faults

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/helm"
)

// charted is the component that is a chart, and the release of Helm that it may adopt.
const charted = "db"

// chartFiles are the files of the chart. It generates a password, as one that Helm has generated must stay, and has a hook, which runs once.
var chartFiles = map[string]string{
	"values.yaml": "size: 1\n",
	"templates/db.yaml": `apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-password}
stringData: {password: {{ if .Values.password }}{{ .Values.password }}{{ else }}{{ randAlphaNum 20 }}{{ end }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}, labels: {app.kubernetes.io/managed-by: {{ .Release.Service }}}}
data: {size: {{ .Values.size | quote }}}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {selector: {app: db}, ports: [{port: 80}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: {{ .Release.Name }}-sync, annotations: {"helm.sh/hook": "post-install,post-upgrade"}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: sync, image: "{{ "{{ repository }}" }}/demo-operator:1.0.0"}]}}}
`,
}

// helmed are the objects that Helm has made of the chart: with a password of its own, and a key that the chart has no more.
var helmed = map[schema.GroupVersionResource]string{
	secretResource: `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db-password"}, "data": {"password": "` +
		base64.StdEncoding.EncodeToString([]byte("FromHelmFromHelm1234")) + `"}}`,
	configMapResource:                     `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "db", "labels": {"app.kubernetes.io/managed-by": "Helm"}}, "data": {"size": "3", "old": "x"}}`,
	{Version: "v1", Resource: "services"}: `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db"}, "spec": {"selector": {"app": "db"}, "ports": [{"port": 80}]}}`,
}

// install makes the environment one in which Helm has installed the chart, and upgraded it once.
func (l *Lane) install(ctx context.Context) error {
	var manifest []string
	for resource, text := range helmed {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON([]byte(text)); err != nil {
			return err
		}
		object.SetAnnotations(map[string]string{"meta.helm.sh/release-name": charted, "meta.helm.sh/release-namespace": l.environment})
		if err := l.create(ctx, resource, object, helm.FieldManager); err != nil {
			return err
		}
		manifest = append(manifest, text)
	}
	for i, status := range []string{"superseded", helm.StatusDeployed} {
		data, err := json.Marshal(map[string]any{
			"name": charted, "namespace": l.environment, "version": i + 1, "info": map[string]any{"status": status}, "config": map[string]any{"size": 3},
			"chart": map[string]any{"metadata": map[string]any{"name": charted, "version": "0.9.0"}}, "manifest": "---\n" + strings.Join(manifest, "\n---\n"),
		})
		if err != nil {
			return err
		}
		text, err := deployertest.HelmSecret(l.environment, charted, i+1, status, data)
		if err != nil {
			return err
		}
		secret := &unstructured.Unstructured{}
		if err = secret.UnmarshalJSON([]byte(text)); err != nil {
			return err
		}
		if err = l.create(ctx, secretResource, secret, "Helm"); err != nil {
			return err
		}
	}
	return nil
}

// create makes an object in the environment under another field manager.
func (l *Lane) create(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured, manager string) error {
	_, err := l.client.Resource(resource).Namespace(l.environment).Create(ctx, object, metav1.CreateOptions{FieldManager: manager})
	if err != nil {
		return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// adoptedHelm matches the adopted revision of Helm in a record, with the identity of its Secret.
var adoptedHelm = regexp.MustCompile(`(\$ENVIRONMENT/` + charted + ` \d+ )[0-9a-f-]{36}`)
