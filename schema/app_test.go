package schema_test

import (
	"testing"

	"github.com/solutionctl/solutionctl/schema"
)

func TestDescribe(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"Size of the volume":                "Size of the volume",
		"Size of\nthe volume.":              "Size of the volume.",
		"The size. More is better.":         "The size.",
		"The root path (e.g. /rollouts) of": "The root path (e.g. /rollouts) of",
		"Ports, e.g. 80. The first is used": "Ports, e.g. 80.",
		"One of: 1. Fast 2. Safe":           "One of: 1. Fast 2. Safe",
	} {
		var f schema.AppField
		f.Describe(text)
		if f.Description != want {
			t.Errorf("%q is described by %q", text, f.Description)
		}
	}
}

func TestIsSecretPath(t *testing.T) {
	for path, want := range map[string]bool{
		"password": true, "auth.rootPassword": true, "api_key": true, "auth.token": true, "env.POSTGRES_PASSWORD": true, "admin-password": true,
		"auth.accessToken": true, "auth.clientSecret": true, "s3.secretAccessKey": true, "smtp.passwd": true, "replicas.PASSWORD2": true,
		"s3.secretKey": true, "s3SecretKey": true, "minio.rootSecretAccessKey": true, "DJANGO_SECRET_KEY": true,
		"rootPasswordSecretKey": false, "auth.userSecretKey": false, "passwordSecretKey": false,
		"passwordSecretName": false, "auth.existingSecret": false, "tokens": false, "": false, "auth.existingSecretPasswordKey": false,
		"auth.existingSecretKey": false, "secret.key": false, "s3.accessKeyId": false, "password.length": false, "tls.publicKey": false,
	} {
		if schema.IsSecretPath(path) != want {
			t.Errorf("%s: got %t", path, !want)
		}
	}
}

func TestIsSecretField(t *testing.T) {
	for name, test := range map[string]struct {
		object map[string]any
		field  string
		want   bool
	}{
		"a password":   {map[string]any{"password": "a"}, "password", true},
		"a variable":   {map[string]any{"name": "DB_PASSWORD", "value": "a"}, "value", true},
		"its name":     {map[string]any{"name": "DB_PASSWORD", "value": "a"}, "name", false},
		"another":      {map[string]any{"name": "DB_HOST", "value": "a"}, "value", false},
		"a switch":     {map[string]any{"automountServiceAccountToken": true}, "automountServiceAccountToken", false},
		"without name": {map[string]any{"value": "a"}, "value", false},
	} {
		if got := schema.IsSecretField(test.object, test.field); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
