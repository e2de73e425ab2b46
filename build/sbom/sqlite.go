package sbom

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// openSQLite reads the table Packages of rpm's database. See https://www.sqlite.org/fileformat2.html.
func openSQLite(content *spool, limit *limits, visit func([]byte) error) error {
	db, err := newSQLite(content, limit)
	if err != nil {
		return err
	}
	root := uint32(0)
	err = db.table(1, func(row []column) error { // type, name, table, root page, statement
		if len(row) >= 4 && string(row[0].data) == "table" && strings.EqualFold(string(row[1].data), "Packages") {
			root = uint32(row[3].integer) //nolint:gosec // a page that does not exist is refused
		}
		return nil
	})
	if err != nil {
		return err
	}
	if root == 0 {
		return errors.New("it has no table Packages")
	}
	return db.table(root, func(row []column) error { // number, header
		if len(row) < 2 {
			return errors.New("a row of the table Packages is damaged")
		}
		return visit(row[1].data)
	})
}

// sqlite reads tables of a database, row by row.
type sqlite struct {
	content *spool
	limit   *limits
	page    int64  // size of a page
	usable  int64  // of it
	left    int64  // pages that can be visited: more than all of them are a loop
	values  []byte // of the last row; there can be very many
	next    []byte // a page with the rest of a row
}

// column is a value of a row: an integer, or a text or blob.
type column struct {
	integer int64
	data    []byte
}

const (
	sqliteMagic    = "SQLite format 3\x00"
	sqliteHeader   = 100
	sqliteInterior = 0x05
	sqliteLeaf     = 0x0d
	maxSQLiteDepth = 20
)

var errSQLite = errors.New("the database is damaged")

func newSQLite(content *spool, limit *limits) (*sqlite, error) {
	head := make([]byte, sqliteHeader)
	if err := content.read(head, 0); err != nil {
		return nil, err
	}
	page := int64(binary.BigEndian.Uint16(head[16:]))
	if page == 1 {
		page = 1 << 16
	}
	db := &sqlite{content: content, limit: limit, page: page, usable: page - int64(head[20]), next: make([]byte, page)}
	if string(head[:16]) != sqliteMagic || page < 512 || page&(page-1) != 0 || db.usable < 480 {
		return nil, errors.New("it is not a database of SQLite")
	}
	return db, nil
}

// table visits the rows of a table in the order of their keys.
func (db *sqlite) table(root uint32, visit func([]column) error) error {
	db.left = db.content.size/db.page + 1
	return db.tree(root, 0, visit)
}

// readPage reads a page.
func (db *sqlite) readPage(page []byte, number uint32) ([]byte, error) {
	if db.left--; db.left < 0 || number == 0 {
		return nil, errSQLite
	}
	return page, db.content.read(page, int64(number-1)*db.page)
}

func (db *sqlite) tree(number uint32, depth int, visit func([]column) error) error {
	if depth > maxSQLiteDepth {
		return errSQLite
	}
	page, err := db.readPage(make([]byte, db.page), number)
	if err != nil {
		return err
	}
	start := 0
	if number == 1 {
		start = sqliteHeader
	}
	head := page[start:]
	cells, pointers := int(binary.BigEndian.Uint16(head[3:])), head[8:]
	if head[0] == sqliteInterior {
		pointers = head[12:]
	}
	if head[0] != sqliteInterior && head[0] != sqliteLeaf || len(pointers) < 2*cells {
		return errSQLite
	}
	for i := range cells {
		at := int64(binary.BigEndian.Uint16(pointers[2*i:]))
		if at+4 > db.usable {
			return errSQLite
		}
		if head[0] == sqliteInterior {
			err = db.tree(binary.BigEndian.Uint32(page[at:]), depth+1, visit)
		} else {
			err = db.row(page[at:db.usable], visit)
		}
		if err != nil {
			return err
		}
	}
	if head[0] == sqliteInterior {
		return db.tree(binary.BigEndian.Uint32(head[8:]), depth+1, visit)
	}
	return nil
}

// row reads a cell of a leaf: the size of the row, its key, and the row, the rest of which may be in other pages.
func (db *sqlite) row(cell []byte, visit func([]column) error) error {
	size, n := varint(cell)
	_, m := varint(cell[n:])
	if n == 0 || m == 0 {
		return errSQLite
	}
	if size > uint64(db.limit.document) { //nolint:gosec // a limit is not negative
		return fmt.Errorf("a row has %d bytes, the limit is %d", size, db.limit.document)
	}
	cell = cell[n+m:]
	total := int64(size) //nolint:gosec // it is limited
	local := db.local(total)
	if local > int64(len(cell)) {
		return errSQLite
	}
	if err := db.content.take(total + int64(n+m)); err != nil { // the cells of a page can be one row
		return err
	}
	row := append(slices.Grow(db.values[:0], int(min(total, db.content.size))), cell[:local]...)
	if local < total {
		if int64(len(cell)) < local+4 {
			return errSQLite
		}
		for next := binary.BigEndian.Uint32(cell[local:]); int64(len(row)) < total; {
			page, err := db.readPage(db.next, next)
			if err != nil {
				return err
			}
			row = append(row, page[4:min(db.usable, 4+total-int64(len(row)))]...)
			next = binary.BigEndian.Uint32(page)
		}
	}
	db.values = row
	columns, err := record(row)
	if err != nil {
		return err
	}
	return visit(columns)
}

// local is how many bytes of a row are in its cell.
func (db *sqlite) local(total int64) int64 {
	most, least := db.usable-35, (db.usable-12)*32/255-23
	if total <= most {
		return total
	}
	if n := least + (total-least)%(db.usable-4); n <= most {
		return n
	}
	return least
}

// record takes a row apart: the size of the list of types, the types, the values.
func record(row []byte) ([]column, error) {
	const maxColumns = 16
	size, n := varint(row)
	if n == 0 || size > uint64(len(row)) || size < uint64(n) {
		return nil, errSQLite
	}
	types, values := row[n:size], row[size:]
	var columns []column
	for len(types) > 0 && len(columns) < maxColumns {
		typ, n := varint(types)
		if n == 0 {
			return nil, errSQLite
		}
		types = types[n:]
		length := typeLength(typ)
		if length > uint64(len(values)) {
			return nil, errSQLite
		}
		c := column{data: values[:length]}
		if typ < 10 {
			for _, b := range c.data {
				c.integer = c.integer<<8 | int64(b)
			}
			if typ == 9 {
				c.integer = 1
			}
		}
		columns, values = append(columns, c), values[length:]
	}
	return columns, nil
}

// typeLength is the number of bytes of a value.
func typeLength(typ uint64) uint64 {
	if typ < 12 {
		return [...]uint64{0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0}[typ]
	}
	return (typ - 12) / 2
}

// varint reads an integer of one to nine bytes; the length is 0 when they are not all there.
func varint(data []byte) (value uint64, length int) {
	for i := range min(len(data), 9) {
		if i == 8 {
			return value<<8 | uint64(data[i]), 9
		}
		value = value<<7 | uint64(data[i]&0x7f)
		if data[i] < 0x80 {
			return value, i + 1
		}
	}
	return 0, 0
}
