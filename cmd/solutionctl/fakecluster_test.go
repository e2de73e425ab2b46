package main

import (
	"net/http"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
)

// fakeCluster returns the command of scripts that starts an API server in memory and sets KUBECONFIG: Solution shop 1.0.0 is
// deployed in environment site, with a definition of Clocks in the API group that deployertest.Group returns. A file has further
// objects, and a directory has logs of containers, as POD/CONTAINER.
func fakeCluster(t *testing.T) func(*testscript.TestScript, bool, []string) {
	t.Helper()
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) < 1 || len(args) > 2 {
			ts.Fatalf("usage: fake-cluster OBJECTS [LOGS]")
		}
		b := deployertest.New(t)
		b.Added("shop", "1.0.0", deployertest.Content{})
		b.Server.Put(t, ts.ReadFile(args[0]))
		if len(args) == 2 {
			dir := ts.MkAbs(args[1])
			b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
				pod, ok := strings.CutSuffix(r.URL.Path, "/log")
				if !ok {
					return false
				}
				data, err := os.ReadFile(path.Join(dir, path.Base(pod), path.Base(r.URL.Query().Get("container"))))
				if err != nil {
					w.WriteHeader(http.StatusNotFound)
					return true
				}
				_, _ = w.Write(data) // the program may have ended
				return true
			}
		}
		ts.Setenv("KUBECONFIG", b.Server.Kubeconfig(t))
	}
}
