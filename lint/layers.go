package lint

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/oci"
)

// Bounds of the layers of one image.
const (
	maxLayerFiles = 500_000
	maxLayerBytes = 8 << 30   // uncompressed, of one layer
	maxLayerPaths = 128 << 20 // paths and targets of links, in all layers
	maxPathLength = 4096      // longer paths cannot be unpacked
	maxPathDepth  = 128       // directories above a file that is searched for
	maxLinks      = 16
)

// layerFile is an entry of a layer at a path. Layers are read from the last to the first: what is known already hides the rest.
type layerFile struct {
	kind   byte // of package tar
	mode   int64
	target string
	head   []byte // the first bytes of a file with the name that is searched for
}

// search looks for an executable in the layers and returns the reason why it cannot be started, "" when it can.
func (v variant) search(ctx context.Context, name string) string {
	files, paths := map[string]layerFile{}, 0
	for _, layer := range slices.Backward(v.layers) {
		if layer.Open == nil {
			return "a layer is missing"
		}
		if err := addLayer(ctx, files, &paths, layer, name); err != nil {
			return fmt.Sprintf("its layers cannot be read: %v", err)
		}
	}
	for _, dir := range v.searchPath() {
		file, ok := follow(files, path.Join("/", dir, name))
		switch {
		case !ok || file.kind != tar.TypeReg:
			continue
		case file.mode&0o111 == 0:
			return fmt.Sprintf("%s is not executable", path.Join("/", dir, name))
		}
		return wrongMachine(file.head, v.config.Architecture)
	}
	return fmt.Sprintf("no directory of PATH, %s, has the executable %s", shorten(strings.Join(v.searchPath(), ":")), name)
}

// addLayer adds the files of a layer that no later layer replaced or deleted, and counts the bytes of paths.
func addLayer(ctx context.Context, files map[string]layerFile, paths *int, layer oci.Blob, name string) error {
	content, err := layer.OpenUncompressed(ctx)
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // read only
	added := map[string]layerFile{}
	archive := tar.NewReader(io.LimitReader(content, maxLayerBytes))
	for {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return merge(ctx, files, added)
		case err != nil:
			return err
		case max(len(header.Name), len(header.Linkname)) > maxPathLength:
			return fmt.Errorf("a path has more than %d bytes", maxPathLength)
		case len(files)+len(added) >= maxLayerFiles:
			return fmt.Errorf("more than %d files", maxLayerFiles)
		}
		if *paths += len(header.Name) + len(header.Linkname); *paths > maxLayerPaths {
			return fmt.Errorf("paths of more than %d bytes", maxLayerPaths)
		}
		if strings.Count(header.Name, "/") > maxPathDepth {
			continue
		}
		file := layerFile{kind: header.Typeflag, mode: header.Mode, target: header.Linkname}
		if path.Base(header.Name) == name {
			file.head = make([]byte, 64)
			n, _ := io.ReadFull(archive, file.head) // short files are checked by their content
			file.head = file.head[:n]
		}
		added[path.Join("/", header.Name)] = file
	}
}

// merge adds a layer below those that are known.
func merge(ctx context.Context, files, added map[string]layerFile) error {
	maps.DeleteFunc(added, func(name string, _ layerFile) bool {
		_, known := files[name]
		return known || ctx.Err() != nil || deleted(files, name)
	})
	maps.Copy(files, added)
	return ctx.Err()
}

// deleted reports whether a later layer removed the file, or a directory above it.
func deleted(files map[string]layerFile, name string) bool {
	for ; name != "/"; name = path.Dir(name) {
		dir, base := path.Split(name)
		if _, ok := files[dir+".wh."+base]; ok {
			return true
		}
		if _, ok := files[dir+".wh..wh..opq"]; ok {
			return true
		}
	}
	return false
}

// follow finds a file through links, of the file itself and of the directories above it.
func follow(files map[string]layerFile, name string) (layerFile, bool) {
	for range maxLinks {
		link := firstLink(files, name)
		if link == "" {
			file, ok := files[name]
			return file, ok
		}
		target, rest := files[link].target, strings.TrimPrefix(name, link)
		if files[link].kind == tar.TypeLink || path.IsAbs(target) {
			name = path.Join("/", target, rest)
		} else {
			name = path.Join(path.Dir(link), target, rest)
		}
	}
	return layerFile{}, false
}

// firstLink returns the uppermost part of a path that is a link, "" when none is.
func firstLink(files map[string]layerFile, name string) string {
	if len(name) > maxPathLength {
		return ""
	}
	for i := 1; i <= len(name); i++ {
		if i == len(name) || name[i] == '/' {
			if kind := files[name[:i]].kind; kind == tar.TypeSymlink || kind == tar.TypeLink {
				return name[:i]
			}
		}
	}
	return ""
}

// machines are the codes of architectures in the header of an executable.
func machines() map[string]elf.Machine {
	return map[string]elf.Machine{
		"amd64": elf.EM_X86_64, "386": elf.EM_386, "arm64": elf.EM_AARCH64, "arm": elf.EM_ARM,
		"ppc64le": elf.EM_PPC64, "s390x": elf.EM_S390, "riscv64": elf.EM_RISCV,
	}
}

// wrongMachine returns a message if an executable is for another architecture. Scripts run anywhere.
func wrongMachine(head []byte, architecture string) string {
	want, known := machines()[architecture]
	if !known || len(head) < 20 || !bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
		return ""
	}
	var order binary.ByteOrder = binary.LittleEndian
	if elf.Data(head[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	if have := elf.Machine(order.Uint16(head[18:20])); have != want {
		return fmt.Sprintf("the executable is for %s", have)
	}
	return ""
}
