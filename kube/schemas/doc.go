// Package schemas validates Kubernetes objects with the OpenAPI description of a Kubernetes release, offline.
//
// The descriptions of every supported release are embedded, reduced to the parts that validation needs. [Load] opens
// them once; [Catalogue.Release] selects a release; [Release.Validate] returns the faults of an object: unknown and
// missing fields, wrong types, values that are not in the enumeration, malformed quantities, dates and labels, list
// entries with the same key. [Release.Resource] and [Release.Resources] return the resources of the release and whether
// they are namespaced; [Catalogue.Lifecycle] returns when an API was deprecated and removed.
//
// The package does no I/O and knows nothing about files: a [Problem] has the path of a field, as
// spec.template.spec.containers[0].image, and the caller finds the line. Checks that only the API server can do are
// left out: admission, quotas, references to other objects, and the hundreds of rules that Kubernetes has in code.
package schemas

//go:generate go run ./internal/gen schemas.zst
