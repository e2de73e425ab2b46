package iso_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"log"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/build/iso"
)

// exampleImage returns an image of two files.
func exampleImage() []byte {
	file := func(path, text string) iso.File {
		return iso.File{Path: path, Size: int64(len(text)), Open: func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(text)), nil
		}}
	}
	image, err := iso.Layout([]iso.File{
		file("manifest.yaml", "kind: Solution\n"),
		file("operator/deploy/role.yaml", "kind: Role\n"),
	}, iso.Options{VolumeID: "Example 1.0.0", ModTime: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		log.Fatal(err)
	}
	var data bytes.Buffer
	if _, err := image.WriteTo(&data); err != nil {
		log.Fatal(err)
	}
	return data.Bytes()
}

func ExampleOpen() {
	data := exampleImage() // usually an *os.File and its size
	fsys, err := iso.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(fsys.VolumeID())
	err = fs.WalkDir(fsys, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Println(path, info.Size(), info.Sys().(*iso.Stat).Sections[0].Offset%4096 == 0)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// Example 1.0.0
	// manifest.yaml 15 true
	// operator/deploy/role.yaml 11 true
}

func ExampleCheck() {
	data := exampleImage()
	data = append(data, "something behind the end"...)
	for _, finding := range iso.Check(bytes.NewReader(data), int64(len(data))) {
		fmt.Println(finding.Severity, finding.Rule, finding)
	}
	// Output:
	// error iso-trailing-data 24 bytes follow the end of the volume
}
