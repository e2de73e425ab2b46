package iso

import (
	"encoding/binary"
	"io"
)

// VolumeSize returns the size that an image names for itself in its first volume descriptor; ok is false where there is none.
// Nothing else of the image is read or checked, so that it may be the first part of one.
func VolumeSize(r io.ReaderAt) (size int64, ok bool) {
	descriptor := make([]byte, sectorSize)
	if n, _ := r.ReadAt(descriptor, 16*sectorSize); n < sectorSize || descriptor[0] != 1 || string(descriptor[1:6]) != "CD001" { // then there is none
		return 0, false
	}
	return int64(binary.LittleEndian.Uint32(descriptor[80:])) * sectorSize, true
}
