package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// writeArchive writes the archive of a platform: a tar.gz, and for Windows, which opens those by itself, a zip.
func (r release) writeArchive(p platform) (err error) {
	files, err := r.archiveFiles(p)
	if err != nil {
		return err
	}
	top, suffix, write := name+"-"+r.version+"-"+p.String(), ".tar.gz", r.writeTar
	if p.os == "windows" {
		suffix, write = ".zip", r.writeZip
	}
	for i := range files {
		files[i].path = path.Join(top, files[i].path)
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	out, err := os.Create(filepath.Join(r.dir, top+suffix))
	if err != nil {
		return err
	}
	return errors.Join(write(out, files), out.Close())
}

func (r release) archiveFiles(p platform) ([]file, error) {
	program := file{path: name, mode: 0o755, source: r.program(p)}
	if p.os == "windows" {
		program.path += ".exe"
	}
	files := []file{program}
	for _, text := range []string{"LICENSE", "CHANGELOG.md"} {
		files = append(files, file{path: text, mode: 0o644, source: filepath.Join(r.input, text)})
	}
	if p.os == "windows" {
		return files, nil
	}
	for _, c := range completions {
		files = append(files, file{path: c.archive, mode: 0o644, source: filepath.Join(r.input, "completions", c.shell)})
	}
	pages, err := r.inputFiles("man", "man/man1")
	if err != nil || p.os != "linux" {
		return append(files, pages...), err
	}
	units, err := r.inputFiles("units", "systemd")
	return slices.Concat(files, pages, units), err
}

func (r release) writeTar(out io.Writer, files []file) error {
	z, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(z)
	for _, f := range files {
		data, err := f.content()
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.path, Mode: int64(f.mode), Size: int64(len(data)), ModTime: r.created, Format: tar.FormatUSTAR}
		if err = w.WriteHeader(header); err != nil {
			return err
		}
		if _, err = w.Write(data); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), z.Close())
}

func (r release) writeZip(out io.Writer, files []file) error {
	w := zip.NewWriter(out)
	for _, f := range files {
		data, err := f.content()
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: f.path, Method: zip.Deflate, Modified: r.created}
		header.SetMode(os.FileMode(f.mode))
		member, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err = member.Write(data); err != nil {
			return err
		}
	}
	return w.Close()
}
