package schema

import "time"

// StoredArchive is the record of an archive in the store of a host: archives/<name>-<version>.json below
// /var/lib/solutionctl.
type StoredArchive struct {
	Stamp
	Name    string `json:"name" schema:"name"`
	Version string `json:"version" schema:"version"`
	// SHA256 is the digest of the whole file, in hexadecimal.
	SHA256 string        `json:"sha256" schema:"sha256"`
	Size   int64         `json:"size" schema:"minimum=1"`
	Chunks ArchiveChunks `json:"chunks"`
	// Original is the path that the archive was imported from.
	Original string `json:"original" schema:"minLength=1"`
	// InPlace archives are used at their original path, which is on a read-only medium.
	InPlace bool `json:"inPlace,omitempty"`
	// Payload is the digest of everything in the archive but its images.
	Payload string `json:"payload" schema:"digest?"`
	// Signers are the IDs of the keys whose signatures counted; there is none when the check was overridden.
	Signers    []string  `json:"signers"`
	ImportedAt time.Time `json:"importedAt"`
}

// ID is <name>-<version>.
func (a StoredArchive) ID() string { return a.Name + "-" + a.Version }

// ArchiveChunks are the digests of the pieces of an archive.
type ArchiveChunks struct {
	ChunkSize int64  `json:"chunkSize" schema:"minimum=65536 maximum=67108864"`
	Algorithm string `json:"algorithm" schema:"const=sha256"`
	Digests   []byte `json:"digests" schema:"minLength=44"` // the concatenated digests, base64 in JSON
}
