// Package cluster is a connection to a Kubernetes API server.
//
// Start with [Connect], which reads a kubeconfig and sends nothing. A [Cluster] reads and writes objects of any kind as
// [unstructured.Unstructured]: without typed clients, unknown kinds need no code. Every write has the field manager
// [FieldManager] and the UID and resource version of the planned object, and the [Guard] of its context is checked before it:
// usually the [Lock] that separates two administrators.
//
// Requests that were throttled, met a restart of the server or lost their connection are repeated if that is safe. Errors of the API
// server and the network are translated into sentences and codes of package report in errors.go; errors.As still finds the
// original, so that the functions of k8s.io/apimachinery/pkg/api/errors work.
//
// Package cluster knows objects, not Solutions or their meaning.
package cluster
