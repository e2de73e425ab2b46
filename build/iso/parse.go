package iso

import (
	"encoding/binary"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Flags of directory records that make readers show different things.
const (
	flagHidden     = 0x01
	flagAssociated = 0x04
	flagRecord     = 0x08
	flagProtection = 0x10
	flagReserved   = 0x60
)

// dirRecord is one directory record as it is recorded. Its slices refer to the bytes that were parsed.
type dirRecord struct {
	extent, size          uint32
	extentSame, sizeSame  bool // the halves of the both-endian fields are equal
	volumeSame            bool
	flags                 byte
	attributes, unit, gap byte
	volume                uint16
	date                  [7]byte
	id, systemUse         []byte
}

// parseRecord parses the record that fills b; problem is the reason why it is malformed.
func parseRecord(b []byte) (r dirRecord, problem string) {
	if len(b) < 34 || int(b[0]) != len(b) {
		return r, "it is too short"
	}
	idEnd := 33 + int(b[32])
	if b[32] == 0 || idEnd > len(b) {
		return r, "its identifier is empty or longer than the record"
	}
	r.extent, r.extentSame = parseBoth32(b[2:])
	r.size, r.sizeSame = parseBoth32(b[10:])
	r.volume, r.volumeSame = parseBoth16(b[28:])
	r.attributes, r.flags, r.unit, r.gap = b[1], b[25], b[26], b[27]
	copy(r.date[:], b[18:25])
	r.id = b[33:idEnd]
	r.systemUse = b[min(idEnd+idEnd&1, len(b)):] // the rest starts at an even offset
	return r, ""
}

// trimVersion removes the version from a file identifier.
func trimVersion(id string) string { return strings.TrimSuffix(id, ";1") }

// parseUCS2 decodes big-endian UCS-2; surrogate pairs, which some writers use, are accepted.
func parseUCS2(b []byte) string {
	text := make([]byte, 0, 384) // enough for any identifier: 127 characters of three bytes
	for ; len(b) >= 2; b = b[2:] {
		r := rune(binary.BigEndian.Uint16(b))
		if utf16.IsSurrogate(r) && len(b) >= 4 {
			if pair := utf16.DecodeRune(r, rune(binary.BigEndian.Uint16(b[2:]))); pair != utf8.RuneError {
				r, b = pair, b[2:]
			}
		}
		text = utf8.AppendRune(text, r)
	}
	return string(text)
}

// parseTime7 decodes the 7-byte date of directory records and TF entries; an impossible date is the zero time.
func parseTime7(b []byte) time.Time {
	if b[1] < 1 || b[1] > 12 || b[2] < 1 || b[2] > 31 || b[3] > 23 || b[4] > 59 || b[5] > 59 {
		return time.Time{}
	}
	zone := time.Duration(int8(b[6])) * 15 * time.Minute
	return time.Date(1900+int(b[0]), time.Month(b[1]), int(b[2]), int(b[3]), int(b[4]), int(b[5]), 0, time.UTC).Add(-zone)
}

func parseVolumeID(b []byte, joliet bool) string {
	id := string(b)
	if joliet {
		id = parseUCS2(b)
	}
	return strings.TrimRight(id, " \x00")
}

// parseBoth32 reads a both-endian field; same reports whether its halves are equal. The little-endian half is the
// value.
func parseBoth32(b []byte) (value uint32, same bool) {
	value = binary.LittleEndian.Uint32(b)
	return value, value == binary.BigEndian.Uint32(b[4:])
}

func parseBoth16(b []byte) (value uint16, same bool) {
	value = binary.LittleEndian.Uint16(b)
	return value, value == binary.BigEndian.Uint16(b[2:])
}
