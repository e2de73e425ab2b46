package sbom

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// matchJava returns the reader of an archive of Java.
func matchJava(name string) reader {
	if isJar(name) {
		return readJar
	}
	return nil
}

func isJar(name string) bool {
	return slices.Contains([]string{".jar", ".war", ".ear"}, strings.ToLower(path.Ext(name)))
}

// jar reads an archive of Java and the archives in it.
type jar struct {
	ctx      context.Context
	limit    *limits
	found    *find
	inflated int64
	nameless []string // archives without coordinates of Maven, or too deep in others
}

// readJar reads the coordinates of Maven in a jar, and in jars that lie in it, as those of Spring Boot do.
func readJar(f file) (*find, error) {
	j := &jar{ctx: f.ctx, limit: f.limit, found: &find{}}
	if err := j.read(f, f.size, f.path, true); err != nil {
		return j.found, err
	}
	if len(j.nameless) > 0 {
		return j.found, fmt.Errorf("without Maven coordinates, or in a jar of a jar: %s", strings.Join(j.nameless, ", "))
	}
	return j.found, nil
}

func (j *jar) read(r io.Reader, size int64, name string, outermost bool) (err error) {
	content, err := newSpool(j.ctx, r, size, j.limit.spooled)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	if err = checkDirectory(content, j.limit.jarEntries); err != nil {
		return err
	}
	files, err := j.open(content)
	if err != nil {
		return err
	}
	own, inner, classes := 0, 0, false
	for _, entry := range files.File {
		switch {
		case strings.HasPrefix(entry.Name, "META-INF/maven/") && path.Base(entry.Name) == "pom.properties":
			own++
			err = j.coordinates(entry, content.digest)
		case isJar(entry.Name) && outermost:
			inner++
			err = j.nested(entry)
		case isJar(entry.Name):
			inner++
			j.addNameless(entry.Name)
		default:
			classes = classes || strings.HasSuffix(entry.Name, ".class")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", clean(entry.Name, 128), err)
		}
	}
	if own > 1 { // classes of several artifacts in one file: its digest is that of none
		for i := len(j.found.packages) - 1; i >= 0; i-- {
			if j.found.packages[i].digest == content.digest {
				j.found.packages[i].digest = ""
			}
		}
	}
	if own == 0 && inner == 0 && classes {
		j.addNameless(name)
	}
	return nil
}

// open reads the list of files in a jar. Its last record is not trusted: package zip reads files as long as there are some.
func (j *jar) open(content *spool) (*zip.Reader, error) {
	const bytesPerFile, end = 256, 1 << 17 // of a list, on average; and of the records behind it
	left := content.left
	content.left = int64(j.limit.jarEntries)*bytesPerFile + end
	files, err := zip.NewReader(content, content.size)
	content.left = left
	if errors.Is(err, errOverlap) || err == nil && len(files.File) > j.limit.jarEntries {
		return nil, fmt.Errorf("it has more than %d files", j.limit.jarEntries)
	}
	return files, err
}

func (j *jar) addNameless(name string) {
	if len(j.nameless) < maxPaths {
		j.nameless = append(j.nameless, path.Base(name))
	}
}

// coordinates reads group, artifact and version of a pom.properties.
func (j *jar) coordinates(entry *zip.File, digest string) error {
	const most = 64 << 10
	content, err := entry.Open()
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }() // it was only read
	c := component{kind: "maven", digest: digest}
	read := &io.LimitedReader{R: content, N: most}
	for line, err := range lines(read) {
		if err != nil {
			return err
		}
		name, value, _ := strings.Cut(line, "=")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "groupId":
			c.namespace = value
		case "artifactId":
			c.name = value
		case "version":
			c.version = value
		}
	}
	if err := j.inflate(most - read.N); err != nil {
		return err
	}
	if c.name == "" || c.namespace == "" {
		return nil // a template
	}
	return j.found.add(c, j.limit)
}

// nested reads a jar in a jar; those in it are not read.
func (j *jar) nested(entry *zip.File) error {
	content, err := entry.Open()
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }() // it was only read
	left := j.limit.jarInflated - j.inflated
	read := &io.LimitedReader{R: content, N: left + 1}
	size := int64(min(entry.UncompressedSize64, uint64(j.limit.spooled)+1)) //nolint:gosec // it is limited
	err = j.read(read, size, entry.Name, false)
	return errors.Join(err, j.inflate(left+1-read.N))
}

func (j *jar) inflate(n int64) error {
	if j.inflated += n; j.inflated > j.limit.jarInflated {
		return fmt.Errorf("its jars have more than %d bytes", j.limit.jarInflated)
	}
	return nil
}

// checkDirectory refuses a zip file that claims more entries than a limit, before package zip makes room for them.
func checkDirectory(content *spool, most int) error {
	const end, longest = 22, 22 + 1<<16 // the last record, and with the longest comment
	tail := make([]byte, min(content.size, longest))
	if _, err := content.ReadAt(tail, content.size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	at := strings.LastIndex(string(tail), "PK\x05\x06")
	if at < 0 || len(tail)-at < end {
		return zip.ErrFormat
	}
	record := tail[at:]
	entries, size := uint64(binary.LittleEndian.Uint16(record[10:])), uint64(binary.LittleEndian.Uint32(record[12:]))
	if at >= 20 && string(tail[at-20:at-16]) == "PK\x06\x07" { // the locator of a record with larger fields
		var large [56]byte
		offset := binary.LittleEndian.Uint64(tail[at-12:])
		if offset > uint64(content.size) { //nolint:gosec // a size is not negative
			return zip.ErrFormat
		}
		if _, err := content.ReadAt(large[:], int64(offset)); err != nil { //nolint:gosec // it is in the file
			return zip.ErrFormat
		}
		entries, size = binary.LittleEndian.Uint64(large[32:]), binary.LittleEndian.Uint64(large[40:])
	}
	const bytesPerEntry = 256                                        // of a directory, on average
	if entries > uint64(most) || size > uint64(most)*bytesPerEntry { //nolint:gosec // a limit is not negative
		return fmt.Errorf("it has more than %d files", most)
	}
	return nil
}
