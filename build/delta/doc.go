// Package delta makes archives from older archives and the bytes that are new.
//
// [Create] writes a delta. [Open] reads one, and [Delta.Archive] returns the archive that it makes with the archives that it
// needs: an [io.ReaderAt], so that the archive is verified and imported without being written anywhere before.
// [Archive.WriteFile] writes it.
//
// A delta is a tar file without any freedom: delta.json (schema.ArchiveDelta), the signatures of the new archive, the frame, and
// the blobs that the older archives do not have, in the order of the layout. A byte that is not expected is refused. Nothing in
// a delta is trusted: the result has the digest that it names or is refused, and whether that archive may be used is decided by
// its signatures.
//
// Memory does not depend on the size of an archive, only on the number of its files.
package delta
