package schema

// SyncReport lists the archives that `solutionctl deploy store sync` has copied from another host.
type SyncReport struct {
	// Source is the registry of the other host.
	Source   string          `json:"source"`
	Archives []SyncedArchive `json:"archives"`
	// Removed are the versions that were removed here, because neither the other host nor the cluster has them.
	Removed []SolutionAt `json:"removed"`
	DryRun  bool         `json:"dryRun"`
}

// SyncedArchive is an archive that the other host serves.
type SyncedArchive struct {
	Solution string `json:"solution"`
	Version  string `json:"version"`
	// SHA256 and Size are of the whole archive; the other host claims them until it is copied.
	SHA256 string    `json:"sha256,omitempty" schema:"sha256"`
	Size   int64     `json:"size" schema:"minimum=0"`
	State  SyncState `json:"state" schema:"enum=present|imported|missing|failed"`
	// Fetched is how many bytes were transferred for it; the others were in archives of this host.
	Fetched int64    `json:"fetched" schema:"minimum=0"`
	Signers []string `json:"signers"`
	Notices []string `json:"notices"`
	// Reason is why an archive was refused or could not be copied.
	Reason string `json:"reason,omitempty"`
}

// SyncState is the outcome for an archive of another host.
type SyncState string

// The states.
const (
	SyncPresent  SyncState = "present"  // this host has it
	SyncImported SyncState = "imported" // copied and imported
	SyncMissing  SyncState = "missing"  // it would be copied
	SyncFailed   SyncState = "failed"   // refused, or not copied
)
