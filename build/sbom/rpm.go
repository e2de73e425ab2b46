package sbom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

// rpmFiles are the databases of rpm: SQLite since 4.16, ndb in SUSE, and before a hash table of Berkeley DB. Their directory is another one in
// immutable distributions.
var rpmFiles = []string{"rpmdb.sqlite", "Packages.db", "Packages", "in var/lib/rpm, usr/lib/sysimage/rpm, usr/share/rpm"}

var rpmDirectories = []string{"var/lib/rpm", "usr/lib/sysimage/rpm", "usr/share/rpm"}

func matchRPM(name string) reader {
	if !slices.Contains(rpmDirectories, path.Dir(name)) {
		return nil
	}
	switch path.Base(name) {
	case "rpmdb.sqlite":
		return readRPM(openSQLite)
	case "rpmdb.sqlite-wal":
		return readWriteAheadLog
	case "Packages.db":
		return readRPM(openNDB)
	case "Packages":
		return readRPM(openBerkeleyDB)
	}
	return nil
}

// A rpmDatabase visits the headers of installed packages. Each is overwritten by the next one.
type rpmDatabase func(content *spool, limit *limits, visit func(header []byte) error) error

func readRPM(database rpmDatabase) reader {
	return func(f file) (found *find, err error) {
		content, err := newSpool(f.ctx, f, f.size, f.limit.spooled)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, content.Close()) }()
		found = &find{}
		err = database(content, f.limit, func(header []byte) error {
			c, failure := parseRPMHeader(header)
			if failure != nil || c.name == "gpg-pubkey" { // a key, which is kept as a package
				return failure
			}
			return found.add(c, f.limit)
		})
		return found, err
	}
}

// readWriteAheadLog reports a database of SQLite whose last changes are not in the database itself.
func readWriteAheadLog(f file) (*find, error) {
	if f.size == 0 {
		return nil, nil
	}
	return nil, errors.New("it has changes that are not in rpmdb.sqlite yet, so that packages can be missing or too many")
}

// Tags and types of the header of an rpm package.
const (
	rpmName, rpmVersion, rpmRelease, rpmEpoch = 1000, 1001, 1002, 1003
	rpmVendor, rpmLicense, rpmArch, rpmSource = 1011, 1014, 1022, 1044
	rpmInt32, rpmString, rpmI18NString        = 4, 6, 9
	rpmEntry                                  = 16
	maxRPMEntries                             = 1 << 16
)

// parseRPMHeader reads an index of tags, and the values behind it.
func parseRPMHeader(data []byte) (component, error) {
	c := component{kind: "rpm"}
	if len(data) < 8 {
		return c, errors.New("the header of a package is too short")
	}
	entries, size := uint64(binary.BigEndian.Uint32(data)), uint64(binary.BigEndian.Uint32(data[4:]))
	if entries > maxRPMEntries || 8+entries*rpmEntry+size > uint64(len(data)) {
		return c, errors.New("the header of a package is damaged")
	}
	index, values := data[8:8+entries*rpmEntry], data[8+entries*rpmEntry:]
	var release, vendor, sourceRPM string
	wanted := map[uint32]*string{
		rpmName: &c.name, rpmVersion: &c.version, rpmRelease: &release, rpmEpoch: &c.epoch, rpmArch: &c.arch, rpmLicense: &c.license, rpmVendor: &vendor, rpmSource: &sourceRPM,
	}
	found := map[uint32][]byte{} // an entry of the index by its tag; of several, the last one
	for ; len(index) >= rpmEntry; index = index[rpmEntry:] {
		if tag := binary.BigEndian.Uint32(index); wanted[tag] != nil {
			found[tag] = index
		}
	}
	for tag, entry := range found {
		if offset := uint64(binary.BigEndian.Uint32(entry[8:])); offset < uint64(len(values)) {
			*wanted[tag] = rpmText(binary.BigEndian.Uint32(entry[4:]), values[offset:])
		}
	}
	c.vendor = vendorID(vendor)
	if release != "" {
		c.version += "-" + release
	}
	c.source, c.sourceVersion = splitSourceRPM(sourceRPM)
	return c, nil
}

// rpmText returns a text, or a number as one; empty for any other kind of value.
func rpmText(kind uint32, value []byte) string {
	switch {
	case kind == rpmString || kind == rpmI18NString:
		text, _, _ := bytes.Cut(value[:min(maxLine, len(value))], []byte{0})
		return string(text)
	case kind == rpmInt32 && len(value) >= 4:
		return strconv.FormatUint(uint64(binary.BigEndian.Uint32(value)), 10)
	}
	return ""
}

// vendorID is the first word of the name of a vendor, such as fedora of "Fedora Project".
func vendorID(vendor string) string {
	fields := strings.Fields(strings.ToLower(vendor))
	if len(fields) == 0 || fields[0] == "(none)" {
		return ""
	}
	return clean(fields[0], 64)
}

