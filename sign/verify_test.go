package sign_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
	"github.com/solutionctl/solutionctl/sign/key/keytest"
	"github.com/solutionctl/solutionctl/sign/trust"
)

func hexString(b []byte) string { return hex.EncodeToString(b) }

// verifyCase changes one thing in a world where everything is right. An empty code means that the archive is good.
type verifyCase struct {
	name   string
	change func(w *world)
	code   report.Code
	exit   int
}

func runCases(t *testing.T, cases []verifyCase) {
	t.Helper()
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			test.change(w)
			verdict, reader, err := w.verify()
			if got := report.CodeOf(err); got != test.code {
				t.Fatalf("code = %q (%v), want %q", got, err, test.code)
			}
			if got := exitStatus(err); got != test.exit {
				t.Errorf("exit status = %d, want %d", got, test.exit)
			}
			if (reader == nil) != (err != nil) {
				t.Error("a reader is returned exactly when the archive is good")
			}
			if verdict == nil { // the trust store could not be loaded
				return
			}
			if verdict.Verified != (err == nil) || verdict.Code != test.code || verdict.Exit != test.exit {
				t.Errorf("verdict = %v %q %d, want %v %q %d",
					verdict.Verified, verdict.Code, verdict.Exit, err == nil, test.code, test.exit)
			}
			if err := schema.ValidateOutput("verdict", encode(t, verdict)); err != nil {
				t.Errorf("the verdict does not match its schema: %v", err)
			}
		})
	}
}

func exitStatus(err error) int {
	if err == nil {
		return 0
	}
	return report.CodeOf(err).ExitStatus()
}

func TestVerifyGood(t *testing.T) {
	runCases(t, []verifyCase{
		{"statement", func(*world) {}, "", 0},
		{"plain", func(w *world) { w.set(w.plain(w.acme)) }, "", 0},
		{"plain of a P-384 key", func(w *world) {
			k := newSigner(w.t, elliptic.P384())
			w.keys["big"] = k.Public().PEM()
			w.set(w.plain(k))
		}, "", 0},
		{"both forms", func(w *world) { w.set(w.plain(w.acme), w.bundles[0].Data) }, "", 0},
		{"whole digest too", func(w *world) { w.options.Full = true }, "", 0},
		{"checked when read", func(w *world) { w.options.OnRead = true }, "", 0},
		{"no hint", func(w *world) {
			w.edit(func(b map[string]any) { delete(at(b, "verificationMaterial", "publicKey"), "hint") })
		}, "", 0},
		{"forged hint on a good signature", func(w *world) {
			w.edit(func(b map[string]any) { at(b, "verificationMaterial", "publicKey")["hint"] = w.second.Public().ID() })
		}, "", 0},
		{"garbage beside a good signature", func(w *world) { w.set([]byte("{"), w.bundles[0].Data) }, "", 0},
		{"statement of the older in-toto type", func(w *world) {
			w.resign(func(st map[string]any) { st["_type"] = "https://in-toto.io/Statement/v0.1" })
		}, "", 0},
		{"rule of a policy", func(w *world) { w.policy = "rules: [{solutions: [acme-*], signers: [{key: acme}]}]\n" }, "", 0},
		{"two of two", func(w *world) {
			w.policy = "rules: [{solutions: [acme-db], signers: [{key: acme}, {key: second}], threshold: 2}]\n"
			w.set(w.bundles[0].Data, w.sign(w.second, w.statement()))
		}, "", 0},
		{"same version, same content as before", func(w *world) { w.imported("1.2.0", hexSum(w.data)) }, "", 0},
		{"downgrade that is allowed once", func(w *world) {
			w.imported("1.3.0", "")
			w.options.AllowDowngrade = true
		}, "", 0},
		{"downgrade that the policy allows", func(w *world) {
			w.imported("1.3.0", "")
			w.policy = "rules: [{solutions: [acme-db], signers: [{key: acme}], downgrade: allow}]\n"
		}, "", 0},
		{"a revoked key does not raise the floor", func(w *world) {
			w.state = &trust.State{}
			w.state.Floors = map[string]map[string]trust.Floor{"acme-db": {w.mallory.Public().ID(): {Version: "999.0.0"}}}
			w.revoked = &trust.Revocations{Keys: []string{w.mallory.Public().ID()}}
		}, "", 0},
		{"padded device", func(w *world) {
			w.data = append(w.data, make([]byte, 150<<10)...)
			w.options.Device = true
		}, "", 0},
		{"key that expires today", func(w *world) {
			w.policy = "rules: [{solutions: [acme-db], signers: [{key: acme, notAfter: 2027-03-01}]}]\n"
		}, "", 0},
	})
}

