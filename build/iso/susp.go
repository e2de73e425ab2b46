package iso

// File types in the mode of a PX entry.
const (
	posixDirectory = 0o040000
	posixRegular   = 0o100000
)

const sizeCE = 28

// Rock Ridge as every reader knows it: the identifier of 1991 goes with the PX entry of 36 bytes. The later one has a
// serial number in PX, and a reader that finds it zero everywhere takes all files for links to one another.
const (
	rockRidgeID          = "RRIP_1991A"
	rockRidgeDescription = "THE ROCK RIDGE INTERCHANGE PROTOCOL PROVIDES SUPPORT FOR POSIX FILE SYSTEM SEMANTICS"
	rockRidgeSource      = "PLEASE CONTACT DISC PUBLISHER FOR SPECIFICATION SOURCE.  SEE PUBLISHER IDENTIFIER IN PRIMARY VOLUME DESCRIPTOR FOR CONTACT INFORMATION."
)

// systemUse appends the System Use fields of one file to the record in scratch: attributes and times, which always fit,
// then tail, which moves whole into the continuation area when it does not.
func (r *renderer) systemUse(mode, links uint32, tail []byte) {
	b := appendPX(r.scratch, mode, links)
	b = appendTF(b, r.stamp)
	if size := len(b) + len(tail); size+size%2 > maxRecord {
		b = r.appendCE(b, len(tail))
		r.continuation = append(r.continuation, tail...)
		tail = nil
	}
	r.scratch = append(b, tail...)
}

// appendCE appends a pointer to the next n bytes of the continuation area, SUSP 5.1. They do not cross a sector.
func (r *renderer) appendCE(b []byte, n int) []byte {
	if used := len(r.continuation); sectorSize-used%sectorSize < n {
		r.continuation = append(r.continuation, padding(int64(used))...)
	}
	at := uint32(len(r.continuation))
	b = append(b, 'C', 'E', sizeCE, 1)
	b = appendBoth32(b, r.area+at/sectorSize)
	b = appendBoth32(b, at%sectorSize)
	return appendBoth32(b, uint32(n))
}

// appendPX appends POSIX attributes, RRIP 4.1.1: mode, links, user 0, group 0.
func appendPX(b []byte, mode, links uint32) []byte {
	b = append(b, 'P', 'X', 36, 1)
	b = appendBoth32(b, mode)
	b = appendBoth32(b, links)
	b = appendBoth32(b, 0)
	return appendBoth32(b, 0)
}

// appendTF appends the times of modification, access and attribute change, RRIP 4.1.6: all the same.
func appendTF(b, stamp []byte) []byte {
	b = append(b, 'T', 'F', byte(5+3*len(stamp)), 1, 0x0E)
	b = append(b, stamp...)
	b = append(b, stamp...)
	return append(b, stamp...)
}

// appendNM appends the name, RRIP 4.1.4, always in one entry: some readers do not join a name that is split.
func appendNM(b []byte, name string) []byte {
	return append(append(b, 'N', 'M', byte(5+len(name)), 1, 0), name...)
}

// appendSP announces System Use fields, SUSP 5.3.
func appendSP(b []byte) []byte { return append(b, 'S', 'P', 7, 1, 0xBE, 0xEF, 0) }

// appendER names Rock Ridge as the extension in use, SUSP 5.5.
func appendER(b []byte) []byte {
	size := 8 + len(rockRidgeID) + len(rockRidgeDescription) + len(rockRidgeSource)
	b = append(b, 'E', 'R', byte(size), 1, byte(len(rockRidgeID)), byte(len(rockRidgeDescription)), byte(len(rockRidgeSource)), 1)
	return append(b, rockRidgeID+rockRidgeDescription+rockRidgeSource...)
}
