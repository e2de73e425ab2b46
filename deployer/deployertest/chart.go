package deployertest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"maps"
	"slices"
	"testing"
)

// Chart is a packed Helm chart of these files, such as templates/web.yaml. Its Chart.yaml says only the name, and version 1.0.0.
func Chart(tb testing.TB, name string, files map[string]string) string {
	tb.Helper()
	all := map[string]string{"Chart.yaml": "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n"}
	maps.Copy(all, files)
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	w := tar.NewWriter(compressed)
	for _, file := range slices.Sorted(maps.Keys(all)) {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name + "/" + file, Mode: 0o644, Size: int64(len(all[file]))}
		if err := w.WriteHeader(header); err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write([]byte(all[file])); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		tb.Fatal(err)
	}
	return packed.String()
}
