package render

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// On an isolated site no one renews certificates, and a conversion webhook with an expired one makes custom resources
// unreadable. So a certificate lives long, and any deployment in its second half issues a new one. This is safe: the
// key of the authority is discarded after its only signature, so an authority can never vouch for more than one
// certificate of one namespace.
const certificateLife = 5 * 365 * 24 * time.Hour

// The keys of a Secret with a certificate, as kubernetes.io/tls and cert-manager have them.
const (
	keyCertificate = "tls.crt"
	keyPrivate     = "tls.key"
	keyAuthority   = "ca.crt"
)

// caBundle is the field with the authorities that the API server trusts.
const caBundle = "caBundle"

// certificate returns the Secret of this name with a certificate for every Service of the namespace: the existing one
// while it is good, else a new one. It returns nil for a Secret that another owner manages.
func (r *renderer) certificate(name, namespace string) (*unstructured.Unstructured, error) {
	live := r.s.Secrets[name]
	if live != nil && live.GetLabels()[labelManagedBy] != managedBy {
		return nil, nil
	}
	names := serviceNames(namespace)
	data := secretData(live)
	if !isGood(data, names, r.s.Now) {
		var err error
		if data, err = issue(r.p.Solution.Metadata.Name, names, data[keyAuthority], r.s.Now); err != nil {
			return nil, fmt.Errorf("certificate %s/%s: %w", namespace, name, err)
		}
	}
	encoded := map[string]any{}
	for key, value := range data {
		encoded[key] = base64.StdEncoding.EncodeToString(value)
	}
	return newKubernetesObject("v1", "Secret", namespace, name, r.labels(r.operatorName(), "operator"),
		map[string]any{"type": "kubernetes.io/tls", "data": encoded}), nil
}

// WithoutCertificates is an object as it would be with any certificate: one that is not there yet is another one whenever it is
// made.
func WithoutCertificates(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	if object.GetKind() == "Secret" && object.Object["type"] == "kubernetes.io/tls" && object.GetLabels()[labelManagedBy] == managedBy {
		delete(object.Object, "data")
	}
	dropCertificates(object.Object)
	return object
}

func dropCertificates(value any) {
	switch v := value.(type) {
	case map[string]any:
		delete(v, annotationCertificate)
		if _, ok := v[caBundle].(string); ok { // and not a field of this name in a schema
			delete(v, caBundle)
		}
		for _, inner := range v {
			dropCertificates(inner)
		}
	case []any:
		for _, inner := range v {
			dropCertificates(inner)
		}
	}
}

// ValueWithoutCertificates is the value of a field, as JSON, as it would be with any certificate; path names the field as a plan does. A
// value that has no certificate is returned as it is.
func ValueWithoutCertificates(path, value string) string {
	if strings.HasSuffix(path, "."+caBundle) || strings.HasSuffix(path, "["+annotationCertificate+"]") {
		return ""
	}
	if !strings.Contains(value, caBundle) && !strings.Contains(value, annotationCertificate) {
		return value
	}
	var content any
	if err := json.Unmarshal([]byte(value), &content); err != nil {
		return value
	}
	dropCertificates(content)
	text, err := json.Marshal(content)
	if err != nil {
		return value
	}
	return string(text)
}

// serviceNames are the names of all Services of a namespace inside the cluster.
func serviceNames(namespace string) []string {
	return []string{"*." + namespace + ".svc", "*." + namespace + ".svc.cluster.local"}
}

// secretData returns the content of a Secret that belongs to a certificate; none for nil.
func secretData(secret *unstructured.Unstructured) map[string][]byte {
	data := map[string][]byte{}
	if secret == nil {
		return data
	}
	for _, key := range []string{keyCertificate, keyPrivate, keyAuthority} {
		text, _, _ := unstructured.NestedString(secret.Object, "data", key)
		if value, err := base64.StdEncoding.DecodeString(text); err == nil && text != "" {
			data[key] = value
		}
	}
	return data
}

// isGood reports whether a certificate is valid for these names and in the first half of its life.
func isGood(data map[string][]byte, names []string, now time.Time) bool {
	pair, err := tls.X509KeyPair(data[keyCertificate], data[keyPrivate])
	if err != nil {
		return false
	}
	leaf, authorities := pair.Leaf, x509.NewCertPool()
	authorities.AppendCertsFromPEM(data[keyAuthority])
	for _, name := range names {
		host := "x" + name[1:] // any Service will do
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: authorities, CurrentTime: now}); err != nil {
			return false
		}
	}
	return now.Before(leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 2))
}

// issue creates an authority and a certificate signed by it. Clients of the new authority continue to trust the last
// one, because pods serve the old certificate for a while.
func issue(solution string, names []string, lastAuthorities []byte, now time.Time) (map[string][]byte, error) {
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	authority, err := newTemplate(solution+" webhook authority", now)
	if err != nil {
		return nil, err
	}
	authority.IsCA, authority.BasicConstraintsValid, authority.MaxPathLenZero = true, true, true
	authority.KeyUsage = x509.KeyUsageCertSign
	authority.PermittedDNSDomainsCritical = true
	for _, name := range names {
		authority.PermittedDNSDomains = append(authority.PermittedDNSDomains, name[1:])
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf, err := newTemplate(solution+" webhook", now)
	if err != nil {
		return nil, err
	}
	leaf.DNSNames, leaf.KeyUsage, leaf.ExtKeyUsage = names, x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), authorityKey)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		keyCertificate: encodePEM("CERTIFICATE", leafDER),
		keyPrivate:     encodePEM("PRIVATE KEY", keyDER),
		keyAuthority:   append(encodePEM("CERTIFICATE", authorityDER), lastOf(lastAuthorities, now)...),
	}, nil
}

func newTemplate(name string, now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour).UTC(), NotAfter: now.Add(certificateLife).UTC(), // clocks of nodes differ
	}, nil
}

// lastOf returns the newest of some authorities, which is the first, as long as it is valid.
func lastOf(authorities []byte, now time.Time) []byte {
	block, _ := pem.Decode(authorities)
	if block == nil {
		return nil
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil || now.After(certificate.NotAfter) {
		return nil
	}
	return encodePEM("CERTIFICATE", certificate.Raw)
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// certificateDigest changes when pods should load another certificate.
func certificateDigest(secret *unstructured.Unstructured) string {
	data := secretData(secret)
	return digest(bytes.Join([][]byte{data[keyCertificate], data[keyAuthority]}, nil))
}