// imported makes the state remember a version that acme has signed.
func (w *world) imported(version, digest string) {
	w.state = &trust.State{Floors: map[string]map[string]trust.Floor{
		acmeDB.Name: {w.acme.Public().ID(): {Version: version, SHA256: digest}},
	}}
}

func TestVerifyBundle(t *testing.T) {
	signatures := func(b map[string]any) []any { return at(b, "dsseEnvelope")["signatures"].([]any) }
	chunks := func(st map[string]any) map[string]any { return at(st, "predicate", "chunks") }
	subject := func(st map[string]any) map[string]any { return st["subject"].([]any)[0].(map[string]any) }
	runCases(t, []verifyCase{
		{"missing", func(w *world) { w.bundles = nil }, report.Unsigned, 4},
		{"empty file", func(w *world) { w.set(nil) }, report.BadBundle, 5},
		{"empty object", func(w *world) { w.set([]byte("{}")) }, report.BadBundle, 5},
		{"not JSON", func(w *world) { w.set([]byte("\x00\xff")) }, report.BadBundle, 5},
		{"truncated", func(w *world) { w.set(w.bundles[0].Data[:len(w.bundles[0].Data)/2]) }, report.BadBundle, 5},
		{"trailing data", func(w *world) { w.set(append(w.bundles[0].Data, "{}"...)) }, report.BadBundle, 5},
		{"unknown field", func(w *world) { w.edit(func(b map[string]any) { b["x"] = 1 }) }, report.BadBundle, 5},
		{"duplicate field", func(w *world) {
			w.set(bytes.Replace(w.bundles[0].Data, []byte("{"), []byte(`{"mediaType":"x",`), 1))
		}, report.BadBundle, 5},
		{"future version", func(w *world) {
			w.edit(func(b map[string]any) { b["mediaType"] = "application/vnd.dev.sigstore.bundle.v0.9+json" })
		}, report.BadBundle, 5},
		{"older version", func(w *world) {
			w.edit(func(b map[string]any) { b["mediaType"] = "application/vnd.dev.sigstore.bundle+json;version=0.2" })
		}, report.BadBundle, 5},
		{"too large", func(w *world) { w.set(append(w.bundles[0].Data, bytes.Repeat([]byte(" "), bundle.MaxSize)...)) }, report.BadBundle, 5},
		{"deep nesting", func(w *world) {
			w.set([]byte(strings.Repeat(`{"a":`, 100000) + "1" + strings.Repeat("}", 100000)))
		}, report.BadBundle, 5},
		{"no signature in the envelope", func(w *world) {
			w.edit(func(b map[string]any) { at(b, "dsseEnvelope")["signatures"] = []any{} })
		}, report.BadBundle, 5},
		{"two signatures in the envelope", func(w *world) {
			w.edit(func(b map[string]any) { at(b, "dsseEnvelope")["signatures"] = append(signatures(b), signatures(b)...) })
		}, report.BadBundle, 5},
		{"keyid set", func(w *world) {
			w.edit(func(b map[string]any) { signatures(b)[0].(map[string]any)["keyid"] = w.acme.Public().ID() })
		}, report.BadBundle, 5},
		{"wrong payload type", func(w *world) {
			payload, err := w.statement().Marshal()
			if err != nil {
				w.t.Fatal(err)
			}
			w.set(envelope(w.t, w.acme, "application/json", payload))
		}, report.BadBundle, 5},
		{"other predicate type by the same key", func(w *world) {
			w.resign(func(st map[string]any) { st["predicateType"] = "https://example.com/scan-failed/v1" })
		}, report.NotAllowed, 4},
		{"not a statement", func(w *world) { w.set(envelope(w.t, w.acme, bundle.PayloadType, []byte("[]"))) }, report.BadBundle, 5},
		{"unknown predicate field", func(w *world) {
			w.resign(func(st map[string]any) { at(st, "predicate")["x"] = 1 })
		}, report.BadBundle, 5},
		{"more than 1024 subjects", func(w *world) {
			w.resign(func(st map[string]any) { st["subject"] = slices.Repeat(st["subject"].([]any), 1025) })
		}, report.BadBundle, 5},
		{"the digest is that of the second subject", func(w *world) {
			w.resign(func(st map[string]any) {
				other := map[string]any{"name": "y.iso", "digest": map[string]any{"sha256": strings.Repeat("0", 64)}}
				st["subject"] = []any{other, subject(st)}
			})
		}, report.BadBundle, 5},
		{"no subject", func(w *world) { w.resign(func(st map[string]any) { st["subject"] = []any{} }) }, report.BadBundle, 5},
		{"sha1 digest", func(w *world) {
			w.resign(func(st map[string]any) { subject(st)["digest"] = map[string]any{"sha1": strings.Repeat("0", 40)} })
		}, report.BadBundle, 5},
		{"md5 digest beside sha256", func(w *world) {
			w.resign(func(st map[string]any) { at(subject(st), "digest")["md5"] = strings.Repeat("0", 32) })
		}, report.BadBundle, 5},
		{"version that is not semantic", func(w *world) {
			w.resign(func(st map[string]any) { at(st, "predicate", "solution")["version"] = "latest" })
		}, report.BadBundle, 5},
		{"plain: digest labelled as another algorithm", func(w *world) {
			w.set(w.plain(w.acme))
			w.edit(func(b map[string]any) { at(b, "messageSignature", "messageDigest")["algorithm"] = "SHA2_512" })
		}, report.BadBundle, 5},
		{"plain: digest of an algorithm that the key does not use", func(w *world) {
			w.set(w.plain(w.acme))
			w.edit(func(b map[string]any) {
				d := at(b, "messageSignature", "messageDigest")
				d["algorithm"], d["digest"] = "SHA2_384", make([]byte, 48)
			})
		}, report.Corrupt, 5},
		{"plain: no digest", func(w *world) {
			w.set(w.plain(w.acme))
			w.edit(func(b map[string]any) { delete(at(b, "messageSignature"), "messageDigest") })
		}, report.BadBundle, 5},
		{"bundle of cosign 1", func(w *world) {
			w.set(encode(w.t, map[string]any{"base64Signature": "MEUCIQ==", "cert": string(w.acme.Public().PEM()), "rekorBundle": nil}))
		}, report.BadBundle, 5},
		{"key in the place of the certificate", func(w *world) {
			der, err := x509.MarshalPKIXPublicKey(w.acme.Public().Crypto())
			if err != nil {
				w.t.Fatal(err)
			}
			w.edit(func(b map[string]any) {
				b["verificationMaterial"] = map[string]any{"certificate": map[string]any{"rawBytes": der}}
			})
		}, report.BadBundle, 5},
		{"certificate without a root", func(w *world) {
			w.set(w.certified(nil))
		}, report.Untrusted, 4},
		{"forged hint on a foreign signature", func(w *world) {
			w.set(w.sign(w.mallory, w.statement()))
			w.edit(func(b map[string]any) { at(b, "verificationMaterial", "publicKey")["hint"] = w.acme.Public().ID() })
		}, report.Corrupt, 5},
		{"signature byte flipped", func(w *world) {
			w.edit(func(b map[string]any) {
				s := signatures(b)[0].(map[string]any)
				raw, err := base64.StdEncoding.DecodeString(s["sig"].(string))
				if err != nil {
					w.t.Fatal(err)
				}
				raw[len(raw)-1] ^= 1
				s["sig"] = raw
			})
		}, report.Corrupt, 5},
		{"chunk list altered", func(w *world) {
			w.edit(func(b map[string]any) {
				e := at(b, "dsseEnvelope")
				payload, err := base64.StdEncoding.DecodeString(e["payload"].(string))
				if err != nil {
					w.t.Fatal(err)
				}
				st := decode(w.t, payload)
				chunks(st)["digests"] = make([]byte, 3*32)
				e["payload"] = encode(w.t, st)
			})
		}, report.Corrupt, 5},
		{"chunk list too short", func(w *world) {
			w.resign(func(st map[string]any) { chunks(st)["digests"] = make([]byte, 2*32) })
		}, report.BadBundle, 5},
		{"chunk list of another length than whole digests", func(w *world) {
			w.resign(func(st map[string]any) { chunks(st)["digests"] = make([]byte, 3*32-1) })
		}, report.BadBundle, 5},
		{"chunk algorithm", func(w *world) { w.resign(func(st map[string]any) { chunks(st)["algorithm"] = "sha1" }) }, report.BadBundle, 5},
		{"chunk size 0", func(w *world) { w.resign(func(st map[string]any) { chunks(st)["chunkSize"] = 0 }) }, report.BadBundle, 5},
		{"chunk size negative", func(w *world) { w.resign(func(st map[string]any) { chunks(st)["chunkSize"] = -4194304 }) }, report.BadBundle, 5},
		{"chunk size huge", func(w *world) { w.resign(func(st map[string]any) { chunks(st)["chunkSize"] = 1 << 40 }) }, report.BadBundle, 5},
		{"chunk size not a power of two", func(w *world) {
			w.resign(func(st map[string]any) { chunks(st)["chunkSize"] = 4194303 })
		}, report.BadBundle, 5},
		{"size of the largest integer", func(w *world) {
			w.resign(func(st map[string]any) { at(st, "predicate")["size"] = json.Number("9223372036854775807") })
		}, report.BadBundle, 5},
		{"statement that contradicts itself", func(w *world) {
			w.options.Full = true
			w.resign(func(st map[string]any) { at(subject(st), "digest")["sha256"] = strings.Repeat("0", 64) })
		}, report.Mismatch, 5},
	})
}

