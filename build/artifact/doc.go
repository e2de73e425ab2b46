// Package artifact keeps archives in OCI registries.
//
// An archive is an OCI artifact: its layout is the configuration, its frame is the first layer, and each blob of 64 KiB or more is a further
// one. Releases of one Solution share blobs, so that a registry gets, stores and serves only those that are new. The signatures are artifacts
// of their own that refer to it, as cosign stores them; so are bills of materials and OpenVEX documents of the archive. The same archive has
// the same digest in every registry.
//
// [New] makes the artifact of an archive, which [oci.NewPush] uploads. [Open] finds one, and [Remote.WriteFile] writes the archive to a file:
// the bytes that were pushed, or nothing. Blobs that older archives have are not asked for.
//
// The registry is not trusted. Blobs have the digests of the layout, the archive has the digest of the layout, and whether it may be used is
// decided by its signatures. See docs/adr/0037-archives-in-registries.md.
package artifact
