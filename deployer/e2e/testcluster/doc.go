// Package testcluster starts real Kubernetes clusters for tests: etcd and the components of Kubernetes, built from Go
// modules, on this machine, in seconds.
//
// A package of tests hands its TestMain to [Main]; a test that needs the cluster asks for it with [Shared], and the first
// one that does starts it. Programs call [Start]. The cluster of a process listens on a loopback address of its own, keeps
// everything in one temporary directory, and ends with the process, however that ends. When a test has failed, the logs of
// the components stay and their directory is printed.
//
// Nothing in here is a mock, and nothing here knows what a Solution is.
package testcluster