// splitSourceRPM takes apart NAME-VERSION-RELEASE.src.rpm.
func splitSourceRPM(file string) (name, version string) {
	file, ok := strings.CutSuffix(file, ".rpm")
	if !ok {
		return "", ""
	}
	file = strings.TrimSuffix(strings.TrimSuffix(file, ".src"), ".nosrc")
	release := strings.LastIndex(file, "-")
	if release < 0 {
		return "", ""
	}
	at := strings.LastIndex(file[:release], "-")
	if at < 0 {
		return "", ""
	}
	return file[:at], file[at+1:]
}

// openNDB reads the database of SUSE: pages of slots, each of which points to the header of a package. See rpm's lib/backend/ndb/rpmpkg.c.
func openNDB(content *spool, limit *limits, visit func([]byte) error) error {
	const page, slot, block = 4096, 16, 16
	head := make([]byte, 32)
	if err := content.read(head, 0); err != nil {
		return err
	}
	pages := int64(binary.LittleEndian.Uint32(head[12:]))
	if string(head[:4]) != "RpmP" || binary.LittleEndian.Uint32(head[4:]) != 0 || pages*page > content.size {
		return errors.New("it is not a database of rpm in the format ndb")
	}
	slots := make([]byte, page)
	for n := range pages {
		if err := content.read(slots, n*page); err != nil {
			return err
		}
		for at := 0; at < page; at += slot {
			entry := slots[at:]
			index, offset := binary.LittleEndian.Uint32(entry[4:]), int64(binary.LittleEndian.Uint32(entry[8:]))*block
			if n == 0 && at < len(head) || index == 0 {
				continue
			}
			if err := content.read(head[:block], offset); err != nil {
				return err
			}
			size := int64(binary.LittleEndian.Uint32(head[12:]))
			if string(entry[:4]) != "Slot" || string(head[:4]) != "BlbS" || binary.LittleEndian.Uint32(head[4:]) != index {
				return errors.New("a slot is damaged")
			}
			if err := content.visit(offset+block, size, limit, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// openBerkeleyDB reads all pages of a hash table of Berkeley DB, and the overflow pages of the values.
func openBerkeleyDB(content *spool, limit *limits, visit func([]byte) error) error {
	const (
		headerSize                   = 26
		magic                        = 0x061561
		hashUnsorted, hash, overflow = 2, 13, 7
		offPage, offPageSize         = 3, 12
	)
	head := make([]byte, 512)
	if err := content.read(head, 0); err != nil {
		return err
	}
	var order binary.ByteOrder = binary.LittleEndian
	if order.Uint32(head[12:]) != magic {
		order = binary.BigEndian
	}
	size, last := int64(order.Uint32(head[20:])), int64(order.Uint32(head[32:]))
	if order.Uint32(head[12:]) != magic || size < 512 || size > 1<<16 || (last+1)*size > content.size {
		return errors.New("it is not a hash table of Berkeley DB, or is damaged")
	}
	left := last + 1 // each page is part of one value at most
	page, next, header := make([]byte, size), make([]byte, size), []byte{}
	value := func(number, length int64) error {
		if length > limit.document {
			return fmt.Errorf("the header of a package has %d bytes, the limit is %d", length, limit.document)
		}
		header = slices.Grow(header[:0], int(min(length, content.size)))
		for number != 0 {
			if left--; left < 0 || number > last {
				return errors.New("pages of the database are a loop")
			}
			if err := content.read(next, number*size); err != nil {
				return err
			}
			used := int64(order.Uint16(next[22:]))
			if next[25] != overflow || headerSize+used > size {
				return errors.New("a page of the database is damaged")
			}
			header = append(header, next[headerSize:headerSize+used]...)
			number = int64(order.Uint32(next[16:]))
		}
		if int64(len(header)) != length {
			return errors.New("a value of the database is damaged")
		}
		return visit(header)
	}
	for number := int64(1); number <= last; number++ {
		if err := content.read(page, number*size); err != nil {
			return err
		}
		if page[25] != hash && page[25] != hashUnsorted {
			continue
		}
		items := int64(order.Uint16(page[20:]))
		if headerSize+2*items > size {
			return errors.New("a page of the database is damaged")
		}
		for i := int64(1); i < items; i += 2 { // keys and values in turn
			at := int64(order.Uint16(page[headerSize+2*i:]))
			if at+offPageSize > size || page[at] != offPage {
				continue // a small value: the number of the next package
			}
			if err := value(int64(order.Uint32(page[at+4:])), int64(order.Uint32(page[at+8:]))); err != nil {
				return err
			}
		}
	}
	return nil
}

// read fills p from an offset.
func (s *spool) read(p []byte, offset int64) error {
	if n, err := s.ReadAt(p, offset); n < len(p) {
		if errors.Is(err, io.EOF) || err == nil {
			err = errors.New("the database is shorter than it should be")
		}
		return err
	}
	return nil
}

// visit passes a part of the file on. It is overwritten by the next one.
func (s *spool) visit(offset, size int64, limit *limits, visit func([]byte) error) error {
	if size > limit.document || offset+size > s.size {
		return fmt.Errorf("the header of a package has %d bytes, more than fit, or than the limit of %d", size, limit.document)
	}
	s.part = slices.Grow(s.part[:0], int(size))[:size]
	if err := s.read(s.part, offset); err != nil {
		return err
	}
	return visit(s.part)
}
