package bundle_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
	"github.com/solutionctl/solutionctl/sign/key"
	"github.com/solutionctl/solutionctl/sign/key/keytest"
)

func newStatement(tb testing.TB, data []byte) *bundle.Statement {
	tb.Helper()
	sums, err := chunk.Sum(context.Background(), bytes.NewReader(data), int64(len(data)), report.Discard)
	if err != nil {
		tb.Fatal(err)
	}
	expires := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	st, err := bundle.NewStatement("x.iso", sums, bundle.Predicate{
		Solution: bundle.Solution{Name: "acme-db", Version: "1.2.0"}, Expires: &expires,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return st
}

func TestVerifyKey(t *testing.T) {
	signer, other := keytest.New(t), keytest.New(t)
	data := []byte("content")
	digest, wrong := sha256.Sum256(data), sha256.Sum256([]byte("other"))
	statement, err := bundle.SignStatement(t.Context(), signer, newStatement(t, data))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := bundle.SignDigest(t.Context(), signer, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string][]byte{"statement": statement, "plain": plain} {
		b, err := bundle.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if b.Hint() != signer.Public().ID() || b.HasCertificate() || len(b.Signature()) == 0 {
			t.Errorf("%s: hint %q, certificate %v", name, b.Hint(), b.HasCertificate())
		}
		for _, test := range []struct {
			name   string
			key    *key.Public
			digest []byte
			code   report.Code
		}{
			{"good", signer.Public(), digest[:], ""},
			{"other key", other.Public(), digest[:], report.Untrusted},
			{"other file", signer.Public(), wrong[:], report.Mismatch},
			{"other key and file", other.Public(), wrong[:], report.Untrusted},
			{"no digest", signer.Public(), nil, report.Mismatch},
		} {
			if err := b.VerifyKey(test.key, test.digest); report.CodeOf(err) != test.code {
				t.Errorf("%s, %s: %v, want code %q", name, test.name, err, test.code)
			}
		}
	}
}

// TestAttestReleasesNothing pins that a statement of another type is never taken for a signature of an archive.
func TestAttestReleasesNothing(t *testing.T) {
	payload := []byte(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"x","digest":{"sha256":"00"}}],` +
		`"predicateType":"https://slsa.dev/provenance/v1","predicate":{}}`)
	data, err := bundle.Attest(t.Context(), keytest.New(t), payload)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = bundle.Parse(data); report.CodeOf(err) != report.NotAllowed {
		t.Errorf("%v, want code %s", err, report.NotAllowed)
	}
}

func TestSetCertificateRefuses(t *testing.T) {
	signed, err := bundle.SignStatement(t.Context(), keytest.New(t), newStatement(t, []byte("content")))
	if err != nil {
		t.Fatal(err)
	}
	for name, certificate := range map[string]string{
		"nothing": "", "no certificate": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "damaged": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	} {
		if _, err := bundle.SetCertificate(signed, []byte(certificate)); report.CodeOf(err) != report.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := bundle.AddTimestamp(signed, []byte("x")); report.CodeOf(err) != report.Usage {
		t.Errorf("timestamp: %v", err)
	}
}

// FuzzParse checks that nothing but a good signature verifies, whatever the bundle looks like.
func FuzzParse(f *testing.F) {
	signer := keytest.New(f)
	data := []byte("content")
	digest := sha256.Sum256(data)
	statement, err := bundle.SignStatement(f.Context(), keytest.New(f), newStatement(f, data))
	if err != nil {
		f.Fatal(err)
	}
	plain, err := bundle.SignDigest(f.Context(), keytest.New(f), digest[:])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(statement)
	f.Add(plain)
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := bundle.Parse(raw)
		if err != nil {
			if code := report.CodeOf(err); code != report.BadBundle && code != report.NotAllowed {
				t.Errorf("code %q of %v", code, err)
			}
			return
		}
		if b.VerifyKey(signer.Public(), digest[:]) == nil {
			t.Error("a key has signed what it has not signed")
		}
	})
}

func FuzzParseStatement(f *testing.F) {
	payload, err := newStatement(f, []byte("content")).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(payload)
	f.Add(bytes.Replace(payload, []byte(`"size":7`), []byte(`"size":7,"Size":8`), 1))
	f.Add(bytes.Replace(payload, []byte("archive/v1"), []byte("archive/v2"), 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		st, err := bundle.ParseStatement(data)
		if err != nil {
			return
		}
		printed, err := st.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		again, err := bundle.ParseStatement(printed)
		if err != nil || again.SHA256() != st.SHA256() || again.Predicate.Size != st.Predicate.Size || again.Predicate.Solution != st.Predicate.Solution {
			t.Errorf("what was printed means something else: %v", err)
		}
	})
}

func FuzzParseRoot(f *testing.F) {
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`))
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1","timestampAuthorities":[{"uri":"https://x","certChain":{"certificates":[{"rawBytes":"AAAA"}]}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := bundle.ParseRoot(data)
		if err != nil {
			if code := report.CodeOf(err); r != nil || code != report.Invalid && code != report.NotAllowed {
				t.Errorf("code %q of %v", code, err)
			}
			return
		}
		if _, err = bundle.ParseRoot(append(data, data...)); err == nil {
			t.Error("two roots in one file were accepted")
		}
	})
}

func ExampleParseStatement() {
	sums := &chunk.Sums{Chunks: chunk.List{Size: 7, ChunkSize: chunk.DefaultSize, Algorithm: "sha256", Digests: make([]byte, 32)}}
	st, err := bundle.NewStatement("x.iso", sums, bundle.Predicate{Solution: bundle.Solution{Name: "acme-db", Version: "1.2.0"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	payload, err := st.Marshal()
	if err != nil {
		fmt.Println(err)
		return
	}
	parsed, err := bundle.ParseStatement(payload)
	fmt.Println(parsed.Predicate.Solution, parsed.Predicate.Size, err)
	_, err = bundle.ParseStatement(bytes.Replace(payload, []byte(`"size":7`), []byte(`"size":7,"size":8`), 1))
	fmt.Println(err)
	// Output:
	// acme-db 1.2.0 7 <nil>
	// statement: field "size" occurs twice
}
