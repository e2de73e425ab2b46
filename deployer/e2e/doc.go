// Package e2e holds what is tested on a real cluster, in a module of its own so that what makes a cluster is no dependency
// of the program. Package testcluster starts clusters, a package for each area tests it, and testdata/script holds what a
// user does in a terminal.
//
// After a change of the requirements of the root module, run 'go mod tidy' here as well.
package e2e
