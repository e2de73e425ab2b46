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
		"password": true, "auth.rootPassword": true, "api_key": true, "auth.token": true,
		"passwordSecretName": false, "auth.existingSecret": false, "tokens": false, "": false,
	} {
		if schema.IsSecretPath(path) != want {
			t.Errorf("%s: got %t", path, !want)
		}
	}
}
