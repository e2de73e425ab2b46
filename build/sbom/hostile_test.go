package sbom

import (
	"context"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"
)

// endlessJar is a list of files only, which is longer than its last record claims.
func endlessJar(files int) string {
	header := make([]byte, 46)
	copy(header, "PK\x01\x02")
	end := make([]byte, 22)
	copy(end, "PK\x05\x06")
	binary.LittleEndian.PutUint16(end[10:], uint16(files)) //nolint:gosec // it is the rest
	binary.LittleEndian.PutUint32(end[12:], uint32(len(header)))
	return strings.Repeat(string(header), files) + string(end)
}

// gpgKey is the header of a key, which does not count as a package.
func gpgKey(length int) string {
	header := make([]byte, 8+rpmEntry, 8+rpmEntry+length)
	binary.BigEndian.PutUint32(header, 1)
	binary.BigEndian.PutUint32(header[4:], uint32(length)) //nolint:gosec // it is short
	binary.BigEndian.PutUint32(header[8:], rpmName)
	binary.BigEndian.PutUint32(header[12:], rpmString)
	return string(append(header, "gpg-pubkey\x00"...)) + strings.Repeat("x", length-len("gpg-pubkey\x00"))
}

// overlappingNDB is a database with many slots of one header.
func overlappingNDB() string {
	const slots = 200
	database := []byte(ndbOf(gpgKey(1 << 16)))
	for i := 1; i < slots; i++ {
		copy(database[32+16*i:], database[32:48])
	}
	return string(database)
}

// overlappingSQLite is a database with a table Packages, all rows of which are one.
func overlappingSQLite() string {
	const page, cells = 4096, 1000
	database := make([]byte, 2*page)
	copy(database, sqliteMagic)
	binary.BigEndian.PutUint16(database[16:], page)
	leaf := func(page []byte, cells int, row string) {
		page[0] = sqliteLeaf
		at := len(page) - len(row) - 3
		binary.BigEndian.PutUint16(page[3:], uint16(cells)) //nolint:gosec // it is a page
		copy(page[at:], []byte{byte(len(row)>>7) | 0x80, byte(len(row) & 0x7f), 1})
		copy(page[at+3:], row)
		start := cap(database) - cap(page)
		for i := range cells {
			binary.BigEndian.PutUint16(page[8+2*i:], uint16((start+at)%4096)) //nolint:gosec // it is a page
		}
	}
	leaf(database[sqliteHeader:page], 1, "\x06\x17\x1d\x1d\x01\x0d"+"table"+"Packages"+"Packages"+"\x02")
	key := gpgKey(1000)
	leaf(database[page:], cells, "\x04\x01"+string([]byte{byte((12+2*len(key))>>7) | 0x80, byte((12 + 2*len(key)) & 0x7f)})+"\x01"+key)
	return string(database)
}

// TestOverlap ends when the parts of a file are read again and again, and when the user interrupts.
func TestOverlap(t *testing.T) {
	limit := standardLimits()
	limit.jarEntries = 100
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct{ path, content, reason string }{
		{"usr/lib/sysimage/rpm/Packages.db", overlappingNDB(), "overlap"},
		{"var/lib/rpm/rpmdb.sqlite", overlappingSQLite(), "overlap"},
		{"a.jar", endlessJar(1<<16 + 50), "more than 100 files"},
	} {
		for ctx, want := range map[context.Context]string{t.Context(): test.reason, interrupted: "canceled"} {
			f := file{ctx: ctx, Reader: strings.NewReader(test.content), path: test.path, size: int64(len(test.content)), limit: &limit}
			if _, err := readerOf(test.path)(f); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", test.path, err, want)
			}
		}
	}
}

// TestRepeatedValues reads one value of each tag and few licenses, however many there are.
func TestRepeatedValues(t *testing.T) {
	const entries = 1 << 12
	header := make([]byte, 8+entries*rpmEntry)
	binary.BigEndian.PutUint32(header, entries)
	binary.BigEndian.PutUint32(header[4:], maxLine)
	for at := 8; at < len(header); at += rpmEntry {
		binary.BigEndian.PutUint32(header[at:], rpmLicense)
		binary.BigEndian.PutUint32(header[at+4:], rpmString)
	}
	header = append(header, strings.Repeat("x", maxLine)...)
	for name, read := range map[string]func(){
		"rpm": func() { _, _ = parseRPMHeader(header) },
		"npm": func() { _ = npmLicense([]byte("[" + strings.Repeat("1,", 1<<20) + "1]")) },
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		read()
		runtime.ReadMemStats(&after)
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 16<<20 {
			t.Errorf("%s: it allocated %d MiB", name, allocated>>20)
		}
	}
}
