package media

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/schema/report"
)

// maxParts is the greatest number of parts: names have three digits, so that a shell lists them in their order.
const maxParts = 999

// PartOf takes the name of a part apart: that of the archive, and the number of the part from 1 on.
func PartOf(name string) (archive string, number int, ok bool) {
	ext := filepath.Ext(name)
	archive = strings.TrimSuffix(name, ext)
	if len(ext) != 4 || !strings.EqualFold(filepath.Ext(archive), ".iso") {
		return "", 0, false
	}
	number, err := strconv.Atoi(ext[1:])
	if err != nil || number < 1 || ext[1] == '+' {
		return "", 0, false
	}
	return archive, number, true
}

// partName is the name of a part of an archive.
func partName(archive string, number int) string { return fmt.Sprintf("%s.%03d", archive, number) }

// Arguments separates the arguments of a command: archives, each by one name, and the files and directories that have further parts
// of one that is named before. Others stay archives.
func Arguments(args []string) (archives, more []string) {
	bases := map[string]bool{}
	for _, arg := range args {
		base, _, ok := PartOf(arg)
		switch {
		case ok && bases[filepath.Base(base)], holdsPart(arg, bases):
			more = append(more, arg)
		default:
			archives = append(archives, arg)
			if ok {
				bases[filepath.Base(base)] = true
			}
		}
	}
	return archives, more
}

// holdsPart reports whether a directory has a part of one of these archives.
func holdsPart(dir string, bases map[string]bool) bool {
	if len(bases) == 0 {
		return false
	}
	entries, _ := os.ReadDir(dir) // a file has none
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		base, _, ok := PartOf(e.Name())
		return ok && bases[base]
	})
}

// Directories returns the directories in which the parts of an archive are looked for, each once.
func Directories(name string, more ...string) []string {
	var dirs []string
	for i, path := range append([]string{name}, more...) {
		if info, err := os.Stat(path); i == 0 || err != nil || !info.IsDir() {
			path = filepath.Dir(path)
		}
		if !slices.Contains(dirs, path) {
			dirs = append(dirs, path)
		}
	}
	return dirs
}

// findParts returns the files of an archive by number. A file that is named counts for more than one that is found.
func findParts(base string, names []string) (map[int]string, error) {
	found := map[int]string{}
	for _, name := range names {
		other, number, ok := PartOf(name)
		if !ok || filepath.Base(other) != base {
			continue
		}
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			continue
		}
		if twice, ok := found[number]; ok && !sameFile(twice, name) {
			return nil, doubled(number, twice, name)
		}
		found[number] = name
	}
	named := len(found)
	listed := map[int]bool{}
	for number := range found {
		listed[number] = true
	}
	for _, dir := range Directories(names[0], names[1:]...) {
		entries, err := os.ReadDir(dir)
		if err != nil && named == 0 {
			return nil, err
		}
		for _, entry := range entries {
			other, number, ok := PartOf(entry.Name())
			if !ok || other != base || listed[number] {
				continue
			}
			name := filepath.Join(dir, entry.Name())
			if twice, ok := found[number]; ok && !sameFile(twice, name) {
				return nil, doubled(number, twice, name)
			}
			found[number] = name
		}
	}
	return found, nil
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	second, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(first, second)
}

func doubled(number int, a, b string) error {
	return report.Errorf(report.Usage, "part %d is in two places: %s and %s", number, a, b).WithHint("name only one of them, or one of the directories")
}

// openParts opens all parts of an archive, in their order whatever the order of the names is.
func openParts(archive string, names []string, openOne func(string) (*os.File, error)) (_ *Image, err error) {
	base := filepath.Base(archive)
	found, err := findParts(base, names)
	if err != nil {
		return nil, err
	}
	last := 0
	for number := range found {
		last = max(last, number)
	}
	i := &Image{}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.Close())
		}
	}()
	for number := 1; number <= last; number++ {
		name, ok := found[number]
		if !ok {
			return nil, missing(base, number, names)
		}
		f, err := openOne(name)
		if err != nil {
			return nil, err
		}
		one, err := opened(f, name)
		if err != nil {
			return nil, err
		}
		part := one.Parts[0]
		part.At = i.Size
		i.Parts, i.Size = append(i.Parts, part), i.Size+part.Size
		i.runs = append(i.runs, Run{ReaderAt: part.file, Name: name, At: part.At, Size: part.Size})
	}
	return i, i.checkParts(base, names)
}

func missing(base string, number int, names []string) error {
	return report.Errorf(report.NotFound, "%s is missing: it is not in %s", partName(base, number), strings.Join(Directories(names[0], names[1:]...), ", ")).
		WithHint("name the directory that has it after the first part")
}

// checkParts compares the sizes of the parts with each other and with the size that the image names.
func (i *Image) checkParts(base string, names []string) error {
	first := i.Parts[0]
	for n, part := range i.Parts {
		switch {
		case part.Size > first.Size, part.Size < first.Size && n < len(i.Parts)-1:
			return report.Errorf(report.Corrupt, "%s has %d bytes, %s has %d: all parts have the same size, except the last one, which may be smaller",
				part.Name, part.Size, first.Name, first.Size).WithHint("copy it again: it is incomplete, or a part of another archive")
		case part.Size == 0:
			return report.Errorf(report.Corrupt, "%s is empty", part.Name).WithHint("copy it again from its source")
		}
	}
	size, ok := iso.VolumeSize(first.file)
	switch {
	case !ok:
		return report.Errorf(report.Corrupt, "%s does not begin an archive", first.Name).WithHint("it is damaged, or it is another part with the name of the first one")
	case size > i.Size && len(i.Parts) > 1 && i.Parts[len(i.Parts)-1].Size < first.Size:
		last := i.Parts[len(i.Parts)-1]
		return report.Errorf(report.Corrupt, "%s is incomplete: the parts have %d bytes, the archive %d", last.Name, i.Size, size).WithHint("copy it again from its source")
	case size > i.Size:
		return missing(base, len(i.Parts)+1, names)
	}
	return nil
}

// sizeUnits are the units of sizes, in bytes.
var sizeUnits = map[string]int64{
	"": 1, "K": 1 << 10, "KiB": 1 << 10, "M": 1 << 20, "MiB": 1 << 20, "G": 1 << 30, "GiB": 1 << 30, "kB": 1000, "KB": 1000, "MB": 1_000_000, "GB": 1_000_000_000,
}

// dvdSize is the capacity in bytes of the smaller of the two kinds of DVDs with one layer.
const dvdSize = 4_700_372_992

// ParseSize reads the size of a medium: a number with a unit such as 4GiB or 700MB, less some bytes as in 4GiB-1, or dvd.
func ParseSize(text string) (int64, error) {
	if strings.EqualFold(text, "dvd") {
		return dvdSize, nil
	}
	m := regexp.MustCompile(`^([0-9]{1,12})([A-Za-z]*)(-[0-9]{1,9})?$`).FindStringSubmatch(text)
	if m == nil {
		return 0, badSize(text)
	}
	unit, ok := sizeUnits[m[2]]
	number, err := strconv.ParseInt(m[1], 10, 64)
	if !ok || err != nil || number > 1<<50/unit {
		return 0, badSize(text)
	}
	size := number * unit
	if m[3] != "" {
		less, _ := strconv.ParseInt(m[3], 10, 64) // at most nine digits
		size += less
	}
	return size, nil
}

func badSize(text string) error {
	return report.Errorf(report.Usage, "%q is not the size of a medium", text).WithHint("such as 4GiB-1 for FAT file systems, 700MB, or dvd")
}
