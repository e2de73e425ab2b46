package iso

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
)

// noise is content that does not repeat, so that every fragment has a sum of its own.
func noise(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%x ", i*2654435761)
	}
	return b.String()[:n]
}

func openWritable(t *testing.T, name string) (*os.File, int64) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return f, info.Size()
}

// TestImplantMD5 compares with the tools of isomd5sum. Below 702 KiB not every fragment of an image has a block of its
// own; checkisomd5 may then refuse the result of implantisomd5, so only ours is checked.
func TestImplantMD5(t *testing.T) {
	implant, check := needTool(t, "implantisomd5", "isomd5sum"), needTool(t, "checkisomd5", "isomd5sum")
	for _, size := range []int{0, 1000, 100_000, 300_000, 500_000, 640_000, 700_000, 1 << 20, 1<<20 + 12345, 5_000_000, 26_000_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			name := writeImage(t, []File{textFile("noise", noise(size))})
			theirs := filepath.Join(t.TempDir(), "theirs.iso")
			if err := os.WriteFile(theirs, readFile(t, name), 0o600); err != nil {
				t.Fatal(err)
			}
			f, n := openWritable(t, name)
			if err := ImplantMD5(f, n); err != nil {
				t.Fatal(err)
			}
			if err := CheckMD5(f, n); err != nil {
				t.Error(err)
			}
			run(t, check, name)

			run(t, implant, theirs)
			got, want := readFile(t, name), readFile(t, theirs)
			if n >= 21*md5Block+md5Skip*sectorSize && !bytes.Equal(got, want) {
				t.Errorf("implantisomd5 writes something else into an image of %d bytes:\n%s\n%s", n, got[md5Offset:][:512], want[md5Offset:][:512])
			}
			if err := CheckMD5(bytes.NewReader(want), int64(len(want))); err != nil {
				t.Errorf("checksum of implantisomd5: %v", err)
			}
		})
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestImplantMD5Twice(t *testing.T) {
	f, size := openWritable(t, writeImage(t, []File{textFile("noise", noise(800_000))}))
	var fields [2][applicationUseSize]byte
	for i := range fields {
		if err := ImplantMD5(f, size); err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadAt(fields[i][:], md5Offset); err != nil {
			t.Fatal(err)
		}
	}
	if fields[0] != fields[1] {
		t.Errorf("the second checksum differs:\n%s\n%s", fields[0], fields[1])
	}
	if _, err := f.WriteAt([]byte("somebody's data"), md5Offset); err != nil {
		t.Fatal(err)
	}
	if err := ImplantMD5(f, size); report.CodeOf(err) != report.Invalid {
		t.Errorf("a field that is taken: %v", err)
	}
}

func TestCheckMD5Fails(t *testing.T) {
	f, size := openWritable(t, writeImage(t, []File{textFile("noise", noise(800_000))}))
	if err := CheckMD5(f, size); report.CodeOf(err) != report.Invalid {
		t.Errorf("no checksum: %v", err)
	}
	if err := ImplantMD5(f, size); err != nil {
		t.Fatal(err)
	}
	implanted := make([]byte, size)
	if _, err := f.ReadAt(implanted, 0); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		damage func(image []byte) []byte
		code   report.Code
	}{
		{"system area", func(b []byte) []byte { b[0]++; return b }, report.Corrupt},
		{"volume descriptor", func(b []byte) []byte { b[md5Offset-1]++; return b }, report.Corrupt},
		{"after the field", func(b []byte) []byte { b[md5Offset+512]++; return b }, report.Corrupt},
		{"content", func(b []byte) []byte { b[len(b)/2]++; return b }, report.Corrupt},
		{"digit of the sum", func(b []byte) []byte { b[md5Offset+20] ^= 1; return b }, report.Corrupt},
		{"no digit", func(b []byte) []byte { b[md5Offset+20] = 'x'; return b }, report.Corrupt},
		{"sectors to skip", func(b []byte) []byte { b[md5Offset+60] = 'x'; return b }, report.Corrupt},
		{"no label", func(b []byte) []byte { b[md5Offset] = ' '; return b }, report.Invalid},
		{"truncated", func(b []byte) []byte { return b[:len(b)-1] }, report.Corrupt},
		{"not an image", func(b []byte) []byte { return b[sectorSize:] }, report.Invalid},
		{"too short", func(b []byte) []byte { return b[:systemArea*sectorSize+100] }, report.Invalid},
		{"empty", func([]byte) []byte { return nil }, report.Invalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			damaged := test.damage(bytes.Clone(implanted))
			if err := CheckMD5(bytes.NewReader(damaged), int64(len(damaged))); report.CodeOf(err) != test.code {
				t.Errorf("got %v, want %s", err, test.code)
			}
		})
	}
}

// FuzzCheckMD5: no field makes the check panic or read without end.
func FuzzCheckMD5(f *testing.F) {
	image := imageBytes(f, []File{textFile("noise", noise(40_000))})
	f.Add("ISO MD5SUM = 00000000000000000000000000000000;SKIPSECTORS = 15;", uint32(40))
	f.Add("ISO MD5SUM = 00;SKIPSECTORS = -1;", uint32(1<<31))
	f.Add("SKIPSECTORS = 99999999999999999999;ISO MD5SUM = ;", uint32(0))
	f.Fuzz(func(t *testing.T, field string, sectors uint32) {
		b := bytes.Clone(image)
		copy(b[md5Offset:md5Offset+applicationUseSize], field)
		copy(b[systemArea*sectorSize+80:], appendBoth32(nil, sectors))
		if CheckMD5(bytes.NewReader(b), int64(len(b))) == nil && !strings.HasPrefix(field, md5Label) && !strings.Contains(field, ";"+md5Label) {
			t.Errorf("passed with %q", field)
		}
	})
}
