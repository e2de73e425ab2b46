package iso

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
)

// formatFaults put the marks of other formats into an image whose last file, of 5 MiB of ones, holds most of them.
func formatFaults() []fault {
	inFile, inSpace := []string{ruleOtherFormat}, []string{ruleHiddenData, ruleOtherFormat}
	put := func(at int, text string) func(*patched) {
		return func(p *patched) {
			if at < 0 {
				at += len(p.data)
			}
			copy(p.data[at:], text)
		}
	}
	return []fault{
		{"MBR", inSpace, put(510, "\x55\xaa")},
		{"GPT", inSpace, put(512, "EFI PART")},
		{"Apple partition map", inSpace, put(0, "ER\x02\x00")},
		{"HFS", inSpace, put(1024, "BD")},
		{"HFS+", inSpace, put(1024, "H+\x00\x04")},
		{"ext4", inSpace, put(1080, "\x53\xef")},
		{"XFS", inSpace, put(0, "XFSB")},
		{"squashfs", inSpace, put(0, "hsqs")},
		{"EROFS", inSpace, put(1024, "\xe2\xe1\xf5\xe0")},
		{"FAT", inSpace, put(54, "FAT16   ")},
		{"NTFS", inSpace, put(3, "NTFS    ")},
		{"anything in the system area", []string{ruleHiddenData}, put(20000, "x")},
		{"Btrfs", inFile, put(64<<10+64, "_BHRfS_M")},
		{"ReiserFS", inFile, put(64<<10+52, "ReIsEr2Fs")},
		{"GFS2", inFile, put(64<<10, "\x01\x16\x19\x70")},
		{"UFS", inFile, put(256<<10+1372, "\x19\x01\x54\x19")},
		{"swap space", inFile, put(64<<10-10, "SWAPSPACE2")},
		{"ZFS", inFile, put(256<<10+128<<10+1<<10, "\x0c\xb1\xba\x00\x00\x00\x00\x00")},
		{"LUKS", inFile, put(4<<20, "SKUL\xba\xbe")},
		{"High Sierra", inFile, put(systemArea*sectorSize+9, "CDROM")},
		{"GPT at the end", inFile, put(-512, "EFI PART")},
		{"RAID", inFile, put(-8192, "\xfc\x4e\x2b\xa9")},
		{"UDF at the first place", inFile, put(64*sectorSize, "\x00BEA01\x01")},
		{"UDF behind something else", inFile, put(143*sectorSize, "\x00NSR03\x01")},
		{"second volume", inFile, put(65*sectorSize, "\x01CD001\x01")},
		{"anchor of UDF", inFile, put(256*sectorSize, anchorTag(256))},
		{"anchor of UDF with blocks of 512 bytes", inFile, put(256*512, anchorTag(256))},
		{"anchor of UDF in the last sector", inFile, put(-sectorSize, anchorTag(77))},
	}
}

// anchorTag is a descriptor tag as UDF writes it.
func anchorTag(location uint32) string {
	tag := []byte{2, 0, 3, 0, 0, 0, 1, 0, 0x12, 0x34, 0xF0, 1}
	tag = binary.LittleEndian.AppendUint32(tag, location)
	for _, b := range slices.Clone(tag) {
		tag[4] += b
	}
	return string(tag)
}

func TestOtherFormats(t *testing.T) {
	data := imageBytes(t, []File{textFile("manifest.yaml", "kind: Solution\n"), textFile("large", strings.Repeat("1", 5<<20))})
	for _, f := range Check(bytes.NewReader(data), int64(len(data))) {
		t.Fatalf("the image has findings before it is damaged: %s: %s", f.Rule, f)
	}
	for _, f := range formatFaults() {
		t.Run(strings.ReplaceAll(f.name, " ", "-"), func(t *testing.T) {
			p := &patched{t, bytes.Clone(data)}
			f.patch(p)
			r, size := p.reader()
			var got []string
			findings := Check(r, size)
			for _, finding := range findings {
				got = append(got, finding.Rule)
			}
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, f.rules) {
				t.Errorf("Check applies %q, want %q: %v", got, f.rules, findings)
			}
			if err := Refusal(findings); report.CodeOf(err) != report.Invalid || err.Error() == "" {
				t.Errorf("Refusal: %v", err)
			}
		})
	}
}

