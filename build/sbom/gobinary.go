package sbom

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

// A program in ELF format is at least as long as its header, minProgram.
const (
	elfMagic   = "\x7fELF"
	minProgram = 64
)

// marks are byte sequences in a Go program. The linker aligns the first, and writes the version and the modules behind it; the others are around the
// modules. Programs of Go before 1.18 have both texts elsewhere, but the marks around the modules as well.
type marks struct{ info, modules, end []byte }

// goMarks decodes the marks, so that this program does not have them as data, where it would find them.
var goMarks = sync.OnceValue(func() marks {
	decode := func(text string) []byte {
		data, _ := hex.DecodeString(text) // a constant
		return data
	}
	return marks{
		info:    decode("ff20476f206275696c64696e663a"),
		modules: decode("3077af0c9274080241e1c107e6d618e6"),
		end:     decode("f932433186182072008242104116d8f2"),
	}
})

const (
	develVersion = "(devel)" // of what has no version

	goInfoHeader = 32      // bytes of the header of the build information
	maxModules   = 8 << 20 // bytes of the list of modules
	goWindow     = 1 << 18 // bytes that are searched at once, or all of a smaller program
)

// readGoProgram searches a program for the build information of Go, as a stream: sections, whose table is at the end of the file, are
// not needed. The result is nil for a program that has none.
func readGoProgram(f file) (*find, error) {
	if f.size > f.limit.program {
		return nil, f.tooLarge(f.limit.program)
	}
	version, modules, err := searchGo(f, make([]byte, 0, min(f.size+1, goWindow)))
	if err != nil || version == "" && modules == nil {
		return nil, err
	}
	found := &find{}
	if standard, ok := strings.CutPrefix(version, "go"); ok {
		standard, _, _ = strings.Cut(standard, " ") // experiments
		if err = found.add(component{kind: "golang", name: "stdlib", version: standard, license: "BSD-3-Clause"}, f.limit); err != nil {
			return found, err
		}
	}
	if modules == nil {
		return found, nil
	}
	info, err := debug.ParseBuildInfo(string(modules))
	if err != nil {
		return found, err
	}
	if main := mainModule(info); main.Path != "" {
		if err := found.addModule(&main, f.limit); err != nil {
			return found, err
		}
	}
	for _, module := range info.Deps {
		if err := found.addModule(module, f.limit); err != nil {
			return found, err
		}
	}
	return found, nil
}

// mainModule returns the module of a program, or its path when it was built without one, as the programs of Go itself are. The result is empty for one
// of single files.
func mainModule(info *debug.BuildInfo) debug.Module {
	if info.Main.Path != "" || info.Path == "command-line-arguments" || slices.ContainsFunc(info.Deps, func(m *debug.Module) bool { return m.Version == develVersion }) {
		return info.Main
	}
	return debug.Module{Path: info.Path, Version: develVersion}
}

// addModule adds a module, or the one that replaces it. A directory in its place keeps the name, and has no version.
func (f *find) addModule(m *debug.Module, limit *limits) error {
	switch {
	case m.Replace != nil && !strings.HasPrefix(m.Replace.Version, "v"):
		m = &debug.Module{Path: m.Path, Version: develVersion}
	case m.Replace != nil:
		m = m.Replace
	}
	c := component{kind: "golang", version: m.Version, digest: m.Sum}
	if i := strings.LastIndex(m.Path, "/"); i >= 0 {
		c.namespace, c.name = m.Path[:i], m.Path[i+1:]
	} else {
		c.name = m.Path
	}
	return f.add(c, limit)
}

// searchGo returns the version of Go and the list of modules in a program. It reads a window at a time. The list is twice in most programs: as data,
// and behind the version.
func searchGo(r io.Reader, window []byte) (version string, modules []byte, err error) {
	for {
		n, err := io.ReadFull(r, window[len(window):cap(window)])
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return "", nil, err
		}
		window = window[:len(window)+n]
		if version == "" {
			version = findVersion(window)
		}
		if i := findModules(window); i >= 0 && modules == nil {
			var rest []byte
			if modules, rest, err = readModules(io.MultiReader(bytes.NewReader(window[i:]), r)); err != nil {
				return version, nil, err
			}
			if modules != nil {
				r, window = io.MultiReader(bytes.NewReader(rest), r), window[:0]
				end = false
			}
		}
		if end || version != "" && modules != nil {
			return version, modules, nil
		}
		kept := copy(window, window[max(0, len(window)-goOverlap):]) // marks can be across the border
		window = window[:kept]
	}
}

// findVersion returns the version behind the first header of build information; empty without one.
func findVersion(window []byte) string {
	for mark := goMarks().info; ; {
		i := bytes.Index(window, mark)
		if i < 0 {
			return ""
		}
		if version := goVersion(window[i:]); version != "" {
			return version
		}
		window = window[i+1:]
	}
}

// findModules returns where the list of modules begins behind its mark, negative if it does not. Other programs that search for the mark have it as
// data, without a list. At the border of a window the list is found in the next.
func findModules(window []byte) int {
	mark := goMarks().modules
	for at := 0; ; {
		i := bytes.Index(window[at:], mark)
		if i < 0 {
			return -1
		}
		at += i + len(mark)
		for _, first := range []string{"path\t", "mod\t", "dep\t", "build\t"} {
			if bytes.HasPrefix(window[at:], []byte(first)) {
				return at
			}
		}
	}
}

// goOverlap is how much of a window is searched again with the next: the header, the version and the mark before the modules.
const goOverlap = 512

// goVersion reads the version behind the header of build information; empty when it is elsewhere, or this is another text.
func goVersion(info []byte) string {
	if len(info) < goInfoHeader || info[15]&2 == 0 { // 2: the texts are behind the header
		return ""
	}
	length, n := binary.Uvarint(info[goInfoHeader:])
	rest := info[goInfoHeader:]
	if n <= 0 || length > 256 || uint64(len(rest)-n) < length {
		return ""
	}
	version := string(rest[n : n+int(length)])
	if !strings.HasPrefix(version, "go") && !strings.HasPrefix(version, "devel") {
		return ""
	}
	return version
}

// readModules reads up to the mark at the end of the list of modules, and returns what it read behind it.
func readModules(r io.Reader) (list, rest []byte, err error) {
	end, buffer := goMarks().end, make([]byte, 1<<14)
	for len(list) < maxModules {
		n, err := r.Read(buffer)
		from := max(0, len(list)-len(end))
		list = append(list, buffer[:n]...)
		if i := bytes.Index(list[from:], end); i >= 0 {
			return list[:from+i], bytes.Clone(list[from+i+len(end):]), nil
		}
		if errors.Is(err, io.EOF) {
			return nil, nil, nil // the mark was part of something else
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, errors.New("the list of modules of a Go program has no end")
}
