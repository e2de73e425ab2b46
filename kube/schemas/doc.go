// Package schemas judges Kubernetes objects against the OpenAPI description of a Kubernetes release, offline.
//
// The descriptions of every supported release are embedded, reduced to what validation needs. [Load] opens them once;
// [Catalogue.Release] selects a release; [Release.Validate] says what is wrong with an object: unknown and missing
// fields, wrong types, values that are not in the enumeration, malformed quantities, dates and labels, list entries
// with the same key. [Release.Resource] and [Release.Resources] tell which resources the release serves and whether
// they live in namespaces; [Catalogue.Lifecycle] tells when an API was deprecated and removed.
//
// The package does no I/O and knows nothing about files: a [Problem] carries the path of a field, as
// spec.template.spec.containers[0].image, and the caller finds the line. What only the API server can know is not
// judged: admission, quotas, references to other objects, and the hundreds of rules that Kubernetes has in code.
package schemas

//go:generate go run ./internal/gen schemas.zst
