package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/rogpeppe/go-internal/testscript"
)

// siteRegistry is the script command `site-registry [STATUS CODE MESSAGE]`. It starts a registry that takes images and sets REGISTRY to
// its address. With a status it answers so to everything that writes.
func siteRegistry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 && len(args) != 3 {
		ts.Fatalf("usage: site-registry [STATUS CODE MESSAGE]")
	}
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	if len(args) == 3 {
		status, err := strconv.Atoi(args[0])
		ts.Check(err)
		below := handler
		handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet || r.Method == http.MethodHead {
				below.ServeHTTP(w, r)
				return
			}
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q}]}`, args[1], args[2])
		})
	}
	server := httptest.NewServer(handler)
	ts.Defer(server.Close)
	ts.Setenv("REGISTRY", strings.TrimPrefix(server.URL, "http://"))
}