func TestVerifyPolicy(t *testing.T) {
	const one = "rules: [{solutions: [acme-db], signers: [{key: acme}]}]\n"
	runCases(t, []verifyCase{
		{"other key", func(w *world) { w.set(w.sign(w.mallory, w.statement())) }, report.Untrusted, 4},
		{"empty trust store", func(w *world) { w.keys = nil }, report.Untrusted, 4},
		{"key for another Solution", func(w *world) {
			w.policy = "rules: [{solutions: [acme-db], signers: [{key: second}]}, {solutions: ['*'], signers: [{key: acme}]}]\n"
		}, report.NotAllowed, 4},
		{"no rule", func(w *world) { w.policy = "rules: [{solutions: [other], signers: [{key: acme}]}]\n" }, report.NotAllowed, 4},
		{"no rules at all", func(w *world) { w.policy = "rules: []\n" }, report.NotAllowed, 4},
		{"plain signature that the rule does not accept", func(w *world) {
			w.policy = one
			w.set(w.plain(w.acme))
		}, report.NotAllowed, 4},
		{"plain signature of something without a name", func(w *world) {
			w.policy = "rules: [{solutions: ['*'], signers: [{key: acme}], acceptPlain: true}]\n"
			w.identity = bundle.Solution{}
			w.set(w.plain(w.acme))
		}, report.NotAllowed, 4},
		{"one of two", func(w *world) {
			w.policy = "rules: [{solutions: [acme-db], signers: [{key: acme}, {key: second}], threshold: 2}]\n"
		}, report.Threshold, 4},
		{"the same signer twice", func(w *world) {
			w.policy = "rules: [{solutions: [acme-db], signers: [{key: acme}, {key: second}], threshold: 2}]\n"
			w.set(w.bundles[0].Data, w.sign(w.acme, w.statement()))
		}, report.Threshold, 4},
		{"the same key under two names", func(w *world) {
			w.keys["alias"] = w.keys["acme"]
			w.policy = "rules: [{solutions: [acme-db], signers: [{key: acme}, {key: alias}, {key: second}], threshold: 2}]\n"
			w.set(w.bundles[0].Data, w.sign(w.acme, w.statement()))
		}, report.Threshold, 4},
		{"signers of different archives", func(w *world) {
			w.policy = "rules: [{solutions: [acme-db], signers: [{key: acme}, {key: second}], threshold: 2}]\n"
			st := w.statement()
			st.Predicate.Solution.Version = "1.2.1"
			w.set(w.bundles[0].Data, w.sign(w.second, st))
		}, report.Threshold, 4},
		{"revoked key", func(w *world) { w.revoked = &trust.Revocations{Keys: []string{w.acme.Public().ID()}} }, report.Revoked, 6},
		{"revoked archive", func(w *world) {
			w.revoked = &trust.Revocations{Archives: []string{"sha256:" + hexSum(w.data)}}
		}, report.Revoked, 6},
		{"revoked archive, plain", func(w *world) {
			w.set(w.plain(w.acme))
			w.revoked = &trust.Revocations{Archives: []string{"sha256:" + hexSum(w.data)}}
		}, report.Revoked, 6},
		{"revoked version", func(w *world) {
			w.revoked = &trust.Revocations{MinimumVersions: map[string]string{"acme-db": "1.2.1"}}
		}, report.Revoked, 6},
		{"expired key", func(w *world) {
			w.policy = "rules: [{solutions: [acme-db], signers: [{key: acme, notAfter: 2027-02-28}]}]\n"
		}, report.Expired, 6},
		{"expired signature", func(w *world) {
			st := w.statement()
			past := now.Add(-time.Minute)
			st.Predicate.Expires = &past
			w.set(w.sign(w.acme, st))
		}, report.Expired, 6},
		{"timestamp required", func(w *world) {
			w.policy = "rules: [{solutions: [acme-db], signers: [{key: acme}], requireTimestamp: true}]\n"
		}, report.NotAllowed, 4},
		{"older version", func(w *world) { w.imported("1.3.0", "") }, report.Downgrade, 6},
		{"older version, pre-release", func(w *world) {
			w.imported("1.2.0", "")
			st := w.statement()
			st.Predicate.Solution.Version = "1.2.0-rc.1"
			w.set(w.sign(w.acme, st))
		}, report.Downgrade, 6},
		{"same version, other content", func(w *world) { w.imported("1.2.0", strings.Repeat("0", 64)) }, report.Replaced, 6},
	})
}

