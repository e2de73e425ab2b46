// Package layout takes archives apart, and puts them together again.
//
// An archive is its blobs, which are its larger files, and its frame: all bytes around them, compressed in blocks. The document
// [schema.ArchiveLayout] has their order. Releases of one Solution share most blobs, so that deltas have, and registries
// get, only those that are new.
//
// [TakeApart] describes an archive. [Assemble] returns the archive of a document, wherever its frame and its blobs lie: an [io.ReaderAt], so
// that it is verified and imported without being written anywhere before. An [Index] finds blobs in another archive.
//
// Documents are not trusted: what is put together has the digest that its document names or is refused, and whether that archive may be
// used is decided by its signatures. Memory does not depend on the size of an archive, only on the number of its files.
package layout
