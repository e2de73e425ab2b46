package powers_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/kube/powers"
	"github.com/solutionctl/solutionctl/schema"
)

// TestSecretsOfOthers has controllers read the Secret of another Solution, by each shape of a reference.
func TestSecretsOfOthers(t *testing.T) {
	owner := acme()
	owner.ForeignData = func(kind, namespace, name string) string {
		if kind == "Secret" && namespace == "acme" && name == "bank" || kind == "ConfigMap" && name == "ca-of-bank" {
			return "bank"
		}
		return ""
	}
	for object, foreign := range map[string]bool{
		"{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, spec: {endpoints: [{basicAuth: {password: {name: bank, key: a}}}]}":              true,
		"{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, spec: {endpoints: [{tlsConfig: {ca: {configMap: {name: ca-of-bank, key: a}}}}]}": true,
		"{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, spec: {endpoints: [{basicAuth: {password: {name: free, key: a}}}]}":              false,
		"{apiVersion: cert-manager.io/v1, kind: Issuer, spec: {ca: {secretName: bank}}":                                                                true,
		"{apiVersion: cert-manager.io/v1, kind: Issuer, spec: {acme: {privateKeySecretRef: {name: bank}}}":                                             true,
		"{apiVersion: cert-manager.io/v1, kind: Certificate, spec: {secretName: free, issuerRef: {name: bank}}":                                        false,
		"{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, spec: {listeners: [{tls: {certificateRefs: [{name: bank}]}}]}":                      true,
		"{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {rules: [{host: shop.example.com}], tls: [{secretName: bank}]}":                       true,
		"{apiVersion: acme.example.com/v1, kind: App, spec: {secretName: bank}":                                                                        false,
	} {
		objects := read(t, "a.yaml", []byte(object+", metadata: {name: a, namespace: acme}}"))
		var found bool
		for _, p := range powers.Judge(owner, objects) {
			found = found || p.Name == schema.PowerUsesForeignData && p.Need == schema.NeedApproval
		}
		if found != foreign {
			t.Errorf("%s: asks %v, want %v", object, found, foreign)
		}
	}
}

// TestHostsOfOthers checks that a host of others is asked for beside one without an owner, a wildcard and a path of every host.
func TestHostsOfOthers(t *testing.T) {
	owner := acme()
	owner.ForeignHost = func(_ *unstructured.Unstructured, host string) string {
		if host == "bank.example.com" {
			return "Ingress team-b/bank"
		}
		return ""
	}
	const ingress = "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: acme}, spec: "
	for object, want := range map[string]string{
		ingress + "{rules: [{host: '*.acme.example.com'}, {host: bank.example.com}]}}":                                                                      "[bank.example.com] [* *.acme.example.com]",
		ingress + "{rules: [{http: {paths: [{path: /}]}}, {host: bank.example.com}]}}":                                                                      "[bank.example.com] [*]",
		ingress + "{defaultBackend: {service: {name: a}}, rules: [{host: bank.example.com}]}}":                                                              "[bank.example.com] [*]",
		ingress + "{rules: [{host: shop.example.com}, {host: bank.example.com}]}}":                                                                          "[bank.example.com]",
		"{apiVersion: route.openshift.io/v1, kind: Route, spec: {host: bank.example.com, wildcardPolicy: Subdomain}, metadata: {name: a, namespace: acme}}": "[bank.example.com] [*]",
	} {
		var got []string
		for _, p := range powers.Judge(owner, read(t, "a.yaml", []byte(object))) {
			if p.Need == schema.NeedApproval {
				got = append(got, fmt.Sprint(p.Effects))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", object, got, want)
		}
	}
}
