package deploy

import (
	"bytes"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema"
)

// TestSigners: a terminal with room for it shows who has signed the active version; a pipe has the columns that programs expect.
func TestSigners(t *testing.T) {
	version := func(v string, signers []string) schema.ImportedVersion {
		return schema.ImportedVersion{Version: v, Signers: signers}
	}
	solutions := []schema.SolutionStatus{
		{Name: "shop", Active: "1.0.0", Versions: []schema.ImportedVersion{version("1.0.0", []string{"acme", "site"}), version("1.1.0", []string{"other"})}},
		{Name: "tide", Versions: []schema.ImportedVersion{version("1.0.0", []string{"acme"}), version("1.1.0", []string{})}},
		{Name: "old", Active: "0.9.0", Versions: []schema.ImportedVersion{version("0.9.0", nil)}},
	}
	for _, test := range []struct {
		width int
		want  string
	}{
		{80, "SOLUTION  ACTIVE  HEALTH  IMPORTED      SIGNED BY\nshop      1.0.0   -       1.0.0, 1.1.0  acme, site\n" +
			"tide      -       -       1.0.0, 1.1.0  no trusted key\nold       0.9.0   -       0.9.0         -\n"},
		{50, "SOLUTION  ACTIVE  HEALTH  IMPORTED\nshop      1.0.0   -       1.0.0, 1.1.0\ntide      -       -       1.0.0, 1.1.0\nold       0.9.0   -       0.9.0\n"},
		{0, "SOLUTION  ACTIVE  HEALTH  IMPORTED\nshop      1.0.0   -       1.0.0, 1.1.0\ntide      -       -       1.0.0, 1.1.0\nold       0.9.0   -       0.9.0\n"},
	} {
		var b bytes.Buffer
		printSolutions(&console.Stream{Writer: &b, Width: test.width}, solutions)
		if got := strings.ReplaceAll(b.String(), " \n", "\n"); got != test.want {
			t.Errorf("%d columns:\n%s\nwant:\n%s", test.width, got, test.want)
		}
	}
}
