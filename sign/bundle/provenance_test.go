package bundle_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/key/keytest"
)

const genuineProvenance = `{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"x.iso","digest":{"sha256":"` +
	`e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}],"predicateType":"https://slsa.dev/provenance/v1",` +
	`"predicate":{"buildDefinition":{"buildType":"https://example.com/make","externalParameters":{},"resolvedDependencies":[]},"runDetails":{"builder":{"id":"https://example.com/ci"},"metadata":{"invocationId":"7"}}}}`

// TestParseProvenanceStatement reads statements of others and hostile ones.
func TestParseProvenanceStatement(t *testing.T) {
	replace := func(old, with string) string {
		changed := strings.Replace(genuineProvenance, old, with, 1)
		if changed == genuineProvenance {
			t.Fatalf("%s is not in the statement", old)
		}
		return changed
	}
	for _, test := range []struct {
		name, payload string
		code          report.Code
	}{
		{"of another program, with fields that are not read", genuineProvenance, ""},
		{"of the older in-toto type", replace("Statement/v1", "Statement/v0.1"), ""},
		{"nothing", "", report.BadBundle},
		{"a number", "1", report.BadBundle},
		{"another predicate", replace("slsa.dev/provenance/v1", "slsa.dev/provenance/v0.2"), report.NotAllowed},
		{"another kind of statement", replace("Statement/v1", "Statement/v9"), report.BadBundle},
		{"no subject", replace(`{"name":"x.iso","digest":{"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}`, ""), report.BadBundle},
		{"a subject without a SHA-256 digest", replace(`"sha256":"e3`, `"sha512":"e3`), report.BadBundle},
		{"a subject with a path", replace("x.iso", "../x.iso"), report.BadBundle},
		{"a subject that shows another name", replace("x.iso", `x\u202eosi`), report.BadBundle},
		{"a field twice", replace(`"subject"`, `"subject":[],"subject"`), report.BadBundle},
		{"no builder", replace("https://example.com/ci", ""), report.BadBundle},
		{"subjects without an end", replace("}}],", "}}"+strings.Repeat(`,{"name":"y","digest":{"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}`, 1000)+"],"), report.BadBundle},
		{"dependencies without an end", replace(`"resolvedDependencies":[]`, `"resolvedDependencies":[{}`+strings.Repeat(`,{}`, 1_000_000)+`]`), report.BadBundle},
		{"more bytes than are read", replace(`"invocationId":"7"`, `"invocationId":"`+strings.Repeat("7", bundle.MaxSize)+`"`), report.BadBundle},
		{"nested without an end", replace(`"externalParameters":{}`, `"externalParameters":{"a":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+`}`), report.BadBundle},
	} {
		if _, err := bundle.ParseProvenanceStatement([]byte(test.payload)); report.CodeOf(err) != test.code {
			t.Errorf("%s: %v, want code %q", test.name, err, test.code)
		}
	}
}

// TestParseProvenance distinguishes a provenance from signatures of archives and files.
func TestParseProvenance(t *testing.T) {
	signer := keytest.New(t)
	statement, err := bundle.SignStatement(t.Context(), signer, newStatement(t, []byte("content")))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := bundle.SignDigest(t.Context(), signer, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	made, err := bundle.Attest(t.Context(), signer, []byte(genuineProvenance))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		data []byte
		code report.Code
	}{
		"a signature of an archive": {statement, report.NotAllowed}, "a signature of a file": {plain, report.NotAllowed},
		"a provenance": {made, ""}, "no bundle": {[]byte("{}"), report.BadBundle},
	} {
		b, err := bundle.ParseProvenance(test.data)
		if report.CodeOf(err) != test.code || err == nil && b.Provenance() == nil {
			t.Errorf("%s: %v, want code %q", name, err, test.code)
		}
	}
}

// FuzzProvenance checks that every statement is read in the same way when it is printed, or refused.
func FuzzProvenance(f *testing.F) {
	f.Add([]byte(genuineProvenance))
	f.Add(fmt.Appendf(nil, "[%s]", genuineProvenance))
	f.Add([]byte(strings.Replace(genuineProvenance, `"externalParameters":{}`, `"externalParameters":{"a":[1e9,null,{"b":"\u2028"}]}`, 1)))
	f.Fuzz(func(t *testing.T, payload []byte) {
		s, err := bundle.ParseProvenanceStatement(payload)
		if err != nil {
			if code := report.CodeOf(err); code != report.BadBundle && code != report.NotAllowed {
				t.Errorf("code %q of %v", code, err)
			}
			return
		}
		if _, err = bundle.MarshalProvenance(s); err != nil {
			t.Errorf("what was printed cannot be read: %v", err)
		}
	})
}
