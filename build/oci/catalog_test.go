package oci_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestLists reads the lists of a registry page by page, also of one that answers with fewer names than were asked for, or ignores the place to
// continue from.
func TestLists(t *testing.T) {
	var all []string
	for i := range 5 {
		all = append(all, fmt.Sprintf("archives/a%d", i), fmt.Sprintf("other/b%d", i))
	}
	slices.Sort(all)
	for name, page := range map[string]int{"pages of three": 3, "one page": 100, "always the same": 0} {
		t.Run(name, func(t *testing.T) {
			host := serve(t, func(w http.ResponseWriter, r *http.Request) {
				field := "repositories"
				switch r.URL.Path {
				case "/v2/":
					return
				case "/v2/archives/a1/tags/list":
					field = "tags"
				case "/v2/_catalog":
				default:
					w.WriteHeader(http.StatusNotFound)
					return
				}
				rest := all
				if page > 0 {
					from, found := slices.BinarySearch(all, r.URL.Query().Get("last"))
					if found {
						from++
					}
					rest = all[from:min(len(all), from+page)]
				}
				_ = json.NewEncoder(w).Encode(map[string][]string{field: rest})
			})
			r, _ := patient(t, oci.Options{PlainHTTP: []string{host}})
			names, err := r.Repositories(t.Context(), host, "archives/")
			if want := []string{"archives/a0", "archives/a1", "archives/a2", "archives/a3", "archives/a4"}; err != nil || !slices.Equal(dedupe(names), want) {
				t.Errorf("%q, %v", names, err)
			}
			tags, err := r.Tags(t.Context(), host+"/archives/a1")
			if err != nil || !slices.Equal(dedupe(tags), all) {
				t.Errorf("%q, %v", tags, err)
			}
			_, err = r.Tags(t.Context(), host+"/archives/none")
			checkError(t, err, report.Invalid, "tags/list", "")
		})
	}
}

func dedupe(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// TestHostileLists refuses lists without an end, and answers that are no lists.
func TestHostileLists(t *testing.T) {
	calls, pages, long := 0, 0, strings.Repeat("x", 7<<20)
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v2/_catalog":
			var names []string
			for i := range 1000 {
				names = append(names, fmt.Sprintf("archives/a%d", calls*1000+i))
			}
			calls++
			_, _ = fmt.Fprintf(w, `{"repositories": ["%s"]}`, strings.Join(names, `", "`))
		case "/v2/archives/a/tags/list":
			_, _ = fmt.Fprint(w, `<html>`)
		case "/v2/archives/long/tags/list":
			pages++
			_, _ = fmt.Fprintf(w, `{"tags": ["%s", "%d"]}`, long, pages)
		}
	})
	r, _ := patient(t, oci.Options{PlainHTTP: []string{host}})
	_, err := r.Repositories(t.Context(), host, "archives/")
	checkError(t, err, report.Invalid, "more than 100000 names", "")
	_, err = r.Tags(t.Context(), host+"/archives/a")
	checkError(t, err, report.Invalid, "tags/list cannot be read", "")
	_, err = r.Tags(t.Context(), host+"/archives/long")
	checkError(t, err, report.Invalid, "or 64 MiB", "")
	if pages > 10 {
		t.Errorf("%d pages were read", pages)
	}
}
