package iso

import (
	"encoding/binary"
	"testing"
)

// TestPathTables decodes the path tables, which few readers of today look at: all four must lead to the directories.
func TestPathTables(t *testing.T) {
	data := imageBytes(t, stressTree(0))
	for i, name := range []string{"primary", "Joliet"} {
		t.Run(name, func(t *testing.T) {
			descriptor := data[(systemArea+i)*sectorSize:]
			size := binary.LittleEndian.Uint32(descriptor[132:])
			table := func(lba uint32) []byte { return data[lba*sectorSize:][:size] }
			little := decodePathTable(t, table(binary.LittleEndian.Uint32(descriptor[140:])), binary.LittleEndian)
			big := decodePathTable(t, table(binary.BigEndian.Uint32(descriptor[148:])), binary.BigEndian)
			if len(little) != len(big) || len(little) < 700 {
				t.Fatalf("%d and %d directories", len(little), len(big))
			}
			if root := binary.LittleEndian.Uint32(descriptor[158:]); little[0] != (pathRecord{root, 1, identifierSelf}) {
				t.Fatalf("first record %#v, the root is at sector %d", little[0], root)
			}
			for n, r := range little {
				if r != big[n] {
					t.Errorf("record %d: %#v little-endian, %#v big-endian", n+1, r, big[n])
				}
				if n > 1 && !before(little[n-1], r) {
					t.Errorf("record %d: %#v after %#v", n+1, r, little[n-1])
				}
				if n > 0 && (int(r.parent) > n || recordedDirectory(data, little[r.parent-1].lba, r.identifier) != r.lba) {
					t.Fatalf("record %d: %#v is not where its parent says", n+1, r)
				}
			}
		})
	}
}

type pathRecord struct {
	lba        uint32
	parent     uint16
	identifier string
}

// before reports whether a comes before b: by parent, which covers the level, then by identifier. Identifiers of
// directories have no extension, so bytes decide.
func before(a, b pathRecord) bool {
	return a.parent < b.parent || a.parent == b.parent && a.identifier < b.identifier
}

func decodePathTable(t *testing.T, b []byte, order binary.ByteOrder) []pathRecord {
	t.Helper()
	var out []pathRecord
	for len(b) > 0 {
		n := int(b[0])
		out = append(out, pathRecord{order.Uint32(b[2:]), order.Uint16(b[6:]), string(b[8 : 8+n])})
		b = b[8+n+n%2:]
	}
	return out
}

// recordedDirectory returns the sector that the directory at lba records for a directory in it, or 0.
func recordedDirectory(data []byte, lba uint32, identifier string) uint32 {
	directory := data[lba*sectorSize:]
	directory = directory[:binary.LittleEndian.Uint32(directory[10:])]
	for at := 0; at < len(directory); {
		record := directory[at:]
		if record[0] == 0 { // the rest of the sector is empty
			at = (at/sectorSize + 1) * sectorSize
			continue
		}
		if record[25]&flagDirectory != 0 && string(record[33:33+int(record[32])]) == identifier {
			return binary.LittleEndian.Uint32(record[2:])
		}
		at += int(record[0])
	}
	return 0
}
