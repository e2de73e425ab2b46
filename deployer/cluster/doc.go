// Package cluster is a connection to a Kubernetes API server.
//
// Start with [Connect], which reads a kubeconfig and sends nothing. A [Cluster] reads and writes objects of any kind as
// [unstructured.Unstructured]: there are no typed clients, so that a kind the tool was never told about costs nothing.
// Every write belongs to [FieldManager], names the object it was planned for by its UID and resource version, and is
// preceded by the [Guard] of its context, usually the [Lock] that keeps two administrators apart.
//
// Requests that were throttled, met a server that restarts or lost their connection are sent again, where sending twice
// does the same as sending once. What the API server or the network say is translated into sentences and codes of package
// report in one place, translate in errors.go; the original stays reachable through errors.As, so that the functions of
// k8s.io/apimachinery/pkg/api/errors work.
//
// Package cluster knows objects, never Solutions, and nothing of what they mean.
package cluster
