package sign_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"io"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
	"github.com/solutionctl/solutionctl/sign/key"
	"github.com/solutionctl/solutionctl/sign/key/keytest"
	"github.com/solutionctl/solutionctl/sign/trust"
)

var (
	now      = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	acmeDB   = bundle.Solution{Name: "acme-db", Version: "1.2.0"}
	contents = makeContents()
)

// makeContents returns an archive of two and a half chunks, and nothing in a process whose memory is measured.
func makeContents() []byte {
	if os.Getenv(measured) != "" {
		return nil
	}
	data := make([]byte, 2*chunk.DefaultSize+chunk.DefaultSize/2+17)
	_, _ = mathrand.NewChaCha8([32]byte{}).Read(data)
	return data
}

// world is everything that a verification depends on. A test changes one thing in it.
type world struct {
	t        *testing.T
	data     []byte
	bundles  []sign.NamedBundle
	policy   string
	keys     map[string][]byte // files of the trust store
	roots    map[string][]byte
	state    *trust.State
	revoked  *trust.Revocations
	options  sign.Options
	identity bundle.Solution

	acme, second, mallory, offline *key.Signer
}

// newWorld returns a world in which verification succeeds.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, data: bytes.Clone(contents), identity: acmeDB,
		acme: newSigner(t, elliptic.P256()), second: newSigner(t, elliptic.P256()),
		mallory: newSigner(t, elliptic.P256()), offline: newSigner(t, elliptic.P256()),
	}
	w.keys = map[string][]byte{"acme": w.acme.Public().PEM(), "second": w.second.Public().PEM()}
	w.bundles = []sign.NamedBundle{{File: "x.iso.sigstore.json", Data: w.sign(w.acme, w.statement())}}
	return w
}

// measured is set in the environment of a process of which the memory is measured.
const measured = "SOLUTIONCTL_TEST_MEASURED"

const policyHead = `apiVersion: solutionctl.io/v1alpha1
kind: VerificationPolicy
default: reject
`

func newSigner(t *testing.T, curve elliptic.Curve) *key.Signer {
	t.Helper()
	private, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return keytest.Of(t, private)
}

func (w *world) statement() *bundle.Statement {
	w.t.Helper()
	st, err := sign.NewStatement(contentSums(w.t), sign.Claims{Name: "x.iso", Solution: acmeDB, CreatedAt: now.Add(-time.Hour)})
	if err != nil {
		w.t.Fatal(err)
	}
	return st
}

var summed = sync.OnceValues(func() (*chunk.Sums, error) {
	return chunk.Sum(context.Background(), bytes.NewReader(contents), int64(len(contents)), report.Discard)
})

// contentSums are computed once: most tests sign the same archive.
func contentSums(t *testing.T) *chunk.Sums {
	t.Helper()
	sums, err := summed()
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

func (w *world) sign(signer *key.Signer, st *bundle.Statement) []byte {
	w.t.Helper()
	data, err := bundle.SignStatement(w.t.Context(), signer, st)
	if err != nil {
		w.t.Fatal(err)
	}
	return data
}

func (w *world) plain(signer *key.Signer) []byte {
	w.t.Helper()
	data, err := sign.FileBundle(w.t.Context(), bytes.NewReader(w.data), int64(len(w.data)), signer, report.Discard)
	if err != nil {
		w.t.Fatal(err)
	}
	return data
}

// set replaces the bundles.
func (w *world) set(bundles ...[]byte) {
	w.bundles = nil
	for i, data := range bundles {
		w.bundles = append(w.bundles, sign.NamedBundle{File: "x.iso." + string(rune('a'+i)) + ".sigstore.json", Data: data})
	}
}

// edit changes a bundle as a JSON document, without signing it again.
func (w *world) edit(change func(b map[string]any)) {
	w.t.Helper()
	b := decode(w.t, w.bundles[0].Data)
	change(b)
	w.bundles[0].Data = encode(w.t, b)
}

// resign changes the payload as a JSON document and lets the trusted key sign the result, valid or not.
func (w *world) resign(change func(st map[string]any)) {
	w.t.Helper()
	payload, err := w.statement().Marshal()
	if err != nil {
		w.t.Fatal(err)
	}
	st := decode(w.t, payload)
	change(st)
	w.set(envelope(w.t, w.acme, bundle.PayloadType, encode(w.t, st)))
}

// envelope signs any payload, with none of the checks that the package makes.
func envelope(t *testing.T, signer *key.Signer, payloadType string, payload []byte) []byte {
	t.Helper()
	signature, err := signer.SignMessage(context.Background(), dsse.PAE(payloadType, payload))
	if err != nil {
		t.Fatal(err)
	}
	return encode(t, map[string]any{
		"mediaType":            "application/vnd.dev.sigstore.bundle.v0.3+json",
		"verificationMaterial": map[string]any{"publicKey": map[string]any{"hint": signer.Public().ID()}},
		"dsseEnvelope": map[string]any{
			"payload": payload, "payloadType": payloadType, "signatures": []any{map[string]any{"sig": signature}},
		},
	})
}

func decode(t *testing.T, data []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var document map[string]any
	if err := d.Decode(&document); err != nil {
		t.Fatal(err)
	}
	return document
}

func encode(t *testing.T, document any) []byte {
	t.Helper()
	data, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// at returns a nested object of a document.
func at(document map[string]any, names ...string) map[string]any {
	for _, name := range names {
		document = document[name].(map[string]any)
	}
	return document
}

// trustDir writes the trust store of the world.
func (w *world) trustDir() string {
	w.t.Helper()
	dir := w.t.TempDir()
	files := map[string][]byte{}
	for name, data := range w.keys {
		files["keys/"+name+".pub"] = data
	}
	for name, data := range w.roots {
		files["roots/"+name+"/trusted_root.json"] = data
	}
	if w.policy != "" {
		files["policy.yaml"] = []byte(policyHead + w.policy)
	}
	writeFiles(w.t, dir, files)
	if w.revoked != nil {
		next, err := trust.Prepare(dir, *w.revoked, w.offline.Public(), nil)
		if err == nil {
			err = next.Issue(w.t.Context(), w.offline)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return dir
}

func writeFiles(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) verify() (*sign.Verdict, *chunk.Reader, error) {
	w.t.Helper()
	store, err := trust.Load([]string{w.trustDir()}, w.state)
	if err != nil {
		return nil, nil, err
	}
	o := w.options
	o.Store, o.State, o.Workers = store, w.state, 2
	if o.Now.IsZero() {
		o.Now = now
	}
	if o.Identify == nil {
		o.Identify = func(r io.ReaderAt, size int64) (sign.Identity, error) {
			_, err := r.ReadAt(make([]byte, 1), size-1)
			return sign.Identity{Solution: w.identity}, err
		}
	}
	return sign.Verify(w.t.Context(), bytes.NewReader(w.data), int64(len(w.data)), w.bundles, o)
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hexString(sum[:])
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func identifyAcme(io.ReaderAt, int64) (sign.Identity, error) {
	return sign.Identity{Solution: acmeDB}, nil
}
