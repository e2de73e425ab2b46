package sign_test

import (
	"bytes"
	"crypto/elliptic"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
	"github.com/solutionctl/solutionctl/sign/key"
	"github.com/solutionctl/solutionctl/sign/trust"
)

const (
	sparseSize  = 4<<30 + 12345
	memoryLimit = 40 << 20
)

// TestMemory verifies a file of more than 4 GiB in a process of its own, then reads it through the reader.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 4 GiB twice")
	}
	if os.Getenv(measured) != "" {
		verifySparse(t)
		return
	}
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "x.iso"))
	if err != nil {
		t.Fatal(err)
	}
	if err = f.Truncate(sparseSize); err != nil {
		t.Fatal(err)
	}
	if err = f.Close(); err != nil {
		t.Fatal(err)
	}
	signer := newSigner(t, elliptic.P256())
	signed, err := bundle.SignStatement(t.Context(), signer, sparseStatement(t))
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string][]byte{"x.iso.sigstore.json": signed, "k.pub": signer.Public().PEM()})
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMemory$", "-test.v")
	c.Dir, c.Env = dir, append(os.Environ(), measured+"=1")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// sparseStatement is computed without reading 4 GiB: all whole chunks are alike.
func sparseStatement(t *testing.T) *bundle.Statement {
	t.Helper()
	zeros := make([]byte, chunk.DefaultSize)
	whole, rest := sha256.Sum256(zeros), sha256.Sum256(zeros[:sparseSize%chunk.DefaultSize])
	digests := append(bytes.Repeat(whole[:], sparseSize/chunk.DefaultSize), rest[:]...)
	sums := &chunk.Sums{Chunks: chunk.List{Size: sparseSize, ChunkSize: chunk.DefaultSize, Algorithm: "sha256", Digests: digests}}
	st, err := sign.NewStatement(sums, sign.Claims{Name: "x.iso", Solution: acmeDB, CreatedAt: now})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func verifySparse(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile("k.pub")
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.ParsePublic(data)
	if err != nil {
		t.Fatal(err)
	}
	f, err := sign.Open("x.iso")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // opened for reading
	bundles, err := sign.FindBundles("x.iso")
	if err != nil {
		t.Fatal(err)
	}
	peak := &memory{t: t}
	_, reader, err := sign.Verify(t.Context(), f, f.Size, bundles, sign.Options{
		Store: trust.Keys(map[string]*key.Public{"k": public}), Now: now, Workers: 8, Unchanged: f.Unchanged,
		Sink: peak, Identify: identifyAcme,
	})
	if err != nil {
		t.Fatal(err)
	}
	verified := peak.highest
	if n, err := io.Copy(peak, io.NewSectionReader(reader, 0, reader.Size())); err != nil || n != sparseSize {
		t.Errorf("read %d bytes: %v", n, err)
	}
	t.Logf("peak RssAnon: %d KiB while verifying, %d KiB with reading", verified>>10, peak.highest>>10)
	if peak.highest > memoryLimit || peak.samples < 100 {
		t.Errorf("peak RssAnon is %d KiB in %d samples, want at most %d KiB", peak.highest>>10, peak.samples, memoryLimit>>10)
	}
}

// memory takes a sample of the memory of this process at each event and, as a writer, every 32 MiB.
type memory struct {
	t       *testing.T
	highest int
	samples int
	written int
}

func (m *memory) Write(p []byte) (int, error) {
	if (m.written+len(p))>>25 != m.written>>25 {
		m.Emit(report.Event{})
	}
	m.written += len(p)
	return len(p), nil
}

func (m *memory) Emit(report.Event) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		m.t.Error(err)
	}
	var kib int
	for line := range bytes.Lines(status) {
		if value, ok := bytes.CutPrefix(line, []byte("RssAnon:")); ok {
			kib, err = strconv.Atoi(string(bytes.TrimSuffix(bytes.TrimSpace(value), []byte(" kB"))))
			if err != nil {
				m.t.Error(fmt.Errorf("RssAnon: %w", err))
			}
		}
	}
	m.samples++
	m.highest = max(m.highest, kib<<10)
}
