package iso

import "encoding/binary"

// Units of every part of the format.
const (
	sectorSize  = 2048
	systemArea  = 16         // sectors before the first volume descriptor
	maxSection  = 0xFFFFF800 // the longest run of bytes that one directory record describes: whole sectors below 4 GiB
	maxDirs     = 0xFFFF     // path tables number directories with 16 bits
	maxSectors  = 1<<32 - 1
	maxLevels   = 8   // ECMA-119 6.8.2.1, the root included
	maxRecord   = 254 // a directory record has an even length that fits in a byte
	maxVolumeID = 32
)

// File flags of directory records, ECMA-119 9.1.6.
const (
	flagDirectory   = 0x02
	flagMultiExtent = 0x80 // another section of the same file follows
)

// The identifiers of a directory's records of itself and of its parent, ECMA-119 6.8.2.2.
const (
	identifierSelf   = "\x00"
	identifierParent = "\x01"
)

// appendBoth32 appends a number in both byte orders, ECMA-119 7.3.3.
func appendBoth32(b []byte, v uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, v), v)
}

// appendBoth16 appends a number in both byte orders, ECMA-119 7.2.3.
func appendBoth16(b []byte, v uint16) []byte {
	return binary.BigEndian.AppendUint16(binary.LittleEndian.AppendUint16(b, v), v)
}

// sectorsFor returns how many sectors hold n bytes.
func sectorsFor(n int64) int64 { return (n + sectorSize - 1) / sectorSize }
