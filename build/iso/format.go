package iso

// What every part of the format counts in.
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

// fileFlag values of directory records, ECMA-119 9.1.6.
const (
	flagDirectory   = 0x02
	flagMultiExtent = 0x80 // another section of the same file follows
)
