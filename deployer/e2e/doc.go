// Package e2e has the tests on a real cluster, in a module of its own so that the parts of a cluster are not dependencies
// of the program. Package testcluster starts clusters, a package for each area tests it, and testdata/script holds what a
// user does in a terminal.
//
// After a change of the requirements of the root module, run 'go mod tidy' here as well.
package e2e
