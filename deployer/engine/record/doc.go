// Package record keeps what was deployed: for each release a Secret with its revisions, and beside it their content.
//
// Start with [Store.State], which reads the record of a [Key], and [Store.Save], which writes it. A [State] is a value: its methods read
// revisions, or add to the history, and write nothing. Records lie compressed in namespace solutionctl-system, where a Solution cannot
// write. Earlier formats are read, and the current one is written at the first change.
//
// Content is stored under its digest, by [Store.StoreContent]; package record does not know what it means. It takes no lock: the caller
// does, see [cluster.WithGuard].
package record
