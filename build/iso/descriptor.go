package iso

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"
)

// volumeDescriptors is their number: primary, Joliet, terminator.
const volumeDescriptors = 3

// Types of volume descriptors, ECMA-119 8.1.1, and their common values.
const (
	descriptorPrimary       = 1
	descriptorSupplementary = 2
	descriptorTerminator    = 255
	standardID              = "CD001"
	jolietEscape            = "%/E" // UCS-2 level 3
)

// The application use field of the primary volume descriptor, which isomd5sum needs blank.
const (
	applicationUse     = 883
	applicationUseSize = 512
)

// volumeDescriptor returns the descriptor of a tree, ECMA-119 8.4 and 8.5. Fields that identify people or files stay
// blank: an image has no publisher, only content.
func (m *Image) volumeDescriptor(t tree) []byte {
	b := make([]byte, 0, sectorSize)
	text, kind, escape := padText, byte(descriptorPrimary), ""
	if t == jolietTree {
		text, kind, escape = padUCS2, descriptorSupplementary, jolietEscape
	}
	table := &m.pathTables[t]

	b = append(b, kind)
	b = append(b, standardID+"\x01\x00"...)
	b = text(b, "", 32)                      // system
	b = text(b, m.options.VolumeID, 32)      // volume
	b = append(b, zeros[:8]...)              //
	b = appendBoth32(b, uint32(m.sectors))   // volume space
	b = append(b, escape...)                 //
	b = append(b, zeros[:32-len(escape)]...) //
	b = appendBoth16(b, 1)                   // volumes in the set
	b = appendBoth16(b, 1)                   // this one
	b = appendBoth16(b, sectorSize)          // logical block
	b = appendBoth32(b, uint32(table.size))  // path table
	b = binary.LittleEndian.AppendUint32(b, table.little)
	b = append(b, zeros[:4]...) // no second copy
	b = binary.BigEndian.AppendUint32(b, table.large)
	b = append(b, zeros[:4]...)
	b = appendRecord(b, identifierSelf, m.root.lba[t], m.root.size[t], appendTime7(nil, m.options.ModTime), flagDirectory)
	b = text(b, "", 128) // volume set
	b = text(b, "", 128) // publisher
	b = text(b, "", 128) // data preparer
	b = text(b, m.options.ApplicationID, 128)
	b = text(b, "", 37)                    // copyright file
	b = text(b, "", 37)                    // abstract file
	b = text(b, "", 37)                    // bibliographic file
	b = appendTime17(b, m.options.ModTime) // creation
	b = appendTime17(b, m.options.ModTime) // modification
	b = appendTime17(b, time.Time{})       // expiration
	b = appendTime17(b, time.Time{})       // effective
	b = append(b, 1, 0)                    // file structure version
	b = append(b, bytes.Repeat([]byte{' '}, applicationUseSize)...)
	return append(b, zeros[:sectorSize-len(b)]...)
}

// terminator returns the volume descriptor set terminator, ECMA-119 8.3.
func terminator() []byte {
	b := append([]byte{descriptorTerminator}, standardID+"\x01"...)
	return append(b, zeros[:sectorSize-len(b)]...)
}

// padText appends text in a field of size bytes, filled up with spaces.
func padText(b []byte, text string, size int) []byte {
	return fmt.Appendf(b, "%s%*s", text, size-len(text), "")
}

// padUCS2 appends text in UCS-2 in a field of size bytes, filled up with spaces. A longer text is cut off: fields of
// the Joliet descriptor have half as many characters as those of the primary one. A last odd byte is zero.
func padUCS2(b []byte, text string, size int) []byte {
	characters := jolietCharacters(text)
	for i := range size / 2 {
		c := ' '
		if i < len(characters) {
			c = characters[i]
		}
		b = binary.BigEndian.AppendUint16(b, uint16(c))
	}
	return append(b, zeros[:size%2]...)
}

// appendTime17 appends a time as volume descriptors hold it, ECMA-119 8.4.26.1, in UTC; the zero time is "not
// specified".
func appendTime17(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "0000000000000000\x00"...)
	}
	t = t.UTC()
	b = t.AppendFormat(b, "20060102150405")
	return append(fmt.Appendf(b, "%02d", t.Nanosecond()/10_000_000), 0)
}

func pathRecordSize(identifier string) int { return 8 + len(identifier) + len(identifier)%2 }

// appendPathRecord appends the record of a directory in a path table, ECMA-119 9.4.
func appendPathRecord(b []byte, order binary.AppendByteOrder, d *directory, t tree) []byte {
	identifier := d.identifier(t)
	b = append(b, byte(len(identifier)), 0)
	b = order.AppendUint32(b, d.lba[t])
	b = order.AppendUint16(b, d.parent.number[t])
	b = append(b, identifier...)
	if len(identifier)%2 == 1 {
		b = append(b, 0)
	}
	return b
}