func TestVerifyArchive(t *testing.T) {
	flip := func(at int) func(*world) { return func(w *world) { w.data[at] ^= 0x10 } }
	last := len(contents) - 1
	runCases(t, []verifyCase{
		{"bit flipped in the first byte", flip(0), report.Corrupt, 5},
		{"bit flipped in the middle", flip(last / 2), report.Corrupt, 5},
		{"bit flipped in the last byte", flip(last), report.Corrupt, 5},
		{"bit flipped, whole digest too", func(w *world) {
			w.options.Full = true
			w.data[last] ^= 1
		}, report.Corrupt, 5},
		{"bit flipped, plain signature", func(w *world) {
			w.set(w.plain(w.acme))
			w.data[last] ^= 1
		}, report.Mismatch, 5},
		{"truncated", func(w *world) { w.data = w.data[:last] }, report.Corrupt, 5},
		{"appended", func(w *world) { w.data = append(w.data, 0) }, report.Corrupt, 5},
		{"appended, plain signature", func(w *world) {
			w.set(w.plain(w.acme))
			w.data = append(w.data, 0)
		}, report.Mismatch, 5},
		{"hole", func(w *world) { clear(w.data[chunk.DefaultSize : 2*chunk.DefaultSize]) }, report.Corrupt, 5},
		{"empty", func(w *world) { w.data = nil }, report.Corrupt, 5},
		{"empty, plain signature", func(w *world) {
			w.set(w.plain(w.acme))
			w.data = nil
		}, report.Invalid, 5},
		{"signature of another archive of the same size", func(w *world) {
			for i := range w.data {
				w.data[i] ^= 0xff
			}
		}, report.Mismatch, 5},
		{"manifest of another Solution", func(w *world) { w.identity.Name = "acme-kernel" }, report.Mismatch, 5},
		{"manifest of another version", func(w *world) { w.identity.Version = "1.2.1" }, report.Mismatch, 5},
		{"device that is too small", func(w *world) {
			w.data = w.data[:last]
			w.options.Device = true
		}, report.Corrupt, 5},
		{"device with a plain signature", func(w *world) {
			w.set(w.plain(w.acme))
			w.options.Device = true
		}, report.NotAllowed, 4},
		{"written meanwhile", func(w *world) {
			w.options.Unchanged = func() error { return report.Errorf(report.Corrupt, "the file was written") }
		}, report.Corrupt, 5},
	})
}

