package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

const account = "/var/run/secrets/kubernetes.io/serviceaccount"

// api is where the API server is, and who asks it.
type api struct{ address, account string }

func inCluster(getenv func(string) string) api {
	return api{"https://" + getenv("KUBERNETES_SERVICE_HOST") + ":" + getenv("KUBERNETES_SERVICE_PORT"), account}
}

// sync does what makes a database: here it writes a ConfigMap. Pods mount it, so that the kubelet starts none without it.
// It may be run again.
func (a api) sync(ctx context.Context, name string) error {
	read := func(file string) ([]byte, error) { return os.ReadFile(filepath.Join(a.account, file)) }
	token, err := read("token")
	if err != nil {
		return err
	}
	namespace, err := read("namespace")
	if err != nil {
		return err
	}
	authority, err := read("ca.crt")
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]string{"schema": "1"},
	})
	if err != nil {
		return err
	}
	address := a.address + "/api/v1/namespaces/" + string(namespace) + "/configmaps"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	request.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusCreated && response.StatusCode != http.StatusConflict {
		return fmt.Errorf("create ConfigMap %s: %s", name, response.Status)
	}
	return nil
}
