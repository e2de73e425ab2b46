package iso

import (
	"encoding/binary"
	"strings"
)

// checkPathTables compares the path tables of a tree with its directories.
func (s *scan) checkPathTables(t *hierarchy) error {
	v := t.volume
	for i, sector := range v.pathTables {
		kind := []string{"L", "optional L", "M", "optional M"}[i]
		if sector == 0 {
			if i == 0 || i == 2 {
				s.add(rulePathTable, "", "the %s tree has no path table %s", v.treeName(), kind)
			}
			continue
		}
		var order binary.ByteOrder = binary.LittleEndian
		if i >= 2 {
			order = binary.BigEndian
		}
		if err := s.checkPathTable(t, kind, int64(sector)*sectorSize, order); err != nil {
			return err
		}
	}
	return nil
}

// tableReader is the state while one path table is compared.
type tableReader struct {
	*scan
	name        string
	directories map[uint32]*node // by extent
	seen        []*node          // in the order of the table
	parent      uint16           // of the record before
	identifier  string           // of the record before
}

func (s *scan) checkPathTable(t *hierarchy, kind string, start int64, order binary.ByteOrder) error {
	length := int64(t.volume.pathTable)
	p := &tableReader{scan: s, name: t.volume.treeName() + " path table " + kind, directories: map[uint32]*node{}}
	if start+length > s.volumeSize() {
		return s.fail(ruleExtentBounds, "", "the %s ends at byte %d, the volume at %d", p.name, start+length, s.volumeSize())
	}
	s.region(start, length, p.name, "")
	want := int64(0)
	for _, d := range t.directories {
		p.directories[d.extent] = d
		want += int64(8 + len(d.identifier) + len(d.identifier)&1)
	}
	if length != want {
		p.add(rulePathTable, "", "the %s has %d bytes, its directories need %d", p.name, length, want)
		return nil
	}
	table := make([]byte, length)
	if err := s.read(table, start, "", p.name); err != nil {
		return err
	}
	for len(table) > 0 {
		size := 8 + int(table[0]) + int(table[0])&1
		if table[0] == 0 || size > len(table) {
			p.add(rulePathTable, "", "the %s ends in the middle of a record", p.name)
			return nil
		}
		if problem := p.check(table[:size], order, t.root); problem != "" {
			p.add(rulePathTable, "", "record %d of the %s %s", len(p.seen)+1, p.name, problem)
			return nil
		}
		table = table[size:]
	}
	return nil
}

// check compares one record with the directory that it leads to.
func (p *tableReader) check(b []byte, order binary.ByteOrder, root *node) (problem string) {
	d := p.directories[order.Uint32(b[2:])]
	parent := order.Uint16(b[6:])
	identifier := string(b[8 : 8+int(b[0])])
	switch {
	case d == nil:
		return "leads to no directory"
	case (d == root) != (len(p.seen) == 0) || d == root && parent != 1:
		return "is not in the place of the root directory"
	case identifier != d.identifier:
		return "has another identifier than " + d.path
	case d != root && (parent == 0 || int(parent) > len(p.seen) || p.seen[parent-1] != d.parent):
		return "gives " + d.path + " another parent"
	case parent < p.parent || parent == p.parent && strings.Compare(identifier, p.identifier) <= 0:
		return "is not in order"
	case b[1] != 0:
		return "has extended attributes"
	}
	p.seen = append(p.seen, d)
	p.parent, p.identifier = parent, identifier
	return ""
}
