package main

import (
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

// locateFile names the files of an archive that lie in a range of bytes. The archive is damaged when this is asked, so
// the answer is a hint for people and nothing is decided by it.
func locateFile(r io.ReaderAt, size int64) func(chunk.Range) string {
	return func(place chunk.Range) string {
		image, err := iso.Open(r, size)
		if err != nil {
			return "the directories of the image, or what they name"
		}
		var names []string
		err = fs.WalkDir(image, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasPrefix(name, "blobs/") { // the same bytes as below images/
				return err
			}
			info, err := entry.Info()
			if err == nil && overlaps(info, place) {
				names = append(names, name)
			}
			return err
		})
		switch {
		case err != nil || len(names) == 0:
			return "directories or padding"
		case len(names) == 1:
			return names[0]
		default:
			return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
		}
	}
}

func overlaps(info fs.FileInfo, place chunk.Range) bool {
	for _, s := range info.Sys().(*iso.Stat).Sections {
		if s.Offset < place.To && s.Offset+s.Size > place.From {
			return true
		}
	}
	return false
}
