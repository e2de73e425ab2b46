// Package clustertest is an API server in memory, for tests that are about what is asked and written and not about
// Kubernetes: which plan follows from what is there, what a record says afterwards, which error a refusal becomes. It
// starts in a millisecond.
//
// Start with [Start]. The server speaks HTTP as the real one does: discovery, get, list, watch, create, update, patch and
// delete, dry runs, preconditions, finalizers, owners, namespaces that go with all that is in them. Server-side apply is
// that of k8s.io/apimachinery, with managed fields and conflicts; what it lacks are the schemas of Kubernetes, so that
// lists are atomic, nothing is defaulted and nothing is invalid. Workloads become ready when they are written (see
// [Server.Stall]), definitions are established and served.
//
// That the real server agrees is proven by the tests of deployer/e2e.
package clustertest
