package lint_test

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"strings"
	"testing"
)

// layersFor returns the layers of an image for a platform; by default one with the executable.
func (i testImage) layersFor(tb testing.TB, platform string) [][]byte {
	tb.Helper()
	if i.layers != nil {
		return i.layers
	}
	_, architecture, _ := strings.Cut(platform, "/")
	name := i.entrypoint
	if i.file != "" {
		name = i.file
	}
	files := []tar.Header{{Name: "layer of " + i.ref, Typeflag: tar.TypeReg, Mode: 0o644}}
	if name != "" {
		files = append(files, tar.Header{Name: strings.TrimPrefix(name, "/"), Typeflag: tar.TypeReg, Mode: 0o755})
	}
	return [][]byte{packLayer(tb, i.ref, architecture, files...)}
}

// packLayer writes a layer, uncompressed so that its digest depends on nothing but this; files that are executable begin as an ELF
// executable of the architecture does.
func packLayer(tb testing.TB, remark, architecture string, files ...tar.Header) []byte {
	tb.Helper()
	var packed bytes.Buffer
	archive := tar.NewWriter(&packed)
	for _, header := range files {
		var data []byte
		if header.Typeflag == tar.TypeReg {
			data = []byte(remark)
			if header.Mode&0o111 != 0 {
				data = append(elfHeader(architecture), remark...)
			}
		}
		header.Size = int64(len(data))
		check(tb, archive.WriteHeader(&header))
		_, err := archive.Write(data)
		check(tb, err)
	}
	check(tb, archive.Close())
	return packed.Bytes()
}

func elfHeader(architecture string) []byte {
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "s390x": elf.EM_S390}[architecture]
	header := make([]byte, 64)
	copy(header, elf.ELFMAG)
	header[elf.EI_CLASS], header[elf.EI_DATA] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)
	var order binary.ByteOrder = binary.LittleEndian
	if architecture == "s390x" {
		header[elf.EI_DATA], order = byte(elf.ELFDATA2MSB), binary.BigEndian
	}
	order.PutUint16(header[18:], uint16(machine))
	return header
}

func (i testImage) env() []string {
	if i.searchPath == "" {
		return nil
	}
	return []string{"PATH=" + i.searchPath}
}
