package schema

// ImportReport holds the archives that `solutionctl deploy import` has imported, which prints it.
type ImportReport struct {
	Archives []ArchiveReport `json:"archives"`
	// RegistryMode is how the images are served.
	RegistryMode RegistryMode `json:"registryMode"`
	// Pushed are the images that were pushed to a registry of the site, by archive.
	Pushed []PushReport `json:"pushed,omitempty"`
	// Recorded is true when the archives are recorded in the cluster.
	Recorded bool `json:"recorded"`
	// Notices are remarks for the user, one sentence each.
	Notices []string `json:"notices"`
}

// ArchiveReport is one archive of an [ImportReport].
type ArchiveReport struct {
	Solution string `json:"solution"`
	Version  string `json:"version"`
	// Original is the path that it was imported from.
	Original string `json:"original"`
	// Path is the path that it is used at from now on.
	Path   string `json:"path"`
	SHA256 string `json:"sha256" schema:"sha256"`
	Size   int64  `json:"size" schema:"minimum=1"`
	// Method is how the archive came into the store; a present one was there before.
	Method      string `json:"method" schema:"enum=copied|reflinked|linked|in-place|present"`
	BytesCopied int64  `json:"bytesCopied" schema:"minimum=0"`
	// Replaces is the digest of the archive of the same pre-release that was imported before.
	Replaces string `json:"replaces,omitempty" schema:"sha256"`
	// Signers are the names of the keys whose signatures counted.
	Signers []string `json:"signers"`
	// Powers lists what the archive can do to a cluster beyond what a Solution may do without approval, one line each.
	Powers []string `json:"powers"`
	// Mountpoint is where the archive is mounted; "" where it is not.
	Mountpoint string `json:"mountpoint,omitempty"`
}

// UnimportReport names the archive that `solutionctl deploy unimport` has removed, which prints it.
type UnimportReport struct {
	// Solution and Version are empty when nothing exists at the path and they cannot be read from it.
	Solution string `json:"solution"`
	Version  string `json:"version"`
	// Path is empty when there was nothing to remove.
	Path string `json:"path"`
	// Freed is the size of the file that was removed: 0 for an archive that was used in place.
	Freed int64 `json:"freed" schema:"minimum=0"`
	// Recorded is true when the cluster's record of the archive was deleted.
	Recorded bool     `json:"recorded"`
	Notices  []string `json:"notices"`
}

// HostSettings holds the choices of the first import on a host. It is stored in host.json below /var/lib/solutionctl.
type HostSettings struct {
	Stamp
	RegistryMode RegistryMode `json:"registryMode"`
}
