package deployertest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"maps"
	"slices"
	"testing"
)

// Chart returns a packed Helm chart with these files, such as templates/web.yaml. Its Chart.yaml has only the name and version 1.0.0.
func Chart(tb testing.TB, name string, files map[string]string) string {
	tb.Helper()
	packed, err := PackChart(name, files)
	if err != nil {
		tb.Fatal(err)
	}
	return packed
}

// PackChart is [Chart] where there is no test.
func PackChart(name string, files map[string]string) (string, error) {
	all := map[string]string{"Chart.yaml": "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n"}
	maps.Copy(all, files)
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	w := tar.NewWriter(compressed)
	for _, file := range slices.Sorted(maps.Keys(all)) {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name + "/" + file, Mode: 0o644, Size: int64(len(all[file]))}
		if err := w.WriteHeader(header); err != nil {
			return "", err
		}
		if _, err := w.Write([]byte(all[file])); err != nil {
			return "", err
		}
	}
	err := errors.Join(w.Close(), compressed.Close())
	return packed.String(), err
}
