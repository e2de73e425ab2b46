package schema

// ImportReport is what `solutionctl deploy import` did.
type ImportReport struct {
	Archives []ArchiveReport `json:"archives"`
	// RegistryMode says who serves the images.
	RegistryMode RegistryMode `json:"registryMode"`
	// Recorded tells that the cluster knows the archives.
	Recorded bool `json:"recorded"`
	// Notices are what whoever runs the command should know, one sentence each.
	Notices []string `json:"notices"`
}

// ArchiveReport is one archive of an [ImportReport].
type ArchiveReport struct {
	Solution string `json:"solution"`
	Version  string `json:"version"`
	// Original is the path it was imported from, Path the one that it is used at from now on.
	Original string `json:"original"`
	Path     string `json:"path"`
	SHA256   string `json:"sha256"`
	Size     int64  `json:"size"`
	// Method is copied, reflinked, in-place or present.
	Method      string `json:"method"`
	BytesCopied int64  `json:"bytesCopied"`
	// Replaces is the digest of the archive of the same pre-release that was imported before.
	Replaces string `json:"replaces,omitempty"`
	// Signers are the names of the keys whose signatures counted.
	Signers []string `json:"signers"`
	// Mountpoint is where the archive is mounted; "" where it is not.
	Mountpoint string `json:"mountpoint,omitempty"`
}

// UnimportReport is what `solutionctl deploy unimport` did.
type UnimportReport struct {
	Solution string `json:"solution"`
	Version  string `json:"version"`
	// Path is empty when there was nothing to remove.
	Path string `json:"path"`
	// Freed is the size of the file that was removed: 0 for an archive that was used in place.
	Freed int64 `json:"freed"`
	// Recorded tells that the cluster does not know the archive any more.
	Recorded bool     `json:"recorded"`
	Notices  []string `json:"notices"`
}

// HostSettings is what the first import on a host decides: host.json below /var/lib/solutionctl.
type HostSettings struct {
	Stamp
	RegistryMode RegistryMode `json:"registryMode"`
}