func TestVerifyReportsAlteredBytes(t *testing.T) {
	w := newWorld(t)
	w.data[0] ^= 1
	w.data[len(w.data)-1] ^= 1
	w.options.Locate = func(r chunk.Range) string { return fmt.Sprint("file at ", r.From) }
	verdict, _, err := w.verify()
	want := []sign.Tampered{
		{From: 0, To: chunk.DefaultSize, File: "file at 0"},
		{From: 2 * chunk.DefaultSize, To: int64(len(w.data)), File: fmt.Sprint("file at ", 2*chunk.DefaultSize)},
	}
	if err == nil || !slices.Equal(verdict.Tampered, want) {
		t.Errorf("tampered = %v (%v), want %v", verdict.Tampered, err, want)
	}
}

func TestReaderNoticesChangesAfterVerification(t *testing.T) {
	for _, plain := range []bool{false, true} {
		w := newWorld(t)
		if plain {
			w.set(w.plain(w.acme))
		}
		_, reader, err := w.verify()
		if err != nil {
			t.Fatal(err)
		}
		w.data[7] ^= 1 // the reader holds the last chunk, which Identify has read, but not this one
		if n, err := reader.ReadAt(make([]byte, 8), 0); n != 0 || report.CodeOf(err) != report.Corrupt {
			t.Errorf("plain %v: read %d bytes, %v; want report.Corrupt", plain, n, err)
		}
	}
}

func TestVerifyRefusesBeforeReading(t *testing.T) {
	w := newWorld(t)
	store, err := trust.Load([]string{w.trustDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.set(w.sign(w.mallory, w.statement()))
	o := sign.Options{Store: store, Now: now, Workers: 1}
	_, _, err = sign.Verify(t.Context(), unreadable{t}, int64(len(w.data)), w.bundles, o)
	if report.CodeOf(err) != report.Untrusted {
		t.Errorf("got %v, want report.Untrusted", err)
	}
}

type unreadable struct{ t *testing.T }

func (u unreadable) ReadAt([]byte, int64) (int, error) {
	u.t.Error("the archive was read although nobody trusted has signed it")
	return 0, nil
}

// certified returns a bundle whose key is vouched for by a self-signed certificate.
func (w *world) certified(names []string) []byte {
	w.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	signer := keytest.Of(w.t, private)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "release"}, EmailAddresses: names,
		NotBefore: now.AddDate(-10, 0, 0), NotAfter: now.AddDate(10, 0, 0),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := bundle.SetCertificate(w.sign(signer, w.statement()), pemBlock("CERTIFICATE", der))
	if err != nil {
		w.t.Fatal(err)
	}
	return data
}
