package iso

import (
	"encoding/binary"
	"slices"
	"strings"
)

// A program tries one format after the other on a file, each by a few bytes at a place of its own; mount and 7z try UDF
// before ISO 9660. So an image must have no signature at these places, neither between files nor inside one: the author
// of an image chooses where its files are.

// mark is a signature of another format and its offset, from the end when that is negative.
type mark struct {
	offset        int64
	magic, format string
}

// knownMarks are the signatures of file systems, containers and partition tables, as libblkid and the kernel know them.
var knownMarks = []mark{
	// In the system area, which must be zero: these only name the format of bytes that are refused there anyway.
	{0, "XFSB", "XFS"},
	{0, "hsqs", "squashfs"},
	{0, "-rom1fs-", "romfs"},
	{0, "\x45\x3d\xcd\x28", "cramfs"},
	{0, "LUKS\xba\xbe", "LUKS"},
	{0, "ER", "an Apple partition map"},
	{0, "PK\x03\x04", "a zip file"},
	{3, "NTFS    ", "NTFS"},
	{3, "EXFAT   ", "exFAT"},
	{32, "NXSB", "APFS"},
	{54, "FAT", "FAT"},
	{82, "FAT", "FAT"},
	{257, "ustar", "a tar file"},
	{510, "\x55\xaa", "a boot sector or a partition table (MBR)"},
	{512, "EFI PART", "a partition table (GPT)"},
	{512, "PM", "an Apple partition map"},
	{512, "LABELONE", "LVM"},
	{1024, "BD", "HFS"},
	{1024, "H+", "HFS+"},
	{1024, "HX", "HFS+"},
	{1024, "\xe2\xe1\xf5\xe0", "EROFS"},
	{1024, "\x10\x20\xf5\xf2", "F2FS"},
	{1080, "\x53\xef", "ext2, ext3 or ext4"},
	{2048, "EFI PART", "a partition table (GPT)"},
	{2048, "PM", "an Apple partition map"},
	{4086, "SWAPSPACE2", "swap space"},
	{4120, "\xc6\x85\x73\xf6\x66\xce\x90\xa9", "bcachefs"},

	// Behind it, where files may lie.
	{systemArea*sectorSize + 9, "CDROM", "High Sierra"},
	{64<<10 - 10, "SWAPSPACE2", "swap space"},
	{64 << 10, "\x01\x16\x19\x70", "GFS2"},
	{64 << 10, "ReIsEr4", "Reiser4"},
	{64<<10 + 52, "ReIsEr", "ReiserFS"},
	{64<<10 + 64, "_BHRfS_M", "Btrfs"},
	{64<<10 + 1372, "\x54\x19\x01\x00", "UFS"},
	{64<<10 + 1372, "\x00\x01\x19\x54", "UFS"},
	{64<<10 + 1372, "\x19\x01\x54\x19", "UFS"},
	{64<<10 + 1372, "\x19\x54\x01\x19", "UFS"},
	{256<<10 + 1372, "\x19\x01\x54\x19", "UFS"},
	{256<<10 + 1372, "\x19\x54\x01\x19", "UFS"},
	{1 << 20, "\x0d\xd0\x01\xc0", "VMFS"},
	{2 << 20, "\x5e\xf1\xab\x2f", "VMFS"},

	// At the end.
	{-512, "EFI PART", "a partition table (GPT)"},
	{-512, "\xde\x11\xde\x11", "a RAID (DDF)"},
	{-512, "\x11\xde\x11\xde", "a RAID (DDF)"},
	{-1024, "Intel Raid ISM Cfg. Sig.", "a RAID (Intel)"},
	{-2048, "EFI PART", "a partition table (GPT)"},
}

