package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestSumsOfSeveralBuilds writes the checksums of archives that are built into one directory at once, each of them twice.
func TestSumsOfSeveralBuilds(t *testing.T) {
	dir := t.TempDir()
	const foreign = "0123 *notes.txt"
	if err := os.WriteFile(filepath.Join(dir, "SHA256SUM"), []byte(foreign+"\r\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{foreign}
	var group sync.WaitGroup
	for builder := range 2 {
		for i := range 20 {
			want = append(want, fmt.Sprintf("new%d  demo-%d.%d.0.iso", i, builder, i))
		}
		group.Go(func() {
			for _, generation := range []string{"old", "new"} {
				for i := range 20 {
					f, err := openSums(filepath.Join(dir, fmt.Sprintf("demo-%d.%d.0.iso", builder, i)), fmt.Sprint(generation, i))
					if err == nil {
						err = f.Publish(0o644)
					}
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
	data, err := os.ReadFile(filepath.Join(dir, "SHA256SUM"))
	got := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	slices.Sort(got)
	slices.Sort(want)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n%s", err, data)
	}
}
