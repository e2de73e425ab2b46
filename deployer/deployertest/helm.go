package deployertest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Created creates an object in the environment with another field manager.
func (b *Bed) Created(manager, document string) {
	b.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(document)); err != nil {
		b.Fatal(err)
	}
	path := map[string]string{
		"Deployment": "/apis/apps/v1/namespaces/%s/deployments", "Job": "/apis/batch/v1/namespaces/%s/jobs",
		"ConfigMap": "/api/v1/namespaces/%s/configmaps", "Secret": "/api/v1/namespaces/%s/secrets",
	}[object.GetKind()]
	request := httptest.NewRequest(http.MethodPost, fmt.Sprintf(path, Environment)+"?fieldManager="+manager, bytes.NewReader([]byte(document)))
	answer := httptest.NewRecorder()
	b.Server.ServeHTTP(answer, request)
	if answer.Code >= http.StatusBadRequest {
		b.Fatalf("%d: %s", answer.Code, answer.Body)
	}
}

// CreatedByHelm makes an object in the environment as Helm does for a release.
func (b *Bed) CreatedByHelm(release, document string) {
	b.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(document)); err != nil {
		b.Fatal(err)
	}
	object.SetAnnotations(map[string]string{"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": Environment})
	text, err := object.MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	b.Created("helm", string(text))
}

// HelmRelease creates the Secret of a revision of a Helm release in the environment, with the release as data.
func (b *Bed) HelmRelease(name string, revision int, status string, data []byte) {
	b.Helper()
	secret, err := HelmSecret(Environment, name, revision, status, data)
	if err != nil {
		b.Fatal(err)
	}
	b.Server.Put(b.TB, secret)
}

// HelmSecret returns the Secret of a revision of a Helm release as JSON, with the release as data.
func HelmSecret(namespace, name string, revision int, status string, data []byte) (string, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(data); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	again := base64.StdEncoding.EncodeToString(packed.Bytes())
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "metadata": {"namespace": %q, "name": "sh.helm.release.v1.%[2]s.v%[3]d",
		"labels": {"owner": "helm", "name": %[2]q, "status": %[4]q, "version": "%[3]d"}}, "data": {"release": %[5]q}}`,
		namespace, name, revision, status, base64.StdEncoding.EncodeToString([]byte(again))), nil
}