// hybrids are images of foreign tools that are valid in another format as well, with the name that the reason must
// have.
func hybrids(t *testing.T) []struct {
	name, tool, want string
	flags            []string
} {
	t.Helper()
	boot := filepath.Join(t.TempDir(), "boot.img")
	if err := os.WriteFile(boot, bytes.Repeat([]byte{0x90}, 32<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	return []struct {
		name, tool, want string
		flags            []string
	}{
		{"UDF", "genisoimage", "UDF", []string{"-udf"}},
		{"HFS", "genisoimage", "HFS", []string{"-hfs"}},
		{"HFS+", "xorriso", "an Apple partition map", []string{"-hfsplus"}},
		{"FAT label", "xorriso", "MBR", []string{"--protective-msdos-label"}},
		{"partition of the image", "xorriso", "MBR", []string{"-partition_offset", "16"}},
		{"GPT", "xorriso", "GPT", []string{"-append_partition", "2", "0x83", boot, "-appended_part_as_gpt"}},
		{"hybrid", "xorriso", "MBR", []string{"-isohybrid-mbr", boot, "-b", "zboot.img", "-no-emul-boot", "-boot-load-size", "4", "-boot-info-table"}},
		{"system area", "genisoimage", "after the start of the image", []string{"-G", boot}},
	}
}

// TestHybrids makes images with the real tools that mount, 7z or a machine that boots would read in another way.
func TestHybrids(t *testing.T) {
	for _, test := range hybrids(t) {
		t.Run(strings.ReplaceAll(test.name, " ", "-"), func(t *testing.T) {
			writers := foreignWriters()
			w := writers[slices.IndexFunc(writers, func(w foreignWriter) bool { return w.tool == test.tool })]
			dir := writeTree(t, map[string]string{"manifest.yaml": "kind: Solution\n", "zboot.img": strings.Repeat("\x90", 8<<10), "ui/x": "x"})
			f := w.build(t, dir, append([]string{"-r", "-J", "-iso-level", "3"}, test.flags...)...)
			stat, err := f.Stat()
			if err != nil {
				t.Fatal(err)
			}
			err = Refusal(Check(f, stat.Size()))
			if report.CodeOf(err) != report.Invalid || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Refusal: %v, want one that names %q", err, test.want)
			}
		})
	}
}

// TestVersionSector: some versions of mkisofs write their version and options into the sector after the descriptors,
// which is empty in the images of genisoimage.
func TestVersionSector(t *testing.T) {
	dir := writeTree(t, map[string]string{"manifest.yaml": "kind: Solution\n"})
	data, err := io.ReadAll(foreignWriters()[0].build(t, dir, "-r", "-J", "-iso-level", "3"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, text string
		good       bool
	}{
		{"as mkisofs writes it", "MKI Mon Jan  5 10:00:00 2026\nmkisofs 3.02a09 -o x.iso -r -J\x00", true},
		{"other text", "mkisofs 3.02a09", false},
		{"no text", "MKI \x80\x01\x02", false},
	} {
		t.Run(strings.ReplaceAll(test.name, " ", "-"), func(t *testing.T) {
			patched := bytes.Clone(data)
			copy(patched[19*sectorSize:], test.text)
			err := Refusal(Check(bytes.NewReader(patched), int64(len(patched))))
			if (err == nil) != test.good {
				t.Errorf("Refusal: %v", err)
			}
		})
	}
}

// TestCheckVerified looks for data between files in the other reader, and for all else in the first.
func TestCheckVerified(t *testing.T) {
	good := imageBytes(t, smallTree())
	hidden, marked := bytes.Clone(good), bytes.Clone(good)
	hidden[100], marked[systemArea*sectorSize+9] = 1, 'C'
	copy(marked[systemArea*sectorSize+9:], "CDROM")
	size := int64(len(good))
	if err := Refusal(CheckVerified(bytes.NewReader(good), bytes.NewReader(hidden), size, 2)); err == nil {
		t.Error("data between files is not seen")
	}
	if err := Refusal(CheckVerified(bytes.NewReader(good), bytes.NewReader(marked), size, 2)); err != nil {
		t.Errorf("a mark is taken from what was not verified: %v", err)
	}
	if err := Refusal(CheckVerified(bytes.NewReader(marked), bytes.NewReader(good), size, 2)); err == nil {
		t.Error("a mark in what was verified is not seen")
	}
}

// TestWorkers finds the same, in the same order, with any number of workers: data in all spaces, and a space that cannot be read.
func TestWorkers(t *testing.T) {
	data := imageBytes(t, stressTree(500))
	size := int64(len(data))
	s := newScan(bytes.NewReader(data), size, true)
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
	spaces := s.spaces()
	if len(spaces) < 20 {
		t.Fatalf("%d spaces", len(spaces))
	}
	for _, space := range spaces {
		data[space.end-1] = 1
	}
	unread := spaces[len(spaces)/2]
	for rule, r := range map[string]io.ReaderAt{ruleHiddenData: bytes.NewReader(data), ruleUnreadable: badSpace{bytes.NewReader(data), unread.start}} {
		want := CheckVerified(bytes.NewReader(data), r, size, 1)
		if !slices.ContainsFunc(want, func(f report.Finding) bool { return f.Rule == rule }) {
			t.Errorf("one worker finds no %s: %v", rule, want)
		}
		for _, workers := range []int{2, 8} {
			if got := CheckVerified(bytes.NewReader(data), r, size, workers); !slices.Equal(got, want) {
				t.Errorf("%s, %d workers: got %v, want %v", rule, workers, got, want)
			}
		}
	}
}

// badSpace fails from an offset on.
type badSpace struct {
	io.ReaderAt
	from int64
}

func (b badSpace) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= b.from {
		return 0, fmt.Errorf("no medium at byte %d", offset)
	}
	return b.ReaderAt.ReadAt(p, offset)
}