// computedMarks are the marks whose places are many or depend on the size.
func computedMarks(size int64) []mark {
	var marks []mark
	for _, offset := range []int64{size&^(64<<10-1) - 64<<10, (size/512 - 16) &^ 7 * 512} {
		marks = append(marks, mark{offset, "\xfc\x4e\x2b\xa9", "a RAID (mdadm)"}, mark{offset, "\xa9\x2b\x4e\xfc", "a RAID (mdadm)"})
	}
	marks = append(marks, mark{(size>>12 - 1) << 12, "\x02\x00\x00\x00\x00\x00\x34\x34", "NILFS2"})
	for offset := int64(systemArea * sectorSize); offset <= 4<<20; offset *= 2 {
		marks = append(marks, mark{offset, "SKUL\xba\xbe", "LUKS"})
	}
	const label = 256 << 10 // a pool of ZFS has four, with uberblocks in their second halves
	end := size &^ (label - 1)
	for _, at := range []int64{0, label, end - 2*label, end - label} {
		for offset := at + label/2; offset < at+label; offset += 1 << 10 {
			marks = append(marks, mark{offset, "\x0c\xb1\xba\x00\x00\x00\x00\x00", "ZFS"}, mark{offset, "\x00\x00\x00\x00\x00\xba\xb1\x0c", "ZFS"})
		}
	}
	return marks
}

// checkFormats looks for everything but ISO 9660.
func (s *scan) checkFormats() error {
	found := map[mark]bool{}
	for _, m := range slices.Concat(knownMarks, computedMarks(s.src.size)) {
		if m.offset < 0 {
			m.offset += s.src.size
		}
		b, err := s.peek(m.offset, len(m.magic))
		if err != nil {
			return err
		}
		if string(b) == m.magic && !found[m] {
			found[m] = true
			s.add(ruleOtherFormat, "", "byte %d holds the mark of %s: other programs might not recognise this as an ISO 9660 image", m.offset, m.format)
		}
	}
	if err := s.checkStructures(); err != nil {
		return err
	}
	return s.checkAnchors()
}

// peek returns n bytes, or nothing where the image has not as many.
func (s *scan) peek(offset int64, n int) ([]byte, error) {
	if offset < 0 || offset+int64(n) > s.src.size {
		return nil, nil
	}
	b := make([]byte, n)
	return b, s.read(b, offset, "", "the place of another format")
}

// structures are the identifiers with which a UDF file system begins (ECMA-167, 2/9.1 and 3/9.1), and that of ISO 9660.
var structures = []string{"BEA01", "NSR02", "NSR03", "TEA01", "BOOT2", "CDW02", standardID}

// structureSectors is the distance from the first descriptor up to which readers search for such an identifier: 64 blocks of 4096 bytes.
const structureSectors = 128

// checkStructures looks for volume structures that follow the volume descriptors.
func (s *scan) checkStructures() error {
	for sector := s.ended / sectorSize; sector < systemArea+structureSectors; sector++ {
		b, err := s.peek(sector*sectorSize+1, len(standardID))
		if err != nil {
			return err
		}
		if slices.Contains(structures, string(b)) {
			s.add(ruleOtherFormat, "", "sector %d holds the volume structure %s, where UDF or another volume begins: mount and others may show other files", sector, b)
		}
	}
	return nil
}

// checkAnchors looks for the descriptors that lead to a UDF file system, where blocks of any size would have them.
func (s *scan) checkAnchors() error {
	found := map[int64]bool{}
	for block := int64(512); block <= 4096; block *= 2 {
		last := s.src.size/block - 1
		for _, number := range []int64{256, 512, last - 256, last} {
			at := number * block
			tag, err := s.peek(at, 16)
			if err != nil {
				return err
			}
			if isAnchor(tag) && !found[at] {
				found[at] = true
				s.add(ruleOtherFormat, "", "byte %d holds an anchor of UDF: mount and others may show other files", at)
			}
		}
	}
	return nil
}

// isAnchor reports whether this is the tag of an anchor volume descriptor pointer, ECMA-167 3/7.2 and 3/10.2.
func isAnchor(tag []byte) bool {
	const anchor = 2
	if len(tag) == 0 || binary.LittleEndian.Uint16(tag) != anchor || tag[5] != 0 {
		return false
	}
	sum := -tag[4] // the checksum does not cover itself
	for _, b := range tag {
		sum += b
	}
	return sum == tag[4]
}

// checkVersionSector accounts for the sector after the descriptors in which some versions of mkisofs name themselves and
// their options, as text that begins with MKI.
func (s *scan) checkVersionSector() error {
	b, err := s.peek(s.ended, sectorSize)
	if err != nil {
		return err
	}
	text := strings.TrimRight(string(b), "\x00")
	other := func(r rune) bool { return r != '\n' && r != 0 && (r < ' ' || r > '~') }
	if strings.HasPrefix(text, "MKI ") && !strings.ContainsFunc(text, other) {
		s.region(s.ended, sectorSize, "version", "")
	}
	return nil
}
