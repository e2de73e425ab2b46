package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReview(t *testing.T) {
	const head = `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1",`
	const alpha, beta = `"apiVersion":"example.solutionctl.io/v1alpha1"`, `"apiVersion":"example.solutionctl.io/v1beta1"`
	const to = `"request":{"uid":"1","desiredAPIVersion":"example.solutionctl.io/v1beta1","objects":[`
	const success = `"response":{"uid":"1","convertedObjects":[`
	for name, tt := range map[string]struct{ body, want string }{
		"several": {
			head + to + `{` + alpha + `,"kind":"Website","spec":{"message":"a","n":12345678901234567890}},{` + beta + `,"kind":"Website"}]}}`,
			head + success + `{` + beta + `,"kind":"Website","spec":{"n":12345678901234567890,"text":"a"}},{` + beta + `,"kind":"Website"}],"result":{"metadata":{},"status":"Success"}}}`,
		},
		"none": {head + to + `]}}`, head + success + `],"result":{"metadata":{},"status":"Success"}}}`},
		"one of another kind": {
			head + to + `{` + alpha + `,"kind":"Website"},{` + alpha + `,"kind":"Other"}]}}`,
			head + `"response":{"uid":"1","convertedObjects":null,"result":{"metadata":{},"status":"Failure","message":"cannot convert a Other of \"example.solutionctl.io/v1alpha1\" to \"example.solutionctl.io/v1beta1\""}}}`,
		},
		"no request": {head + `"x":1}`, "400"},
		"not JSON":   {"{", "400"},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/convert", strings.NewReader(tt.body)))
			got := strings.TrimSpace(w.Body.String())
			if w.Code == http.StatusBadRequest {
				got = "400"
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestCertificateIsRenewed changes the certificate between two loads, each of which is a handshake.
func TestCertificateIsRenewed(t *testing.T) {
	dir := t.TempDir()
	if err := run(t.Context(), dir, "127.0.0.1:0", "127.0.0.1:0"); err == nil {
		t.Error("without a certificate: got no error")
	}
	for serial := range int64(2) {
		write(t, dir, serial+1)
		pair, err := load(dir)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		if leaf.SerialNumber.Int64() != serial+1 {
			t.Errorf("got certificate %v, want %d", leaf.SerialNumber, serial+1)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := run(ctx, dir, "127.0.0.1:0", "127.0.0.1:0"); err != nil {
		t.Errorf("got %v", err)
	}
}

// write makes a certificate with a serial number.
func write(t *testing.T, dir string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: certificate}, "tls.key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
