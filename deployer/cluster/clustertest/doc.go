// Package clustertest is an API server in memory, for tests of requests, plans, records and errors that do not depend on
// controllers. It starts in a millisecond.
//
// Start with [Start]. The server speaks HTTP as the real one does: discovery, get, list, watch, create, update, patch and
// delete, dry runs, preconditions, finalizers, owners, and namespaces that are deleted with their objects. Server-side apply is
// that of k8s.io/apimachinery, with managed fields and conflicts. It has no schemas of Kubernetes: lists are atomic, and nothing
// is defaulted or validated. Workloads become ready when they are written (see [Server.Stall]), and CustomResourceDefinitions are
// served at once.
//
// The tests of deployer/e2e prove that a real server agrees.
package clustertest
