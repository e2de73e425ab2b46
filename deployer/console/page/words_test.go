package page

import "testing"

func TestInWords(t *testing.T) {
	for name, want := range map[string]string{
		"tls": "TLS", "tlsSecretName": "TLS secret name", "adminPassword": "Admin password", "apiURL": "API URL", "external-dns": "External DNS",
		"userId": "User ID", "cpu": "CPU", "http_port": "HTTP port", "ca": "CA", "cache": "Cache", "ldap": "LDAP", "ui": "UI", "build": "Build",
		"httpsPort": "HTTPS port",
	} {
		if got := inWords(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
