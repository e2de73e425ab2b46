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

	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
	"github.com/solutionctl/solutionctl/sign/key"
	"github.com/solutionctl/solutionctl/sign/trust"
)

const memoryLimit = 40 << 20

// TestMemory verifies a file that is much larger than the limit in a process of its own, then reads it through the reader.
func TestMemory(t *testing.T) {
	t.Parallel()
	if os.Getenv(measured) != "" {
		measureSparse(t)
		return
	}
	size := int64(1<<30 + 12345)
	if testing.Short() { // still eighteen times the limit
		size = 720<<20 + 12345
	}
	dir := signSparse(t, size)
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMemory$", "-test.v")
	c.Dir, c.Env = dir, append(os.Environ(), measured+"=1", "GOGC=100") // as it is by default
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// TestBeyond4GiB reads the end of a file whose offsets need more than 32 bits, as it is verified.
func TestBeyond4GiB(t *testing.T) {
	const size = 4<<30 + 12345
	t.Chdir(signSparse(t, size))
	reader := verifySparse(t, sign.Options{OnRead: true})
	end := make([]byte, 20000) // of two chunks
	if n, err := reader.ReadAt(end, size-int64(len(end))); n != len(end) || err != nil {
		t.Errorf("read %d bytes: %v", n, err)
	}
	f, err := os.OpenFile("x.iso", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // the written file is read below
	const altered = size - 3*chunk.DefaultSize
	if _, err := f.WriteAt([]byte("x"), altered); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.ReadAt(end, altered); err == nil {
		t.Error("an altered byte beyond 4 GiB is accepted")
	}
}

// signSparse returns a directory with x.iso, a hole of the given size, its bundle and the key k.pub.
func signSparse(t *testing.T, size int64) string {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "x.iso"))
	if err != nil {
		t.Fatal(err)
	}
	if err = f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if err = f.Close(); err != nil {
		t.Fatal(err)
	}
	signer := newSigner(t, elliptic.P256())
	signed, err := bundle.SignStatement(t.Context(), signer, sparseStatement(t, size))
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string][]byte{"x.iso.sigstore.json": signed, "k.pub": signer.Public().PEM()})
	return dir
}

// sparseStatement is computed without reading the file: all whole chunks are alike.
func sparseStatement(t *testing.T, size int64) *bundle.Statement {
	t.Helper()
	zeros := make([]byte, chunk.DefaultSize)
	whole, rest := sha256.Sum256(zeros), sha256.Sum256(zeros[:size%chunk.DefaultSize])
	digests := append(bytes.Repeat(whole[:], int(size/chunk.DefaultSize)), rest[:]...)
	sums := &chunk.Sums{Chunks: chunk.List{Size: size, ChunkSize: chunk.DefaultSize, Algorithm: "sha256", Digests: digests}}
	st, err := sign.NewStatement(sums, sign.Claims{Name: "x.iso", Solution: acmeDB, CreatedAt: now})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// verifySparse verifies x.iso in the current directory.
func verifySparse(t *testing.T, o sign.Options) *chunk.Reader {
	t.Helper()
	data, err := os.ReadFile("k.pub")
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.ParsePublic(data)
	if err != nil {
		t.Fatal(err)
	}
	f, err := media.OpenNoFollow("x.iso")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	bundles, err := sign.FindBundles("x.iso")
	if err != nil {
		t.Fatal(err)
	}
	o.Store, o.Now, o.Identify = trust.Keys(map[string]*key.Public{"k": public}), now, identifyAcme
	if !o.OnRead {
		o.Unchanged = f.Unchanged
	}
	_, reader, err := sign.Verify(t.Context(), f, f.Size, bundles, o)
	if err != nil {
		t.Fatal(err)
	}
	return reader
}

func measureSparse(t *testing.T) {
	t.Helper()
	peak := &memory{t: t}
	reader := verifySparse(t, sign.Options{Workers: 8, Sink: peak})
	verified := peak.highest
	if n, err := io.Copy(peak, io.NewSectionReader(reader, 0, reader.Size())); err != nil || n != reader.Size() {
		t.Errorf("read %d bytes: %v", n, err)
	}
	t.Logf("peak RssAnon: %d KiB while verifying, %d KiB with reading", verified>>10, peak.highest>>10)
	if peak.highest > memoryLimit || peak.samples < 100 {
		t.Errorf("peak RssAnon is %d KiB in %d samples, want at most %d KiB", peak.highest>>10, peak.samples, memoryLimit>>10)
	}
}

// memory takes a sample of the memory of this process at each event and, as a writer, every 8 MiB.
type memory struct {
	t       *testing.T
	highest int
	samples int
	written int
}

func (m *memory) Write(p []byte) (int, error) {
	if (m.written+len(p))>>23 != m.written>>23 {
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
