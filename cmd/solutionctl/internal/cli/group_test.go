package cli

import (
	"slices"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		{"version", "version"},
		{"deploy add site demo --timeout 5m", "deploy add site demo"},
		{"deploy --namespace site add", "deploy"},
		{"--quiet deploy add", ""},
		{"", ""},
		{"help deploy add", ""},
		{"config --config x", ""},
		{"__complete deploy add si", "deploy add"},
		{"__completeNoDesc dep", ""},
		{"__complete help dep", ""},
		{"__complete", ""},
	} {
		if got := Words(strings.Fields(test.line)); !slices.Equal(got, strings.Fields(test.want)) {
			t.Errorf("%q: %q, want %q", test.line, got, test.want)
		}
	}
}
